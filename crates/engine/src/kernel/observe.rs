//! Keeping the descriptor table, offsets and limits in step with the calls made.

use super::files::What;
use super::process::{Asked, Process};
use super::table;
use recording::FileId;

const EFAULT: i64 = -(libc::EFAULT as i64);

impl Process {
    /// Notes what a finished call did to descriptors. `open` is noted by its own
    /// handling, because what was opened must be known.
    pub fn observe(&mut self, asked: &Asked, result: i64) {
        if result < 0 {
            return;
        }
        let a = &asked.args;
        let fd = asked.fd(0);
        match asked.number as u32 {
            table::read | table::readv => self.advance(fd, result as u64),
            table::write | table::writev => {
                let append = self.files.get(fd).is_some_and(|d| d.append);
                if append {
                    self.forget_offset(fd);
                } else {
                    self.advance(fd, result as u64);
                }
            }
            table::lseek => {
                if let Some(d) = self.files.get_mut(fd) {
                    d.offset = Some(result as u64);
                }
            }
            table::sendfile => {
                self.advance(fd, result as u64);
                if a[2] == 0 {
                    self.advance(asked.fd(1), result as u64);
                }
            }
            table::splice | table::copy_file_range => {
                self.forget_offset(fd);
                self.forget_offset(asked.fd(2));
            }
            table::close => self.files.close(fd),
            table::close_range => self.observe_close_range(a),
            table::dup => self.files.duplicate(fd, result as i32, false),
            table::dup2 => self.files.duplicate(fd, result as i32, false),
            table::dup3 => {
                self.files.duplicate(fd, result as i32, a[2] as i32 & libc::O_CLOEXEC != 0);
            }
            table::fcntl => self.observe_fcntl(asked, result),
            table::pipe | table::pipe2 => self.observe_pair(a[0], a[1] as i32),
            table::socketpair => self.observe_pair(a[3], a[1] as i32),
            table::memfd_create => {
                let cloexec = a[1] as u32 & libc::MFD_CLOEXEC != 0;
                self.files.open(result as i32, What::Memory, libc::O_RDWR, cloexec);
            }
            table::socket
            | table::accept
            | table::accept4
            | table::epoll_create
            | table::epoll_create1
            | table::eventfd
            | table::eventfd2
            | table::timerfd_create
            | table::inotify_init
            | table::inotify_init1
            | table::pidfd_open => self.observe_new(asked, result as i32),
            table::signalfd | table::signalfd4 if fd == -1 => {
                self.observe_new(asked, result as i32);
            }
            _ => {}
        }
    }

    fn advance(&mut self, fd: i32, by: u64) {
        if let Some(offset) = self.files.get_mut(fd).and_then(|d| d.offset.as_mut()) {
            *offset += by;
        }
    }

    fn forget_offset(&mut self, fd: i32) {
        if let Some(d) = self.files.get_mut(fd) {
            d.offset = None;
        }
    }

    /// All the flag arguments spell close-on-exec as `O_CLOEXEC`.
    fn observe_new(&mut self, asked: &Asked, fd: i32) {
        let flags = match asked.number as u32 {
            table::socket | table::eventfd2 | table::timerfd_create => asked.args[1],
            table::accept4 | table::signalfd4 => asked.args[3],
            table::epoll_create1 | table::inotify_init1 => asked.args[0],
            table::pidfd_open => libc::O_CLOEXEC as u64,
            _ => 0,
        };
        let cloexec = flags as i32 & libc::O_CLOEXEC != 0;
        self.files.open(fd, What::Other, libc::O_RDWR, cloexec);
    }

    fn observe_pair(&mut self, at: u64, flags: i32) {
        let Some(bytes) = self.machine.memory.read(at, 8) else { return };
        let cloexec = flags & libc::O_CLOEXEC != 0;
        for half in bytes.chunks_exact(4) {
            let fd = i32::from_le_bytes(half.try_into().expect("four"));
            self.files.open(fd, What::Other, libc::O_RDWR, cloexec);
        }
    }

    fn observe_close_range(&mut self, a: &[u64; 6]) {
        const CLOEXEC: u64 = 4;
        let range = a[0]..=a[1];
        let affected: Vec<i32> =
            self.files.all().filter(|fd| range.contains(&(*fd as u64))).collect();
        for fd in affected {
            if a[2] & CLOEXEC != 0 {
                self.files.set_close_on_exec(fd, true);
            } else {
                self.files.close(fd);
            }
        }
    }

    fn observe_fcntl(&mut self, asked: &Asked, result: i64) {
        let a = &asked.args;
        let fd = asked.fd(0);
        match a[1] as i32 {
            libc::F_DUPFD => self.files.duplicate(fd, result as i32, false),
            libc::F_DUPFD_CLOEXEC => self.files.duplicate(fd, result as i32, true),
            libc::F_SETFD => {
                self.files.set_close_on_exec(fd, a[2] as i32 & libc::FD_CLOEXEC != 0);
            }
            libc::F_SETFL => {
                if let Some(d) = self.files.get_mut(fd) {
                    d.append = a[2] as i32 & libc::O_APPEND != 0;
                }
            }
            _ => {}
        }
    }

    /// The captured file, and the offset in it, that a finished read came from.
    pub fn read_source(&self, asked: &Asked, result: i64) -> Option<(FileId, u64)> {
        if result <= 0 {
            return None;
        }
        let at = match asked.number as u32 {
            table::read | table::readv => None,
            table::pread64 => Some(asked.args[3]),
            table::preadv | table::preadv2 => Some(asked.args[3]),
            _ => return None,
        };
        let d = self.files.get(asked.fd(0))?;
        match d.what {
            What::Regular { file: Some(file), .. } => Some((file.0, at.or(d.offset)?)),
            _ => None,
        }
    }

    /// `getrlimit` and `setrlimit` on a limit the engine keeps for the guest.
    pub fn kept_limit(&mut self, resource: u32, now: (u64, u64), new: u64, old: u64) -> i64 {
        let memory = &self.machine.memory;
        let wanted = if new == 0 {
            None
        } else {
            match (memory.read_u64(new), memory.read_u64(new + 8)) {
                (Some(soft), Some(hard)) => Some((soft, hard)),
                _ => return EFAULT,
            }
        };
        if let Some((soft, hard)) = wanted {
            if soft > hard {
                return -(libc::EINVAL as i64);
            }
            if hard > now.1 {
                return -(libc::EPERM as i64);
            }
        }
        if old != 0 {
            let bytes = [now.0.to_le_bytes(), now.1.to_le_bytes()].concat();
            if !memory.write(old, &bytes) {
                return EFAULT;
            }
        }
        if let Some(limit) = wanted {
            self.limits.insert(resource, limit);
            if resource == libc::RLIMIT_STACK {
                self.grow_stack(limit.0);
            }
        }
        0
    }

    /// A raised stack limit takes effect at once, as the kernel's growth would.
    fn grow_stack(&mut self, size: u64) {
        use crate::guest::memory::Backing;
        use crate::layout;
        let size = size.min(1 << 30) & !(layout::PAGE - 1);
        let wanted = layout::STACK_TOP - size;
        let memory = &mut self.machine.memory;
        let Some((start, _)) = memory.region(layout::STACK_TOP - 8) else { return };
        if wanted < start && memory.is_free(wanted, start - wanted) {
            let prot = libc::PROT_READ | libc::PROT_WRITE;
            let _ = memory.map_anonymous(wanted, start - wanted, prot, Backing::Stack);
        }
    }
}
