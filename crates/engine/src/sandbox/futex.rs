//! Futexes between the threads of one process.

use super::calls::{error, unserved};
use super::schedule::Waiting;
use super::{Sandbox, Served};
use crate::kernel::process::Asked;

const WAIT: u64 = 0;
const WAKE: u64 = 1;
const REQUEUE: u64 = 3;
const CMP_REQUEUE: u64 = 4;
const WAKE_OP: u64 = 5;
const WAIT_BITSET: u64 = 9;
const WAKE_BITSET: u64 = 10;
const REALTIME: u64 = 256;

impl Sandbox {
    pub(super) fn futex(&mut self, asked: &Asked) -> Served {
        let [address, op, value, timeout, second, bits] = asked.args;
        match op & 0x7f {
            WAIT => self.futex_wait(asked, address, value as u32, timeout, true, !0),
            WAIT_BITSET => {
                self.futex_wait(asked, address, value as u32, timeout, false, bits as u32)
            }
            WAKE => Served::Value(self.wake(address, value as u32 as u64, !0)),
            WAKE_BITSET => Served::Value(self.wake(address, value as u32 as u64, bits as u32)),
            REQUEUE | CMP_REQUEUE => {
                if op & 0x7f == CMP_REQUEUE && self.word(address) != Some(bits as u32) {
                    return error(libc::EAGAIN);
                }
                let woken = self.wake(address, value as u32 as u64, !0);
                let moved = self.requeue(address, second, timeout as u32 as u64);
                Served::Value(woken + moved)
            }
            WAKE_OP => self.wake_op(asked),
            other => unserved(format!("futex operation {other}")),
        }
    }

    fn word(&self, address: u64) -> Option<u32> {
        let bytes = self.replayer.process.machine.memory.read(address, 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    fn futex_wait(
        &mut self,
        asked: &Asked,
        address: u64,
        value: u32,
        timeout: u64,
        relative: bool,
        bits: u32,
    ) -> Served {
        match self.word(address) {
            None => return error(libc::EFAULT),
            Some(now) if now != value => return error(libc::EAGAIN),
            Some(_) => {}
        }
        let deadline = if timeout == 0 {
            None
        } else {
            let Some(time) = self.read_time(timeout) else { return error(libc::EFAULT) };
            Some(match (relative, asked.args[1] & REALTIME != 0) {
                (true, _) => self.world.uptime.saturating_add(time),
                (false, false) => time,
                (false, true) => {
                    self.world.uptime.saturating_add(time.saturating_sub(self.world.clock))
                }
            })
        };
        if deadline.is_some_and(|d| d <= self.world.uptime) {
            return error(libc::ETIMEDOUT);
        }
        let mut waiting = Waiting::again(*asked);
        waiting.futex = Some((address, bits));
        waiting.fresh = false;
        self.waiting.insert(self.replayer.current, waiting);
        Served::Waits(deadline)
    }

    /// Wakes threads that wait at an address.
    pub(super) fn wake(&mut self, address: u64, most: u64, bits: u32) -> i64 {
        let mut woken = 0;
        for waiting in self.waiting.values_mut() {
            let here = waiting.futex.is_some_and(|(a, b)| a == address && b & bits != 0);
            if here && !waiting.woken && woken < most {
                waiting.woken = true;
                woken += 1;
            }
        }
        woken as i64
    }

    fn requeue(&mut self, from: u64, to: u64, most: u64) -> i64 {
        let mut moved = 0;
        for waiting in self.waiting.values_mut().filter(|w| !w.woken) {
            if let Some((address, _)) = &mut waiting.futex
                && *address == from
                && moved < most
            {
                *address = to;
                moved += 1;
            }
        }
        moved as i64
    }

    fn wake_op(&mut self, asked: &Asked) -> Served {
        let [address, _, most, most_second, second, code] = asked.args;
        let Some(old) = self.word(second) else { return error(libc::EFAULT) };
        let (op, compare) = (code >> 28 & 7, code >> 24 & 15);
        let mut argument = (code >> 12 & 0xfff) as u32;
        if code >> 28 & 8 != 0 {
            argument = 1 << (argument & 31);
        }
        let new = match op {
            0 => argument,
            1 => old.wrapping_add(argument),
            2 => old | argument,
            3 => old & !argument,
            4 => old ^ argument,
            _ => return error(libc::ENOSYS),
        };
        if !self.replayer.process.write_from_log(second, &new.to_le_bytes()) {
            return error(libc::EFAULT);
        }
        let (x, y) = (old as i32, (code & 0xfff) as i32);
        let holds = match compare {
            0 => x == y,
            1 => x != y,
            2 => x < y,
            3 => x <= y,
            4 => x > y,
            5 => x >= y,
            _ => return error(libc::ENOSYS),
        };
        let mut woken = self.wake(address, most as u32 as u64, !0);
        if holds {
            woken += self.wake(second, most_second as u32 as u64, !0);
        }
        Served::Value(woken)
    }
}
