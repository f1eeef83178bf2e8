//! How a guest process begins, and the process made of that.

use crate::Error;
use crate::code::Profile;
use crate::context::context;
use crate::cpu::shown::{self, Shown};
use crate::guest::image::Headers;
use crate::guest::machine::Machine;
use crate::guest::start::{ImageFile, Start, load};
use crate::guest::task::{Task, Thread};
use crate::kernel::files::{FileIdText, Files, HandedOn};
use crate::kernel::pipes::Pipes;
use crate::kernel::process::{Objects, Process};
use crate::kernel::timers::Timers;
use crate::signal;
use crate::signal::actions::Actions;
use recording::FileId;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// How a guest process begins; kept in the manifest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Beginning {
    /// Arguments and the like.
    pub start: Start,
    /// Contents of the program.
    pub program: FileIdText,
    /// Its path.
    #[serde(with = "crate::as_text::one")]
    pub program_path: Vec<u8>,
    /// Contents and path of its interpreter.
    pub interpreter: Option<(FileIdText, Vec<u8>)>,
    /// Descriptors that were open.
    pub descriptors: Vec<i32>,
    /// Signals that were ignored, and blocked.
    pub ignored: u64,
    /// Blocked signals.
    pub mask: u64,
    /// Kernel's number of the first thread.
    pub pid: i32,
    /// Permissions that new files do not get.
    #[serde(default)]
    pub umask: u32,
    /// Working directory.
    #[serde(default, with = "crate::as_text::one")]
    pub cwd: Vec<u8>,
    /// Paths that runs often ask for when they fail, and what `stat` says of them: a
    /// run that is altered may ask where the recorded one did not.
    #[serde(default, with = "crate::as_text::pairs")]
    pub around: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Resource limits the engine answers for: resource, soft, hard.
    pub limits: Vec<(u32, u64, u64)>,
    /// The processor it sees.
    #[serde(default)]
    pub cpu: Shown,
    /// Does its code have safepoints at memory that threads may share?
    #[serde(default)]
    pub dense: bool,
    /// If another program executed it: what that handed on.
    #[serde(default)]
    pub handed_on: Option<Inheritance>,
}

/// What a program that was executed by another one inherits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Inheritance {
    /// Descriptors.
    pub descriptors: Vec<HandedOn>,
    /// First descriptor of the recorder's own.
    pub first_hidden_descriptor: i32,
    /// Interval timers that may run.
    pub timers: Vec<i32>,
    /// The kernel's number of the thread.
    pub tid: i32,
}

impl Beginning {
    fn first_hidden_descriptor(&self) -> i32 {
        if let Some(inheritance) = &self.handed_on {
            return inheritance.first_hidden_descriptor;
        }
        let limit = self.limits.iter().find(|(resource, ..)| *resource == libc::RLIMIT_NOFILE);
        limit.map_or(0, |(_, soft, hard)| crate::sys::engine_range(*soft, *hard).start)
    }

    /// The descriptors it finds open.
    pub fn files(&self) -> Files {
        match &self.handed_on {
            Some(inheritance) => Files::from_handed_on(&inheritance.descriptors),
            None => Files::inherited(&self.descriptors),
        }
    }

    /// Timers that may run already.
    pub fn timers(&self) -> Timers {
        let running = self.handed_on.iter().flat_map(|inheritance| &inheritance.timers);
        let interval = running.map(|which| (*which, Default::default())).collect();
        Timers { interval, ..Timers::default() }
    }
}

/// The process at its first instruction, from the recording alone.
pub fn make_process(
    beginning: &Beginning,
    dir: &std::path::Path,
    profile: Profile,
) -> Result<(Process, Task), Error> {
    shown::choose(&beginning.cpu);
    crate::code::dense::choose(beginning.dense);
    crate::crossing::map_context(beginning.cpu.xcr0)
        .map_err(Error::io("cannot map the engine's page"))?;
    let machine = Machine::new(profile).map_err(Error::io("cannot map the code cache"))?;
    let mut actions = Actions::default();
    for signal in 1..=64 {
        if beginning.ignored & signal::only(signal) != 0 {
            actions
                .set(signal, crate::signal::actions::Action { handler: 1, ..Default::default() });
        }
    }
    let mut process = Process {
        machine,
        actions,
        files: beginning.files(),
        objects: Objects::new(dir),
        program: beginning.program_path.clone(),
        loaded: Default::default(),
        first_hidden_descriptor: beginning.first_hidden_descriptor(),
        pid: beginning.pid,
        cwd: Some(beginning.cwd.clone()),
        umask: beginning.umask,
        ids: Some(beginning.start.ids),
        pipes: Pipes::default(),
        timers: beginning.timers(),
        limits: beginning.limits.iter().map(|(r, s, h)| (*r, (*s, *h))).collect::<HashMap<_, _>>(),
        shares_memory: false,
    };
    let interpreter = beginning.interpreter.as_ref().map(|(id, path)| (id.0, path.as_slice()));
    let regs = load_images(
        &mut process,
        &beginning.start,
        (beginning.program.0, &beginning.program_path),
        interpreter,
    )?;
    let tid = beginning.handed_on.as_ref().map_or(beginning.pid, |inheritance| inheritance.tid);
    let mut task = Task::new(Thread(1), tid, regs.clone());
    task.mask = beginning.mask;
    // SAFETY: no guest thread runs yet.
    unsafe { context() }.regs = regs;
    Ok((process, task))
}

/// Maps program and interpreter from captured contents.
pub fn load_images(
    process: &mut Process,
    start: &Start,
    program: (FileId, &[u8]),
    interpreter: Option<(FileId, &[u8])>,
) -> Result<crate::context::Registers, Error> {
    let open = |process: &mut Process, id: FileId| -> Result<(File, Vec<u8>), Error> {
        let file = process.objects.open(id).map_err(Error::io("cannot open a captured file"))?;
        let bytes = process.objects.bytes(id).map_err(Error::io("cannot read a captured file"))?;
        // As a rule all headers are at the beginning.
        let short = &bytes[..bytes.len().min(Headers::USUAL)];
        let bytes = if Headers::parse(short).is_ok() { short } else { bytes };
        Ok((file, bytes.to_vec()))
    };
    let (file, bytes) = open(process, program.0)?;
    let main = ImageFile { fd: file.as_raw_fd(), path: program.1, bytes: &bytes };
    let interpreter_file = match interpreter {
        Some((id, path)) => Some((open(process, id)?, path)),
        None => None,
    };
    let interp = interpreter_file.as_ref().map(|((file, bytes), path)| ImageFile {
        fd: file.as_raw_fd(),
        path,
        bytes,
    });
    let (regs, loaded) =
        load(&mut process.machine.memory, start, &main, interp.as_ref()).map_err(|error| {
            Error::Image { path: PathBuf::from(std::ffi::OsStr::from_bytes(program.1)), error }
        })?;
    crate::code::dense::note_program(&loaded.code);
    process.loaded = loaded;
    Ok(regs)
}
