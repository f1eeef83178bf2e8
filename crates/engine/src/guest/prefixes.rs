//! One-off translations that are worth keeping: a walk that stops again and again
//! before the same few instructions need not translate, or write code, each time.

use super::machine::{Fault, Machine, Stop};
use super::stepping::as_stop;
use crate::code::UnitId;
use crate::code::translate::Translation;
use crate::context::{Context, context};
use crate::crossing::Reason;
use crate::signal::host;
use std::collections::HashMap;
use std::sync::Arc;

/// No more than these are kept.
const MOST: usize = 1 << 14;

/// Prefixes of units, by address and number of instructions.
#[derive(Default)]
pub struct Prefixes {
    kept: Option<HashMap<(u64, usize), Arc<Kept>>>,
}

/// A prefix in the cache.
pub struct Kept {
    pc: u64,
    host: u64,
    unit: UnitId,
    /// The cache was emptied so often when it was made.
    resets: u64,
    translation: Translation,
}

impl Machine {
    /// From now on keeps what it translates to stop at an exact instruction.
    pub fn keep_prefixes(&mut self) {
        self.prefixes.kept = Some(HashMap::new());
    }

    /// A prefix that was kept.
    pub(super) fn kept_prefix(&self, pc: u64, instructions: usize) -> Option<Arc<Kept>> {
        let kept = self.prefixes.kept.as_ref()?.get(&(pc, instructions))?;
        let valid = kept.resets == self.cache.resets() && self.cache.is_alive(kept.unit);
        valid.then(|| kept.clone())
    }

    /// May it be kept? If it only leads to its end.
    pub(super) fn may_keep(&self, translation: &Translation) -> bool {
        let room = self.prefixes.kept.as_ref().is_some_and(|kept| kept.len() < MOST);
        room && !translation.calls && translation.exits.is_empty() && !self.watches_code()
    }

    /// Keeps a prefix.
    pub(super) fn keep_prefix(
        &mut self,
        pc: u64,
        instructions: usize,
        host: u64,
        translation: Translation,
    ) -> Arc<Kept> {
        let unit = self.cache.add_apart(pc, &translation);
        let kept = Arc::new(Kept { pc, host, unit, resets: self.cache.resets(), translation });
        if let Some(all) = &mut self.prefixes.kept {
            all.insert((pc, instructions), kept.clone());
        }
        kept
    }

    /// Runs one.
    pub(super) fn run_kept(&mut self, kept: &Kept) -> Stop {
        // SAFETY: we hold the turn.
        let context: *mut Context = unsafe { context() };
        self.cache.seal();
        // SAFETY: a translation of the code at RIP, which is still in the cache.
        let reason = unsafe { self.enter(context, kept.host) };
        // SAFETY: guest code has left.
        let c = unsafe { &mut *context };
        match reason {
            Reason::Stop => Stop::Block,
            Reason::Fault => {
                let fault = host::take_fault();
                let seen: Fault = self.locate(c, &fault, kept.pc, kept.host, &kept.translation);
                Stop::Fault(seen)
            }
            Reason::Indirect | Reason::SafepointIndirect => {
                as_stop(self.arrived_from(c, kept.pc, kept.host, &kept.translation))
            }
            other => as_stop(self.after(c, other)),
        }
    }
}
