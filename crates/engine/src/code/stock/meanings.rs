//! What the records of traced units mean, kept with the units.

/// For each unit, what whoever reads its records must know, as it was told in the run that
/// translated it. Empty for code that is not traced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meanings {
    /// One after the other.
    pub bytes: Vec<u8>,
    /// Where each unit's ends.
    pub ends: Vec<u32>,
    /// The number that the next path gets: code has those of its own paths in it.
    pub next_path: u32,
}

impl Meanings {
    /// What a unit's records mean, if that is known.
    pub fn of(&self, unit: u32) -> Option<&[u8]> {
        let unit = unit as usize;
        let end = *self.ends.get(unit)? as usize;
        let start = unit.checked_sub(1).map_or(0, |n| self.ends[n] as usize);
        self.bytes.get(start..end).filter(|bytes| !bytes.is_empty())
    }

    /// Adds a unit; those before it that were not added have none.
    pub fn add(&mut self, unit: u32, meaning: &[u8], next_path: u32) {
        self.ends.resize(unit as usize, self.bytes.len() as u32);
        self.bytes.extend_from_slice(meaning);
        self.ends.push(self.bytes.len() as u32);
        self.next_path = next_path;
    }
}

#[cfg(test)]
mod tests {
    use super::Meanings;

    #[test]
    fn each_unit_has_its_own_and_those_without_have_none() {
        let mut meanings = Meanings::default();
        meanings.add(1, b"one", 4);
        meanings.add(3, b"three", 9);
        let all: Vec<_> = (0..5).map(|unit| meanings.of(unit)).collect();
        assert_eq!(all, [None, Some(&b"one"[..]), None, Some(&b"three"[..]), None]);
        assert_eq!(meanings.next_path, 9);
    }
}
