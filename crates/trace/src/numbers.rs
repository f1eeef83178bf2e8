//! Which number has the instruction at an address?

use crate::code::InstructionId;
use rustc_hash::FxHashMap;

/// Bytes of a line of code.
const LINE: usize = 32;

/// Numbers by address.
///
/// Code comes in runs, so what is known of one line of it lies together: a table of all
/// addresses would be looked into somewhere else for each of a run's instructions, and there are
/// more of them than a near cache holds.
#[derive(Default)]
pub(crate) struct Numbers {
    /// Where each line is.
    places: FxHashMap<u64, u32>,
    lines: Vec<[InstructionId; LINE]>,
    /// The line that was asked for last, and where it is.
    last: Option<(u64, u32)>,
}

const NONE: InstructionId = InstructionId(u32::MAX);

impl Numbers {
    /// The number of the instruction at an address; this one, if it had none.
    pub fn get_or_insert(&mut self, address: u64, number: InstructionId) -> InstructionId {
        let (line, within) = (address / LINE as u64, address as usize % LINE);
        let place = match self.last {
            Some((last, place)) if last == line => place,
            _ => self.place(line),
        };
        let known = &mut self.lines[place as usize][within];
        if *known == NONE {
            *known = number;
        }
        *known
    }

    fn place(&mut self, line: u64) -> u32 {
        let next = self.lines.len() as u32;
        let place = *self.places.entry(line).or_insert(next);
        if place == next {
            self.lines.push([NONE; LINE]);
        }
        self.last = Some((line, place));
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_of_an_address_stays() {
        let mut numbers = Numbers::default();
        let addresses: Vec<u64> = (0..200).map(|n| 0x40_0000 + 7 * n).collect();
        for (n, address) in addresses.iter().enumerate().rev() {
            let number = InstructionId(n as u32);
            assert_eq!(numbers.get_or_insert(*address, number), number);
        }
        for (n, address) in addresses.iter().enumerate() {
            let number = InstructionId(n as u32);
            assert_eq!(numbers.get_or_insert(*address, InstructionId(999)), number);
        }
    }
}
