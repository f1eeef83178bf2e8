//! What an event says, and how it is written as bytes.
//!
//! A log is the story of one process: the events of its running thread in order,
//! with a [`Event::Switch`] wherever another thread goes on. Numbers are
//! variable-length; memory contents are borrowed from the log, or named by the
//! captured file they came from.

mod decode;
mod encode;
mod tags;

pub use decode::Malformed;
pub use encode::Encoder;

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
