//! `fork`, `vfork` and `clone` while recording: the child is recorded too, by a fork of
//! the recorder, into a log of its own.

use super::lending::{Borrower, Lender, lend};
use super::session::{Counters, Runner, Session};
use crate::Error;
use crate::code::Cache;
use crate::kernel::forks::Birth;
use crate::kernel::process::Asked;
use crate::signal::host;
use recording::event::{Effect, Encoder, When};
use recording::{Born, ByteString, Manifest, Process as Whose, Writer};
use std::time::{Duration, Instant};

/// Most processes say little.
const FRAME_BYTES: usize = 256 << 10;

/// What the child needs from before the fork.
struct Child {
    birth: Birth,
    log: u64,
    born: Born,
    /// What was translated so far; nothing, if the child will hardly run before it
    /// executes a program.
    cache: Option<Cache>,
    lender: Option<Lender>,
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
        host::set_mask(!0);
        // SAFETY: this thread holds the turn, so no other is inside the session; the
        // child goes on with this thread alone, and gets a turn of its own.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            drop(borrower);
            return self.be_child(asked, state, child);
        }
        let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EAGAIN);
        drop(child);
        if pid < 0 {
            host::set_mask(self.task.mask);
            return self.finish_call(asked, -(error as i64), state, &[]);
        }
        self.be_parent(asked, state, (log, pid), borrower, &birth);
    }

    fn be_parent(
        &mut self,
        asked: &Asked,
        state: u32,
        (log, pid): (u64, i32),
        borrower: Option<Borrower>,
        birth: &Birth,
    ) {
        let session = self.session();
        let written = match borrower {
            Some(borrower) => {
                session.open_commons();
                let written = borrower.wait();
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
        crate::clerk::forget();
        host::forget_pending();
        crate::hash::renew_pagemap();
        // SAFETY: no memory is involved.
        let pid = unsafe { libc::getpid() };
        let session = self.session();
        if let Err(error) = session.begin_log(&child, pid) {
            session.give_up(&error);
        }
        let cache = &mut session.process.machine.cache;
        let own = match child.cache {
            Some(copy) => cache.adopt(copy),
            None => Cache::new().map(|new| *cache = new),
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
        let child = Child {
            birth,
            log: self.tree.new_log(),
            born: Born::Forked { from: self.number, events },
            cache: match birth.parent_waits() {
                true => None,
                false => Some(self.process.machine.cache.copy()?),
            },
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
        self.open_log(manifest)?;
        self.pid = pid;
        self.encoder = Encoder::default();
        self.counters = Counters::default();
        self.partly_captured.clear();
        self.unsupported.clear();
        self.last_hash = Instant::now();
        self.hash_cost = Duration::ZERO;
        Ok(())
    }

    /// Writes to a new log of the recording from now on.
    pub(super) fn open_log(&mut self, manifest: Manifest) -> Result<(), Error> {
        let number = manifest.process.log;
        let options = recording::Options {
            max_bytes: self.max_bytes,
            frame_bytes: FRAME_BYTES,
            lowest_fd: crate::sys::first_engine_fd(),
        };
        let dir = &self.dir;
        let writer = crate::clerk::run(|| {
            let folder = recording::prepare_process(dir, number)?;
            Writer::create(&folder, &manifest, &options)
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
