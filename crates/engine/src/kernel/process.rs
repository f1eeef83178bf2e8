//! The state of a guest process that recording and replay both keep.

use super::files::Files;
use super::pipes::Pipes;
use super::timers::Timers;
use crate::context::Context;
use crate::guest::machine::Machine;
use crate::guest::start::Loaded;
use crate::guest::task::Task;
use crate::signal::actions::Actions;
use recording::FileId;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A guest process.
pub struct Process {
    /// Memory and code.
    pub machine: Machine,
    /// Signal actions.
    pub actions: Actions,
    /// Descriptors.
    pub files: Files,
    /// Captured file contents.
    pub objects: Objects,
    /// Path of the running program.
    pub program: Vec<u8>,
    /// Where things lie in it.
    pub loaded: Loaded,
    /// From here on descriptors of the recorder were among its own.
    pub first_hidden_descriptor: i32,
    /// Its number.
    pub pid: i32,
    /// Working directory; `None` if it is not known.
    pub cwd: Option<Vec<u8>>,
    /// Permissions that new files do not get.
    pub umask: u32,
    /// uid, euid, gid, egid; `None` once they were changed.
    pub ids: Option<[u32; 4]>,
    /// What is in its pipes.
    pub pipes: Pipes,
    /// Its timers.
    pub timers: Timers,
    /// `RLIMIT_STACK` and others the engine keeps for the guest: soft, hard.
    pub limits: HashMap<u32, (u64, u64)>,
    /// Is what it maps shared really shared with the processes it makes? Not in a replay.
    pub shares_memory: bool,
}

/// The contents captured in a recording, opened when needed.
pub struct Objects {
    folder: PathBuf,
    maps: HashMap<FileId, Contents>,
}

/// The bytes of one captured file, mapped.
struct Contents {
    start: *const u8,
    len: usize,
}

// SAFETY: read-only maps, never unmapped while the value lives.
unsafe impl Send for Contents {}

impl Objects {
    /// Those of a recording's folder.
    pub fn new(recording: &Path) -> Objects {
        Objects { folder: recording.join("files"), maps: HashMap::new() }
    }

    /// Opens one.
    pub fn open(&self, id: FileId) -> io::Result<File> {
        let path = self.folder.join(id.to_string());
        crate::clerk::run(|| File::open(path))
    }

    /// The bytes of one.
    pub fn bytes(&mut self, id: FileId) -> io::Result<&[u8]> {
        if !self.maps.contains_key(&id) {
            let contents = Contents::map(&self.open(id)?)?;
            self.maps.insert(id, contents);
        }
        Ok(self.maps[&id].bytes())
    }
}

impl Contents {
    fn map(file: &File) -> io::Result<Contents> {
        use std::os::fd::AsRawFd;
        let len = file.metadata()?.len() as usize;
        if len == 0 {
            return Ok(Contents { start: std::ptr::null(), len: 0 });
        }
        // SAFETY: a private read-only map at a place the kernel chooses. The
        // objects of a recording are never changed in place.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Contents { start: start.cast(), len })
    }

    fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: mapped with this length in `map`.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl Drop for Contents {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: our own map.
            unsafe { libc::munmap(self.start as *mut _, self.len) };
        }
    }
}

/// One system call being made: its number and arguments.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct Asked {
    /// Number.
    pub number: u64,
    /// Arguments.
    pub args: [u64; 6],
}

impl Asked {
    /// Reads the registers at a `syscall` instruction.
    pub fn of(context: &Context) -> Asked {
        use crate::context::reg::*;
        let g = &context.regs.gpr;
        Asked { number: g[RAX], args: [g[RDI], g[RSI], g[RDX], g[R10], g[R8], g[R9]] }
    }

    /// An argument as a descriptor.
    pub fn fd(&self, n: usize) -> i32 {
        self.args[n] as i32
    }
}

/// What the mode of a session does when the guest changes something the host
/// must know about while recording. A replay does nothing.
pub trait World {
    /// The running thread's signal mask changed.
    fn mask_changed(&mut self, _task: &Task) {}
    /// A signal's action changed.
    fn action_changed(&mut self, _signal: i32, _actions: &Actions) {}
}

/// The world of a replay: nothing outside.
pub struct NoWorld;

impl World for NoWorld {}
