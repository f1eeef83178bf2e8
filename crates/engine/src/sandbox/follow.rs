//! Keeps the world in step while the replay follows the log, and collects what the
//! run tells about the outside.

use super::facts::Captured;
use super::paths::{Path, path_of};
use super::world::{Kind, Name, World};
use crate::kernel::files::What;
use crate::kernel::process::{Asked, Process};
use crate::kernel::table::{self, Out};

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

    /// Descriptors that are made.
    fn follow_new(&mut self, process: &mut Process, asked: &Asked, result: i64) {
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
                self.open_at(fd, Kind::Foreign("a socket"), libc::O_RDWR, false);
            }
            table::timerfd_create
            | table::signalfd
            | table::signalfd4
            | table::inotify_init
            | table::inotify_init1
            | table::pidfd_open => {
                self.open_at(fd, Kind::Foreign("a kernel object"), libc::O_RDWR, false);
            }
            _ => {}
        }
    }

    /// Calls on paths. True if it was one.
    fn follow_path(&mut self, process: &mut Process, asked: &Asked, result: i64) -> bool {
        let number = asked.number as u32;
        let Some(Path { path, follow, of }) = path_of(self, process, asked) else {
            return false;
        };
        if let Some(fd) = of {
            if number == table::newfstatat && result == 0 {
                self.follow_fstat(process, fd, asked.args[2]);
            }
            return true;
        }
        let original = self.facts.is_original(&path);
        match number {
            table::stat | table::lstat | table::newfstatat => {
                let at = if number == table::newfstatat { asked.args[2] } else { asked.args[1] };
                if original {
                    let bytes = process.machine.memory.read(at, 144).unwrap_or_default();
                    let said = if result < 0 { Err(result) } else { Ok(bytes) };
                    self.facts.stats.entry((path, follow)).or_insert(said);
                }
            }
            table::statx if result == 0 && original => {
                let bytes = process.machine.memory.read(asked.args[4], 256).unwrap_or_default();
                self.facts.wide_stats.entry((path, follow)).or_insert(bytes);
            }
            table::statx if original => {
                self.facts.stats.entry((path, follow)).or_insert(Err(result));
            }
            table::access | table::faccessat | table::faccessat2 if original => {
                let mode = if number == table::access { asked.args[1] } else { asked.args[2] };
                self.facts.accesses.entry((path, mode)).or_insert(result);
            }
            table::readlink | table::readlinkat if original => {
                let at = if number == table::readlink { asked.args[1] } else { asked.args[2] };
                let len = result.max(0) as usize;
                let bytes = process.machine.memory.read(at, len).unwrap_or_default();
                let said = if result < 0 { Err(result) } else { Ok(bytes) };
                self.facts.links.entry(path).or_insert(said);
            }
            table::open | table::openat | table::openat2 | table::creat => {
                self.follow_open(process, asked, result, path);
            }
            table::unlink | table::unlinkat | table::rmdir if result == 0 => {
                self.change(path, Name::Gone);
            }
            table::mkdir | table::mkdirat if result == 0 => self.change(path, Name::Folder),
            table::truncate if result == 0 => {
                if let Some(Name::File(node)) = self.names.get(&path).cloned() {
                    self.truncate(process, node, asked.args[1]);
                }
            }
            table::rename | table::renameat | table::renameat2 if result == 0 => {
                if let Some(to) = super::paths::second_path(self, process, asked) {
                    self.move_name(path, to);
                }
            }
            table::symlink | table::symlinkat | table::link | table::linkat if result == 0 => {
                // Rare enough that what is behind them need not be known.
                if let Some(to) = super::paths::second_path(self, process, asked) {
                    self.facts.changed.insert(to);
                }
            }
            table::chdir if result == 0 => self.cwd = path,
            _ => {}
        }
        true
    }

    fn follow_open(&mut self, process: &mut Process, asked: &Asked, result: i64, path: Vec<u8>) {
        let flags = super::paths::open_flags(process, asked);
        let original = self.facts.is_original(&path);
        if result < 0 {
            if original {
                self.facts.opens.entry(path).or_insert(Err(result));
            }
            return;
        }
        let fd = result as i32;
        let what = process.files.get(fd).map(|d| d.what.clone());
        let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
        let kind = match what {
            Some(What::Regular { file, identity, .. }) => {
                let node = match self.names.get(&path) {
                    Some(Name::File(node)) => *node,
                    _ => self.captured(file.map(|f| f.0), identity),
                };
                if original {
                    let captured = Captured { file: file.map(|f| f.0.0), identity };
                    self.facts.opens.entry(path.clone()).or_insert(Ok(captured));
                }
                if flags & libc::O_TRUNC != 0 && writes {
                    self.truncate(process, node, 0);
                }
                self.names.insert(path.clone(), Name::File(node));
                Kind::File(node)
            }
            Some(What::Stdout) => Kind::Stdout,
            Some(What::Stderr) => Kind::Stderr,
            _ => self.other_kind(process, &path, flags),
        };
        if writes {
            self.facts.changed.insert(path);
        }
        self.open_at(fd, kind, flags, flags & libc::O_CLOEXEC != 0);
    }

    /// What a path without captured contents was opened as.
    fn other_kind(&mut self, process: &mut Process, path: &[u8], flags: i32) -> Kind {
        match path {
            b"/dev/null" => return Kind::Null,
            b"/dev/zero" => return Kind::Zero,
            b"/dev/urandom" | b"/dev/random" => return Kind::Random,
            _ => {}
        }
        if flags & libc::O_DIRECTORY != 0 {
            return Kind::Folder(path.to_vec());
        }
        let special = [&b"/dev/"[..], b"/proc/", b"/sys/"].iter().any(|p| path.starts_with(p));
        if flags & libc::O_ACCMODE == libc::O_RDONLY || special {
            return Kind::Stream(path.to_vec());
        }
        // A regular file for writing only: its contents are not captured.
        let node = match self.names.get(path) {
            Some(Name::File(node)) => *node,
            _ => {
                let node = self.new_file();
                self.nodes[node].known = flags & (libc::O_TRUNC | libc::O_EXCL) != 0;
                self.names.insert(path.to_vec(), Name::File(node));
                node
            }
        };
        if flags & libc::O_TRUNC != 0 {
            self.truncate(process, node, 0);
        }
        Kind::File(node)
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
            Kind::Pipe { from: Some(pipe), .. } => {
                let held = &mut self.pipes[pipe].bytes;
                let known = bytes.len().min(held.len());
                held.drain(..known);
            }
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

    fn follow_listing(&mut self, process: &mut Process, asked: &Asked, result: i64) {
        let fd = asked.fd(0);
        let Some(open) = self.get_mut(fd) else { return };
        let path = match &open.kind {
            Kind::Folder(path) | Kind::Stream(path) => path.clone(),
            _ => return,
        };
        open.kind = Kind::Folder(path.clone());
        let at = open.offset;
        open.offset += result as u64;
        let bytes = process.machine.memory.read(asked.args[1], result as usize).unwrap_or_default();
        if asked.number as u32 == table::getdents64 && self.facts.is_original(&path) {
            let entry = self.facts.listings.entry(path).or_default();
            if entry.0.len() as u64 == at {
                entry.0.extend_from_slice(&bytes);
                entry.1 = result == 0;
            }
        }
    }

    fn follow_fstat(&mut self, process: &mut Process, fd: i32, at: u64) {
        let Some(bytes) = process.machine.memory.read(at, 144) else { return };
        match self.get(fd).map(|open| open.kind.clone()) {
            Some(Kind::Stdin) => self.facts.stream_stats[0] = Some(bytes),
            Some(Kind::Stdout) => self.facts.stream_stats[1] = Some(bytes),
            Some(Kind::Stderr) => self.facts.stream_stats[2] = Some(bytes),
            Some(Kind::File(node)) => {
                let identity = super::stat::identity(&bytes);
                let node = &mut self.nodes[node];
                node.identity = identity;
                node.stat = Some(bytes);
            }
            Some(Kind::Stream(path) | Kind::Folder(path)) => {
                if super::stat::is_folder(&bytes) {
                    self.get_mut(fd).expect("seen").kind = Kind::Folder(path.clone());
                }
                self.facts.stats.entry((path, true)).or_insert(Ok(bytes));
            }
            _ => {}
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

    /// Answers that stay the same are kept, as the table says what was written.
    fn follow_constant(&mut self, process: &mut Process, asked: &Asked, result: i64) {
        let number = asked.number as u32;
        if !is_constant(number) {
            return;
        }
        let written = table::call(asked.number).outs.iter().filter_map(|out| {
            let (arg, len) = match *out {
                Out::Fixed(arg, len) | Out::Always(arg, len) => (arg, len as usize),
                Out::Returned(arg) => (arg, result as usize),
                Out::Each(arg, each) => (arg, result as usize * each as usize),
                _ => return None,
            };
            Some((arg, process.machine.memory.read(asked.args[arg], len)?))
        });
        let written = written.collect();
        self.facts.constants.entry(constant_key(asked)).or_insert((result, written));
    }

    /// A path is something else from now on.
    pub fn change(&mut self, path: Vec<u8>, name: Name) {
        self.facts.changed.insert(path.clone());
        self.names.insert(path, name);
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

/// Calls whose answer does not change within a run.
pub fn is_constant(number: u32) -> bool {
    use table::*;
    #[allow(non_upper_case_globals)]
    let constant = matches!(
        number,
        uname
            | getuid
            | getgid
            | geteuid
            | getegid
            | getppid
            | getpgrp
            | getpgid
            | getsid
            | getgroups
            | getresuid
            | getresgid
            | sysinfo
            | getrusage
            | times
            | getpriority
            | sched_getaffinity
            | sched_getparam
            | sched_getscheduler
            | sched_get_priority_max
            | sched_get_priority_min
            | clock_getres
            | capget
            | ioprio_get
            | get_mempolicy
    );
    constant
}

/// The arguments that are no pointers to what is written.
pub fn constant_key(asked: &Asked) -> (u32, Vec<u64>) {
    let outs = table::call(asked.number).outs;
    let pointer = |n: usize| {
        outs.iter().any(|out| match *out {
            Out::Fixed(a, _) | Out::Always(a, _) | Out::Returned(a) | Out::Each(a, _) => a == n,
            _ => false,
        })
    };
    let arguments = match asked.number as u32 {
        table::getpgid | table::getsid | table::getpriority | table::clock_getres => 2,
        table::getrusage => 1,
        table::sched_getaffinity => 2,
        _ => 0,
    };
    let key = (0..arguments).filter(|n| !pointer(*n)).map(|n| asked.args[n]).collect();
    (asked.number as u32, key)
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

fn is_cloexec(flags: u64) -> bool {
    flags as i32 & libc::O_CLOEXEC != 0
}

fn pair_at(process: &Process, at: u64) -> Option<(i32, i32)> {
    let both = process.machine.memory.read_u64(at)?;
    Some((both as i32, (both >> 32) as i32))
}
