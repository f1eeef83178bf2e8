//! A slice while it is found: a place for every instruction, which needs no search.

use crate::follow::Visitor;
use crate::options::Origins;
use crate::wanted::Distance;
use crate::{Part, Slice};
use std::collections::HashMap;
use trace::{Instance, InstructionId, Time};

/// How each instruction takes part, by number.
#[derive(Clone)]
pub struct Parts(pub Vec<Part>);

impl Parts {
    /// None does yet.
    pub fn new(instructions: usize) -> Parts {
        let nobody = Instance { time: Time(0), index: 0 };
        Parts(vec![Part::new(nobody, Distance::MAX); instructions])
    }
}

impl Visitor for Parts {
    #[inline]
    fn instance(&mut self, at: Instance, instruction: InstructionId, distance: Distance) {
        let part = &mut self.0[instruction.0 as usize];
        if part.instances == 0 {
            *part = Part::new(at, distance);
        }
        part.add(at, distance);
    }

    const TALLIES: bool = true;

    fn tally(&mut self, instruction: InstructionId, part: Part) {
        self.0[instruction.0 as usize].join(&part);
    }

    fn copy(&self) -> Option<Parts> {
        Some(self.clone())
    }
}

impl From<Parts> for Slice {
    fn from(parts: Parts) -> Slice {
        let numbered = parts.0.into_iter().enumerate();
        let met = numbered.filter(|(_, part)| part.instances > 0);
        let instructions: HashMap<InstructionId, Part> =
            met.map(|(n, part)| (InstructionId(n as u32), part)).collect();
        let instances = instructions.values().map(|part| part.instances).sum();
        Slice { instances, instructions, origins: Origins::default() }
    }
}
