//! What happened, as raw as traced code writes it: every path and every register
//! that addresses are made of, from a replay in a process of its own.
//!
//! The reader gets, in order: units (what records mean), records (a [`Head`], which says what
//! path was taken, and eight bytes for each captured register), and events (what the kernel did
//! to memory, which thread runs). [`Captures`] turns captured registers into addresses.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let recording = recording::Recording::open(std::path::Path::new("/tmp/rec"))?;
//! struct Count(u64);
//! impl engine::trace::Sink for Count {
//!     fn units(&mut self, _: engine::trace::Units) {}
//!     fn records(&mut self, bytes: &[u8]) { self.0 += bytes.len() as u64 }
//!     fn event(&mut self, _: engine::trace::Event) {}
//! }
//! let mut count = Count(0);
//! engine::trace::trace(&recording, &mut count)?;
//! # Ok(())
//! # }
//! ```

mod link;
mod tracer;
mod unit;

pub use crate::code::captures::{Capture, Captures, Known, Touched};
pub use crate::code::tracing::{HEADER, Head};
pub use link::Ended;
pub(crate) use tracer::Tracer;
pub use unit::{Bytes, Unit, Units};

use crate::code::{Cache, Profile};
use crate::{Error, Finish, ReplayOptions, Replayer, Until};
use link::{Chunks, Link, Message};
use recording::Recording;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::net::UnixStream;

/// Something that is not in the records. It happened after all records before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// This thread runs from here on.
    Thread(u32),
    /// Base of thread-local storage of the running thread.
    FsBase(u64),
    /// Base of GS.
    GsBase(u64),
    /// The system call that the last record ended with.
    Call(Box<Call>),
    /// The run stood in a call and another thread goes on; its effects come later,
    /// as a [`Event::Call`] of this thread.
    CallWaits,
    /// A signal's frame was made; its handler runs next.
    Signal {
        /// Which.
        signal: i32,
        /// What was written.
        written: Vec<(u64, u64)>,
        /// Stack pointer at the handler's first instruction.
        sp: u64,
    },
    /// An instruction faulted: the one behind the last record's last.
    Fault {
        /// The signal it becomes.
        signal: i32,
        /// The signal's code: whether there was an address.
        code: i32,
        /// The address it could not reach, or its own.
        address: u64,
        /// Its address.
        pc: u64,
    },
    /// Where the elements of a gather are that comes next.
    Gather(Vec<u64>),
    /// A file is mapped.
    Mapped(Mapped),
}

/// A file that is mapped into the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapped {
    /// First address.
    pub start: u64,
    /// First address past it.
    pub end: u64,
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// Executable?
    pub executable: bool,
    /// The path the guest knows it by.
    pub path: Vec<u8>,
    /// Its contents in the recording.
    pub file: Option<String>,
}

/// What a system call did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Number.
    pub number: u32,
    /// Arguments.
    pub args: [u64; 6],
    /// Result.
    pub result: i64,
    /// Stack pointer at the call.
    pub sp: u64,
    /// Guest memory it wrote: start, length.
    pub written: Vec<(u64, u64)>,
    /// Guest memory that got other contents as a whole: start, length.
    pub mapped: Vec<(u64, u64)>,
    /// Pieces of memory that a vector argument names: start, length.
    pub vector: Vec<(u64, u64)>,
    /// What the first argument is open on, if it is a descriptor.
    pub descriptor: Option<Descriptor>,
    /// Two descriptors that the call made.
    pub pair: Option<(i32, i32)>,
    /// The thread it started.
    pub spawned: Option<u32>,
    /// A path it names.
    pub path: Option<Vec<u8>>,
}

/// What a descriptor is open on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    /// Which kind of thing.
    pub kind: DescriptorKind,
    /// Position before the call, where there is one.
    pub offset: Option<u64>,
}

/// Kinds of things that descriptors are open on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DescriptorKind {
    /// Standard input as inherited.
    Stdin,
    /// Standard output as inherited.
    Stdout,
    /// Standard error as inherited.
    Stderr,
    /// A regular file: device, inode, path.
    File(u64, u64, Vec<u8>),
    /// Anything else.
    Other,
}

/// Who reads a trace.
pub trait Sink {
    /// Units whose paths are new. It may be that none of them will ever run.
    fn units(&mut self, units: Units);
    /// Whole records.
    fn records(&mut self, bytes: &[u8]);
    /// Something between records.
    fn event(&mut self, event: Event);
    /// Is the rest of the run wanted too?
    fn wants_more(&self) -> bool {
        true
    }
}

/// Replays a recording in a child process and reads its trace.
///
/// The process must not have other threads.
pub fn trace(recording: &Recording, sink: &mut dyn Sink) -> Result<Ended, Error> {
    trace_from(recording, 0, sink).map(|(ended, _)| ended)
}

/// The same for the end of a run: from the instant on at which so many instructions have
/// been executed. What goes before is replayed without being written down, which is several
/// times as fast.
///
/// The process that traced may still be at keeping what it translated: that is waited for when
/// what comes with the answer is dropped. One that has more to trace than was wanted is ended.
pub fn trace_from(
    recording: &Recording,
    from: u64,
    sink: &mut dyn Sink,
) -> Result<(Ended, Option<Leaving>), Error> {
    let chunks = Chunks::new().map_err(Error::io("cannot map the trace buffer"))?;
    let (mut ours, theirs) = UnixStream::pair().map_err(Error::io("cannot make a socket"))?;
    // SAFETY: the caller promises that there is one thread.
    let child = match unsafe { libc::fork() } {
        -1 => {
            return Err(Error::Io { what: "cannot fork", error: io::Error::last_os_error() });
        }
        0 => {
            // SAFETY: it asks for a signal if the parent dies: nobody reads then.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            drop(ours);
            write_trace(recording, from, chunks, theirs);
            // SAFETY: leaves without running the parent's exit handlers.
            unsafe { libc::_exit(0) }
        }
        child => child,
    };
    drop(theirs);
    let mut leaving = Leaving { child, done: false };
    let ended = read_trace(&mut ours, &chunks, sink, &mut leaving.done)?;
    let leaving = Some(leaving).filter(|leaving| leaving.done);
    Ok((ended, leaving))
}

/// The process that traced. It ends before this does.
#[must_use = "what is kept is there when this is dropped"]
pub struct Leaving {
    child: i32,
    /// Has it said all it had to?
    done: bool,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if !self.done {
            // SAFETY: our own child.
            unsafe { libc::kill(self.child, libc::SIGKILL) };
        }
        let mut status = 0;
        // SAFETY: our own child.
        unsafe { libc::waitpid(self.child, &mut status, 0) };
    }
}

fn read_trace(
    socket: &mut UnixStream,
    chunks: &Chunks,
    sink: &mut dyn Sink,
    done: &mut bool,
) -> Result<Ended, Error> {
    loop {
        let died = || Error::io("the traced replay died");
        let (message, meanings) = link::get(socket).map_err(died())?;
        match message {
            Message::Chunk { chunk, len, events } => {
                if !meanings.is_empty() {
                    let broken = || died()(io::ErrorKind::InvalidData.into());
                    sink.units(Units::new(meanings).ok_or_else(broken)?);
                }
                pass_on(chunks.bytes(chunk, len), events, sink);
                // A writer that is gone has said so before.
                let _ = link::give_back(socket, chunk);
                if !sink.wants_more() {
                    return Ok(Ended { complete: false, pc: 0 });
                }
            }
            Message::End(end) => {
                *done = end.is_ok();
                return end.map_err(Error::CannotGoOn);
            }
        }
    }
}

/// Records and events in the order they happened.
fn pass_on(bytes: &[u8], events: Vec<(u32, Event)>, sink: &mut dyn Sink) {
    let mut done = 0;
    for (at, event) in events {
        let at = (at as usize).clamp(done, bytes.len());
        if at > done {
            sink.records(&bytes[done..at]);
            done = at;
        }
        sink.event(event);
    }
    if done < bytes.len() {
        sink.records(&bytes[done..]);
    }
}

/// Says how it ended before it tidies up: the reader has enough to do meanwhile, and does not
/// have to wait for that.
fn write_trace(recording: &Recording, from: u64, chunks: Chunks, socket: UnixStream) {
    let Ok(mut control) = socket.try_clone() else { return };
    let mut replayer = None;
    let end = run_traced(recording, from, chunks, socket, &mut replayer);
    let end = Message::End(end.map_err(|error| error.to_string()));
    let _ = link::put(&mut control, &end, &[]);
    yield_to_others();
    drop(replayer);
}

/// From now on, others come first. Not by far: somebody may wait in the end.
fn yield_to_others() {
    // SAFETY: it changes nothing but when this process runs. Where that is refused, others wait.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, LESS_URGENT) };
}

/// A third of the time that an ordinary process gets.
const LESS_URGENT: i32 = 5;

fn run_traced(
    recording: &Recording,
    from: u64,
    chunks: Chunks,
    socket: UnixStream,
    replayer: &mut Option<Replayer>,
) -> Result<Ended, Error> {
    let silent = ReplayOptions { verify: false, silent: true };
    let profile = if from == 0 { Profile::PLAIN } else { Profile::COUNTING };
    let replayer = replayer.insert(Replayer::new(recording, profile, &silent)?);
    if from > 0 {
        replayer.run(Until::Instruction(from))?;
        let cache = Cache::to_be_filled();
        let plain = cache.and_then(|cache| replayer.process.machine.run_plain(cache));
        plain.map_err(Error::io("cannot map the code cache"))?;
    }
    let tracer = Tracer::new(Link::new(chunks, socket));
    replayer.trace_into(tracer.map_err(Error::io("cannot begin the trace"))?);
    if from == 0 {
        replayer.use_stock();
    }
    let finish = replayer.run(Until::End)?;
    let pc = replayer.registers().rip;
    replayer.end_trace()?;
    Ok(Ended { complete: matches!(finish, Finish::Ended(_)), pc })
}
