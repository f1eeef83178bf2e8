//! Writing events.

use super::tags::*;
use super::{Effect, When};
use crate::FileId;

/// Writes one event at a time into a buffer it reuses.
#[derive(Default)]
pub struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    /// Starts a system call; effects may follow.
    pub fn call(&mut self, number: u32, result: i64, state: u32) -> &mut Self {
        self.start(CALL, state);
        self.number(number as u64);
        // Small negatives are errors: zigzag keeps both signs short.
        self.number(((result << 1) ^ (result >> 63)) as u64);
        self
    }

    /// Adds an effect to what was begun before.
    pub fn effect(&mut self, effect: &Effect) -> &mut Self {
        match *effect {
            Effect::Write { address, data } => {
                self.bytes.push(WRITE);
                self.number(address);
                self.slice(data);
            }
            Effect::Copy { address, file, offset, len } => {
                self.bytes.push(COPY);
                self.number(address);
                self.bytes.extend_from_slice(&file.0);
                self.number(offset);
                self.number(len);
            }
            Effect::Opened { file, device, inode } => self.known(OPENED, file, device, inode),
            Effect::Emptied { file, device, inode } => self.known(EMPTIED, file, device, inode),
            Effect::Found { stat } => {
                self.bytes.push(FOUND);
                self.bytes.extend_from_slice(stat);
            }
            Effect::Changed { device, inode, size, offset, data } => {
                self.bytes.push(CHANGED);
                for number in [device, inode, size, offset] {
                    self.number(number);
                }
                self.slice(data);
            }
            Effect::Spawned { thread } => {
                self.bytes.push(SPAWNED);
                self.number(thread as u64);
            }
            Effect::Output { data } => {
                self.bytes.push(OUTPUT);
                self.slice(data);
            }
            Effect::Forked { log, pid } => {
                self.bytes.push(FORKED);
                self.number(log);
                self.number(pid as u64);
            }
            Effect::Executed { log } => {
                self.bytes.push(EXECUTED);
                self.number(log);
            }
            Effect::Order { number } => {
                self.bytes.push(ORDER);
                self.number(number);
            }
            Effect::Between { gaps } => {
                self.bytes.push(BETWEEN);
                self.slice(gaps);
            }
            Effect::Mapped { address, len, protection, fresh } => {
                self.bytes.extend([MAPPED, u8::from(fresh)]);
                self.number(address);
                self.number(len);
                self.number(protection.map_or(0, |prot| u64::from(prot) + 1));
            }
        }
        self
    }

    fn known(&mut self, kind: u8, file: FileId, device: u64, inode: u64) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(&file.0);
        self.number(device);
        self.number(inode);
    }

    /// A number from outside.
    pub fn value(&mut self, value: u64, state: u32) -> &mut Self {
        self.start(VALUE, state);
        self.number(value);
        self
    }

    /// A signal.
    pub fn signal(&mut self, when: When, info: &[u8], state: u32) -> &mut Self {
        self.start(SIGNAL, state);
        self.when(when);
        let len = info.iter().rposition(|b| *b != 0).map_or(0, |n| n + 1);
        self.slice(&info[..len]);
        self
    }

    /// A thread switch.
    pub fn switch(&mut self, when: When, to: u32, state: u32) -> &mut Self {
        self.start(SWITCH, state);
        self.when(when);
        self.number(to as u64);
        self
    }

    /// A memory hash.
    pub fn memory(&mut self, hash: u64) -> &mut Self {
        self.bytes.clear();
        self.bytes.push(MEMORY);
        self.bytes.extend_from_slice(&hash.to_le_bytes());
        self
    }

    /// What other processes changed; effects follow.
    pub fn shared(&mut self, when: When) -> &mut Self {
        self.bytes.clear();
        self.bytes.push(SHARED);
        self.when(when);
        self
    }

    /// The end.
    pub fn end(&mut self, status: i32, memory: u64) -> &mut Self {
        self.bytes.clear();
        self.bytes.push(END);
        self.number(status as u32 as u64);
        self.bytes.extend_from_slice(&memory.to_le_bytes());
        self
    }

    /// The entry of a region.
    pub fn entry(&mut self, state: &[u8]) -> &mut Self {
        self.bytes.clear();
        self.bytes.push(ENTRY);
        self.slice(state);
        self
    }

    /// Memory at the entry of a region.
    pub fn contents(&mut self, address: u64, own: bool, data: &[u8]) -> &mut Self {
        self.bytes.clear();
        self.bytes.extend([CONTENTS, u8::from(own)]);
        self.number(address);
        self.slice(data);
        self
    }

    /// The end of a region.
    pub fn cut(&mut self, when: When) -> &mut Self {
        self.bytes.clear();
        self.bytes.push(CUT);
        self.when(when);
        self
    }

    /// A stretch of a slice; effects follow.
    pub fn stretch(
        &mut self,
        (thread, number, count): (u32, u64, u64),
        state: u32,
        registers: &[u8],
    ) -> &mut Self {
        self.start(STRETCH, state);
        self.number(u64::from(thread));
        self.number(number);
        self.number(count);
        self.slice(registers);
        self
    }

    /// The event's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn start(&mut self, tag: u8, state: u32) {
        self.bytes.clear();
        self.bytes.push(tag);
        self.bytes.extend_from_slice(&state.to_le_bytes());
    }

    fn when(&mut self, when: When) {
        match when {
            When::Here => self.bytes.push(0),
            When::Safepoint(n) => {
                self.bytes.push(1);
                self.number(n);
            }
        }
    }

    fn number(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.bytes.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.bytes.push(n as u8);
    }

    fn slice(&mut self, data: &[u8]) {
        self.number(data.len() as u64);
        self.bytes.extend_from_slice(data);
    }
}
