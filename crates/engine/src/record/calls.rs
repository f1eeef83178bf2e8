//! One system call of the guest while recording: who performs it, whether it waits,
//! and its place in the log.

use super::endings::{Kills, kills};
use super::engine_calls::After;
use super::inheriting;
use super::session::{Runner, enter_call, set_result};
use super::signals::take_back_signals;
use crate::kernel::files::What;
use crate::kernel::process::Asked;
use crate::kernel::table::{self, How};
use crate::signal::host;
use crate::{Error, Refusal, hash};
use recording::event::{Effect, When};

impl Runner {
    /// A `syscall` instruction.
    pub(super) fn call(&mut self) -> After {
        let session = self.session();
        let context = self.context();
        let asked = Asked::of(context);
        let call = table::call(asked.number);
        let state = hash::registers(&context.regs);
        session.counters.calls += 1;
        enter_call(context);
        match kills(&asked, session.pid, self.task.tid) {
            Kills::Others => {}
            Kills::Self_ => {
                self.finish_call(&asked, 0, state, &[]);
                self.session().end(libc::SIGKILL);
            }
            Kills::Group => {
                self.finish_call(&asked, 0, state, &[]);
                self.session().end_by(&asked);
            }
        }
        if table::changes_credentials(call.number) && !crate::clerk::is_hired() {
            host::set_mask(!0);
            crate::clerk::hire();
            take_back_signals(&session.process.actions);
            host::set_mask(self.task.mask);
        }
        if let Some(error) = self.guard(&asked) {
            self.finish_call(&asked, error, state, &[]);
            return After::Goes;
        }
        let (asked, _path) = self.redirected(asked);
        let after = match call.how {
            How::Waits if call.number == table::futex && inheriting::concerns(&asked) => {
                self.inheriting_futex(&asked, state);
                After::Goes
            }
            How::Host if self.clock_call(&asked, state) => After::Goes,
            How::Host => {
                self.host_call(&call, &asked, state, false);
                After::Goes
            }
            How::Waits => {
                let waits = self.may_wait(&asked);
                self.host_call(&call, &asked, state, waits);
                After::Goes
            }
            How::Engine => self.engine_call(&call, &asked, state),
            How::Missing => {
                session.note_unsupported(&call);
                self.finish_call(&asked, -(libc::ENOSYS as i64), state, &[]);
                After::Goes
            }
            How::Refused => {
                session.give_up(&Error::Refused(Refusal::Call(call.name)));
            }
        };
        if after == After::Goes {
            if host::is_pending() {
                // The first event of a program that was just executed has none before it.
                let begins = self.session().writer.as_ref().is_some_and(|w| w.events() == 0);
                self.signals(if begins { When::Safepoint(0) } else { When::Here });
            } else {
                self.settle_interrupted_call();
            }
            self.session().hash_memory_sometimes();
            self.session().refuse_late_outsiders();
        }
        after
    }

    /// Clocks the kernel lets programs read without entering it: as a program
    /// outside would, but into the log. False if it is not such a call.
    fn clock_call(&mut self, asked: &Asked, state: u32) -> bool {
        let number = asked.number as u32;
        let clock = match number {
            table::clock_gettime => asked.args[0] as i32,
            table::gettimeofday if asked.args[1] == 0 => libc::CLOCK_REALTIME,
            _ => return false,
        };
        let fast = matches!(
            clock,
            libc::CLOCK_REALTIME
                | libc::CLOCK_MONOTONIC
                | libc::CLOCK_REALTIME_COARSE
                | libc::CLOCK_MONOTONIC_COARSE
                | libc::CLOCK_BOOTTIME
        );
        let at = if number == table::clock_gettime { asked.args[1] } else { asked.args[0] };
        let session = self.session();
        let machine = &mut session.process.machine;
        if !fast || at == 0 || !machine.memory.is_writable(at, 16) {
            return false;
        }
        machine.prepare_write(at, 16);
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: reads a clock into our own struct.
        unsafe { libc::clock_gettime(clock, &mut time) };
        let fraction =
            if number == table::clock_gettime { time.tv_nsec } else { time.tv_nsec / 1000 };
        let mut data = [0u8; 16];
        data[..8].copy_from_slice(&time.tv_sec.to_le_bytes());
        data[8..].copy_from_slice(&fraction.to_le_bytes());
        let _ = machine.memory.write(at, &data);
        set_result(self.context(), &mut self.task, asked, 0);
        session.encoder.call(number, 0, state).effect(&Effect::Write { address: at, data: &data });
        session.log();
        true
    }

    /// Sets the result and logs the call.
    pub(super) fn finish_call(
        &mut self,
        asked: &Asked,
        result: i64,
        state: u32,
        effects: &[Effect],
    ) {
        let session = self.session();
        set_result(self.context(), &mut self.task, asked, result);
        session.encoder.call(asked.number as u32, result, state);
        for effect in effects {
            session.encoder.effect(effect);
        }
        session.encode_changes(asked, result);
        session.encode_order(asked, result);
        session.log();
        session.process.observe(asked, result);
    }

    /// Can the call keep us waiting while another thread could run?
    fn may_wait(&self, asked: &Asked) -> bool {
        let session = self.session();
        if session.threads == 1 && session.commons.is_none() {
            return false;
        }
        let a = &asked.args;
        match asked.number as u32 {
            table::futex => self.futex_waits(a),
            table::read
            | table::write
            | table::readv
            | table::writev
            | table::pread64
            | table::pwrite64
            | table::preadv
            | table::pwritev => {
                let what = session.process.files.get(asked.fd(0)).map(|d| &d.what);
                !matches!(what, Some(What::Regular { .. } | What::Memory))
            }
            table::ioctl => false,
            // F_SETLKW and F_OFD_SETLKW.
            table::fcntl => matches!(a[1], 7 | 38),
            _ => true,
        }
    }

    fn futex_waits(&self, a: &[u64; 6]) -> bool {
        const WAIT: i32 = 0;
        const LOCK_PI: i32 = 6;
        const WAIT_BITSET: i32 = 9;
        match a[1] as i32 & 0x7f {
            WAIT | WAIT_BITSET => {
                let memory = &self.session().process.machine.memory;
                let word = memory.read(a[0], 4);
                word.is_none_or(|w| w == (a[2] as u32).to_le_bytes())
            }
            LOCK_PI | 11 | 13 => true,
            _ => false,
        }
    }
}
