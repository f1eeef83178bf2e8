//! Virtual time: it passes with calls, with turns, and when all threads wait.

use super::calls::{error, unserved};
use super::{Sandbox, Served};
use crate::kernel::process::Asked;
use crate::kernel::table;

impl Sandbox {
    /// `None` if the call is not one of these.
    pub(super) fn time_call(&mut self, asked: &Asked) -> Option<Served> {
        let a = &asked.args;
        Some(match asked.number as u32 {
            table::clock_gettime => match self.clock(a[0] as i32) {
                Some(ns) => self.give(a[1], &timespec(ns), 0),
                None => unserved(format!("clock {}", a[0])),
            },
            table::gettimeofday => {
                let (s, ns) = (self.world.clock / 1_000_000_000, self.world.clock % 1_000_000_000);
                let bytes = [s.to_le_bytes(), (ns / 1000).to_le_bytes()].concat();
                if a[1] != 0 && !self.replayer.process.write_from_log(a[1], &[0; 8]) {
                    return Some(error(libc::EFAULT));
                }
                if a[0] == 0 { Served::Value(0) } else { self.give(a[0], &bytes, 0) }
            }
            table::time => {
                let s = self.world.clock / 1_000_000_000;
                match a[0] {
                    0 => Served::Value(s as i64),
                    at => self.give(at, &s.to_le_bytes(), s as i64),
                }
            }
            table::nanosleep => self.sleep(a[0], None),
            table::clock_nanosleep => self.sleep(a[2], (a[1] & 1 != 0).then_some(a[0] as i32)),
            table::alarm => Served::Value(
                self.set_alarm(a[0] * 1_000_000_000, 0).0.div_ceil(1_000_000_000) as i64,
            ),
            table::setitimer if a[0] == 0 => self.set_timer(a[1], a[2]),
            table::getitimer if a[0] == 0 => {
                let (left, every) = self.signals.timer(self.world.uptime);
                self.give(a[1], &itimer(left, every), 0)
            }
            table::setitimer | table::getitimer => unserved("a timer of processor time"),
            _ => return None,
        })
    }

    fn clock(&self, clock: i32) -> Option<u64> {
        match clock {
            libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => {
                Some(self.world.clock)
            }
            libc::CLOCK_MONOTONIC
            | libc::CLOCK_MONOTONIC_RAW
            | libc::CLOCK_MONOTONIC_COARSE
            | libc::CLOCK_BOOTTIME => Some(self.world.uptime),
            libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID => {
                Some(self.world.uptime % 1_000_000_000_000)
            }
            _ => None,
        }
    }

    /// A `timespec` in nanoseconds.
    pub(super) fn read_time(&self, at: u64) -> Option<u64> {
        let memory = &self.replayer.process.machine.memory;
        let (s, ns) = (memory.read_u64(at)?, memory.read_u64(at + 8)?);
        Some(s.saturating_mul(1_000_000_000).saturating_add(ns))
    }

    fn sleep(&mut self, at: u64, until: Option<i32>) -> Served {
        let Some(time) = self.read_time(at) else { return error(libc::EFAULT) };
        let deadline = match until {
            None => self.world.uptime.saturating_add(time),
            Some(clock) => {
                let now = self.clock(clock).unwrap_or(self.world.uptime);
                self.world.uptime.saturating_add(time.saturating_sub(now))
            }
        };
        Served::Waits(Some(deadline))
    }

    fn set_timer(&mut self, new: u64, old: u64) -> Served {
        let memory = &self.replayer.process.machine.memory;
        let micro = |at: u64| {
            Some(
                memory.read_u64(at)?.saturating_mul(1_000_000_000)
                    + memory.read_u64(at + 8)? * 1000,
            )
        };
        let wanted = match new {
            0 => Some((0, 0)),
            at => micro(at).zip(micro(at + 16)),
        };
        let Some((every, first)) = wanted else { return error(libc::EFAULT) };
        let (left, before) = self.set_alarm(first, every);
        if old == 0 { Served::Value(0) } else { self.give(old, &itimer(left, before), 0) }
    }
}

fn timespec(ns: u64) -> Vec<u8> {
    [(ns / 1_000_000_000).to_le_bytes(), (ns % 1_000_000_000).to_le_bytes()].concat()
}

fn itimer(left: u64, every: u64) -> Vec<u8> {
    let pair =
        |ns: u64| [(ns / 1_000_000_000).to_le_bytes(), (ns % 1_000_000_000 / 1000).to_le_bytes()];
    [pair(every), pair(left)].concat().concat()
}
