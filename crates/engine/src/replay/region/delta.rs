//! What differs between two states of a thread's registers.

use crate::context::Registers;
use serde::{Deserialize, Serialize};

const RIP: u8 = 16;
const RFLAGS: u8 = 17;
const FS: u8 = 18;
const GS: u8 = 19;

/// See the module.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Delta {
    /// General registers by encoding number, and those above, with their values.
    words: Vec<(u8, u64)>,
    /// Parts of the vector state: offset, bytes.
    vectors: Vec<(u16, Vec<u8>)>,
}

/// Pieces in which vector state is compared.
const PIECE: usize = 16;

impl Delta {
    /// From one state to another. Flags are always told: those that nobody would look at
    /// differ from replay to replay.
    pub fn between(old: &Registers, new: &Registers) -> Delta {
        let mut delta = Delta::default();
        for n in 0..=GS {
            if n == RFLAGS || word(old, n) != word(new, n) {
                delta.words.push((n, word(new, n)));
            }
        }
        if old.vectors != new.vectors {
            let pieces = old.vectors.0.chunks(PIECE).zip(new.vectors.0.chunks(PIECE));
            let changed = pieces.enumerate().filter(|(_, (old, new))| old != new);
            delta.vectors =
                changed.map(|(n, (_, new))| ((n * PIECE) as u16, new.to_vec())).collect();
        }
        delta
    }

    /// Makes the new state of the old one. False if it is not one of ours.
    #[must_use]
    pub fn apply(&self, registers: &mut Registers) -> bool {
        for (n, value) in &self.words {
            match *n {
                n @ 0..16 => registers.gpr[usize::from(n)] = *value,
                RIP => registers.rip = *value,
                RFLAGS => registers.rflags = *value,
                FS => registers.fs = *value,
                GS => registers.gs = *value,
                _ => return false,
            }
        }
        self.vectors.iter().all(|(offset, bytes)| {
            let at = usize::from(*offset);
            let part = registers.vectors.0.get_mut(at..at + bytes.len());
            part.map(|part| part.copy_from_slice(bytes)).is_some()
        })
    }
}

fn word(registers: &Registers, n: u8) -> u64 {
    match n {
        RIP => registers.rip,
        RFLAGS => registers.rflags,
        FS => registers.fs,
        GS => registers.gs,
        n => registers.gpr[usize::from(n & 15)],
    }
}
