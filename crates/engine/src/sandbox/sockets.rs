//! Sockets whose two ends are in the run itself. Others end the trial: what somebody
//! else would have answered cannot be told.

use super::calls::{error, unserved};
use super::streams::NO_SIGNAL;
use super::world::{Kind, World};
use super::{Sandbox, Served};
use crate::kernel::process::{Asked, Process};
use crate::kernel::table;

/// What a message of `sendmsg` or `recvmsg` points to.
struct Message {
    name: u64,
    vectors: u64,
    count: u64,
    control: u64,
}

impl Sandbox {
    /// `None` if the call is not one of these.
    pub(super) fn socket_call(&mut self, asked: &Asked) -> Option<Served> {
        let a = &asked.args;
        Some(match asked.number as u32 {
            table::socketpair if a[0] as i32 == libc::AF_UNIX => self.socket_pair(a),
            table::socket => {
                let cloexec = a[1] as i32 & libc::O_CLOEXEC != 0;
                let fd =
                    self.world.open_new(Kind::Foreign("a socket".into()), libc::O_RDWR, cloexec);
                self.note_descriptor(fd, b"socket", libc::O_RDWR);
                Served::Value(fd.into())
            }
            table::connect => {
                let memory = &self.replayer.process.machine.memory;
                let address = memory.read(a[1], a[2].min(128) as usize).unwrap_or_default();
                // Whom nobody answered then, nobody answers now.
                match self.world.facts.refused.get(&address) {
                    Some(errno) => Served::Value(*errno),
                    None => unserved("connect"),
                }
            }
            table::sendto => self.send_bytes(asked, a[3] as i32, a[4] != 0),
            table::recvfrom => self.receive_bytes(asked, a[3] as i32, a[4] != 0),
            table::sendmsg => self.send_message(asked),
            table::recvmsg => self.receive_message(asked),
            table::shutdown => self.shut_down(asked.fd(0), a[1] as i32),
            table::setsockopt if self.is_pair(asked.fd(0)) => Served::Value(0),
            table::getsockopt if self.is_pair(asked.fd(0)) => self.socket_option(a),
            table::getsockname | table::getpeername if self.is_pair(asked.fd(0)) => {
                self.unnamed(a[1], a[2])
            }
            _ => return None,
        })
    }

    fn socket_pair(&mut self, a: &[u64; 6]) -> Served {
        if a[1] as i32 & 0xf != libc::SOCK_STREAM {
            return unserved("a pair of sockets for messages");
        }
        let (one, two) = (self.world.new_pipe(), self.world.new_pipe());
        let flags = a[1] as i32 & libc::O_NONBLOCK | libc::O_RDWR;
        let cloexec = a[1] as i32 & libc::O_CLOEXEC != 0;
        let kind = Kind::Pipe { from: Some(one), to: Some(two) };
        let x = self.world.open_new(kind, flags, cloexec);
        let kind = Kind::Pipe { from: Some(two), to: Some(one) };
        let y = self.world.open_new(kind, flags, cloexec);
        self.give_pair(a[3], x, y)
    }

    fn is_pair(&self, fd: i32) -> bool {
        let kind = self.world.get(fd).map(|open| &open.kind);
        matches!(kind, Some(Kind::Pipe { from: Some(_), to: Some(_) }))
    }

    /// The pipe that a socket writes to, or reads from, and its flags for one call.
    fn way(&self, fd: i32, flags: i32, writes: bool) -> Result<(usize, i32), Served> {
        let Some(open) = self.world.get(fd) else { return Err(error(libc::EBADF)) };
        let Kind::Pipe { from, to } = open.kind else {
            let what = if writes { "sendto" } else { "recvfrom" };
            return Err(match open.kind {
                Kind::Foreign(_) => unserved(what),
                _ => error(libc::ENOTSOCK),
            });
        };
        let nonblock = if flags & libc::MSG_DONTWAIT != 0 { libc::O_NONBLOCK } else { 0 };
        let silent = if flags & libc::MSG_NOSIGNAL != 0 { NO_SIGNAL } else { 0 };
        let pipe = if writes { to } else { from };
        pipe.map(|pipe| (pipe, open.flags | nonblock | silent)).ok_or(error(libc::ENOTCONN))
    }

    fn send_bytes(&mut self, asked: &Asked, flags: i32, named: bool) -> Served {
        let a = &asked.args;
        let known = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_MORE;
        if named || flags & !known != 0 {
            return unserved("sendto");
        }
        let memory = &self.replayer.process.machine.memory;
        let Some(bytes) = memory.read(a[1], a[2].min(1 << 20) as usize) else {
            return error(libc::EFAULT);
        };
        match self.way(asked.fd(0), flags, true) {
            Ok((pipe, flags)) => self.write_pipe(asked.fd(0), pipe, &bytes, flags),
            Err(served) => served,
        }
    }

    fn receive_bytes(&mut self, asked: &Asked, flags: i32, named: bool) -> Served {
        if named || flags & !(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_PEEK) != 0 {
            return unserved("recvfrom");
        }
        let (pipe, opened) = match self.way(asked.fd(0), flags, false) {
            Ok(found) => found,
            Err(served) => return served,
        };
        let as_read = Asked { number: u64::from(table::read), args: asked.args };
        let room = asked.args[2].min(1 << 20) as usize;
        let before = (flags & libc::MSG_PEEK != 0).then(|| self.world.pipes[pipe].bytes.clone());
        let served = self.read_pipe(&as_read, pipe, room, opened);
        if let Some(before) = before {
            self.world.pipes[pipe].bytes = before;
        }
        served
    }

    fn message(&self, asked: &Asked) -> Option<Message> {
        let memory = &self.replayer.process.machine.memory;
        let word = |n: u64| memory.read_u64(asked.args[1] + 8 * n);
        Some(Message { name: word(0)?, vectors: word(2)?, count: word(3)?, control: word(4)? })
    }

    /// The call that reads or writes what a message points to.
    fn vectored(asked: &Asked, message: &Message, number: u32) -> Asked {
        let mut args = asked.args;
        (args[1], args[2]) = (message.vectors, message.count);
        Asked { number: u64::from(number), args }
    }

    fn send_message(&mut self, asked: &Asked) -> Served {
        let Some(message) = self.message(asked) else { return error(libc::EFAULT) };
        if message.name != 0 || message.control != 0 {
            return unserved("sendmsg");
        }
        let (pipe, flags) = match self.way(asked.fd(0), asked.args[2] as i32, true) {
            Ok(found) => found,
            Err(served) => return served,
        };
        let as_write = Self::vectored(asked, &message, table::writev);
        let bytes = super::follow::gather(&self.replayer.process, &as_write, 1 << 20);
        self.write_pipe(asked.fd(0), pipe, &bytes, flags)
    }

    fn receive_message(&mut self, asked: &Asked) -> Served {
        let Some(message) = self.message(asked) else { return error(libc::EFAULT) };
        let flags = asked.args[2] as i32;
        if message.name != 0 || flags & !(libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC) != 0 {
            return unserved("recvmsg");
        }
        let (pipe, opened) = match self.way(asked.fd(0), flags, false) {
            Ok(found) => found,
            Err(served) => return served,
        };
        let as_read = Self::vectored(asked, &message, table::readv);
        let room = self.room(&as_read).min(1 << 20) as usize;
        // No names, no control data, no flags.
        for (at, len) in [(8, 4), (40, 8), (48, 4)] {
            let zeros = [0; 8];
            if !self.replayer.process.write_from_log(asked.args[1] + at, &zeros[..len]) {
                return error(libc::EFAULT);
            }
        }
        self.read_pipe(&as_read, pipe, room, opened)
    }

    fn shut_down(&mut self, fd: i32, how: i32) -> Served {
        if !self.is_pair(fd) {
            return unserved("shutdown");
        }
        self.world.shut_down(fd, how);
        Served::Value(0)
    }

    fn socket_option(&mut self, a: &[u64; 6]) -> Served {
        let value: i32 = match (a[1] as i32, a[2] as i32) {
            (libc::SOL_SOCKET, libc::SO_TYPE) => libc::SOCK_STREAM,
            (libc::SOL_SOCKET, libc::SO_ERROR) => 0,
            (libc::SOL_SOCKET, libc::SO_DOMAIN) => libc::AF_UNIX,
            _ => return unserved("getsockopt"),
        };
        let length = self.give(a[4], &4u32.to_le_bytes(), 0);
        match length {
            Served::Value(0) => self.give(a[3], &value.to_le_bytes(), 0),
            other => other,
        }
    }

    /// The address of a socket of a pair: a family, and no name.
    fn unnamed(&mut self, at: u64, length: u64) -> Served {
        match self.give(length, &2u32.to_le_bytes(), 0) {
            Served::Value(0) => self.give(at, &(libc::AF_UNIX as u16).to_le_bytes(), 0),
            other => other,
        }
    }
}

impl World {
    /// One half of a socket of a pair, or both, is over.
    pub fn shut_down(&mut self, fd: i32, how: i32) {
        if let Some(Kind::Pipe { from, to }) = self.get_mut(fd).map(|open| &mut open.kind) {
            if how != libc::SHUT_WR {
                *from = None;
            }
            if how != libc::SHUT_RD {
                *to = None;
            }
        }
    }

    /// A socket of the recorded run was used.
    pub fn follow_socket(&mut self, process: &mut Process, asked: &Asked, result: i64) {
        let fd = asked.fd(0);
        let count = result as u64;
        let a = &asked.args;
        match asked.number as u32 {
            table::sendto => {
                let bytes = super::follow::gather(process, asked, count);
                self.put(process, fd, None, &bytes);
            }
            table::recvfrom if a[3] as i32 & libc::MSG_PEEK == 0 => self.take_out(fd, count),
            table::recvmsg if a[2] as i32 & libc::MSG_PEEK == 0 => self.take_out(fd, count),
            table::sendmsg => {
                let memory = &process.machine.memory;
                let word = |n: u64| memory.read_u64(a[1] + 8 * n).unwrap_or(0);
                let mut args = *a;
                (args[1], args[2]) = (word(2), word(3));
                let as_write = Asked { number: u64::from(table::writev), args };
                let bytes = super::follow::gather(process, &as_write, count);
                self.put(process, fd, None, &bytes);
            }
            table::shutdown => self.shut_down(fd, a[1] as i32),
            _ => {}
        }
    }

    /// Bytes leave a pipe.
    pub fn take_out(&mut self, fd: i32, count: u64) {
        let kind = self.get(fd).map(|open| &open.kind);
        if let Some(&Kind::Pipe { from: Some(pipe), .. }) = kind {
            let held = &mut self.pipes[pipe].bytes;
            let known = (count as usize).min(held.len());
            held.drain(..known);
        }
    }
}
