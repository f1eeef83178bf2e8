//! The code of a trace, taken apart while its records are still being read: that takes as long
//! as reading them, and another processor can do it.

use crate::code::Code;
use engine::trace::Unit;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

/// Code to which units are added.
pub(crate) enum Decoding {
    /// By whoever adds them.
    Here(Code),
    /// By a thread of its own.
    Beside(Sender<Unit>, JoinHandle<Code>),
}

impl Default for Decoding {
    fn default() -> Decoding {
        Decoding::Here(Code::default())
    }
}

impl Decoding {
    /// Adds a unit. With the first one a thread begins: there is no fork then.
    pub fn add(&mut self, unit: Unit) {
        match self {
            Decoding::Beside(units, _) => units.send(unit).expect("it ends when there are no more"),
            Decoding::Here(code) if code.units() > 0 => code.add(&unit),
            Decoding::Here(code) => match beside() {
                Some((units, thread)) => {
                    *self = Decoding::Beside(units, thread);
                    self.add(unit);
                }
                None => code.add(&unit),
            },
        }
    }

    /// The code, once there are no more units.
    pub fn finish(self) -> Code {
        match self {
            Decoding::Here(code) => code,
            Decoding::Beside(units, thread) => {
                drop(units);
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
        }
    }
}

fn beside() -> Option<(Sender<Unit>, JoinHandle<Code>)> {
    let (sender, units) = mpsc::channel::<Unit>();
    let work = move || {
        let mut code = Code::default();
        units.iter().for_each(|unit| code.add(&unit));
        code
    };
    let thread = std::thread::Builder::new().name("decoding".into()).spawn(work).ok()?;
    Some((sender, thread))
}
