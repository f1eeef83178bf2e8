//! Descriptors themselves: closing, duplicates, flags.

use super::calls::{error, unserved};
use super::world::PIPE_BYTES;
use super::{Sandbox, Served};
use crate::kernel::process::Asked;

impl Sandbox {
    pub(super) fn close(&mut self, fd: i32) -> Served {
        self.replayer.process.files.close(fd);
        if self.world.close(fd) { Served::Value(0) } else { error(libc::EBADF) }
    }

    pub(super) fn close_range(&mut self, a: &[u64; 6]) -> Served {
        let range = a[0]..=a[1];
        for fd in self.world.descriptors() {
            if range.contains(&(fd as u64)) {
                if a[2] & 4 != 0 {
                    self.world.set_close_on_exec(fd, true);
                } else {
                    let _ = self.close(fd);
                }
            }
        }
        Served::Value(0)
    }

    pub(super) fn duplicate(
        &mut self,
        from: i32,
        to: Option<i32>,
        least: i32,
        cloexec: bool,
    ) -> Served {
        if let Some(refused) = self.check(from) {
            return refused;
        }
        let to = to.unwrap_or_else(|| self.world.free_from(least));
        if !(0..1 << 20).contains(&to) {
            return error(libc::EBADF);
        }
        self.world.duplicate(from, to, cloexec);
        self.replayer.process.files.duplicate(from, to, cloexec);
        Served::Value(to.into())
    }

    pub(super) fn control(&mut self, asked: &Asked) -> Served {
        let (fd, a) = (asked.fd(0), &asked.args);
        let Some(open) = self.world.get_mut(fd) else { return error(libc::EBADF) };
        match a[1] as i32 {
            libc::F_DUPFD => self.duplicate(fd, None, a[2] as i32, false),
            libc::F_DUPFD_CLOEXEC => self.duplicate(fd, None, a[2] as i32, true),
            libc::F_GETFD => Served::Value(self.world.close_on_exec(fd).into()),
            libc::F_SETFD => {
                self.world.set_close_on_exec(fd, a[2] & 1 != 0);
                Served::Value(0)
            }
            libc::F_GETFL => {
                let flags = open.flags & !(libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC);
                Served::Value((flags & !libc::O_CLOEXEC).into())
            }
            libc::F_SETFL => {
                let changed = libc::O_APPEND | libc::O_NONBLOCK;
                open.flags = open.flags & !changed | a[2] as i32 & changed;
                Served::Value(0)
            }
            // Nobody else is there to hold a lock.
            libc::F_SETLK | libc::F_SETLKW => Served::Value(0),
            libc::F_GETLK => self.give(a[2], &(libc::F_UNLCK as u16).to_le_bytes(), 0),
            1031 => Served::Value(PIPE_BYTES as i64),
            other => unserved(format!("fcntl {other}")),
        }
    }
}
