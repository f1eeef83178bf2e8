//! Which function of a library is at work?

use position::Run;
use std::collections::HashMap;
use trace::{FrameId, Instance};

/// So many calls a library's function makes inside of itself, such as to give up.
const DEEP: usize = 16;

/// The names of functions, looked up once.
pub struct Functions<'a> {
    run: &'a Run,
    names: HashMap<u64, Option<String>>,
}

impl<'a> Functions<'a> {
    /// None is known yet.
    pub fn new(run: &'a Run) -> Functions<'a> {
        Functions { run, names: HashMap::new() }
    }

    /// The activation of one of these functions that an instance of a library belongs to.
    pub fn around(&mut self, at: Instance, names: &[&str]) -> Option<FrameId> {
        let run = self.run;
        let (mut at, mut frame) = (at, run.trace.control.frame_of(at.time));
        for _ in 0..DEEP {
            if run.is_own(run.trace.instruction(at)) {
                return None;
            }
            let address = run.address(at);
            let name = self.names.entry(address);
            let name = name.or_insert_with(|| run.program.function(address).map(|f| f.name));
            if name.as_ref().is_some_and(|name| names.contains(&name.as_str())) {
                return Some(frame);
            }
            at = run.call_of(frame)?;
            frame = run.trace.control.frame(frame).caller;
        }
        None
    }
}
