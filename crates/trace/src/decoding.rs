//! The code of a trace, taken apart while its records are still being read: that takes as long
//! as reading them, and another processor can do it.

use crate::builder::Told;
use crate::code::Code;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

/// Code to which units are added.
pub(crate) enum Decoding {
    /// By whoever adds them.
    Here(Box<Code>),
    /// By a thread of its own.
    Beside(Beside),
}

/// A thread that takes code apart. It ends before this does: who forks next is alone.
pub(crate) struct Beside {
    /// Both are there until the end.
    units: Option<Sender<(u32, Told)>>,
    thread: Option<JoinHandle<Code>>,
}

impl Beside {
    fn begin() -> Option<Beside> {
        let (sender, units) = mpsc::channel::<(u32, Told)>();
        let work = move || {
            let mut code = Code::with_room();
            units.iter().for_each(|(first_path, told)| code.add(first_path, &told.unit()));
            code
        };
        let thread = std::thread::Builder::new().name("decoding".into()).spawn(work).ok()?;
        Some(Beside { units: Some(sender), thread: Some(thread) })
    }

    fn add(&self, first_path: u32, told: Told) {
        let units = self.units.as_ref().expect("it is not the end");
        units.send((first_path, told)).expect("it ends when there are no more");
    }

    /// What it made of all units.
    fn end(&mut self) -> Option<std::thread::Result<Code>> {
        self.units = None;
        self.thread.take().map(JoinHandle::join)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // If it panicked, nobody wants to know any more.
        _ = self.end();
    }
}

impl Default for Decoding {
    fn default() -> Decoding {
        Decoding::Here(Box::default())
    }
}

impl Decoding {
    /// Adds a unit, whose first path gets this number. With the first one a thread begins: there
    /// is no fork then.
    pub fn add(&mut self, first_path: u32, told: Told) {
        match self {
            Decoding::Beside(beside) => beside.add(first_path, told),
            Decoding::Here(code) if code.units() > 0 => code.add(first_path, &told.unit()),
            Decoding::Here(code) => match Beside::begin() {
                Some(beside) => {
                    beside.add(first_path, told);
                    *self = Decoding::Beside(beside);
                }
                None => code.add(first_path, &told.unit()),
            },
        }
    }

    /// The code, once there are no more units.
    pub fn finish(self) -> Code {
        match self {
            Decoding::Here(code) => *code,
            Decoding::Beside(mut beside) => {
                let code = beside.end().expect("it has not ended yet");
                code.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
        }
    }
}
