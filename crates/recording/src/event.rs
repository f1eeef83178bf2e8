//! What an event says, and how it is written as bytes.
//!
//! A log is the story of one process: the events of its running thread in order,
//! with a [`Event::Switch`] wherever another thread goes on. Numbers are
//! variable-length; memory contents are borrowed from the log, or named by the
//! captured file they came from.

use crate::FileId;

/// When something happens that the guest did not ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Right after the event before it (at a system call or an emulated
    /// instruction).
    Here,
    /// When the running thread has passed so many safepoints in all.
    Safepoint(u64),
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// The running thread finished a system call.
    Call {
        /// Its number.
        number: u32,
        /// What it returned.
        result: i64,
        /// Hash of the registers at the call.
        state: u32,
        /// What it did to memory and descriptors.
        effects: Effects<'a>,
    },
    /// An instruction got a number from outside (time-stamp counter, randomness).
    Value {
        /// The number.
        value: u64,
        /// Hash of the registers at the instruction.
        state: u32,
    },
    /// A signal reaches the running thread.
    Signal {
        /// When.
        when: When,
        /// `siginfo_t` without its trailing zeros.
        info: &'a [u8],
        /// Hash of the registers before it.
        state: u32,
    },
    /// Another thread goes on.
    Switch {
        /// When the running one stops.
        when: When,
        /// Which goes on.
        to: u32,
        /// Hash of the registers of the one that stops.
        state: u32,
    },
    /// Hash of all writable memory, at the point of the event before.
    Memory {
        /// The hash.
        hash: u64,
    },
    /// Other processes changed memory that is shared with them.
    Shared {
        /// When it is seen; *here* is inside the call that the running thread makes next.
        when: When,
        /// What is there now.
        effects: Effects<'a>,
    },
    /// The process ended here.
    End {
        /// Exit status as `wait` gives it: status << 8, or the signal.
        status: i32,
        /// Hash of all writable memory at the end.
        memory: u64,
    },
    /// The first event of a region: all but memory that the run consists of there.
    Entry {
        /// What the engine alone knows: it defines and reads this.
        state: &'a [u8],
    },
    /// Memory at the entry of a region.
    Contents {
        /// Where.
        address: u64,
        /// Did the run change it, or is it what lies behind the map?
        own: bool,
        /// What is there.
        data: &'a [u8],
    },
    /// The region ends here, though the run did not.
    Cut {
        /// When.
        when: When,
    },
    /// A stretch of a slice: what was left out before it, and how long it is.
    Stretch {
        /// The thread that runs it.
        thread: u32,
        /// Number of its first instruction in the run that the slice is of.
        number: u64,
        /// Instructions to execute.
        count: u64,
        /// Hash of the registers behind them.
        state: u32,
        /// Registers that what was left out changed: the engine defines and reads this.
        registers: &'a [u8],
        /// Memory that what was left out changed.
        effects: Effects<'a>,
    },
}

/// What a system call did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effects<'a>(&'a [u8]);

/// One thing a system call did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect<'a> {
    /// Memory got these bytes.
    Write {
        /// Where.
        address: u64,
        /// What.
        data: &'a [u8],
    },
    /// Memory got bytes of a captured file.
    Copy {
        /// Where.
        address: u64,
        /// Which file.
        file: FileId,
        /// From which offset.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// The call opened a regular file whose contents were captured.
    Opened {
        /// Its contents then.
        file: FileId,
        /// Device and inode, to tell files apart.
        device: u64,
        /// Inode.
        inode: u64,
    },
    /// The call emptied a regular file as it opened it.
    Emptied {
        /// Its contents before.
        file: FileId,
        /// Device and inode.
        device: u64,
        /// Inode.
        inode: u64,
    },
    /// What `fstat` says of what the call opened.
    Found {
        /// `struct stat` of x86-64.
        stat: &'a [u8; 144],
    },
    /// The call changed a file that is mapped shared.
    Changed {
        /// Device and inode of the file.
        device: u64,
        /// Inode.
        inode: u64,
        /// Its size now.
        size: u64,
        /// Where bytes changed.
        offset: u64,
        /// What is there now.
        data: &'a [u8],
    },
    /// The call created a thread, which the kernel knows by this number.
    Spawned {
        /// Our number.
        thread: u32,
    },
    /// Bytes that went to a descriptor without passing through guest memory.
    Output {
        /// The bytes.
        data: &'a [u8],
    },
    /// The call made a process, whose log has this number. Parent and child each have
    /// such an event; the child's result is 0.
    Forked {
        /// Number of the child's log.
        log: u64,
        /// The child's process number.
        pid: u32,
    },
    /// The call put another program into the process, whose log has this number: this
    /// one ends here.
    Executed {
        /// Number of the new program's log.
        log: u64,
    },
    /// Memory is mapped, with this protection, or no longer is.
    Mapped {
        /// Where.
        address: u64,
        /// How long.
        len: u64,
        /// Its protection; `None` if nothing is there.
        protection: Option<u32>,
        /// Is it new, and full of zeros?
        fresh: bool,
    },
    /// Instructions that are executed with a stretch of a slice, but are not in it.
    Between {
        /// Where they are: the engine defines and reads this.
        gaps: &'a [u8],
    },
    /// The place of these bytes in the output of all processes together.
    Order {
        /// Counts up from 0.
        number: u64,
    },
}

/// Writes one event at a time into a buffer it reuses.
#[derive(Default)]
pub struct Encoder {
    bytes: Vec<u8>,
}

const CALL: u8 = 1;
const VALUE: u8 = 2;
const SIGNAL: u8 = 3;
const SWITCH: u8 = 4;
const MEMORY: u8 = 5;
const END: u8 = 6;
const SHARED: u8 = 7;
const ENTRY: u8 = 8;
const CONTENTS: u8 = 9;
const CUT: u8 = 10;
const STRETCH: u8 = 11;

const WRITE: u8 = 1;
const COPY: u8 = 2;
const OPENED: u8 = 3;
const SPAWNED: u8 = 4;
const OUTPUT: u8 = 5;
const FOUND: u8 = 6;
const CHANGED: u8 = 7;
const FORKED: u8 = 8;
const EXECUTED: u8 = 9;
const ORDER: u8 = 10;
const EMPTIED: u8 = 11;
const MAPPED: u8 = 12;
const BETWEEN: u8 = 13;

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

/// Bytes that are not an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the log is malformed")]
pub struct Malformed;

impl<'a> Event<'a> {
    /// Reads an event.
    pub fn decode(bytes: &'a [u8]) -> Result<Event<'a>, Malformed> {
        let mut r = Cursor(bytes);
        let event = match r.byte()? {
            CALL => {
                let state = r.state()?;
                let number = u32::try_from(r.number()?).map_err(|_| Malformed)?;
                let z = r.number()?;
                let result = (z >> 1) as i64 ^ -((z & 1) as i64);
                Event::Call { number, result, state, effects: Effects(r.0) }
            }
            VALUE => {
                let state = r.state()?;
                Event::Value { value: r.number()?, state }
            }
            SIGNAL => {
                let state = r.state()?;
                Event::Signal { when: r.when()?, info: r.slice()?, state }
            }
            SWITCH => {
                let state = r.state()?;
                let when = r.when()?;
                let to = u32::try_from(r.number()?).map_err(|_| Malformed)?;
                Event::Switch { when, to, state }
            }
            SHARED => Event::Shared { when: r.when()?, effects: Effects(r.0) },
            MEMORY => Event::Memory { hash: r.hash()? },
            END => Event::End { status: r.number()? as u32 as i32, memory: r.hash()? },
            ENTRY => Event::Entry { state: r.slice()? },
            CONTENTS => {
                let own = r.byte()? != 0;
                Event::Contents { address: r.number()?, own, data: r.slice()? }
            }
            CUT => Event::Cut { when: r.when()? },
            STRETCH => Event::Stretch {
                state: r.state()?,
                thread: u32::try_from(r.number()?).map_err(|_| Malformed)?,
                number: r.number()?,
                count: r.number()?,
                registers: r.slice()?,
                effects: Effects(r.0),
            },
            _ => return Err(Malformed),
        };
        Ok(event)
    }
}

impl<'a> Effects<'a> {
    /// Reads the effects in order; stops at the first malformed one.
    pub fn iter(self) -> impl Iterator<Item = Result<Effect<'a>, Malformed>> {
        let mut r = Cursor(self.0);
        let mut broken = false;
        std::iter::from_fn(move || {
            if broken || r.0.is_empty() {
                return None;
            }
            let effect = r.effect();
            broken = effect.is_err();
            Some(effect)
        })
    }
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.0.split_at_checked(n).ok_or(Malformed)?;
        self.0 = rest;
        Ok(head)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    fn hash(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().map_err(|_| Malformed)?))
    }

    fn state(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().map_err(|_| Malformed)?))
    }

    fn number(&mut self) -> Result<u64, Malformed> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let b = self.byte()?;
            n |= ((b & 0x7f) as u64) << shift;
            if b < 0x80 {
                return Ok(n);
            }
        }
        Err(Malformed)
    }

    fn slice(&mut self) -> Result<&'a [u8], Malformed> {
        let n = usize::try_from(self.number()?).map_err(|_| Malformed)?;
        self.take(n)
    }

    fn when(&mut self) -> Result<When, Malformed> {
        match self.byte()? {
            0 => Ok(When::Here),
            1 => Ok(When::Safepoint(self.number()?)),
            _ => Err(Malformed),
        }
    }

    fn file(&mut self) -> Result<FileId, Malformed> {
        Ok(FileId(self.take(16)?.try_into().map_err(|_| Malformed)?))
    }

    fn effect(&mut self) -> Result<Effect<'a>, Malformed> {
        Ok(match self.byte()? {
            WRITE => Effect::Write { address: self.number()?, data: self.slice()? },
            COPY => Effect::Copy {
                address: self.number()?,
                file: self.file()?,
                offset: self.number()?,
                len: self.number()?,
            },
            OPENED => {
                Effect::Opened { file: self.file()?, device: self.number()?, inode: self.number()? }
            }
            EMPTIED => Effect::Emptied {
                file: self.file()?,
                device: self.number()?,
                inode: self.number()?,
            },
            SPAWNED => {
                Effect::Spawned { thread: u32::try_from(self.number()?).map_err(|_| Malformed)? }
            }
            OUTPUT => Effect::Output { data: self.slice()? },
            FORKED => Effect::Forked {
                log: self.number()?,
                pid: u32::try_from(self.number()?).map_err(|_| Malformed)?,
            },
            EXECUTED => Effect::Executed { log: self.number()? },
            ORDER => Effect::Order { number: self.number()? },
            MAPPED => Effect::Mapped {
                fresh: self.byte()? != 0,
                address: self.number()?,
                len: self.number()?,
                protection: match self.number()? {
                    0 => None,
                    n => Some(u32::try_from(n - 1).map_err(|_| Malformed)?),
                },
            },
            BETWEEN => Effect::Between { gaps: self.slice()? },
            FOUND => Effect::Found { stat: self.take(144)?.try_into().map_err(|_| Malformed)? },
            CHANGED => Effect::Changed {
                device: self.number()?,
                inode: self.number()?,
                size: self.number()?,
                offset: self.number()?,
                data: self.slice()?,
            },
            _ => return Err(Malformed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_with_effects_reads_back_as_written() {
        let mut e = Encoder::default();
        let file = FileId([7; 16]);
        let changed =
            Effect::Changed { device: 9, inode: 1 << 50, size: 70_000, offset: 3, data: b"xy" };
        let found = Effect::Found { stat: &[5; 144] };
        e.call(0, -11, 0xdead_beef)
            .effect(&Effect::Write { address: 0x7fff_0000, data: b"abc" })
            .effect(&Effect::Copy { address: 1, file, offset: 1 << 40, len: 300 })
            .effect(&changed)
            .effect(&found);
        let Event::Call { number, result, state, effects } = Event::decode(e.bytes()).unwrap()
        else {
            panic!("not a call")
        };
        assert_eq!((number, result, state), (0, -11, 0xdead_beef));
        let effects: Vec<_> = effects.iter().collect::<Result<_, _>>().unwrap();
        assert_eq!(effects.len(), 4);
        assert_eq!(effects[2..], [changed, found]);
        assert_eq!(effects[0], Effect::Write { address: 0x7fff_0000, data: b"abc" });
        assert_eq!(effects[1], Effect::Copy { address: 1, file, offset: 1 << 40, len: 300 });
    }

    #[test]
    fn a_cut_event_is_malformed_or_shorter_but_never_a_panic() {
        let mut e = Encoder::default();
        e.signal(When::Safepoint(123_456), &[1, 2, 3, 0, 0], 5);
        let bytes = e.bytes().to_vec();
        for n in 0..bytes.len() {
            assert!(Event::decode(&bytes[..n]).is_err(), "cut at {n}");
        }
        let whole = Event::decode(&bytes).unwrap();
        assert_eq!(
            whole,
            Event::Signal { when: When::Safepoint(123_456), info: &[1, 2, 3], state: 5 }
        );
    }
}
