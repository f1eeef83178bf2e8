//! `fork`, `vfork` and `clone` while recording: the child is recorded too, by a fork of
//! the recorder, into a log of its own.

use super::lending::{Borrower, Lender, lend};
use super::rights::Rights;
use super::session::{Counters, Runner, Session};
use crate::code::Cache;
use crate::code::cache::{Loan, spare};
use crate::kernel::forks::Birth;
use crate::kernel::process::Asked;
use crate::signal::host;
use crate::{Error, Refusal};
use recording::event::{Effect, Encoder, When};
use recording::{Born, ByteString, Manifest, Process as Whose, SpareTail, Writer};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Most processes say little.
const FRAME_BYTES: usize = 256 << 10;

/// What the child needs from before the fork.
struct Child {
    birth: Birth,
    log: u64,
    born: Born,
    cache: ForChild,
    lender: Option<Lender>,
}

/// Where the child's translations will be.
enum ForChild {
    /// With what was translated so far.
    Copy(Cache),
    /// In the parent's own, which waits until the child executes a program; that one's will
    /// be in this file.
    Lent(Loan, OwnedFd),
    /// In this file, with nothing: the child will hardly run before it executes a program.
    Empty(OwnedFd),
}

impl ForChild {
    fn loan(&self) -> Option<Loan> {
        match self {
            ForChild::Lent(loan, _) => Some(*loan),
            ForChild::Copy(_) | ForChild::Empty(_) => None,
        }
    }
}

/// A runner whose own thread waits.
struct Lent<'a>(&'a mut Runner);

// SAFETY: its thread does nothing until the one it was sent to is done with it.
unsafe impl Send for Lent<'_> {}

/// What `fork` said.
fn outcome(pid: i32) -> Result<i32, i32> {
    let error = std::io::Error::last_os_error();
    if pid < 0 { Err(error.raw_os_error().unwrap_or(libc::EAGAIN)) } else { Ok(pid) }
}

impl Runner {
    /// Makes a process.
    pub(super) fn fork(&mut self, asked: &Asked, state: u32) {
        let session = self.session();
        let Some(birth) = Birth::of(asked) else {
            session.note_unsupported(&crate::kernel::table::call(asked.number));
            return self.finish_call(asked, -(libc::ENOSYS as i64), state, &[]);
        };
        session.prepare_commons();
        let prepared = session.prepare_child(birth);
        let (child, borrower) = match prepared {
            Ok(prepared) => prepared,
            Err(_) => return self.finish_call(asked, -(libc::EAGAIN as i64), state, &[]),
        };
        let log = child.log;
        let loan = child.cache.loan();
        host::set_mask(!0);
        let made = if crate::clerk::is_hired() {
            self.fork_with_clerk(asked, state, child)
        } else {
            // SAFETY: this thread holds the turn, so no other is inside the session; the
            // child goes on with this thread alone, and gets a turn of its own.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                drop(borrower);
                crate::clerk::forget();
                return self.be_child(asked, state, child);
            }
            let made = outcome(pid);
            // Its end of the pipe is the child's alone.
            drop(child);
            made
        };
        match made {
            Ok(pid) => {
                spare::is_of(pid);
                let waits = borrower.map(|borrower| (borrower, loan));
                self.be_parent(asked, state, (log, pid), waits, &birth);
            }
            Err(errno) => {
                host::set_mask(self.task.mask);
                self.finish_call(asked, -(errno as i64), state, &[]);
            }
        }
    }

    /// The guest has given up rights that its recorder needs: the thread that still has
    /// them makes the fork. In the child it becomes the guest's thread, with the guest's
    /// rights, and another one takes its place.
    fn fork_with_clerk(&mut self, asked: &Asked, state: u32, child: Child) -> Result<i32, i32> {
        let rights = Rights::of_this_thread();
        self.context().regs.gs = crate::kernel::calls::gs();
        let asked = *asked;
        let runner = Lent(self);
        crate::clerk::run(move || {
            let runner = runner;
            // SAFETY: as above; the thread that holds the turn waits for this one.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                runner.0.go_on_as_clerk(&asked, state, child, &rights);
            }
            outcome(pid)
        })
    }

    fn go_on_as_clerk(&mut self, asked: &Asked, state: u32, child: Child, rights: &Rights) -> ! {
        crate::clerk::forget();
        crate::clerk::hire();
        let ready = host::set_up_thread().is_ok() && rights.take();
        host::set_mask(!0);
        let gs = self.context().regs.gs;
        self.be_child(asked, state, child);
        let session = self.session();
        super::signals::take_back_signals(&session.process.actions);
        if !ready {
            session.give_up(&Error::Refused(Refusal::Rights));
        }
        self.task.regs.clone_from(&Box::new(self.context().regs.clone()));
        self.task.regs.gs = gs;
        self.in_call = false;
        self.run();
        loop {
            // SAFETY: waits for ever; the process ends by `_exit`.
            unsafe { libc::pause() };
        }
    }

    fn be_parent(
        &mut self,
        asked: &Asked,
        state: u32,
        (log, pid): (u64, i32),
        waits: Option<(Borrower, Option<Loan>)>,
        birth: &Birth,
    ) {
        let session = self.session();
        let written = match waits {
            Some((borrower, loan)) => {
                session.open_commons();
                let written = borrower.wait();
                if let Some(loan) = loan {
                    session.process.machine.take_back_cache(loan, written.leaves_cache());
                }
                session.close_commons(When::Here);
                written
            }
            None => Default::default(),
        };
        host::set_mask(self.task.mask);
        let memory = &session.process.machine.memory;
        let changes = if birth.lends_memory() { written.changes(memory) } else { Vec::new() };
        let changes: Vec<(u64, Vec<u8>)> = changes
            .into_iter()
            .filter(|(address, data)| session.process.write_from_log(*address, data))
            .collect();
        let forked = Effect::Forked { log, pid: pid as u32 };
        let writes =
            changes.iter().map(|(address, data)| Effect::Write { address: *address, data });
        let effects: Vec<Effect> = std::iter::once(forked).chain(writes).collect();
        self.finish_call(asked, pid as i64, state, &effects);
        session.process.has_forked(birth, pid);
    }

    /// Becomes the recorder of the new process.
    fn be_child(&mut self, asked: &Asked, state: u32, child: Child) {
        // SAFETY: the thread that holds the turn made the fork, and it is the only one
        // here.
        self.shared = unsafe { self.shared.alone() };
        host::forget_pending();
        crate::pages::renew_pagemap();
        // SAFETY: no memory is involved.
        let pid = unsafe { libc::getpid() };
        let session = self.session();
        if let Err(error) = session.begin_log(&child, pid) {
            session.give_up(&error);
        }
        let cache = &mut session.process.machine.cache;
        let own = match child.cache {
            ForChild::Copy(copy) => cache.adopt(copy),
            ForChild::Lent(_, next) => {
                cache.borrow_until_exec(next);
                Ok(())
            }
            ForChild::Empty(file) => {
                spare::forget();
                Cache::new_in(file).map(|new| *cache = new)
            }
        };
        if let Err(error) = own {
            session.give_up(&Error::Io { what: "cannot map the code cache", error });
        }
        session.lender = child.lender;
        session.current = self.task.thread;
        session.threads = 1;
        session.tids = std::collections::BTreeSet::from([pid]);
        let context = self.context();
        let effects = [Effect::Forked { log: child.log, pid: pid as u32 }];
        self.finish_call(asked, 0, state, &effects);
        session.process.is_forked(&child.birth, pid, &mut self.task, context);
        session.close_commons(When::Safepoint(self.task.safepoints));
        host::set_mask(self.task.mask);
    }
}

impl Session {
    fn prepare_child(&mut self, birth: Birth) -> std::io::Result<(Child, Option<Borrower>)> {
        let events = self.writer.as_ref().map_or(0, Writer::events);
        let (lender, borrower) = match birth.parent_waits() {
            true => lend().map(|(lender, borrower)| (Some(lender), Some(borrower)))?,
            false => (None, None),
        };
        let cache = &mut self.process.machine.cache;
        let cache = match birth.parent_waits() {
            true => match (cache.lend(), spare::for_child()?) {
                (Some(loan), file) => ForChild::Lent(loan, file),
                (None, file) => ForChild::Empty(file),
            },
            false => ForChild::Copy(cache.copy()?),
        };
        let child = Child {
            birth,
            log: self.tree.new_log(),
            born: Born::Forked { from: self.number, events },
            cache,
            lender,
        };
        Ok((child, borrower))
    }

    /// A log for the process that this recorder has just become.
    fn begin_log(&mut self, child: &Child, pid: i32) -> Result<(), Error> {
        // Its descriptor and its map are copies; what is in them is the parent's.
        drop(self.writer.take());
        let mut manifest = self.manifest.clone();
        manifest.process = Whose { log: child.log, pid, born: child.born };
        manifest.start = serde_json::Value::Null;
        manifest.environment = Vec::new();
        self.open_log(manifest, None)?;
        self.pid = pid;
        self.ends_with_recorder = false;
        self.encoder = Encoder::default();
        if let Some(chaos) = &mut self.chaos {
            chaos.fork(child.log);
        }
        self.counters = Counters::default();
        self.partly_captured.clear();
        self.unsupported.clear();
        self.last_hash = Instant::now();
        self.hash_cost = Duration::ZERO;
        Ok(())
    }

    /// Writes to a new log of the recording from now on.
    pub(super) fn open_log(
        &mut self,
        manifest: Manifest,
        spare: Option<SpareTail>,
    ) -> Result<(), Error> {
        let number = manifest.process.log;
        let options = recording::Options {
            max_bytes: self.max_bytes,
            total: Some(self.tree.bytes()),
            frame_bytes: FRAME_BYTES,
            lowest_fd: crate::sys::first_engine_fd(),
        };
        let dir = &self.dir;
        let writer = crate::clerk::run(|| {
            let folder = recording::prepare_process(dir, number)?;
            Writer::create_with(&folder, &manifest, &options, spare)
        })?;
        self.writer = Some(writer);
        self.number = number;
        self.manifest = manifest;
        Ok(())
    }

    /// A command line for the manifest of a program that was executed.
    pub(super) fn command(argv: &[Vec<u8>]) -> Vec<ByteString> {
        argv.iter().map(|word| ByteString(word.clone())).collect()
    }
}
