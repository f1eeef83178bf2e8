//! Counting safepoints in several places, so that no count waits for the one before.
//!
//! A count in memory is a chain: each safepoint waits for the store of the last one, about
//! eight cycles, and an interpreter passes several for each operation of its program. So
//! there are eight counts, the *lanes*, and the address of a branch says which is its own.
//! The engine sees their sum, [`Context::count`].
//!
//! Guest code leaves when any lane is used up. The lanes are dealt so that they sum up to
//! the count and one for each lane but one: whoever passes so many safepoints uses one up,
//! with the last of them at the latest. If it was earlier, what is left is dealt again, by
//! what each lane took.

use crate::context::{Context, NO_LIMIT};

/// How many there are: a line of the processor's cache.
pub const LANES: usize = 8;
/// What the shares of all lanes sum up to.
const WHOLE: i64 = 1 << 16;
/// What each lane gets at least, so that one that was never used lasts a while.
const LEAST: i64 = WHOLE / 64;

/// The counts, and how they were dealt.
#[derive(Default)]
#[repr(C)]
pub struct Lanes {
    /// What translated code counts down.
    pub left: [i64; LANES],
    /// The same when it was dealt.
    dealt: [i64; LANES],
    /// How the next count is dealt.
    shares: [i64; LANES],
    /// The sum is so much more than the count.
    more: i64,
    /// The count that the lanes stand for, if they do.
    count: Option<i64>,
}

/// The lane of a branch, or of the loop that begins at an address.
pub fn of(pc: u64) -> usize {
    (pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61) as usize
}

impl Context {
    /// Before guest code runs: the lanes stand for the count.
    pub fn deal(&mut self) {
        if self.lanes.count != Some(self.count) {
            self.lanes.deal(self.count);
        }
    }

    /// Guest code has left: the count is what the lanes say.
    pub fn gather(&mut self) {
        self.count = self.lanes.sum();
        self.lanes.count = self.lanes.left.iter().all(|left| *left > 0).then_some(self.count);
    }

    /// Where a lane was used up: was it the whole count?
    pub fn is_counted_down(&self) -> bool {
        self.count <= self.slack
    }

    /// What a loop had in a register is the lane's.
    pub fn put_lane(&mut self, lane: usize, left: i64) {
        self.lanes.left[lane] = left;
        self.gather();
    }
}

impl Lanes {
    fn sum(&self) -> i64 {
        self.left.iter().sum::<i64>() - self.more
    }

    fn deal(&mut self, count: i64) {
        self.learn();
        if count > 0 {
            let rest = count - 1;
            self.left = self.shares.map(|share| 1 + part(rest, share));
            let dealt: i64 = self.left.iter().sum();
            let largest = (0..LANES).max_by_key(|n| self.shares[*n]).unwrap_or(0);
            self.left[largest] += rest + LANES as i64 - dealt;
        } else {
            // Nobody waits for the end of such a count.
            self.left = [NO_LIMIT / LANES as i64; LANES];
        }
        self.dealt = self.left;
        self.more = self.left.iter().sum::<i64>() - count;
        self.count = Some(count);
    }

    /// Shares by what was taken since the last dealing, if that was enough to tell.
    fn learn(&mut self) {
        let mut taken = [0; LANES];
        for (n, taken) in taken.iter_mut().enumerate() {
            *taken = (self.dealt[n] - self.left[n]).clamp(0, 1 << 40);
        }
        let all: i64 = taken.iter().sum();
        if all >= 1000 || self.shares == [0; LANES] {
            let free = WHOLE - LEAST * LANES as i64;
            self.shares = taken.map(|taken| match all {
                0 => WHOLE / LANES as i64,
                _ => LEAST + taken * free / all,
            });
        }
    }
}

/// A share of a count that is not negative.
fn part(count: i64, share: i64) -> i64 {
    let (high, low) = (count / WHOLE, count % WHOLE);
    high * share + low * share / WHOLE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes safepoints in lanes that `next` names until the count is used up, and tells
    /// how many it were and how often they were dealt.
    fn pass(lanes: &mut Lanes, count: i64, mut next: impl FnMut() -> usize) -> (i64, u32) {
        let (mut passed, mut left, mut dealt) = (0, count, 0);
        while left > 0 {
            lanes.deal(left);
            dealt += 1;
            assert_eq!(lanes.sum(), left);
            loop {
                let lane = next();
                lanes.left[lane] -= 1;
                passed += 1;
                if lanes.left[lane] == 0 {
                    break;
                }
            }
            left = lanes.sum();
            assert_eq!(left, count - passed);
        }
        (passed, dealt)
    }

    #[test]
    fn a_count_ends_with_its_last_safepoint_whatever_lanes_it_uses() {
        let mut seed = 1u64;
        for count in [1, 2, 7, 8, 9, 64, 1000, 100_000] {
            for spread in [1, 2, 5, 8] {
                let mut lanes = Lanes::default();
                for _ in 0..3 {
                    let (passed, _) = pass(&mut lanes, count, || {
                        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        (seed >> 33) as usize % spread
                    });
                    assert_eq!(passed, count);
                }
            }
        }
    }

    #[test]
    fn lanes_get_what_they_took_before() {
        let mut lanes = Lanes::default();
        let mut n = 0;
        let mut uneven = || {
            n += 1;
            if n % 10 == 0 { 3 } else { 5 }
        };
        let first = pass(&mut lanes, 100_000, &mut uneven).1;
        let then = pass(&mut lanes, 100_000, &mut uneven).1;
        assert!(then < first, "dealt {first} times, then {then}");
        assert!(then < 12, "dealt {then} times");
    }

    #[test]
    fn a_count_without_end_is_dealt() {
        let mut lanes = Lanes::default();
        for count in [NO_LIMIT, 0, -5] {
            lanes.deal(count);
            assert_eq!(lanes.sum(), count);
            assert!(lanes.left.iter().all(|left| *left > 1 << 40 && *left <= NO_LIMIT));
        }
    }
}
