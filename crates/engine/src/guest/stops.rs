//! Instructions that a machine stops before.

use super::machine::{Machine, Stop};
use super::memory::host_prot;
use crate::code::UnitId;
use crate::layout::page_floor;
use std::collections::HashMap;
use std::ops::Range;

/// See [`Machine::stop_at`].
#[derive(Default)]
pub struct Stops {
    /// In order.
    addresses: Vec<u64>,
    /// Units that begin at a stop but do not stop.
    past: HashMap<u64, UnitId>,
    /// Units that contain an address, found beforehand.
    covering: HashMap<u64, Vec<UnitId>>,
    /// Where units were translated since the trial began.
    pub learnt: Option<Vec<u64>>,
}

impl Stops {
    /// The addresses, in order.
    pub fn addresses(&self) -> &[u64] {
        &self.addresses
    }

    /// A unit is about to be made of this code.
    pub fn expect(&mut self, code: Range<u64>, unit: UnitId) {
        for (address, units) in &mut self.covering {
            if code.contains(address) {
                units.push(unit);
            }
        }
    }
}

impl Machine {
    /// From now on, stops before these instructions with [`Stop::Block`].
    pub fn stop_at(&mut self, addresses: &[u64]) {
        let mut addresses = addresses.to_vec();
        addresses.sort_unstable();
        addresses.dedup();
        if addresses == self.stops.addresses {
            return;
        }
        for address in addresses.iter().chain(&self.stops.addresses.clone()) {
            let found = self.stops.covering.remove(address);
            let units = found.unwrap_or_else(|| self.cache.covering(*address));
            self.cache.discard_units(&units);
        }
        self.stops.past.clear();
        self.stops.addresses = addresses;
    }

    /// Finds the translations that [`Self::stop_at`] will discard, once for many
    /// forks.
    pub(super) fn find_stops(&mut self, addresses: &[u64]) {
        for address in addresses {
            let units = self.cache.covering(*address);
            self.stops.covering.insert(*address, units);
        }
    }

    /// Runs; if `past` is set and the next instruction is a stop, it is not one this
    /// time.
    pub fn run_past(&mut self, past: bool) -> Stop {
        let pc = self.pc();
        if !past || self.stops.addresses.binary_search(&pc).is_err() {
            return self.run();
        }
        let known = self.stops.past.get(&pc).copied().filter(|unit| self.cache.is_alive(*unit));
        let unit = match known {
            Some(unit) => Some(unit),
            None => self.unit_past(pc),
        };
        if let Some(unit) = unit {
            self.stops.past.insert(pc, unit);
            self.begin_at(unit);
        }
        self.run()
    }

    /// Writes over code that the guest itself may not write to, and forgets its
    /// translations. Pages are private to this process, so that nobody else sees it.
    #[must_use]
    pub fn replace_code(&mut self, address: u64, bytes: &[u8]) -> bool {
        let end = address + bytes.len() as u64;
        let start = page_floor(address);
        let regions = [address, end - 1].map(|a| self.memory.region(a).map(|(_, r)| r.prot));
        let [Some(prot), Some(last)] = regions else { return false };
        if prot != last {
            return false;
        }
        let len = (end - start) as usize;
        // SAFETY: guest pages, opened for the copy only; guest code is not running.
        let done = unsafe {
            let open = libc::PROT_READ | libc::PROT_WRITE;
            libc::mprotect(start as *mut _, len, open) == 0 && {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len());
                libc::mprotect(start as *mut _, len, host_prot(prot)) == 0
            }
        };
        let mut units: Vec<UnitId> = (address..end).flat_map(|a| self.cache.covering(a)).collect();
        units.dedup();
        self.cache.discard_units(&units);
        done
    }

    /// Code of a file that cannot be written to.
    pub(super) fn is_fixed_code(&self, address: u64) -> bool {
        use super::memory::Backing;
        self.memory.region(address).is_some_and(|(_, region)| {
            region.prot & libc::PROT_WRITE == 0 && matches!(region.backing, Backing::File { .. })
        })
    }
}
