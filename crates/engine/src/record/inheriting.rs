//! Priority-inheriting futexes, performed by the engine.
//!
//! The kernel would change the lock's word while another thread runs, which no
//! log could place. Here every change is made with the turn, and logged. A thread
//! that finds the lock taken first marks it as waited for, then sleeps; after
//! either it makes its call again.

use super::session::Runner;
use crate::kernel::process::Asked;
use crate::signal::host;
use recording::event::{Effect, When};

const LOCK: u64 = 6;
const UNLOCK: u64 = 7;
const TRYLOCK: u64 = 8;
const LOCK2: u64 = 13;
const WAITERS: u32 = 0x8000_0000;
const OWNER_DIED: u32 = 0x4000_0000;
const OWNER: u32 = 0x3fff_ffff;
const CLOCK_REALTIME: u64 = 256;
const AGAIN: i64 = -512;

/// Is it a call on such a futex?
pub fn concerns(asked: &Asked) -> bool {
    matches!(asked.args[1] & 0x7f, LOCK | UNLOCK | TRYLOCK | 11 | 12 | LOCK2)
}

impl Runner {
    /// Performs the call.
    pub(super) fn inheriting_futex(&mut self, asked: &Asked, state: u32) {
        let at = asked.args[0];
        let memory = &self.session().process.machine.memory;
        let word = memory.read(at, 4).map(|b| u32::from_le_bytes(b.try_into().expect("four")));
        let Some(word) = word.filter(|_| memory.is_writable(at, 4)) else {
            return self.finish_call(asked, -(libc::EFAULT as i64), state, &[]);
        };
        let me = self.task.tid as u32;
        let owner = word & OWNER;
        match asked.args[1] & 0x7f {
            LOCK | LOCK2 | TRYLOCK if owner == me => {
                self.finish_call(asked, -(libc::EDEADLK as i64), state, &[]);
            }
            LOCK | LOCK2 | TRYLOCK if owner == 0 => {
                self.change(asked, at, me | word & (WAITERS | OWNER_DIED), 0, state);
            }
            TRYLOCK => self.finish_call(asked, -(libc::EAGAIN as i64), state, &[]),
            LOCK | LOCK2 if word & WAITERS == 0 => {
                self.change(asked, at, word | WAITERS, AGAIN, state);
            }
            LOCK | LOCK2 => self.sleep(asked, word, state),
            UNLOCK if owner != me => self.finish_call(asked, -(libc::EPERM as i64), state, &[]),
            UNLOCK => {
                self.change(asked, at, 0, 0, state);
                // All of them: whoever is next marks the lock again for the rest.
                self.wake(at);
            }
            _ => self.finish_call(asked, -(libc::ENOSYS as i64), state, &[]),
        }
    }

    fn change(&mut self, asked: &Asked, at: u64, word: u32, result: i64, state: u32) {
        let bytes = word.to_le_bytes();
        let _ = self.session().process.machine.memory.write(at, &bytes);
        let effect = Effect::Write { address: at, data: &bytes };
        self.finish_call(asked, result, state, &[effect]);
    }

    fn sleep(&mut self, asked: &Asked, word: u32, state: u32) {
        let clock = if asked.args[1] & 0x7f == LOCK { CLOCK_REALTIME } else { 0 };
        let private = asked.args[1] & libc::FUTEX_PRIVATE_FLAG as u64;
        let operation = libc::FUTEX_WAIT_BITSET as u64 | private | clock;
        let args = [asked.args[0], operation, word as u64, asked.args[3], 0, u32::MAX as u64];
        self.pause(When::Here);
        // SAFETY: waits on a guest word; the time is the guest's.
        let result = unsafe { host::interruptible(libc::SYS_futex as u64, args) };
        self.shared.turn.acquire();
        self.resume();
        let timed_out = -(libc::ETIMEDOUT as i64);
        let result = if result == timed_out { timed_out } else { AGAIN };
        self.finish_call(asked, result, state, &[]);
    }

    fn wake(&self, at: u64) {
        for private in [0, libc::FUTEX_PRIVATE_FLAG as u64] {
            let args = [at, libc::FUTEX_WAKE as u64 | private, i32::MAX as u64, 0, 0, 0];
            // SAFETY: waking sleepers reads nothing.
            unsafe { crate::sys::raw(libc::SYS_futex as u64, args) };
        }
    }
}
