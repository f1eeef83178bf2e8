//! System calls the host performs: which memory they wrote, and how a call that
//! waits is kept from writing guest memory while other threads run.

use crate::guest::memory::Memory;
use crate::kernel::process::Asked;
use crate::kernel::table::{self, Call, Out};

/// A range of guest memory that a call wrote.
pub type Written = (u64, u64);

const EINTR: i64 = -(libc::EINTR as i64);
const ERESTARTSYS: i64 = -512;

/// Guest memory, with parts of it standing elsewhere for the time of a call.
pub struct View<'a> {
    memory: &'a Memory,
    scratch: &'a Scratch,
    room: u64,
}

impl<'a> View<'a> {
    /// What a call sees; `room` is what [`room`] said before it.
    pub fn new(memory: &'a Memory, scratch: &'a Scratch, room: u64) -> View<'a> {
        View { memory, scratch, room }
    }

    fn read(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        match self.scratch.find(address, len as u64) {
            Some(bytes) => Some(bytes.to_vec()),
            None => self.memory.read(address, len),
        }
    }

    fn word(&self, address: u64) -> u64 {
        self.read(address, 8).map_or(0, |b| u64::from_le_bytes(b.try_into().expect("eight")))
    }

    /// A word as the guest has it, before the call's changes come back.
    fn guest_word(&self, address: u64) -> u64 {
        self.memory.read_u64(address).unwrap_or(0)
    }

    fn half(&self, address: u64) -> u32 {
        self.read(address, 4).map_or(0, |b| u32::from_le_bytes(b.try_into().expect("four")))
    }
}

/// How long the buffer is whose length the call gets and gives through a pointer.
pub fn room(call: &Call, asked: &Asked, memory: &Memory) -> u64 {
    call.outs.iter().fold(u64::MAX, |room, out| match out {
        Out::LenAt(_, l) => memory
            .read(asked.args[*l], 4)
            .map_or(0, |b| u32::from_le_bytes(b.try_into().expect("four")) as u64),
        _ => room,
    })
}

/// The memory a call wrote, given its result.
pub fn written(call: &Call, asked: &Asked, result: i64, view: &View) -> Vec<Written> {
    let mut ranges = Vec::new();
    for out in call.outs {
        one(*out, asked, result, view, &mut ranges);
    }
    ranges.retain(|(address, len)| *address != 0 && *len != 0);
    ranges
}

fn one(out: Out, asked: &Asked, result: i64, view: &View, ranges: &mut Vec<Written>) {
    let a = &asked.args;
    let ok = result >= 0;
    let interrupted = result == EINTR || result == ERESTARTSYS;
    match out {
        Out::Always(p, n) => ranges.push((a[p], n as u64)),
        Out::Interrupted(p, n) if interrupted => ranges.push((a[p], n as u64)),
        Out::Polled(p, l) if ok || interrupted => {
            ranges.push((a[p], a[l] as u32 as u64 * 8));
        }
        _ if !ok => {}
        Out::Interrupted(..) | Out::Polled(..) => {}
        Out::Fixed(p, n) => ranges.push((a[p], n as u64)),
        Out::Returned(p) => ranges.push((a[p], returned_len(asked, result))),
        Out::Each(p, n) => {
            let asked_for_count = asked.number as u32 == table::getgroups && a[0] == 0;
            let count = if asked_for_count { 0 } else { result as u64 };
            ranges.push((a[p], count * n as u64));
        }
        Out::PageEach(p, l) => ranges.push((a[p], a[l].div_ceil(crate::layout::PAGE))),
        Out::Sent(p) => {
            for n in 0..(result as u64).min(a[p + 1]).min(1024) {
                ranges.push((a[p] + n * 64 + 56, 4));
            }
        }
        Out::Len(p, l) => ranges.push((a[p], a[l])),
        Out::Vector(p, n) => vector(a[p], a[n], result as u64, view, ranges),
        Out::LenAt(p, l) if a[p] != 0 && a[l] != 0 => {
            // The length after the call may exceed what there was room for.
            ranges.push((a[p], u64::from(view.half(a[l])).min(view.room)));
            ranges.push((a[l], 4));
        }
        Out::LenAt(..) => {}
        Out::Message(p) => message(a[p], result as u64, view, ranges),
        Out::Messages(p, l) => {
            for n in 0..(result as u64).min(a[l]).min(1024) {
                let at = a[p] + n * 64;
                message(at, view.half(at + 56) as u64, view, ranges);
                ranges.push((at + 56, 4));
            }
        }
        Out::Set(p) => ranges.push((a[p], (a[0] as u32 as u64).div_ceil(64) * 8)),
        Out::Ioctl => ranges.extend(ioctl(a)),
        Out::Fcntl => ranges.extend(fcntl(a)),
        Out::Futex => futex(a, ranges),
    }
}

/// Some calls return a length that does not count all they wrote, or that a size
/// of zero turned into a question.
fn returned_len(asked: &Asked, result: i64) -> u64 {
    let a = &asked.args;
    let result = result as u64;
    match asked.number as u32 {
        table::msgrcv => result + 8,
        table::getxattr | table::lgetxattr | table::fgetxattr => result.min(a[3]),
        table::listxattr | table::llistxattr | table::flistxattr => result.min(a[2]),
        table::recvfrom => result.min(a[2]),
        _ => result,
    }
}

fn vector(at: u64, count: u64, mut left: u64, view: &View, ranges: &mut Vec<Written>) {
    for n in 0..count.min(1024) {
        let (base, len) = (view.guest_word(at + 16 * n), view.guest_word(at + 16 * n + 8));
        let part = len.min(left);
        ranges.push((base, part));
        left -= part;
    }
}

/// `struct msghdr`: name 0, namelen 8, iov 16, iovlen 24, control 32, controllen
/// 40, flags 48.
fn message(at: u64, received: u64, view: &View, ranges: &mut Vec<Written>) {
    // Pointers are the guest's own; lengths are what the call left.
    let name = view.guest_word(at);
    if name != 0 {
        let room = view.guest_word(at + 8) & 0xffff_ffff;
        ranges.push((name, u64::from(view.half(at + 8)).min(room)));
    }
    vector(view.guest_word(at + 16), view.guest_word(at + 24), received, view, ranges);
    ranges.push((view.guest_word(at + 32), view.word(at + 40)));
    ranges.push((at + 8, 4));
    ranges.push((at + 40, 12));
}

/// What the common terminal, file and socket requests write.
fn ioctl(a: &[u64; 6]) -> Option<Written> {
    let size = match a[1] as u32 {
        0x5401 => 36,                   // TCGETS
        0x5405 => 18,                   // TCGETA
        0x540f | 0x5429 | 0x5424 => 4,  // TIOCGPGRP, TIOCGSID, TIOCGETD
        0x5411 | 0x541b | 0x8905 => 4,  // TIOCOUTQ, FIONREAD, SIOCATMARK
        0x5413 => 8,                    // TIOCGWINSZ
        0x5415 | 0x5419 => 4,           // TIOCMGET, TIOCGSOFTCAR
        0x8004_5430 | 0x8004_5439 => 4, // TIOCGPTN, TIOCGPTLCK
        0x8912..=0x8970 => 40,          // SIOCGIF…
        0x8008_6601 | 0x8008_7601 => 8, // FS_IOC_GETFLAGS, FS_IOC_GETVERSION
        request => {
            // _IOC encoding: direction in the top two bits, size in the next 14.
            let (direction, size) = (request >> 30, request >> 16 & 0x3fff);
            if direction & 2 != 0 { size as u64 } else { return None }
        }
    };
    Some((a[2], size))
}

fn fcntl(a: &[u64; 6]) -> Option<Written> {
    match a[1] as i32 {
        libc::F_GETLK | 36 /* F_OFD_GETLK */ => Some((a[2], 32)),
        16 /* F_GETOWN_EX */ => Some((a[2], 8)),
        1035 | 1037 => Some((a[2], 8)), // F_GET_RW_HINT, F_GET_FILE_RW_HINT
        _ => None,
    }
}

/// `FUTEX_WAKE_OP` changes the second word itself.
fn futex(a: &[u64; 6], ranges: &mut Vec<Written>) {
    const WAKE_OP: i32 = 5;
    if a[1] as i32 & 0x7f == WAKE_OP {
        ranges.push((a[4], 4));
    }
}

/// Buffers that stand in for guest memory while a call waits.
#[derive(Default)]
pub struct Scratch {
    buffers: Vec<(u64, Vec<u8>)>,
}

impl Scratch {
    fn find(&self, address: u64, len: u64) -> Option<&[u8]> {
        self.buffers.iter().find_map(|(start, bytes)| {
            let offset = address.checked_sub(*start)? as usize;
            bytes.get(offset..offset.checked_add(len as usize)?)
        })
    }

    /// Moves one buffer of the guest here; the host gets the new address. If the
    /// guest's own is not there, the kernel shall say so.
    fn take(&mut self, memory: &Memory, address: u64, len: u64) -> u64 {
        if address == 0 || len == 0 {
            return address;
        }
        let Some(bytes) = memory.read(address, len as usize) else { return address };
        if !memory.is_writable(address, len) {
            return address;
        }
        let place = bytes.as_ptr() as u64;
        self.buffers.push((address, bytes));
        place
    }

    /// The arguments for a call that may wait: every pointer it writes through
    /// leads here.
    pub fn divert(&mut self, call: &Call, asked: &Asked, memory: &Memory) -> [u64; 6] {
        let mut args = asked.args;
        for out in call.outs {
            self.divert_one(*out, asked, memory, &mut args);
        }
        args
    }

    fn divert_one(&mut self, out: Out, asked: &Asked, memory: &Memory, args: &mut [u64; 6]) {
        let a = &asked.args;
        match out {
            Out::Polled(p, l) => args[p] = self.take(memory, a[p], a[l] as u32 as u64 * 8),
            Out::Fixed(p, n) | Out::Interrupted(p, n) | Out::Always(p, n) => {
                args[p] = self.take(memory, a[p], n as u64);
            }
            Out::Returned(p) => {
                let extra = if asked.number as u32 == table::msgrcv { 8 } else { 0 };
                args[p + 1] = a[p + 1].min(1 << 30);
                args[p] = self.take(memory, a[p], args[p + 1] + extra);
            }
            Out::Each(p, n) => args[p] = self.take(memory, a[p], a[p + 1] as u32 as u64 * n as u64),
            Out::Len(p, l) => args[p] = self.take(memory, a[p], a[l]),
            Out::Vector(p, n) => args[p] = self.divert_vector(memory, a[p], a[n]),
            Out::LenAt(p, l) => {
                let len = memory
                    .read(a[l], 4)
                    .map_or(0, |b| u32::from_le_bytes(b.try_into().expect("four")) as u64);
                args[p] = self.take(memory, a[p], len);
                args[l] = self.take(memory, a[l], 4);
            }
            Out::Message(p) => args[p] = self.divert_message(memory, a[p]),
            Out::Messages(p, n) => args[p] = self.divert_messages(memory, a[p], a[n]),
            Out::PageEach(p, l) => {
                args[p] = self.take(memory, a[p], a[l].div_ceil(crate::layout::PAGE));
            }
            Out::Sent(p) => args[p] = self.take(memory, a[p], a[p + 1].min(1024) * 64),
            Out::Set(p) => {
                args[p] = self.take(memory, a[p], (a[0] as u32 as u64).div_ceil(64) * 8);
            }
            Out::Ioctl => {
                if let Some((address, len)) = ioctl(a) {
                    args[2] = self.take(memory, address, len);
                }
            }
            // The word must be the guest's own: the kernel compares it.
            Out::Futex | Out::Fcntl => {}
        }
    }

    fn divert_vector(&mut self, memory: &Memory, at: u64, count: u64) -> u64 {
        let Some(bytes) = memory.read(at, 16 * count.min(1024) as usize) else { return at };
        let mut copy = bytes.clone();
        for entry in copy.chunks_exact_mut(16) {
            let (base, len) = split(entry);
            let base = self.take(memory, base, len);
            entry[..8].copy_from_slice(&base.to_le_bytes());
        }
        self.keep(copy)
    }

    /// A buffer that stands for no guest memory.
    fn keep(&mut self, bytes: Vec<u8>) -> u64 {
        let place = bytes.as_ptr() as u64;
        self.buffers.push((u64::MAX, bytes));
        place
    }

    fn divert_message(&mut self, memory: &Memory, at: u64) -> u64 {
        let place = self.take(memory, at, 56);
        if place == at {
            return at;
        }
        self.divert_message_at(memory, place);
        place
    }

    fn divert_messages(&mut self, memory: &Memory, at: u64, count: u64) -> u64 {
        let count = count.min(1024);
        let place = self.take(memory, at, 64 * count);
        if place != at {
            for n in 0..count {
                self.divert_message_at(memory, place + 64 * n);
            }
        }
        place
    }

    /// Rewrites the pointers of a header that already stands here.
    fn divert_message_at(&mut self, memory: &Memory, place: u64) {
        // SAFETY: `place` is in a buffer of ours that is at least so long.
        let header = unsafe { std::slice::from_raw_parts_mut(place as *mut u8, 56) };
        let word = |b: &[u8], n: usize| u64::from_le_bytes(b[n..n + 8].try_into().expect("eight"));
        let name_len = word(header, 8) & 0xffff_ffff;
        let name = self.take(memory, word(header, 0), name_len);
        let iov = self.divert_vector(memory, word(header, 16), word(header, 24));
        let control = self.take(memory, word(header, 32), word(header, 40));
        header[0..8].copy_from_slice(&name.to_le_bytes());
        header[16..24].copy_from_slice(&iov.to_le_bytes());
        header[32..40].copy_from_slice(&control.to_le_bytes());
    }

    /// Copies what the call wrote to where the guest expects it.
    pub fn give_back(&self, memory: &Memory, ranges: &[Written]) {
        for (address, len) in ranges {
            if let Some(bytes) = self.find(*address, *len) {
                let _ = memory.write(*address, bytes);
            }
        }
    }
}

fn split(entry: &[u8]) -> (u64, u64) {
    let word = |n: usize| u64::from_le_bytes(entry[n..n + 8].try_into().expect("eight"));
    (word(0), word(8))
}
