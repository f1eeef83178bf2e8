//! Keeps new descriptors in step while the replay follows the log.

use super::follow::is_cloexec;
use super::world::{Kind, World};
use crate::kernel::process::{Asked, Process};
use crate::kernel::table;

impl World {
    /// Descriptors that are made.
    pub(super) fn follow_new(&mut self, process: &mut Process, asked: &Asked, result: i64) {
        let a = &asked.args;
        let fd = result as i32;
        match asked.number as u32 {
            table::pipe | table::pipe2 => {
                let pipe = self.new_pipe();
                let flags = if asked.number as u32 == table::pipe2 { a[1] } else { 0 };
                if let Some((r, w)) = pair_at(process, a[0]) {
                    let ends = [(r, Some(pipe), None), (w, None, Some(pipe))];
                    for (fd, from, to) in ends {
                        self.open_at(fd, Kind::Pipe { from, to }, flags as i32, is_cloexec(flags));
                    }
                }
            }
            table::socketpair if a[1] as i32 & 0xf != libc::SOCK_STREAM => {
                if let Some((x, y)) = pair_at(process, a[3]) {
                    for fd in [x, y] {
                        self.open_at(
                            fd,
                            Kind::Foreign("a socket".into()),
                            libc::O_RDWR,
                            is_cloexec(a[1]),
                        );
                    }
                }
            }
            table::socketpair => {
                let (one, two) = (self.new_pipe(), self.new_pipe());
                if let Some((x, y)) = pair_at(process, a[3]) {
                    for (fd, from, to) in [(x, one, two), (y, two, one)] {
                        let kind = Kind::Pipe { from: Some(from), to: Some(to) };
                        self.open_at(fd, kind, a[1] as i32 & libc::O_NONBLOCK, is_cloexec(a[1]));
                    }
                }
            }
            table::eventfd | table::eventfd2 => {
                let flags = if asked.number as u32 == table::eventfd2 { a[1] } else { 0 };
                let kind = Kind::Event {
                    value: a[0] & 0xffff_ffff,
                    semaphore: flags as i32 & libc::EFD_SEMAPHORE != 0,
                };
                self.open_at(fd, kind, flags as i32 & libc::O_NONBLOCK, is_cloexec(flags));
            }
            table::epoll_create | table::epoll_create1 => {
                let flags = if asked.number as u32 == table::epoll_create1 { a[0] } else { 0 };
                self.open_at(fd, Kind::Epoll(Default::default()), 0, is_cloexec(flags));
            }
            table::memfd_create => {
                let node = self.new_file();
                self.open_at(
                    fd,
                    Kind::File(node),
                    libc::O_RDWR,
                    is_cloexec(a[1] & 1) || a[1] & 1 != 0,
                );
            }
            table::socket | table::accept | table::accept4 => {
                self.open_at(fd, Kind::Foreign("a socket".into()), libc::O_RDWR, false);
            }
            table::timerfd_create
            | table::signalfd
            | table::signalfd4
            | table::inotify_init
            | table::inotify_init1
            | table::pidfd_open => {
                self.open_at(fd, Kind::Foreign("a kernel object".into()), libc::O_RDWR, false);
            }
            _ => {}
        }
    }
}

fn pair_at(process: &Process, at: u64) -> Option<(i32, i32)> {
    let both = process.machine.memory.read_u64(at)?;
    Some((both as i32, (both >> 32) as i32))
}
