//! Signals: the kernel keeps a thread's registers in a frame while a handler runs.

use crate::follow::Follow;
use crate::sweep::Sweep;
use crate::wanted_cells::WantedCells;
use program::effects::{Cell, Cells};
use trace::{CallSite, Event, Time, Trace};

/// The order of general registers in `struct ucontext`.
const ORDER: [u8; 16] = [8, 9, 10, 11, 12, 13, 14, 15, 7, 6, 5, 3, 2, 0, 1, 4];
/// Behind uc_flags, uc_link and uc_stack.
const REGISTERS: u64 = 40;

/// How far a walk back has come with what the kernel did.
#[derive(Clone, Copy)]
pub(crate) struct Kernel {
    /// Calls still to come.
    pub calls: usize,
    /// Signals still to come.
    pub signals: usize,
}

/// Something that the kernel did.
pub(crate) enum Done {
    Call(usize),
    Signal(usize),
}

impl Kernel {
    /// Records before this come behind the next thing that the kernel did.
    pub fn next(&self, trace: &Trace) -> Time {
        let call = trace.spans.calls[..self.calls].last().map(|call| call.at);
        let signal = trace.spans.signals[..self.signals].last().map(|signal| signal.at);
        call.max(signal).unwrap_or(Time::START)
    }

    /// The next one that was done after a record.
    #[inline]
    pub fn before(&mut self, trace: &Trace, time: Time) -> Option<Done> {
        let calls = trace.spans.calls[..self.calls].last().filter(|call| call.at > time);
        let signals = trace.spans.signals[..self.signals].last().filter(|s| s.at > time);
        match (calls, signals) {
            (None, None) => None,
            (Some(call), signal) if signal.is_none_or(|s| s.event < call.event) => {
                self.calls -= 1;
                Some(Done::Call(self.calls))
            }
            _ => {
                self.signals -= 1;
                Some(Done::Signal(self.signals))
            }
        }
    }
}

/// Where each byte of a general register is in the frame whose context is there.
pub(crate) fn frame_registers(context: u64) -> impl Iterator<Item = (Cell, u64)> {
    ORDER.iter().enumerate().flat_map(move |(n, register)| {
        let at = context + REGISTERS + 8 * n as u64;
        (0..8).map(move |byte| (Cell::gpr(*register, byte), at + u64::from(byte)))
    })
}

/// What the frame has by itself, not as memory that a handler may change: vector
/// registers and flags.
pub(crate) fn kept_whole() -> Cells {
    (Cell::ymm(0, 0).number()..=Cell::X87.number()).map(Cell::new).collect()
}

/// What the kernel sets for a handler: its arguments, and that string instructions
/// go upward.
pub(crate) fn set_for_handler() -> Cells {
    let arguments = [0, 2, 6, 7].into_iter().map(|r| Cells::gpr(r, 8));
    arguments.fold(Cell::DF.into(), Cells::union)
}

impl<F: Follow> Sweep<'_, F> {
    /// A handler ends: general registers come back from its frame, where it may have
    /// changed them; the rest is as it was when the signal came.
    pub(crate) fn signal_return(&mut self, site: &CallSite, sp: u64) {
        let mut thread = std::mem::take(self.thread_of(site.thread));
        let mut found = Vec::new();
        for (n, register) in ORDER.iter().enumerate() {
            let hit = Cells::gpr(*register, 8).intersection(thread.wanted.cells);
            for cell in hit.iter() {
                let byte = u64::from(cell.number() % 8);
                found.push((sp + REGISTERS + 8 * n as u64 + byte, thread.wanted.mark(cell)));
            }
            thread.wanted.remove(hit);
        }
        let mut kept = WantedCells::default();
        for cell in kept_whole().intersection(thread.wanted.cells).iter() {
            kept.add(cell.into(), thread.wanted.mark(cell), self.follow);
        }
        thread.wanted.remove(kept.cells);
        *self.thread_of(site.thread) = thread;
        if !kept.cells.is_empty() {
            self.interrupted.insert((site.thread, sp), kept);
        }
        for (address, mark) in found {
            self.want_memory(address, 1, mark);
        }
    }

    /// A handler begins: registers go to its frame.
    pub(crate) fn signal(&mut self, n: usize) {
        let trace = self.trace;
        let site = &trace.spans.signals[n];
        let Event::Signal { written, sp, .. } = &trace.events[site.event].1 else { return };
        // Below it is the address that the handler returns to.
        let context = sp + 8;
        let mut thread = std::mem::take(self.thread_of(site.thread));
        thread.wanted.remove(set_for_handler());
        if let Some(kept) = self.interrupted.remove(&(site.thread, context)) {
            thread.wanted.merge(&kept, self.follow);
        }
        for (start, len) in written {
            for (address, mark) in self.memory.hits(*start, *len) {
                self.memory.remove(address);
                let offset = address.wrapping_sub(context + REGISTERS);
                if let Some(register) = ORDER.get((offset / 8) as usize) {
                    let cell = Cells::from(Cell::gpr(*register, (offset % 8) as u8));
                    thread.wanted.add(cell.minus(self.never), mark, self.follow);
                }
            }
        }
        *self.thread_of(site.thread) = thread;
        for (start, len) in written {
            while let Some(restore) = self.take_restore(*start, *len) {
                self.refute(&restore);
            }
        }
    }
}
