//! Calls that the host performs for the guest, and what the log keeps of them.

use super::host_calls::{Scratch, View, Written, room, written};
use super::session::{Runner, Session, set_result};
use crate::kernel::files::What;
use crate::kernel::process::Asked;
use crate::kernel::table::{self, Call, How};
use crate::signal::host;
use recording::event::{Effect, When};

impl Runner {
    /// Lets the host perform a call and logs what it wrote.
    pub(super) fn host_call(&mut self, call: &Call, asked: &Asked, state: u32, waits: bool) {
        let session = self.session();
        let mut scratch = Scratch::default();
        let mut args = asked.args;
        let mut written_bytes: Option<Vec<u8>> = None;
        if call.outs.is_empty() || !session.process.machine.watches_code() {
            // Nothing to prepare.
        } else {
            self.prepare_outs(call, asked);
        }
        session.process.temporary_mask(&mut self.task, asked);
        if self.task.saved_mask.is_some() {
            host::note_mask(self.task.mask);
        }
        let room = room(call, asked, &session.process.machine.memory);
        let hidden = self
            .guard_duplicate(asked)
            .or_else(|| self.guard_output(asked))
            .or_else(|| self.guard_pair(asked));
        let limited = self.limit_file_size(asked);
        let result = if let Some(error) = hidden {
            error
        } else if waits {
            args = scratch.divert(call, asked, &session.process.machine.memory);
            if call.number == table::write {
                // Other threads may change it before the kernel has taken it.
                written_bytes = session.process.machine.memory.read(args[1], args[2] as usize);
                args[1] = written_bytes.as_ref().map_or(args[1], |b| b.as_ptr() as u64);
            }
            self.pause(When::Here);
            // SAFETY: the guest's call with the guest's arguments; memory it
            // writes is in `scratch`.
            let result = unsafe { host::interruptible(asked.number, args) };
            self.shared.turn.acquire();
            self.resume();
            result
        } else if call.how == How::Waits {
            // SAFETY: the guest's call; no other thread runs meanwhile, or the
            // call does not wait.
            unsafe { host::interruptible(asked.number, args) }
        } else {
            // SAFETY: as above.
            unsafe { crate::sys::raw(asked.number, args) }
        };
        self.meet_woken(asked, result);
        let _ = args;
        drop(limited);
        let result = self.within_limit(asked, interrupted(call, asked, result));
        let session = self.session();
        let memory = &session.process.machine.memory;
        let ranges = written(call, asked, result, &View::new(memory, &scratch, room));
        scratch.give_back(memory, &ranges);
        let sent = written_bytes.filter(|_| self.is_output(asked.fd(0)) && result > 0);
        if let Some(bytes) = sent {
            let data = &bytes[..result as usize];
            return self.finish_call(asked, result, state, &[Effect::Output { data }]);
        }
        self.log_host_call(asked, result, state, &ranges);
    }

    /// A varied schedule is drawn among all that could go on, so those that this call woke
    /// must have come before it is drawn again.
    fn meet_woken(&self, asked: &Asked, result: i64) {
        const WAKE: i32 = 1;
        const WAKE_BITSET: i32 = 10;
        let wakes = asked.number as u32 == table::futex
            && matches!(asked.args[1] as i32 & 0x7f, WAKE | WAKE_BITSET);
        if wakes && result > 0 && self.session().chaos.is_some() {
            self.shared.turn.await_arrivals(result as usize);
        }
    }

    fn log_host_call(&mut self, asked: &Asked, result: i64, state: u32, ranges: &[Written]) {
        let session = self.session();
        set_result(self.context(), &mut self.task, asked, result);
        let from_file = session.process.read_source(asked, result);
        session.encoder.call(asked.number as u32, result, state);
        let mut offset = from_file.map(|(_, offset)| offset).unwrap_or(0);
        let memory = &session.process.machine.memory;
        let there: Vec<Written> =
            ranges.iter().copied().filter(|(a, len)| memory.is_readable(*a, *len)).collect();
        for (address, len) in &there {
            // SAFETY: mapped and readable; no guest code runs.
            let data = unsafe { std::slice::from_raw_parts(*address as *const u8, *len as usize) };
            let same = from_file.filter(|_| *len >= 32).filter(|(file, _)| {
                session.process.objects.bytes(*file).is_ok_and(|bytes| {
                    bytes.get(offset as usize..(offset + len) as usize) == Some(data)
                })
            });
            let effect = match same {
                Some((file, _)) => Effect::Copy { address: *address, file, offset, len: *len },
                None => Effect::Write { address: *address, data },
            };
            session.encoder.effect(&effect);
            offset += len;
        }
        session.encode_changes(asked, result);
        session.encode_order(asked, result);
        session.log();
        session.process.observe(asked, result);
        session.note_waited(asked, result);
    }

    /// Pages watched for code must be open before the kernel writes them.
    fn prepare_outs(&mut self, call: &Call, asked: &Asked) {
        let machine = &mut self.session().process.machine;
        let guess = i64::from(i32::MAX);
        let scratch = Scratch::default();
        let ranges = {
            let view = View::new(&machine.memory, &scratch, u64::MAX);
            let most = if matches!(call.outs.first(), Some(table::Out::Returned(_))) {
                asked.args[2] as i64
            } else {
                guess
            };
            written(call, asked, most, &view)
        };
        for (address, len) in ranges {
            machine.prepare_write(address, len.min(1 << 30));
        }
    }
}

impl Session {
    /// Where several processes write, the order of what they wrote is kept.
    pub(super) fn encode_order(&mut self, asked: &Asked, result: i64) {
        if result <= 0 || !self.tree.has_branched() {
            return;
        }
        let writes = matches!(
            asked.number as u32,
            table::write
                | table::writev
                | table::pwrite64
                | table::pwritev
                | table::pwritev2
                | table::sendfile
                | table::sendto
        );
        let what = self.process.files.get(asked.fd(0)).map(|d| &d.what);
        if writes && matches!(what, Some(What::Stdout | What::Stderr)) {
            self.encoder.effect(&Effect::Order { number: self.tree.order() });
        }
    }
}

/// An interrupted call: -512 where a handler with SA_RESTART restarts it.
fn interrupted(call: &Call, asked: &Asked, result: i64) -> i64 {
    let eintr = -(libc::EINTR as i64);
    if result == -512 && !call.restarts {
        return eintr;
    }
    if result == eintr && call.restarts && host::is_pending() {
        let timed_futex = call.number == table::futex && asked.args[3] != 0;
        return if timed_futex { eintr } else { -512 };
    }
    result
}
