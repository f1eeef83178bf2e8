//! Keeps the world in step while the replay follows the log, and collects what the
//! run tells about the outside.

use super::world::{Kind, World};
use crate::kernel::process::{Asked, Process};
use crate::kernel::table;

impl World {
    /// A call of the recorded run is over.
    pub fn follow(&mut self, process: &mut Process, asked: &Asked, result: i64) {
        let number = asked.number as u32;
        if number == table::connect && result < 0 {
            let address =
                process.machine.memory.read(asked.args[1], asked.args[2].min(128) as usize);
            self.facts.refused.insert(address.unwrap_or_default(), result);
            return;
        }
        if number == table::ioctl {
            return self.follow_ioctl(process, asked, result);
        }
        if self.follow_path(process, asked, result) || result < 0 {
            return;
        }
        let a = &asked.args;
        let fd = asked.fd(0);
        match number {
            table::read | table::readv => self.follow_read(process, asked, result as u64),
            table::write | table::writev => {
                let bytes = gather(process, asked, result as u64);
                self.put(process, fd, None, &bytes);
            }
            table::pwrite64 | table::pwritev | table::pwritev2 => {
                let bytes = gather(process, asked, result as u64);
                let at = (number != table::pwritev2 || a[3] as i64 != -1).then_some(a[3]);
                self.put(process, fd, at, &bytes);
            }
            table::sendfile | table::splice | table::copy_file_range | table::tee => {
                // Where the bytes went is not known; nothing may build on it.
                for fd in [asked.fd(0), asked.fd(1), asked.fd(2)] {
                    self.forget(fd);
                }
            }
            table::lseek => {
                if let Some(open) = self.get_mut(fd) {
                    open.offset = result as u64;
                    if open.kind == Kind::Stdin {
                        self.stdin_at = result as usize;
                    }
                }
            }
            table::ftruncate => self.truncate_open(process, fd, a[1]),
            table::close => drop(self.close(fd)),
            table::close_range => self.follow_close_range(a),
            table::dup | table::dup2 => self.duplicate(fd, result as i32, false),
            table::dup3 => self.duplicate(fd, result as i32, is_cloexec(a[2])),
            table::fcntl => self.follow_fcntl(asked, result),
            table::chdir | table::fchdir => self.follow_chdir(process, asked),
            table::umask => self.umask = a[0] & 0o777,
            table::clock_gettime | table::gettimeofday | table::time => {
                self.follow_clock(process, asked, result);
            }
            table::getdents | table::getdents64 => self.follow_listing(process, asked, result),
            table::fstat => self.follow_fstat(process, fd, a[1]),
            table::epoll_ctl => self.follow_epoll(process, a),
            table::sendto | table::recvfrom | table::sendmsg | table::recvmsg | table::shutdown => {
                self.follow_socket(process, asked, result);
            }
            table::fork | table::vfork | table::clone | table::wait4 | table::waitid => {
                self.follow_child(process, asked, result);
            }
            table::execve => {
                for fd in self.descriptors() {
                    if self.close_on_exec(fd) {
                        self.close(fd);
                    }
                }
            }
            _ => self.follow_new(process, asked, result),
        }
        self.follow_constant(process, asked, result);
    }

    fn follow_read(&mut self, process: &mut Process, asked: &Asked, count: u64) {
        let fd = asked.fd(0);
        let bytes = gather(process, asked, count);
        let Some(open) = self.get_mut(fd) else { return };
        open.offset += count;
        match open.kind.clone() {
            Kind::Stdin => {
                if self.stdin_at == self.facts.stdin.len() {
                    self.facts.stdin.extend_from_slice(&bytes);
                    self.facts.stdin_ends = count == 0 && asked.args[2] > 0;
                }
                self.stdin_at += bytes.len();
            }
            Kind::Pipe { .. } => self.take_out(fd, count),
            Kind::Event { .. } => {
                if let Kind::Event { value, semaphore } = &mut self.get_mut(fd).expect("seen").kind
                {
                    *value = if *semaphore { value.saturating_sub(1) } else { 0 };
                }
            }
            Kind::Stream(path) => {
                let at = self.get(fd).expect("seen").offset - count;
                let entry = self.facts.streams.entry(path).or_default();
                if entry.0.len() as u64 == at {
                    entry.0.extend_from_slice(&bytes);
                    entry.1 = count == 0;
                }
            }
            _ => {}
        }
    }

    fn follow_close_range(&mut self, a: &[u64; 6]) {
        let range = a[0]..=a[1];
        for fd in self.descriptors().into_iter().filter(|fd| range.contains(&(*fd as u64))) {
            if a[2] & 4 != 0 {
                self.set_close_on_exec(fd, true);
            } else {
                self.close(fd);
            }
        }
    }

    fn follow_fcntl(&mut self, asked: &Asked, result: i64) {
        let (fd, a) = (asked.fd(0), &asked.args);
        match a[1] as i32 {
            libc::F_DUPFD => self.duplicate(fd, result as i32, false),
            libc::F_DUPFD_CLOEXEC => self.duplicate(fd, result as i32, true),
            libc::F_SETFD => self.set_close_on_exec(fd, a[2] & 1 != 0),
            libc::F_SETFL => {
                if let Some(open) = self.get_mut(fd) {
                    let changed = libc::O_APPEND | libc::O_NONBLOCK;
                    open.flags = open.flags & !changed | a[2] as i32 & changed;
                }
            }
            _ => {}
        }
    }

    fn follow_chdir(&mut self, _process: &Process, asked: &Asked) {
        if let Some(Kind::Folder(path)) = self.get(asked.fd(0)).map(|open| &open.kind) {
            self.cwd = path.clone();
        }
    }

    fn follow_clock(&mut self, process: &mut Process, asked: &Asked, result: i64) {
        let memory = &process.machine.memory;
        let a = &asked.args;
        let pair = |at| Some((memory.read_u64(at)?, memory.read_u64(at + 8)?));
        match asked.number as u32 {
            table::time => self.clock = self.clock.max(result as u64 * 1_000_000_000),
            table::gettimeofday => {
                if let Some((s, us)) = pair(a[0]) {
                    self.clock = self.clock.max(s * 1_000_000_000 + us * 1000);
                }
            }
            _ => {
                let Some((s, ns)) = pair(a[1]) else { return };
                let now = s.saturating_mul(1_000_000_000).saturating_add(ns);
                match a[0] as i32 {
                    libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => self.clock = now,
                    libc::CLOCK_MONOTONIC
                    | libc::CLOCK_MONOTONIC_RAW
                    | libc::CLOCK_MONOTONIC_COARSE
                    | libc::CLOCK_BOOTTIME => self.uptime = now,
                    _ => {}
                }
            }
        }
    }

    fn follow_epoll(&mut self, process: &mut Process, a: &[u64; 6]) {
        let event = process.machine.memory.read(a[3], 12);
        let Some(Kind::Epoll(list)) = self.get_mut(a[0] as i32).map(|open| &mut open.kind) else {
            return;
        };
        let fd = a[2] as i32;
        match (a[1] as i32, event) {
            (libc::EPOLL_CTL_DEL, _) => drop(list.remove(&fd)),
            (_, Some(bytes)) => {
                let events = u32::from_le_bytes(bytes[..4].try_into().expect("four"));
                let data = u64::from_le_bytes(bytes[4..].try_into().expect("eight"));
                list.insert(fd, (events, data));
            }
            _ => {}
        }
    }

    /// What the standard streams are, a terminal or not.
    fn follow_ioctl(&mut self, process: &Process, asked: &Asked, result: i64) {
        let n = match self.get(asked.fd(0)).map(|open| &open.kind) {
            Some(Kind::Stdin) => 0,
            Some(Kind::Stdout) => 1,
            Some(Kind::Stderr) => 2,
            _ => return,
        };
        let bytes = process.machine.memory.read(asked.args[2], 60).unwrap_or_default();
        self.facts.stream_ioctls[n].entry(asked.args[1]).or_insert((result, bytes));
    }

    /// Contents whose fate is not known.
    fn forget(&mut self, fd: i32) {
        if let Some(Kind::File(node)) = self.get(fd).map(|open| open.kind.clone())
            && self.get(fd).is_some_and(|open| open.flags & libc::O_ACCMODE != libc::O_RDONLY)
        {
            self.nodes[node].known = false;
        }
    }
}

/// The bytes that a read or write call names, as many as it moved.
pub fn gather(process: &Process, asked: &Asked, count: u64) -> Vec<u8> {
    let memory = &process.machine.memory;
    let a = &asked.args;
    match asked.number as u32 {
        table::read | table::write | table::pread64 | table::pwrite64 | table::sendto => {
            memory.read(a[1], count as usize).unwrap_or_default()
        }
        _ => {
            let mut left = count;
            let mut bytes = Vec::new();
            for n in 0..a[2].min(1024) {
                let (Some(base), Some(len)) =
                    (memory.read_u64(a[1] + 16 * n), memory.read_u64(a[1] + 16 * n + 8))
                else {
                    break;
                };
                let len = len.min(left);
                bytes.extend(memory.read(base, len as usize).unwrap_or_default());
                left -= len;
            }
            bytes
        }
    }
}

pub(super) fn is_cloexec(flags: u64) -> bool {
    flags as i32 & libc::O_CLOEXEC != 0
}
