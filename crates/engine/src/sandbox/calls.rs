//! System calls after the log was left: who answers which.

use super::follow::{constant_key, is_constant};
use super::schedule::Waiting;
use super::world::{Kind, Name};
use super::{Sandbox, Served, Stopped, Stream, Watcher};
use crate::guest::task::Thread;
use crate::kernel::files::{FileIdText, What};
use crate::kernel::memory::{Map, Source};
use crate::kernel::process::{Asked, NoWorld};
use crate::kernel::table::{self, How};
use crate::record::session::enter_call;

/// An error as a call returns it.
pub(super) const fn error(errno: i32) -> Served {
    Served::Value(-(errno as i64))
}

/// A call that nobody can answer.
pub(super) fn unserved(what: impl Into<String>) -> Served {
    Served::End(Stopped::Unserved(what.into()))
}

impl Sandbox {
    /// A `syscall` instruction.
    pub(super) fn call(&mut self, watcher: &mut dyn Watcher) -> Option<Stopped> {
        let context = self.replayer.context();
        let asked = Asked::of(context);
        enter_call(context);
        let current = self.replayer.current;
        let task = self.replayer.tasks.get_mut(&current).expect("the running thread");
        self.replayer.process.temporary_mask(task, &asked);
        self.world.tick(1000);
        match self.serve(&asked) {
            Served::Value(value) => self.finish(&asked, value),
            Served::Nothing => {}
            Served::End(stopped) => return Some(stopped),
            Served::Waits(deadline) => {
                let entry = self.waiting.entry(current).or_insert(Waiting::again(asked));
                entry.deadline = deadline;
                entry.fresh = false;
            }
        }
        self.show(watcher)
    }

    /// Shows the watcher what was written.
    fn show(&mut self, watcher: &mut dyn Watcher) -> Option<Stopped> {
        for (n, stream) in [Stream::Out, Stream::Err].into_iter().enumerate() {
            let now = self.world.outputs[n].len();
            if now > self.wrote[n] {
                self.wrote[n] = now;
                if !watcher.output(stream, &self.world.outputs[n]) {
                    return Some(Stopped::Enough);
                }
            }
        }
        None
    }

    /// Answers a call, or says that it waits.
    pub(super) fn serve(&mut self, asked: &Asked) -> Served {
        let row = table::call(asked.number);
        if row.how == How::Missing {
            return error(libc::ENOSYS);
        }
        if let Some(served) = self.own(asked) {
            return served;
        }
        if is_constant(asked.number as u32) {
            return self.constant(asked);
        }
        let served = self.file_call(asked);
        let served = served.or_else(|| self.name_call(asked));
        let served = served.or_else(|| self.stream_call(asked));
        let served = served.or_else(|| self.time_call(asked));
        let served = served.or_else(|| self.signal_call(asked));
        served.unwrap_or_else(|| self.simple(asked))
    }

    /// Calls on the process itself.
    fn own(&mut self, asked: &Asked) -> Option<Served> {
        let a = &asked.args;
        let number = asked.number as u32;
        if grows(asked)
            && let Some(refused) = self.refuse_memory(asked)
        {
            return Some(refused);
        }
        let context = self.replayer.context();
        let current = self.replayer.current;
        let task = self.replayer.tasks.get_mut(&current).expect("the running thread");
        let process = &mut self.replayer.process;
        if let Some(value) = process.own_call(task, context, asked.number, a, &mut NoWorld) {
            return Some(Served::Value(value));
        }
        Some(match number {
            table::mmap => self.map(asked),
            table::exit_group => Served::End(Stopped::Exited(a[0] as i32 & 0xff)),
            table::exit => self.thread_over(a[0]),
            table::clone => self.clone_thread(asked),
            table::fork | table::vfork => Served::End(Stopped::NeedsChild),
            table::execve => Served::End(Stopped::NeedsChild),
            table::wait4 | table::waitid => error(libc::ECHILD),
            table::futex => self.futex(asked),
            table::getpid => Served::Value(self.replayer.pid.into()),
            table::gettid => Served::Value(self.replayer.task().tid.into()),
            table::rt_sigreturn => {
                if process.signal_return(task, context, &mut NoWorld) {
                    Served::Nothing
                } else {
                    let pc = context.regs.rip;
                    Served::End(Stopped::Killed { signal: libc::SIGSEGV, pc, address: None })
                }
            }
            table::getrlimit | table::setrlimit | table::prlimit64 => self.limit(asked),
            _ => return None,
        })
    }

    /// A trial may not take all memory. `None` if it may have this.
    fn refuse_memory(&mut self, asked: &Asked) -> Option<Served> {
        let a = &asked.args;
        let more = match asked.number as u32 {
            table::brk => a[0].saturating_sub(self.replayer.process.machine.memory.brk),
            table::mremap => a[2].saturating_sub(a[1]),
            _ => a[1],
        };
        let writable = asked.number as u32 != table::mmap || a[2] as i32 & libc::PROT_WRITE != 0;
        if !writable || more == 0 {
            return None;
        }
        if more >= 1 << 40 {
            // No machine would grant that.
            return match asked.number as u32 {
                table::brk => None,
                _ => Some(error(libc::ENOMEM)),
            };
        }
        let regions = self.replayer.process.machine.memory.regions();
        let now: u64 = regions
            .filter(|(_, r)| r.prot & libc::PROT_WRITE != 0)
            .map(|(start, r)| r.end - start)
            .sum();
        (now + more > self.limits.memory).then_some(Served::End(Stopped::MemoryLimit))
    }

    fn map(&mut self, asked: &Asked) -> Served {
        let map = Map::of(&asked.args);
        let process = &mut self.replayer.process;
        if map.is_anonymous() {
            return Served::Value(process.map(&map, Source::Nothing));
        }
        let node = match self.world.get(map.fd).map(|open| open.kind.clone()) {
            None => return error(libc::EBADF),
            Some(Kind::File(node)) => node,
            Some(Kind::Zero) => return Served::Value(process.map(&map, Source::Nothing)),
            Some(_) => return unserved("mmap of something that is no file"),
        };
        if map.is_shared() && map.prot & libc::PROT_WRITE != 0 {
            return unserved("mmap of a shared file for writing");
        }
        if !self.world.nodes[node].known {
            return unserved("mmap of a file whose contents were not captured");
        }
        let private = Map { flags: map.flags & !3 | libc::MAP_PRIVATE, ..map };
        match (&self.world.nodes[node].bytes, self.world.nodes[node].base) {
            (None, Some(base)) => {
                Served::Value(process.map(&private, Source::Captured(FileIdText(base))))
            }
            _ => self.map_changed(&private, node),
        }
    }

    /// A private map of a file that was written to: a copy of it.
    fn map_changed(&mut self, map: &Map, node: usize) -> Served {
        let process = &mut self.replayer.process;
        let bytes = self.world.read_node(process, node, map.offset, map.len as usize);
        let open = Map {
            prot: libc::PROT_READ | libc::PROT_WRITE,
            flags: map.flags | libc::MAP_ANONYMOUS,
            fd: -1,
            offset: 0,
            ..*map
        };
        let start = process.map(&open, Source::Nothing);
        if start < 0 {
            return Served::Value(start);
        }
        let _ = process.machine.memory.write(start as u64, &bytes);
        process.protect(start as u64, map.len, map.prot as u64);
        Served::Value(start)
    }

    fn thread_over(&mut self, status: u64) -> Served {
        let r = &mut self.replayer;
        if r.tasks.len() == 1 {
            return Served::End(Stopped::Exited(status as i32 & 0xff));
        }
        let task = r.tasks.remove(&r.current).expect("the running thread");
        let wake = r.process.thread_ended(&task);
        for address in wake {
            self.wake(address, 1, !0);
        }
        Served::Nothing
    }

    fn clone_thread(&mut self, asked: &Asked) -> Served {
        let flags = asked.args[0] as i32;
        let thread = libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND;
        if flags & thread != thread {
            return Served::End(Stopped::NeedsChild);
        }
        if self.replayer.tasks.len() >= 512 {
            return error(libc::EAGAIN);
        }
        let tid = self.next_tid;
        self.next_tid += 1;
        let r = &mut self.replayer;
        let highest = r.tasks.keys().next_back().map_or(0, |t| t.0);
        self.highest = self.highest.max(highest) + 1;
        let number = Thread(self.highest);
        let parent = r.tasks.get(&r.current).expect("the running thread");
        let mut task = r.process.child_task(parent, r.context(), asked, number);
        task.tid = tid;
        task.regs.gs = crate::kernel::calls::gs();
        r.process.thread_started(asked, tid);
        r.tasks.insert(number, task);
        Served::Value(tid.into())
    }

    fn limit(&mut self, asked: &Asked) -> Served {
        let a = &asked.args;
        let (resource, new, old) = match asked.number as u32 {
            table::getrlimit => (a[0] as u32, 0, a[1]),
            table::setrlimit => (a[0] as u32, a[1], 0),
            _ if a[0] == 0 || a[0] == self.replayer.pid as u64 => (a[1] as u32, a[2], a[3]),
            _ => return error(libc::ESRCH),
        };
        let process = &mut self.replayer.process;
        process.limits.entry(resource).or_insert((!0, !0));
        let may_raise = process.ids.is_some_and(|ids| ids[1] == 0);
        Served::Value(process.kept_limit(resource, new, old, may_raise))
    }

    /// A call whose answer the recorded run got as well.
    fn constant(&mut self, asked: &Asked) -> Served {
        let Some((result, written)) = self.world.facts.constants.get(&constant_key(asked)).cloned()
        else {
            return self.made_up(asked);
        };
        for (arg, bytes) in written {
            let at = asked.args[arg];
            if at != 0 && !self.replayer.process.write_from_log(at, &bytes) {
                return error(libc::EFAULT);
            }
        }
        Served::Value(result)
    }

    /// What the recorded run never asked, where any answer will do.
    fn made_up(&mut self, asked: &Asked) -> Served {
        let [uid, euid, gid, egid] = self.world.ids;
        let a = &asked.args;
        let zeros = |n: usize| vec![0u8; n];
        match asked.number as u32 {
            table::getuid => Served::Value(uid.into()),
            table::geteuid => Served::Value(euid.into()),
            table::getgid => Served::Value(gid.into()),
            table::getegid => Served::Value(egid.into()),
            table::getppid => Served::Value(1),
            table::getrusage => self.give(a[1], &zeros(144), 0),
            table::times => {
                let ticks = (self.world.uptime / 10_000_000) as i64;
                if a[0] == 0 { Served::Value(ticks) } else { self.give(a[0], &zeros(32), ticks) }
            }
            table::clock_getres => {
                let one = [0u64.to_le_bytes(), 1u64.to_le_bytes()].concat();
                if a[1] == 0 { Served::Value(0) } else { self.give(a[1], &one, 0) }
            }
            table::sched_getscheduler | table::sched_get_priority_min => Served::Value(0),
            table::sched_get_priority_max => Served::Value(0),
            table::getpriority => Served::Value(20),
            table::sched_getaffinity => {
                let mut mask = zeros((a[1] as usize).min(128));
                if let Some(first) = mask.first_mut() {
                    *first = 1;
                }
                let len = mask.len().min(8);
                self.give(a[2], &mask[..len], len as i64)
            }
            _ => unserved(table::call(asked.number).name),
        }
    }

    /// Writes an answer to guest memory.
    pub(super) fn give(&mut self, at: u64, bytes: &[u8], result: i64) -> Served {
        if self.replayer.process.write_from_log(at, bytes) {
            Served::Value(result)
        } else {
            error(libc::EFAULT)
        }
    }

    /// Calls that need no state.
    fn simple(&mut self, asked: &Asked) -> Served {
        let a = &asked.args;
        match asked.number as u32 {
            table::sched_yield => {
                self.yielded = true;
                Served::Value(0)
            }
            table::membarrier
            | table::mlock
            | table::munlock
            | table::mlockall
            | table::munlockall
            | table::mlock2
            | table::msync
            | table::sync
            | table::syncfs
            | table::fsync
            | table::fdatasync
            | table::fadvise64
            | table::readahead
            | table::sync_file_range
            | table::flock
            | table::setpriority
            | table::ioprio_set
            | table::sched_setaffinity
            | table::sched_setparam
            | table::sched_setscheduler
            | table::mbind
            | table::set_mempolicy => Served::Value(0),
            table::getrandom => {
                let len = a[1].min(1 << 20) as usize;
                let bytes: Vec<u8> = (0..len.div_ceil(8))
                    .flat_map(|_| self.world.next_random().to_le_bytes())
                    .collect();
                self.give(a[0], &bytes[..len], len as i64)
            }
            table::getcwd => {
                let path = [&self.world.cwd[..], &[0]].concat();
                if (a[1] as usize) < path.len() {
                    return error(libc::ERANGE);
                }
                self.give(a[0], &path, path.len() as i64)
            }
            table::umask => {
                let old = std::mem::replace(&mut self.world.umask, a[0] & 0o777);
                Served::Value(old as i64)
            }
            table::getcpu => {
                for at in [a[0], a[1]].into_iter().filter(|at| *at != 0) {
                    if !self.replayer.process.write_from_log(at, &[0; 4]) {
                        return error(libc::EFAULT);
                    }
                }
                Served::Value(0)
            }
            table::prctl => self.process_control(asked),
            table::personality => Served::Value(0),
            _ => unserved(table::call(asked.number).name),
        }
    }

    fn process_control(&mut self, asked: &Asked) -> Served {
        let a = &asked.args;
        match a[0] as i32 {
            libc::PR_SET_NAME => Served::Value(0),
            libc::PR_GET_NAME => {
                let mut name = [0u8; 16];
                let program = &self.replayer.process.program;
                let last = program.rsplit(|b| *b == b'/').next().unwrap_or_default();
                let n = last.len().min(15);
                name[..n].copy_from_slice(&last[..n]);
                self.give(a[1], &name, 0)
            }
            libc::PR_SET_NO_NEW_PRIVS | libc::PR_SET_DUMPABLE | libc::PR_SET_PDEATHSIG => {
                Served::Value(0)
            }
            libc::PR_GET_DUMPABLE => Served::Value(1),
            _ => error(libc::EINVAL),
        }
    }

    /// Tells the process what a descriptor is now, for its maps.
    pub(super) fn note_descriptor(&mut self, fd: i32, path: &[u8], flags: i32) {
        let what = match self.world.get(fd).map(|open| &open.kind) {
            Some(Kind::File(node)) => {
                let node = &self.world.nodes[*node];
                What::Regular {
                    file: node.base.map(FileIdText),
                    identity: node.identity,
                    path: path.to_vec(),
                }
            }
            _ => What::Other,
        };
        self.replayer.process.files.open(fd, what, flags, false);
    }

    /// What a path leads to, links followed; `None` if nobody knows.
    pub(super) fn look_up(&mut self, path: &[u8], follow: bool) -> Option<(Vec<u8>, Name)> {
        let mut path = path.to_vec();
        for _ in 0..16 {
            let name = match self.world.names.get(&path) {
                Some(name) => name.clone(),
                None => self.world.original(&path)?,
            };
            match name {
                Name::Link(target) if follow => {
                    let folder = path.rsplitn(2, |b| *b == b'/').nth(1).unwrap_or_default();
                    let folder = if folder.is_empty() { b"/".to_vec() } else { folder.to_vec() };
                    path = self.world.absolute(Some(&folder), &target);
                }
                name => return Some((path, name)),
            }
        }
        None
    }
}

/// May the call give the process more memory?
fn grows(asked: &Asked) -> bool {
    matches!(asked.number as u32, table::mmap | table::brk | table::mremap)
}
