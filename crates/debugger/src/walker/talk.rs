//! What walkers are asked, and what they answer.

use engine::{Described, Goal, Instant, Region, Report, Stops, Survey, Thread, Trail};
use serde::{Deserialize, Serialize};
use whatif::{Change, Trigger};

/// A question or an order.
#[derive(Debug, Serialize, Deserialize)]
pub enum Ask {
    /// Stop for these.
    Stops(Stops),
    /// Move.
    Advance(Goal),
    /// Move, noting what there is to stop for, and what a thread executed last.
    Scan(Goal, Option<Thread>),
    /// Move and note what there is to stop for, or where.
    Survey(Stops, Goal, Look),
    /// Make a copy.
    Fork,
    /// Threads.
    State,
    /// Registers of a thread.
    Registers(Thread),
    /// Memory.
    Memory(u64, u64),
    /// Maps.
    Regions,
    /// Files.
    Files,
    /// A hash of everything.
    Fingerprint,
    /// Change something, and what is changed whenever it comes by; history is left.
    Alter(Change, Vec<Trigger>),
}

/// How closely a survey looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Look {
    /// Whether memory is touched, at full speed.
    FromAfar,
    /// At every access.
    Closely,
}

/// An answer.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    /// It is done. After a fork, the copy's socket follows.
    Done,
    /// It cannot be done.
    Failed(String),
    /// To an advance.
    Moved(Report, Instant),
    /// To a scan.
    Scanned(Box<Scanned>),
    /// To a survey; none if there is no way to make one.
    Surveyed(Option<Survey>),
    /// Threads.
    State(State),
    /// Registers.
    Registers(Option<Box<Registers>>),
    /// Memory.
    Memory(Vec<u8>),
    /// Maps.
    Regions(Vec<Region>),
    /// Files.
    Files(Vec<(Vec<u8>, String)>),
    /// A hash.
    Fingerprint(u64),
    /// Something was changed; now it is this instant.
    Altered(Instant),
}

/// What a scan found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Scanned {
    /// The last thing to stop for.
    pub last: Option<Report>,
    /// Where the scan is now.
    pub now: Instant,
    /// Is it where it was to go?
    pub there: bool,
    /// What the thread executed last.
    pub trail: Option<Trail>,
}

/// Who is there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    /// All threads, the running one first.
    pub threads: Vec<Described>,
    /// The process's number, as recorded.
    pub pid: i32,
    /// Where it stands.
    pub now: Instant,
    /// The auxiliary vector that its program was started with.
    pub auxv: Vec<u8>,
}

/// Registers of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registers {
    /// General registers by encoding number.
    pub gpr: [u64; 16],
    /// Address of the next instruction.
    pub rip: u64,
    /// Flags.
    pub rflags: u64,
    /// Base of FS.
    pub fs: u64,
    /// Base of GS.
    pub gs: u64,
    /// YMM registers.
    pub vectors: [[u8; 32]; 16],
    /// The x87 stack.
    pub x87: [[u8; 10]; 8],
    /// x87 control, status and tag words.
    pub x87_control: [u16; 3],
    /// MXCSR.
    pub mxcsr: u32,
}

impl From<&engine::Registers> for Registers {
    fn from(r: &engine::Registers) -> Registers {
        let (x87, x87_control) = r.x87();
        Registers {
            gpr: r.gpr,
            rip: r.rip,
            rflags: r.rflags,
            fs: r.fs,
            gs: r.gs,
            vectors: r.vector_registers(),
            x87,
            x87_control,
            mxcsr: r.mxcsr(),
        }
    }
}
