//! Children that a run begins after it left its log.
//!
//! What such a child does until it executes a program is tried out in a fork of the trial. If
//! it executes what a child of the recorded run executed, with the same arguments, environment
//! and descriptors, and if all that is outside is as it was then, it ends as that one did. If
//! it ends without having executed anything, or touched anything that its parent can see, its
//! end is known too. For any other the trial ends.

use super::calls::error;
use super::children::Begun;
use super::walker::fork;
use super::world::{Kind, World};
use super::{Sandbox, Served, Stopped};
use crate::hash;
use crate::kernel::forks::Birth;
use crate::kernel::process::Asked;
use crate::kernel::table;
use crate::record::beginning::Beginning;
use crate::record::exec::read_strings;
use recording::event::Event;
use recording::{Born, Recording};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a process is that executes a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Execution {
    path: Vec<u8>,
    argv: Vec<Vec<u8>>,
    env: Vec<Vec<u8>>,
    cwd: Vec<u8>,
    ignored: u64,
    mask: u64,
    descriptors: Vec<i32>,
}

/// How a child that was tried out ended, and the pages that it wrote to.
#[derive(Serialize, Deserialize)]
struct Tried {
    end: End,
    pages: Vec<(u64, Vec<u8>)>,
    /// Steps that it took: they count as its parent's.
    steps: u64,
}

#[derive(Serialize, Deserialize)]
enum End {
    Executed(Execution),
    Exited(i32),
}

/// A run that begins more children is given up.
const MOST: usize = 1000;
/// Room for what a fork says.
const ROOM: usize = 4 << 20;
const PAGE: usize = 4096;

/// What children of a process executed, by process number: those that only looked after their
/// signals and memory before.
pub fn executions(recording: &Recording) -> BTreeMap<i32, Execution> {
    let Ok(logs) = recording.logs() else { return BTreeMap::new() };
    let own = recording.process().log;
    let executed = logs.iter().filter_map(|log| {
        let Born::Executed { from } = log.process().born else { return None };
        let forked = logs.iter().find(|log| log.process().log == from)?;
        let is_child = matches!(forked.process().born, Born::Forked { from, .. } if from == own);
        if !is_child || !is_plain(forked) {
            return None;
        }
        let beginning: Beginning = serde_json::from_value(log.manifest().start.clone()).ok()?;
        let mut descriptors: Vec<i32> =
            beginning.handed_on?.descriptors.iter().map(|handed| handed.fd).collect();
        descriptors.sort_unstable();
        let execution = Execution {
            path: beginning.start.path,
            argv: beginning.start.argv,
            env: beginning.start.env,
            cwd: beginning.cwd,
            ignored: beginning.ignored,
            mask: beginning.mask,
            descriptors,
        };
        Some((log.process().pid, execution))
    });
    executed.collect()
}

/// Did a process do nothing that its descriptors or the outside would show?
fn is_plain(forked: &Recording) -> bool {
    let Ok(mut reader) = forked.own_reader() else { return false };
    loop {
        match reader.next().map(|event| event.map(Event::decode)) {
            Ok(None) => return true,
            Ok(Some(Ok(Event::Call { number, .. }))) => match number {
                table::fork | table::vfork | table::clone | table::execve => {}
                table::rt_sigaction | table::rt_sigprocmask => {}
                table::getpid | table::gettid | table::set_robust_list | table::rseq => {}
                table::mmap | table::munmap | table::mprotect | table::brk | table::futex => {}
                _ => return false,
            },
            Ok(Some(Ok(Event::Signal { .. }))) => return false,
            Ok(Some(Ok(_))) => {}
            Ok(Some(Err(_))) | Err(_) => return false,
        }
    }
}

impl World {
    /// Are there ways by which a new child could be reached?
    pub fn is_connected(&self) -> bool {
        self.descriptors().iter().any(|fd| {
            let kind = self.get(*fd).map(|open| &open.kind);
            matches!(kind, Some(Kind::Pipe { .. } | Kind::Event { .. }))
        })
    }

    fn inherited(&self) -> Vec<i32> {
        self.descriptors().into_iter().filter(|fd| !self.close_on_exec(*fd)).collect()
    }
}

impl Sandbox {
    /// A call that makes a process.
    pub(super) fn new_child(&mut self, asked: &Asked) -> Served {
        let needed = Served::End(Stopped::NeedsChild);
        let Some(birth) = Birth::of(asked) else { return error(libc::EINVAL) };
        let many = self.world.begun.len() >= MOST;
        if self.is_child || many || self.world.is_connected() || self.would_notice_a_child() {
            return needed;
        }
        let outside = self.world.outside();
        self.next_tid = self.unused_number();
        let Some(tried) = self.try_out(asked, &birth) else { return needed };
        self.left = self.left.saturating_sub(tried.steps);
        let pid = match tried.end {
            End::Exited(status) => {
                let pid = self.next_tid;
                self.next_tid += 1;
                let death = (status & 0xff) << 8;
                self.world.facts.deaths.insert(pid, death.to_le_bytes().to_vec());
                pid
            }
            End::Executed(execution) => {
                let facts = &self.world.facts;
                let same = |(pid, then): &(&i32, &Execution)| {
                    **then == execution
                        && facts.outside.get(*pid) == Some(&outside)
                        && !self.world.begun.contains(*pid)
                };
                let Some((pid, _)) = facts.executions.iter().find(same) else { return needed };
                *pid
            }
        };
        for (page, bytes) in &tried.pages {
            if birth.lends_memory() && !self.replayer.process.write_from_log(*page, bytes) {
                return needed;
            }
        }
        self.world.begun.insert(pid);
        self.world.children.insert(pid, Begun { connected: false });
        self.replayer.process.has_forked(&birth, pid);
        Served::Value(pid.into())
    }

    /// Would the run be told of a child by more than what it waits for: by a signal, or by
    /// memory that both have?
    fn would_notice_a_child(&self) -> bool {
        let process = &self.replayer.process;
        let mut regions = process.machine.memory.regions();
        let shares =
            regions.any(|(_, region)| region.shared && region.prot & libc::PROT_WRITE != 0);
        shares || process.actions.get(libc::SIGCHLD).handler != 0
    }

    /// A number that no thread has, and no process of the recorded run had.
    fn unused_number(&self) -> i32 {
        let facts = &self.world.facts;
        let is_known = |pid: &i32| {
            self.world.begun.contains(pid)
                || facts.deaths.contains_key(pid)
                || facts.executions.contains_key(pid)
                || facts.outside.contains_key(pid)
        };
        let mut numbers = self.next_tid..;
        numbers.find(|pid| !is_known(pid)).unwrap_or(self.next_tid)
    }

    /// Lets a fork go on as the child. `None` if it does not come to a known end.
    fn try_out(&mut self, asked: &Asked, birth: &Birth) -> Option<Tried> {
        let answer = Answer::new()?;
        self.replayer.process.machine.cache.share_with_forks(true);
        let child = fork(|| {
            let tried = self.go_on_as_child(asked, birth);
            if let Some(bytes) = tried.and_then(|tried| postcard::to_allocvec(&tried).ok()) {
                answer.put(&bytes);
            }
        });
        child.ok()?.ends_well().then(|| postcard::from_bytes(answer.get()?).ok()).flatten()
    }

    fn go_on_as_child(&mut self, asked: &Asked, birth: &Birth) -> Option<Tried> {
        self.is_child = true;
        self.rejoins = None;
        let before = (self.world.shared(), self.world.descriptions(), self.world.umask);
        let (opens, left) = (self.world.opens_by_number(), self.left);
        self.world.children.clear();
        // A child has none of its parent's signals and alarms.
        self.signals = Default::default();
        let current = self.replayer.current;
        self.replayer.tasks.retain(|thread, _| *thread == current);
        self.waiting.clear();
        self.finish(asked, 0);
        let pid = self.next_tid;
        self.replayer.pid = pid;
        let context = self.replayer.context();
        let task = self.replayer.tasks.get_mut(&current)?;
        self.replayer.process.is_forked(birth, pid, task, context);
        let stopped = self.run(&mut ());
        if (self.world.shared(), self.world.umask) != (before.0, before.2) {
            return None;
        }
        // What it moved, changed or closed, its parent has too.
        let now = self.world.opens_by_number();
        if opens.iter().any(|(number, open)| now.get(number) != Some(open)) {
            return None;
        }
        let end = match (self.executed.take(), stopped) {
            (Some(execution), _) => {
                // What it inherits must be what its parent had.
                let now = self.world.descriptions();
                let same = |fd: &i32| now.get(fd) == before.1.get(fd);
                execution.descriptors.iter().all(same).then_some(End::Executed(execution))?
            }
            (None, Stopped::Exited(status)) => End::Exited(status),
            _ => return None,
        };
        let pages = match birth.lends_memory() {
            true => self.pages_written()?,
            false => Vec::new(),
        };
        Some(Tried { end, pages, steps: left.saturating_sub(self.left) })
    }

    fn pages_written(&self) -> Option<Vec<(u64, Vec<u8>)>> {
        let memory = &self.replayer.process.machine.memory;
        let pages = hash::pages_written_anew(memory)?;
        pages.into_iter().map(|page| Some((page, memory.read(page, PAGE)?))).collect()
    }

    /// `execve`: known of children only.
    pub(super) fn execute(&mut self, asked: &Asked) -> Served {
        let [path, argv, env, ..] = asked.args;
        let r = &self.replayer;
        let memory = &r.process.machine.memory;
        if let (true, Some(path), Some(argv), Some(env)) = (
            self.is_child && r.tasks.len() == 1,
            memory.read_string(path, 4096),
            read_strings(memory, argv),
            read_strings(memory, env),
        ) {
            let ignored = (1..=64).filter(|n| r.process.actions.get(*n).handler == 1);
            self.executed = Some(Execution {
                path,
                argv,
                env,
                cwd: self.world.cwd.clone(),
                ignored: ignored.fold(0, |set, signal| set | crate::signal::only(signal)),
                mask: r.tasks.values().next().map_or(0, |task| task.mask),
                descriptors: self.world.inherited(),
            });
        }
        Served::End(Stopped::NeedsChild)
    }
}

/// Memory in which a fork leaves what it has to say.
struct Answer(*mut u8);

impl Answer {
    fn new() -> Option<Answer> {
        let (prot, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: new memory, wherever the kernel has room.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), ROOM, prot, flags, -1, 0) };
        (at != libc::MAP_FAILED).then_some(Answer(at.cast()))
    }

    fn put(&self, bytes: &[u8]) {
        if bytes.len() + 8 <= ROOM {
            // SAFETY: within the map; the parent looks only when this process has ended.
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.add(8), bytes.len());
                self.0.cast::<u64>().write(bytes.len() as u64);
            }
        }
    }

    /// `None` if nothing was said.
    fn get(&self) -> Option<&[u8]> {
        // SAFETY: within the map; the fork has ended.
        let len = unsafe { self.0.cast::<u64>().read() } as usize;
        let is_there = len > 0 && len + 8 <= ROOM;
        // SAFETY: as above, and so many bytes were put there.
        is_there.then(|| unsafe { std::slice::from_raw_parts(self.0.add(8), len) })
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // SAFETY: our own map, which nobody refers to any more.
        unsafe { libc::munmap(self.0.cast(), ROOM) };
    }
}
