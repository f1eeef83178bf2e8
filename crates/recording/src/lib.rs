//! What is in a recording on disk, and how is it written, read, checked and upgraded?
//!
//! A recording is a folder of mode 0700:
//!
//! | name | contents |
//! | --- | --- |
//! | `manifest.json` | what was run: [`Manifest`] |
//! | `log` | compressed frames of events, each with checksums |
//! | `tail` | the events since the last frame, while the recorder runs or if it was killed |
//! | `outcome.json` | how it ended: [`Outcome`]; absent if the recorder was killed |
//! | `files/` | the files that the run read, named by content, shared between recordings |
//! | `derived/` | what later analyses keep for next time; may be deleted |
//! | `processes/` | the logs of the other processes of the run, each such a folder again |
//!
//! An event is a byte string to the writer and the reader; the engine gives it meaning. Every
//! event that [`Writer::append`] has accepted survives a kill of the recorder at any instant.
//!
//! ```
//! use recording::{Ending, Manifest, Options, Outcome, Recording, Writer};
//!
//! # fn main() -> Result<(), recording::Error> {
//! # let folder = tempfile::tempdir().unwrap();
//! let dir = folder.path().join("my-recording");
//! let manifest = Manifest::new(vec!["/bin/true".into()]);
//! let mut writer = Writer::create(&dir, &manifest, &Options::default())?;
//! writer.append(b"first event")?;
//! writer.append(b"second event")?;
//! writer.finish(&Outcome::new(Ending::Exited(0)))?;
//!
//! let recording = Recording::open(&dir)?;
//! let mut reader = recording.reader()?;
//! assert_eq!(reader.next()?, Some(&b"first event"[..]));
//! assert_eq!(reader.next()?, Some(&b"second event"[..]));
//! assert_eq!(reader.next()?, None);
//! # Ok(())
//! # }
//! ```
#![deny(unsafe_code)] // One exception: `mapping`.

use std::path::Path;

mod checked;
mod error;
pub mod event;
mod frame;
mod home;
mod json;
mod log;
mod manifest;
mod mapping;
mod outcome;
mod pack;
mod process;
mod reader;
mod recording;
mod store;
mod tail;
mod writer;

pub use error::{Error, Result};
pub use frame::MAX_EVENT;
pub use home::{Entry, Home};
pub use manifest::{ByteString, Cpu, FORMAT, Manifest, REGION_FORMAT, Region};
pub use outcome::{Ending, Outcome};
pub use pack::{GoesOn, Packed, pack, pack_while, unpack, unpack_while};
pub use process::{Born, Process};
pub use reader::{Reader, ReaderPosition};
pub use recording::{Recording, Usage};
pub use store::{Captured, FileId, NotAFileId, Store};
pub use writer::{Options, SpareTail, Writer, finalise, prepare, prepare_process};

const MANIFEST: &str = "manifest.json";
const OUTCOME: &str = "outcome.json";
const LOG: &str = "log";
const TAIL: &str = "tail";
const FILES: &str = "files";
const DERIVED: &str = "derived";
const PROCESSES: &str = "processes";

/// Whether `dir` is a recording, of whatever format.
pub fn is_recording(dir: &Path) -> bool {
    dir.join(MANIFEST).is_file()
}
