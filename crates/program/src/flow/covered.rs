//! Which instructions have been met? A bit for each address at which one begins: there are
//! hundreds of thousands, close together.

use rustc_hash::FxHashMap;

/// Bits of an address within its page.
const PAGE_BITS: u32 = 12;
/// Words with a bit for each address of a page.
const WORDS: usize = (1 << PAGE_BITS) / u64::BITS as usize;

/// A set of addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Covered(FxHashMap<u64, Box<[u64; WORDS]>>);

/// Where the bit of an address is in its page.
fn place(address: u64) -> (usize, u64) {
    let within = address & ((1 << PAGE_BITS) - 1);
    (within as usize / 64, 1 << (within % 64))
}

impl Covered {
    /// Adds addresses, of which neighbours in the list are mostly neighbours in memory.
    pub fn add(&mut self, addresses: &[u64]) {
        for near in addresses.chunk_by(|a, b| a >> PAGE_BITS == b >> PAGE_BITS) {
            let page = self.0.entry(near[0] >> PAGE_BITS).or_insert_with(|| Box::new([0; WORDS]));
            for (word, bit) in near.iter().map(|address| place(*address)) {
                page[word] |= bit;
            }
        }
    }

    pub fn contains(&self, address: u64) -> bool {
        let (word, bit) = place(address);
        self.0.get(&(address >> PAGE_BITS)).is_some_and(|page| page[word] & bit != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::Covered;

    #[test]
    fn what_was_added_is_there_and_nothing_else() {
        let mut covered = Covered::default();
        covered.add(&[64, 65, 127, 128, 3, 66, 4095, 4096]);
        let there: Vec<u64> = (0..9000).filter(|address| covered.contains(*address)).collect();
        assert_eq!(there, [3, 64, 65, 66, 127, 128, 4095, 4096]);
    }
}
