//! Two kinds of code in one machine: counted code, to come to an exact instant, and
//! plain code for runs that leave the log there, which is several times as fast.
//!
//! Plain code waits aside until a fork begins a trial. What a trial has to translate
//! it tells the process it was forked from, which has it ready for the next.

use super::machine::Machine;
use super::stops::Stops;
use crate::code::{Cache, Profile};
use std::io;

/// Code for forks.
pub struct Plain {
    cache: Cache,
    stops: Stops,
    rate: Rate,
}

/// Instructions and safepoints of the recorded run: plain code counts only the
/// latter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Instructions.
    pub instructions: u64,
    /// Safepoints.
    pub safepoints: u64,
}

impl Rate {
    /// Safepoints that so many instructions pass, about; at least a few.
    pub fn safepoints_in(self, instructions: u64) -> u64 {
        let all = u128::from(instructions) * u128::from(self.safepoints);
        let all = all / u128::from(self.instructions.max(1));
        u64::try_from(all).unwrap_or(u64::MAX).max(1000)
    }

    /// Instructions between so many safepoints, about.
    pub fn instructions_in(self, safepoints: u64) -> u64 {
        let all = u128::from(safepoints) * u128::from(self.instructions);
        u64::try_from(all / u128::from(self.safepoints.max(1))).unwrap_or(u64::MAX)
    }
}

impl Machine {
    /// From now on runs plain code, in a cache that other processes see.
    pub fn run_plain(&mut self, cache: Cache) -> io::Result<()> {
        self.profile = Profile::PLAIN;
        self.cache.adopt(cache)
    }

    /// Keeps plain code for forks.
    pub fn keep_plain(&mut self, mut cache: Cache, rate: Rate) -> io::Result<()> {
        cache.set_aside()?;
        // Otherwise each fork would.
        cache.link_known();
        cache.seal();
        self.plain = Some(Box::new(Plain { cache, stops: Stops::default(), rate }));
        Ok(())
    }

    /// Forks will count.
    pub fn forget_plain(&mut self) {
        self.plain = None;
    }

    /// Whether forks see the code that is executed here; those that run plain code
    /// need not.
    pub fn share_with_forks(&mut self, shared: bool) {
        self.cache.share_with_forks(shared || self.plain.is_none());
    }

    /// How safepoints stand for instructions, if this machine does not count those.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// A trial begins: translations of others are its own from here on.
    pub fn begin_trial(&mut self) -> io::Result<()> {
        if let Some(mut plain) = self.plain.take() {
            plain.cache.move_in()?;
            // The maps of the other one did not come with the fork.
            std::mem::forget(std::mem::replace(&mut self.cache, plain.cache));
            self.stops = plain.stops;
            self.profile = Profile::PLAIN;
            self.rate = Some(plain.rate);
        }
        self.cache.trust(false);
        self.stops.learnt = Some(Vec::new());
        Ok(())
    }

    /// Where this trial had to translate.
    pub fn learnt(&mut self) -> Vec<u64> {
        self.stops.learnt.take().unwrap_or_default()
    }

    /// Translates where a trial had to, so that the next one need not.
    pub fn learn(&mut self, addresses: &[u64]) {
        if addresses.is_empty() {
            return;
        }
        self.with_code_of_trials(|machine| {
            for address in addresses {
                if machine.cache.find(*address).is_none() && machine.is_fixed_code(*address) {
                    machine.translate_ahead(*address);
                }
            }
            machine.cache.link_known();
        });
    }

    /// Forks will stop at these instructions.
    pub fn expect_stops(&mut self, addresses: &[u64]) {
        if self.plain.is_some() {
            self.with_code_of_trials(|machine| machine.stop_at(addresses));
        } else {
            self.find_stops(addresses);
        }
    }

    /// Does something with the code that trials run.
    fn with_code_of_trials(&mut self, work: impl FnOnce(&mut Machine)) {
        let Some(mut plain) = self.plain.take() else { return work(self) };
        let counting = self.profile;
        self.profile = Profile::PLAIN;
        std::mem::swap(&mut self.cache, &mut plain.cache);
        std::mem::swap(&mut self.stops, &mut plain.stops);
        work(self);
        self.cache.seal();
        std::mem::swap(&mut self.cache, &mut plain.cache);
        std::mem::swap(&mut self.stops, &mut plain.stops);
        self.profile = counting;
        self.plain = Some(plain);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_and_safepoints_stand_for_each_other() {
        let rate = Rate { instructions: 1_000_000, safepoints: 100_000 };
        assert_eq!(rate.safepoints_in(10_000_000), 1_000_000);
        assert_eq!(rate.instructions_in(1_000_000), 10_000_000);
        assert_eq!(rate.safepoints_in(u64::MAX), u64::MAX / 10);
        let none = Rate { instructions: 5, safepoints: 0 };
        assert_eq!((none.safepoints_in(1 << 40), none.instructions_in(3)), (1000, 15));
    }
}
