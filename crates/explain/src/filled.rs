//! Which bytes of a block has something been put into?

/// Of blocks larger than this it is not known.
const LARGE: u64 = 1 << 20;

/// The bytes of a block that something was put into.
#[derive(Clone)]
pub enum Filled {
    All,
    Bits(Vec<u64>),
}

impl Filled {
    /// Nothing in any of so many bytes.
    pub fn nothing(len: u64) -> Filled {
        match len <= LARGE {
            true => Filled::Bits(vec![0; (len as usize).div_ceil(64)]),
            false => Filled::All,
        }
    }

    /// Something is put into some.
    pub fn add(&mut self, from: u64, len: u64) {
        let Filled::Bits(bits) = self else { return };
        for n in from..from.saturating_add(len).min(64 * bits.len() as u64) {
            bits[n as usize / 64] |= 1 << (n % 64);
        }
    }

    /// A block that was made of another one, of so many bytes, has what that had.
    pub fn inherit(&mut self, old: &Filled, len: u64) {
        match (self, old) {
            (Filled::Bits(bits), Filled::Bits(known)) => {
                bits.iter_mut().zip(known).for_each(|(bits, known)| *bits = *known);
            }
            (filled, _) => filled.add(0, len),
        }
    }

    /// Is none of these bytes set? Padding is copied along with what it lies between.
    pub fn has_none(&self, from: u64, len: u64) -> bool {
        let Filled::Bits(bits) = self else { return false };
        (from..from + len)
            .all(|n| bits.get(n as usize / 64).is_some_and(|w| w >> (n % 64) & 1 == 0))
    }
}
