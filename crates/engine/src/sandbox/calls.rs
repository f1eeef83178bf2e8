//! System calls after the log was left: who answers which.

use super::constants::is_constant;
use super::memory::grows;
use super::schedule::Waiting;
use super::world::{Kind, Name};
use super::{Sandbox, Served, Stopped, Stream, Watcher};
use crate::kernel::files::{FileIdText, What};
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
        if let Some(stopped) = self.has_rejoined() {
            return Some(stopped);
        }
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
        let served = served.or_else(|| self.socket_call(asked));
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
            table::fork | table::vfork => self.new_child(asked),
            table::execve => self.execute(asked),
            table::wait4 => self.wait_for_child(asked),
            table::waitid if self.world.children.is_empty() => error(libc::ECHILD),
            table::waitid => Served::End(Stopped::NeedsChild),
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

    /// Writes an answer to guest memory.
    pub(super) fn give(&mut self, at: u64, bytes: &[u8], result: i64) -> Served {
        if self.replayer.process.write_from_log(at, bytes) {
            Served::Value(result)
        } else {
            error(libc::EFAULT)
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
