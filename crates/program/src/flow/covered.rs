//! Which instructions have been met? A bit for each address at which one begins: there are
//! hundreds of thousands, close together.

use rustc_hash::FxHashMap;

/// A set of addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Covered(FxHashMap<u64, u64>);

impl Covered {
    /// Adds addresses, of which neighbours in the list are mostly neighbours in memory.
    pub fn add(&mut self, addresses: &[u64]) {
        for near in addresses.chunk_by(|a, b| a / 64 == b / 64) {
            let bits = near.iter().fold(0, |bits, address| bits | 1 << (address % 64));
            *self.0.entry(near[0] / 64).or_default() |= bits;
        }
    }

    pub fn contains(&self, address: u64) -> bool {
        self.0.get(&(address / 64)).is_some_and(|bits| bits >> (address % 64) & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::Covered;

    #[test]
    fn what_was_added_is_there_and_nothing_else() {
        let mut covered = Covered::default();
        covered.add(&[64, 65, 127, 128, 3, 66]);
        let there: Vec<u64> = (0..200).filter(|address| covered.contains(*address)).collect();
        assert_eq!(there, [3, 64, 65, 66, 127, 128]);
    }
}
