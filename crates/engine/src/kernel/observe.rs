//! Keeping the descriptor table, offsets and limits in step with the calls made.

use super::files::What;
use super::process::{Asked, Process};
use super::table;
use super::timers::Setting;
use recording::FileId;

/// `fs.nr_open` of every usual kernel.
const MOST_DESCRIPTORS: u64 = 1 << 20;

const FIONCLEX: u32 = 0x5450;
const FIOCLEX: u32 = 0x5451;
const TIOCGPTPEER: u32 = 0x5441;

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
            table::preadv2 if a[3] == u64::MAX => self.advance(fd, result as u64),
            table::pwritev2 if a[3] != u64::MAX => {}
            table::write | table::writev | table::pwritev2 => {
                let append = self.files.get(fd).is_some_and(|d| d.append);
                if append {
                    self.forget_offset(fd);
                } else {
                    self.advance(fd, result as u64);
                }
            }
            table::lseek => {
                if let Some(d) = self.files.get_mut(fd).filter(|d| !d.shared) {
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
            table::close => self.close_descriptor(fd),
            table::chdir | table::fchdir => self.cwd = None,
            table::getcwd => {
                let path = self.machine.memory.read(a[0], result.max(1) as usize - 1);
                self.cwd = path;
            }
            table::umask => self.umask = a[0] as u32 & 0o777,
            table::setuid
            | table::setgid
            | table::setreuid
            | table::setregid
            | table::setresuid
            | table::setresgid => self.ids = None,
            table::alarm => {
                let first = (a[0] as u32 as u64).saturating_mul(1_000_000_000);
                let setting = Setting { interval: 0, first };
                self.timers.interval.insert(libc::ITIMER_REAL, setting);
            }
            table::setitimer => {
                if let Some(setting) = self.timer_setting(a[1], 1000) {
                    self.timers.interval.insert(a[0] as i32, setting);
                }
            }
            table::timer_create => {
                if let Some(id) = self.machine.memory.read(a[2], 4) {
                    let id = i32::from_le_bytes(id.try_into().expect("four"));
                    self.timers.created.insert(id, (a[0] as i32, Setting::default()));
                }
            }
            table::timer_settime => {
                if let (Some(setting), Some(timer)) =
                    (self.timer_setting(a[2], 1), self.timers.created.get_mut(&(a[0] as i32)))
                {
                    timer.1 = setting;
                }
            }
            table::timer_delete => drop(self.timers.created.remove(&(a[0] as i32))),
            table::recvmsg => self.observe_passed(a[1], a[2] as i32),
            table::recvmmsg => {
                for n in 0..(result as u64).min(1024) {
                    self.observe_passed(a[1] + 64 * n, a[3] as i32);
                }
            }
            table::close_range => self.observe_close_range(a),
            table::dup => self.files.duplicate(fd, result as i32, false),
            table::dup2 => self.files.duplicate(fd, result as i32, false),
            table::dup3 => {
                self.files.duplicate(fd, result as i32, a[2] as i32 & libc::O_CLOEXEC != 0);
            }
            table::fcntl => self.observe_fcntl(asked, result),
            table::ioctl if a[1] as u32 == FIOCLEX => self.files.set_close_on_exec(fd, true),
            table::ioctl if a[1] as u32 == FIONCLEX => self.files.set_close_on_exec(fd, false),
            table::ioctl if a[1] as u32 == TIOCGPTPEER => {
                let cloexec = a[2] as i32 & libc::O_CLOEXEC != 0;
                self.files.open(result as i32, What::Other, a[2] as i32, cloexec);
            }
            table::pipe => self.observe_pipe(a[0], 0),
            table::pipe2 => self.observe_pipe(a[0], a[1] as i32),
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
            | table::mq_open
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
            table::mq_open => asked.args[1],
            table::epoll_create1 | table::inotify_init1 => asked.args[0],
            table::pidfd_open => libc::O_CLOEXEC as u64,
            _ => 0,
        };
        let cloexec = flags as i32 & libc::O_CLOEXEC != 0;
        self.files.open(fd, What::Other, libc::O_RDWR, cloexec);
    }

    /// A descriptor is closed; a pipe that nobody has any more is gone.
    fn close_descriptor(&mut self, fd: i32) {
        let Some(closed) = self.files.close(fd) else { return };
        if let What::Pipe { reads, writes } = closed.what {
            for pipe in reads.into_iter().chain(writes) {
                if !self.files.has_pipe(pipe) {
                    self.pipes.drop(pipe);
                }
            }
        }
    }

    /// What `setitimer` and `timer_settime` were given.
    fn timer_setting(&self, at: u64, unit: u64) -> Option<Setting> {
        let word = |n: u64| self.machine.memory.read_u64(at + 8 * n);
        Some(Setting::from_words([word(0)?, word(1)?, word(2)?, word(3)?], unit))
    }

    fn two_descriptors(&self, at: u64) -> Option<[i32; 2]> {
        let bytes = self.machine.memory.read(at, 8)?;
        let half = |n: usize| i32::from_le_bytes(bytes[n..n + 4].try_into().expect("four"));
        Some([half(0), half(4)])
    }

    fn observe_pipe(&mut self, at: u64, flags: i32) {
        let Some([read, write]) = self.two_descriptors(at) else { return };
        let cloexec = flags & libc::O_CLOEXEC != 0;
        if flags & libc::O_DIRECT != 0 {
            // It keeps packets apart.
            self.files.open(read, What::Other, libc::O_RDONLY, cloexec);
            self.files.open(write, What::Other, libc::O_WRONLY, cloexec);
            return;
        }
        let pipe = self.pipes.make();
        let out = What::Pipe { reads: Some(pipe), writes: None };
        let input = What::Pipe { reads: None, writes: Some(pipe) };
        self.files.open(read, out, libc::O_RDONLY, cloexec);
        self.files.open(write, input, libc::O_WRONLY, cloexec);
    }

    /// A connected pair of stream sockets is two pipes; others keep messages apart.
    fn observe_pair(&mut self, at: u64, kind: i32) {
        let Some([one, two]) = self.two_descriptors(at) else { return };
        let cloexec = kind & libc::O_CLOEXEC != 0;
        let (there, back) = if kind & 0xf == libc::SOCK_STREAM {
            let (to, from) = (self.pipes.make(), self.pipes.make());
            let ends = |reads, writes| What::Pipe { reads: Some(reads), writes: Some(writes) };
            (ends(from, to), ends(to, from))
        } else {
            (What::Other, What::Other)
        };
        self.files.open(one, there, libc::O_RDWR, cloexec);
        self.files.open(two, back, libc::O_RDWR, cloexec);
    }

    /// Descriptors that came with a message (`SCM_RIGHTS`).
    fn observe_passed(&mut self, header: u64, flags: i32) {
        let cloexec = flags & libc::MSG_CMSG_CLOEXEC != 0;
        for fd in self.passed_descriptors(header) {
            self.files.open(fd, What::Other, libc::O_RDWR, cloexec);
        }
    }

    /// The descriptors in the control data of a received `struct msghdr`.
    pub fn passed_descriptors(&self, header: u64) -> Vec<i32> {
        let memory = &self.machine.memory;
        let (Some(control), Some(len)) =
            (memory.read_u64(header + 32), memory.read_u64(header + 40))
        else {
            return Vec::new();
        };
        let bytes = memory.read(control, len.min(1 << 16) as usize).unwrap_or_default();
        descriptors_in(&bytes)
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
                self.close_descriptor(fd);
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
            table::preadv => Some(asked.args[3]),
            table::preadv2 => Some(asked.args[3]).filter(|at| *at != u64::MAX),
            _ => return None,
        };
        let d = self.files.get(asked.fd(0))?;
        match d.what {
            What::Regular { file: Some(file), .. } => Some((file.0, at.or(d.offset)?)),
            _ => None,
        }
    }

    /// `getrlimit` and `setrlimit` on a limit the engine keeps for the guest; with
    /// the right to raise it or not.
    pub fn kept_limit(&mut self, resource: u32, new: u64, old: u64, may_raise: bool) -> i64 {
        let Some(now) = self.limits.get(&resource).copied() else { return -(libc::EINVAL as i64) };
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
            let too_many = resource == libc::RLIMIT_NOFILE && hard > MOST_DESCRIPTORS;
            if too_many || hard > now.1 && !may_raise {
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
        let Some((start, region)) = memory.region(layout::STACK_TOP - 8) else { return };
        let prot = region.prot;
        if wanted < start && memory.is_free(wanted, start - wanted) {
            let _ = memory.map_anonymous(wanted, start - wanted, prot, Backing::Stack);
        }
    }
}

/// The descriptors in control messages: length, level, type, data; 8-aligned.
fn descriptors_in(mut control: &[u8]) -> Vec<i32> {
    let mut found = Vec::new();
    while control.len() >= 16 {
        let len = u64::from_le_bytes(control[..8].try_into().expect("eight")) as usize;
        let level = i32::from_le_bytes(control[8..12].try_into().expect("four"));
        let kind = i32::from_le_bytes(control[12..16].try_into().expect("four"));
        let Some(data) = control.get(16..len.max(16)) else { break };
        if (level, kind) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            let fds = data.chunks_exact(4);
            found.extend(fds.map(|b| i32::from_le_bytes(b.try_into().expect("four"))));
        }
        control = control.get(len.max(16).next_multiple_of(8)..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_found_among_other_control_messages() {
        let mut control = Vec::new();
        control.extend([24u64.to_le_bytes().as_slice(), &[1, 0, 0, 0, 29, 0, 0, 0]].concat());
        control.extend([7; 8]);
        control.extend([24u64.to_le_bytes().as_slice(), &[1, 0, 0, 0, 1, 0, 0, 0]].concat());
        control.extend([5, 0, 0, 0, 9, 0, 0, 0]);
        assert_eq!(descriptors_in(&control), [5, 9]);
        assert_eq!(descriptors_in(&control[..30]), [0; 0]);
    }
}
