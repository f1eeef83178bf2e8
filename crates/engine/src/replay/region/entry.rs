//! All that a run consists of at one instant, but for the contents of memory.

use super::contents::{Kept, Restored};
use crate::Error;
use crate::context::Registers;
use crate::guest::start::Loaded;
use crate::guest::task::{Task, Thread};
use crate::kernel::calls::{gs, set_gs};
use crate::kernel::files::Files;
use crate::kernel::pipes::Pipes;
use crate::kernel::process::{Asked, Process};
use crate::kernel::timers::Timers;
use crate::replay::Replayer;
use crate::sandbox::World;
use crate::signal::actions::Actions;
use recording::Recording;
use recording::event::Event;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// See the module.
#[derive(Serialize, Deserialize)]
pub(super) struct Entry {
    current: Thread,
    registers: Registers,
    tasks: Vec<Task>,
    in_call: BTreeMap<Thread, (Asked, u32)>,
    pid: i32,
    /// Paths of mapped and opened files, and their contents.
    images: Vec<(Vec<u8>, String)>,
    opened: BTreeMap<Vec<u8>, String>,
    kernel: Kernel,
    brk: u64,
    pub(super) regions: Vec<Kept>,
    live: Vec<((u64, u64), Vec<u8>)>,
    world: Option<Box<World>>,
}

/// The virtual kernel's part of a process.
#[derive(Serialize, Deserialize)]
struct Kernel {
    actions: Actions,
    files: Files,
    program: Vec<u8>,
    loaded: Loaded,
    first_hidden_descriptor: i32,
    pid: i32,
    cwd: Option<Vec<u8>>,
    umask: u32,
    ids: Option<[u32; 4]>,
    pipes: Pipes,
    timers: Timers,
    limits: HashMap<u32, (u64, u64)>,
}

impl Kernel {
    fn of(process: &Process) -> Kernel {
        Kernel {
            actions: process.actions.clone(),
            files: process.files.clone(),
            program: process.program.clone(),
            loaded: process.loaded.clone(),
            first_hidden_descriptor: process.first_hidden_descriptor,
            pid: process.pid,
            cwd: process.cwd.clone(),
            umask: process.umask,
            ids: process.ids,
            pipes: process.pipes.clone(),
            timers: process.timers.clone(),
            limits: process.limits.clone(),
        }
    }

    fn restore(self, process: &mut Process) {
        process.actions = self.actions;
        process.files = self.files;
        process.program = self.program;
        process.loaded = self.loaded;
        process.first_hidden_descriptor = self.first_hidden_descriptor;
        process.pid = self.pid;
        process.cwd = self.cwd;
        process.umask = self.umask;
        process.ids = self.ids;
        process.pipes = self.pipes;
        process.timers = self.timers;
        process.limits = self.limits;
    }
}

/// The addresses of a slice's instructions, in ascending order.
pub fn slice_addresses(recording: &Recording) -> Result<Vec<u64>, Error> {
    let mut reader = recording.reader()?;
    let event = reader.next()?.map(Event::decode);
    let Some(Ok(Event::Entry { state })) = event else { return Err(damaged()) };
    let read: Option<(Entry, Vec<u64>)> = postcard::from_bytes(state).ok();
    read.map(|(_, addresses)| addresses).ok_or_else(damaged)
}

impl Replayer {
    /// What the run consists of here. The world goes with it.
    pub(super) fn entry(&mut self) -> Result<Entry, Error> {
        let mut registers = self.context().regs.clone();
        registers.gs = gs();
        let live = self.live.contents().map_err(Error::io("cannot read a file that is mapped"))?;
        let mut images = self.images.clone();
        images.extend(self.moving.opened.clone());
        Ok(Entry {
            current: self.current,
            registers,
            tasks: self.tasks.values().cloned().collect(),
            in_call: self.in_call.clone(),
            pid: self.pid,
            kernel: Kernel::of(&self.process),
            brk: self.process.machine.memory.brk,
            regions: self.kept_regions(&images)?,
            images,
            opened: self.moving.opened.clone(),
            live,
            world: self.world.take(),
        })
    }

    /// Takes everything from the first events of a region's log.
    pub(in crate::replay) fn enter_region(&mut self) -> Result<(), Error> {
        let bytes = self.log.take();
        let entry: Option<Entry> = match Event::decode(&bytes) {
            Ok(Event::Entry { state }) => postcard::from_bytes(state).ok(),
            _ => None,
        };
        self.log.done(bytes)?;
        let Some(entry) = entry else { return Err(damaged()) };
        if entry.tasks.iter().all(|task| task.thread != entry.current) {
            return Err(damaged());
        }
        for (identity, contents) in &entry.live {
            let set = self.live.set(*identity, contents);
            set.map_err(Error::io("cannot keep a file that is mapped shared"))?;
        }
        let mut restored = Restored::map(self, &entry.regions)?;
        while let Some(Event::Contents { .. }) = self.log.peek()? {
            let bytes = self.log.take();
            if let Ok(Event::Contents { address, own, data }) = Event::decode(&bytes) {
                restored.put(address, own, data)?;
            }
            self.log.done(bytes)?;
        }
        restored.protect();
        self.process.machine.memory.brk = entry.brk;
        entry.kernel.restore(&mut self.process);
        self.tasks = entry.tasks.into_iter().map(|task| (task.thread, task)).collect();
        self.current = entry.current;
        self.in_call = entry.in_call;
        self.pid = entry.pid;
        self.images = entry.images;
        self.moving.opened = entry.opened;
        self.world = entry.world;
        set_gs(entry.registers.gs);
        self.context().regs = entry.registers;
        Ok(())
    }
}

pub(super) fn damaged() -> Error {
    Error::Recording(recording::Error::Damaged {
        what: "the state at the region's entry is not whole; cut it again".to_owned(),
        at: 0,
    })
}
