//! Whether memory is touched, told by the processor's debug registers: code runs at its
//! full speed meanwhile. They tell how often, not when. Whoever wants to know that looks
//! again, more closely, where the number changed.

use super::goal::{Instant, Report};
use super::replayer::Replayer;
use crate::Error;
use crate::code::stops::{Stops, Watch};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;

/// Most pieces that a processor watches at once, and their greatest length.
const MOST: usize = 4;
const LONGEST: u64 = 8;

/// What the kernel is asked to count: `struct perf_event_attr` in its second version,
/// which is the first with breakpoints.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    samples: u64,
    format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    address: u64,
    len: u64,
}

const BREAKPOINT: u32 = 5;
const WRITES: u32 = 2;
const READS_AND_WRITES: u32 = 3;
/// Always on or in error, and only what this process does outside the kernel.
const FLAGS: u64 = (1 << 2) | (1 << 5) | (1 << 6);
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// Counts accesses to a few bytes.
pub struct Tally {
    counters: Vec<File>,
    seen: u64,
}

impl Tally {
    /// `None` if it is too much for the processor, or nobody may use it.
    fn of(watches: &BTreeSet<Watch>) -> Option<Tally> {
        let pieces: Vec<Watch> = watches.iter().flat_map(pieces).take(MOST + 1).collect();
        if pieces.is_empty() || pieces.len() > MOST || !is_exact() {
            return None;
        }
        let counters = pieces.iter().map(counter).collect::<Option<Vec<File>>>()?;
        Some(Tally { counters, seen: 0 })
    }

    /// How often anything was touched since the last time; `None` if that is not known.
    pub fn take(&mut self) -> Option<u64> {
        let mut sum = 0;
        for counter in &mut self.counters {
            let mut number = [0; 8];
            counter.read_exact(&mut number).ok()?;
            sum += u64::from_le_bytes(number);
        }
        Some(sum - std::mem::replace(&mut self.seen, sum))
    }
}

/// Keeps the kernel ready to count. The first counter of a machine takes it ten milliseconds
/// to make and later ones take no time, as long as there is one.
pub struct Readiness {
    _counter: Option<File>,
    _probe: Box<u64>,
}

impl Readiness {
    /// From now on; without effect where nobody may count.
    pub fn new() -> Readiness {
        let probe = Box::new(0u64);
        let address = &raw const *probe as u64;
        let watch = Watch { address, len: LONGEST, reads: false, writes: true };
        Readiness { _counter: counter(&watch), _probe: probe }
    }
}

impl Default for Readiness {
    fn default() -> Self {
        Readiness::new()
    }
}

/// Aligned pieces as a processor has them.
fn pieces(watch: &Watch) -> impl Iterator<Item = Watch> {
    let watch = *watch;
    let end = watch.address.saturating_add(watch.len);
    let mut at = watch.address;
    std::iter::from_fn(move || {
        let fits = |len: &u64| at.is_multiple_of(*len) && *len <= end - at;
        let len = (0..=LONGEST.ilog2()).rev().map(|n| 1 << n).find(fits)?;
        let piece = Watch { address: at, len, ..watch };
        at += len;
        Some(piece)
    })
}

fn counter(piece: &Watch) -> Option<File> {
    let attributes = Attributes {
        kind: BREAKPOINT,
        size: size_of::<Attributes>() as u32,
        flags: FLAGS,
        breakpoint: if piece.reads { READS_AND_WRITES } else { WRITES },
        address: piece.address,
        len: piece.len,
        ..Attributes::default()
    };
    // SAFETY: the kernel reads the attributes, which are as long as they say. What it makes
    // is a descriptor that belongs to nobody else.
    unsafe {
        let call = libc::SYS_perf_event_open;
        let fd = libc::syscall(call, &raw const attributes, 0, -1, -1, CLOSE_ON_EXEC);
        (fd >= 0).then(|| File::from_raw_fd(fd as i32))
    }
}

/// Does this machine count what is known to happen? Not every virtual one does.
fn is_exact() -> bool {
    let probe = Box::new(0u64);
    let address = &raw const *probe as *mut u64;
    let watch = Watch { address: address as u64, len: 8, reads: false, writes: true };
    let Some(mut counter) = counter(&watch) else { return false };
    for n in 0..3 {
        // SAFETY: our own word, whose address is aligned.
        unsafe { address.write_volatile(n) };
    }
    let mut number = [0; 8];
    counter.read_exact(&mut number).is_ok() && u64::from_le_bytes(number) == 3
}

/// What a replay at full speed tells of a part of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Survey {
    /// The last thing to stop for that is known exactly.
    pub last: Option<Report>,
    /// Parts in which watched memory was touched, in order.
    pub suspects: Vec<(Instant, Instant)>,
}

impl Replayer {
    /// Sets breakpoints and watched memory; but what instructions do to that is only
    /// counted. `None` if that is not possible; nothing is set then.
    pub fn count_touches(&mut self, stops: &Stops) -> Result<Option<Tally>, Error> {
        let Some(tally) = Tally::of(&stops.watches) else { return Ok(None) };
        let breaks = Stops { breaks: stops.breaks.clone(), ..Stops::default() };
        self.set_stops(&breaks)?;
        self.only_counts(&stops.watches);
        Ok(Some(tally))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(address: u64, len: u64) -> Watch {
        Watch { address, len, reads: false, writes: true }
    }

    #[test]
    fn watched_memory_is_covered_exactly_by_aligned_pieces() {
        for address in 0..16 {
            for len in 1..=32 {
                let all: Vec<Watch> = pieces(&watch(address, len)).collect();
                let mut at = address;
                for piece in &all {
                    assert_eq!(piece.address, at);
                    assert!(at.is_multiple_of(piece.len) && piece.len <= LONGEST);
                    at += piece.len;
                }
                assert_eq!(at, address + len);
            }
        }
    }

    #[test]
    fn what_is_not_possible_is_not_counted() {
        let long = [watch(0x1000, 64)].into();
        assert!(Tally::of(&long).is_none());
        assert!(Tally::of(&BTreeSet::new()).is_none());
    }
}
