//! Pipes, event counters, and waiting for descriptors.

use super::calls::{error, unserved};
use super::world::{Kind, PIPE_BYTES};
use super::{Sandbox, Served};
use crate::kernel::process::Asked;
use crate::kernel::table;

const IN: u32 = libc::POLLIN as u32;
const OUT: u32 = libc::POLLOUT as u32;
const HUP: u32 = libc::POLLHUP as u32;
const ERR: u32 = libc::POLLERR as u32;
const INVALID: u32 = libc::POLLNVAL as u32;
/// Among the flags of a write: a pipe without readers sends no signal.
pub(super) const NO_SIGNAL: i32 = 1 << 30;

impl Sandbox {
    /// `None` if the call is not one of these.
    pub(super) fn stream_call(&mut self, asked: &Asked) -> Option<Served> {
        let a = &asked.args;
        Some(match asked.number as u32 {
            table::pipe => self.pipe(a[0], 0),
            table::pipe2 => self.pipe(a[0], a[1] as i32),
            table::eventfd => self.event(a[0], 0),
            table::eventfd2 => self.event(a[0], a[1] as i32),
            table::epoll_create => self.epoll(0),
            table::epoll_create1 => self.epoll(a[0] as i32),
            table::epoll_ctl => self.epoll_control(asked),
            table::epoll_wait | table::epoll_pwait => {
                let until = self.milliseconds(a[3] as i32);
                self.epoll_wait(asked, until)
            }
            table::epoll_pwait2 => match self.span(a[3]) {
                Ok(until) => self.epoll_wait(asked, until),
                Err(served) => served,
            },
            table::poll => {
                let until = self.milliseconds(a[2] as i32);
                self.poll(a[0], a[1], until)
            }
            table::ppoll => match self.span(a[2]) {
                Ok(until) => self.poll(a[0], a[1], until),
                Err(served) => served,
            },
            table::select | table::pselect6 => self.select(asked),
            _ => return None,
        })
    }

    fn pipe(&mut self, at: u64, flags: i32) -> Served {
        let pipe = self.world.new_pipe();
        let cloexec = flags & libc::O_CLOEXEC != 0;
        let nonblock = flags & libc::O_NONBLOCK;
        let kind = Kind::Pipe { from: Some(pipe), to: None };
        let read = self.world.open_new(kind, nonblock, cloexec);
        let kind = Kind::Pipe { from: None, to: Some(pipe) };
        let write = self.world.open_new(kind, nonblock | libc::O_WRONLY, cloexec);
        self.give_pair(at, read, write)
    }

    pub(super) fn give_pair(&mut self, at: u64, one: i32, two: i32) -> Served {
        for fd in [one, two] {
            self.note_descriptor(fd, b"pipe", libc::O_RDWR);
        }
        let bytes = [one.to_le_bytes(), two.to_le_bytes()].concat();
        self.give(at, &bytes, 0)
    }

    fn event(&mut self, value: u64, flags: i32) -> Served {
        let semaphore = flags & libc::EFD_SEMAPHORE != 0;
        let kind = Kind::Event { value: value & 0xffff_ffff, semaphore };
        let flags = flags & (libc::O_NONBLOCK | libc::O_CLOEXEC);
        let fd = self.world.open_new(kind, flags | libc::O_RDWR, flags & libc::O_CLOEXEC != 0);
        self.note_descriptor(fd, b"event", libc::O_RDWR);
        Served::Value(fd.into())
    }

    fn epoll(&mut self, flags: i32) -> Served {
        let cloexec = flags & libc::O_CLOEXEC != 0;
        let fd = self.world.open_new(Kind::Epoll(Default::default()), libc::O_RDWR, cloexec);
        self.note_descriptor(fd, b"epoll", libc::O_RDWR);
        Served::Value(fd.into())
    }

    pub(super) fn read_pipe(
        &mut self,
        asked: &Asked,
        pipe: usize,
        room: usize,
        flags: i32,
    ) -> Served {
        let held = self.world.pipes[pipe].bytes.len();
        if held == 0 {
            if !self.world.pipe_has(pipe, true) {
                return Served::Value(0);
            }
            return if flags & libc::O_NONBLOCK != 0 {
                error(libc::EAGAIN)
            } else {
                Served::Waits(None)
            };
        }
        let bytes: Vec<u8> = self.world.pipes[pipe].bytes.drain(..room.min(held)).collect();
        self.scatter(asked, &bytes)
    }

    pub(super) fn write_pipe(&mut self, fd: i32, pipe: usize, bytes: &[u8], flags: i32) -> Served {
        if !self.world.pipe_has(pipe, false) {
            if flags & NO_SIGNAL == 0 {
                self.raise_here(libc::SIGPIPE);
            }
            return error(libc::EPIPE);
        }
        let held = self.world.pipes[pipe].bytes.len();
        // All at once or not yet: a thread that reads makes room.
        let room = PIPE_BYTES.max(bytes.len()).saturating_sub(held);
        if room < bytes.len() {
            return if flags & libc::O_NONBLOCK != 0 {
                error(libc::EAGAIN)
            } else {
                Served::Waits(None)
            };
        }
        self.world.put(&mut self.replayer.process, fd, None, bytes);
        Served::Value(bytes.len() as i64)
    }

    pub(super) fn read_event(&mut self, asked: &Asked, fd: i32, flags: i32) -> Served {
        if asked.args[2] < 8 {
            return error(libc::EINVAL);
        }
        let Some(Kind::Event { value, semaphore }) =
            self.world.get_mut(fd).map(|open| &mut open.kind)
        else {
            return error(libc::EBADF);
        };
        if *value == 0 {
            return if flags & libc::O_NONBLOCK != 0 {
                error(libc::EAGAIN)
            } else {
                Served::Waits(None)
            };
        }
        let got = if *semaphore { 1 } else { *value };
        *value -= got;
        self.give(asked.args[1], &got.to_le_bytes(), 8)
    }

    /// What a descriptor is ready for; an error for what cannot be told.
    fn ready(&self, fd: i32) -> Result<u32, Served> {
        let Some(open) = self.world.get(fd) else { return Ok(INVALID) };
        Ok(match &open.kind {
            Kind::Pipe { from, to } => {
                let mut events = 0;
                if let Some(pipe) = from {
                    if !self.world.pipes[*pipe].bytes.is_empty() {
                        events |= IN;
                    }
                    if !self.world.pipe_has(*pipe, true) {
                        events |= HUP | if to.is_some() { IN } else { 0 };
                    }
                }
                if let Some(pipe) = to {
                    if !self.world.pipe_has(*pipe, false) {
                        events |= ERR;
                    }
                    if self.world.pipes[*pipe].bytes.len() < PIPE_BYTES {
                        events |= OUT;
                    }
                }
                events
            }
            Kind::Event { value, .. } => OUT | if *value > 0 { IN } else { 0 },
            Kind::Stdin => {
                let left = self.world.facts.stdin.len() > self.world.stdin_at;
                if !left && !self.world.facts.stdin_is_over() {
                    return Err(unserved("poll of standard input behind what was recorded"));
                }
                IN
            }
            Kind::Epoll(list) => {
                let any = list.iter().any(|(fd, (events, _))| {
                    self.ready(*fd).is_ok_and(|now| now & (events | HUP | ERR) != 0)
                });
                if any { IN } else { 0 }
            }
            Kind::Foreign(what) => return Err(unserved(format!("poll of {what}"))),
            _ => IN | OUT,
        })
    }

    fn poll(&mut self, at: u64, count: u64, until: Option<u64>) -> Served {
        let memory = &self.replayer.process.machine.memory;
        let Some(mut list) = memory.read(at, 8 * count.min(4096) as usize) else {
            return error(libc::EFAULT);
        };
        let mut found = 0;
        for entry in list.chunks_exact_mut(8) {
            let fd = i32::from_le_bytes(entry[..4].try_into().expect("four"));
            let wanted = u32::from(u16::from_le_bytes([entry[4], entry[5]]));
            let now = match self.ready(fd) {
                _ if fd < 0 => 0,
                Ok(now) => now & (wanted | HUP | ERR | INVALID),
                Err(served) => return served,
            };
            entry[6..8].copy_from_slice(&(now as u16).to_le_bytes());
            found += i64::from(now != 0);
        }
        if found == 0 && until != Some(self.world.uptime) && !self.expired {
            return Served::Waits(until);
        }
        self.give(at, &list, found)
    }

    fn select(&mut self, asked: &Asked) -> Served {
        let a = &asked.args;
        let until = if a[4] == 0 {
            None
        } else {
            let scale = if asked.number as u32 == table::select { 1000 } else { 1 };
            let memory = &self.replayer.process.machine.memory;
            let (Some(s), Some(part)) = (memory.read_u64(a[4]), memory.read_u64(a[4] + 8)) else {
                return error(libc::EFAULT);
            };
            Some(self.world.uptime + s.saturating_mul(1_000_000_000) + part * scale)
        };
        let bytes = (a[0] as usize).min(1024).div_ceil(64) * 8;
        let mut sets = Vec::new();
        let mut found = 0;
        for (set, events) in [(a[1], IN | HUP), (a[2], OUT), (a[3], 0)] {
            if set == 0 {
                continue;
            }
            let memory = &self.replayer.process.machine.memory;
            let Some(wanted) = memory.read(set, bytes) else { return error(libc::EFAULT) };
            let mut out = vec![0u8; bytes];
            for fd in 0..a[0].min(1024) as usize {
                if wanted[fd / 8] >> (fd % 8) & 1 == 0 {
                    continue;
                }
                match self.ready(fd as i32) {
                    Ok(INVALID) => return error(libc::EBADF),
                    Ok(now) if now & events != 0 => {
                        out[fd / 8] |= 1 << (fd % 8);
                        found += 1;
                    }
                    Ok(_) => {}
                    Err(served) => return served,
                }
            }
            sets.push((set, out));
        }
        if found == 0 && until != Some(self.world.uptime) && !self.expired {
            return Served::Waits(until);
        }
        for (set, out) in sets {
            if !self.replayer.process.write_from_log(set, &out) {
                return error(libc::EFAULT);
            }
        }
        Served::Value(found)
    }

    fn epoll_control(&mut self, asked: &Asked) -> Served {
        let a = &asked.args;
        let event = self.replayer.process.machine.memory.read(a[3], 12);
        let fd = a[2] as i32;
        if self.world.get(fd).is_none() {
            return error(libc::EBADF);
        }
        if let Some(Kind::File(_)) = self.world.get(fd).map(|open| &open.kind) {
            return error(libc::EPERM);
        }
        let Some(Kind::Epoll(list)) = self.world.get_mut(a[0] as i32).map(|open| &mut open.kind)
        else {
            return error(libc::EINVAL);
        };
        let known = list.contains_key(&fd);
        match a[1] as i32 {
            libc::EPOLL_CTL_DEL if known => drop(list.remove(&fd)),
            libc::EPOLL_CTL_DEL => return error(libc::ENOENT),
            libc::EPOLL_CTL_ADD if known => return error(libc::EEXIST),
            libc::EPOLL_CTL_MOD if !known => return error(libc::ENOENT),
            _ => {
                let Some(bytes) = event else { return error(libc::EFAULT) };
                let events = u32::from_le_bytes(bytes[..4].try_into().expect("four"));
                let data = u64::from_le_bytes(bytes[4..].try_into().expect("eight"));
                list.insert(fd, (events, data));
            }
        }
        Served::Value(0)
    }

    fn epoll_wait(&mut self, asked: &Asked, until: Option<u64>) -> Served {
        let a = &asked.args;
        let Some(Kind::Epoll(list)) = self.world.get(asked.fd(0)).map(|open| open.kind.clone())
        else {
            return error(libc::EINVAL);
        };
        const EDGE: u32 = libc::EPOLLET as u32;
        let mut out = Vec::new();
        let mut found = 0;
        for (fd, (events, data)) in list {
            if events & EDGE != 0 {
                return unserved("edge-triggered epoll");
            }
            let now = match self.ready(fd) {
                Ok(now) => now & (events | HUP | ERR),
                Err(served) => return served,
            };
            if now != 0 && found < a[2] as i64 {
                out.extend_from_slice(&now.to_le_bytes());
                out.extend_from_slice(&data.to_le_bytes());
                found += 1;
            }
        }
        if found == 0 && until != Some(self.world.uptime) && !self.expired {
            return Served::Waits(until);
        }
        if found == 0 { Served::Value(0) } else { self.give(a[1], &out, found) }
    }

    /// The instant that is so many milliseconds away; `None` is never.
    fn milliseconds(&self, ms: i32) -> Option<u64> {
        u64::try_from(ms).ok().map(|ms| self.world.uptime + ms * 1_000_000)
    }

    /// The same from a `timespec`.
    fn span(&self, at: u64) -> Result<Option<u64>, Served> {
        if at == 0 {
            return Ok(None);
        }
        match self.read_time(at) {
            Some(ns) => Ok(Some(self.world.uptime.saturating_add(ns))),
            None => Err(error(libc::EFAULT)),
        }
    }
}
