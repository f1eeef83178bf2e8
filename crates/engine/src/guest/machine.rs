//! Running guest code: finds, translates, links and enters units until something
//! happens that only a session can deal with.

use super::memory::Memory;
use crate::code::cache::ExitId;
use crate::code::tracing::{CURSOR, SLOT};
use crate::code::{Cache, Profile, Stops, UnitId, flags};
use crate::context::{Context, context};
use crate::crossing::{self, Reason};
use crate::trace::Tracer;

/// A hardware exception of a guest instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The signal it becomes.
    pub signal: i32,
    /// `si_code`.
    pub code: i32,
    /// `si_addr`.
    pub address: u64,
    /// The CPU's trap number.
    pub trap: u64,
    /// The CPU's error code.
    pub error: u64,
}

/// Why the guest stopped running.
#[derive(Debug)]
pub enum Stop {
    /// It wants a system call; RIP is behind the instruction.
    Syscall,
    /// The safepoint count ran out; RIP is at the branch's target.
    Safepoint,
    /// An instruction to emulate is at RIP.
    Emulate,
    /// The instruction at RIP raised an exception.
    Fault(Fault),
    /// The instruction budget is used up; RIP is the next instruction.
    Budget,
    /// A profile's stop, or a breakpoint: RIP is the next instruction.
    Block,
    /// The instruction at RIP may touch watched memory.
    Watch,
}

/// Guest memory and the code made from it.
pub struct Machine {
    /// The address space.
    pub memory: Memory,
    /// Translations.
    pub cache: Cache,
    /// Where traced code writes.
    pub tracer: Option<Tracer>,
    pub(super) profile: Profile,
    /// Memory that a debugger watches.
    pub(super) watched: Stops,
    pub(super) watches: bool,
    pub(super) stops: super::stops::Stops,
    /// The unit to begin with, if it is not the one that is found by its address.
    pub(super) first: Option<UnitId>,
    /// Code for forks that begin trials.
    pub(super) plain: Option<Box<super::plain::Plain>>,
    /// What stands for instructions, in a trial that does not count them.
    pub(super) rate: Option<super::plain::Rate>,
    pub(super) prefixes: super::prefixes::Prefixes,
}

impl Machine {
    /// A machine without a program.
    pub fn new(profile: Profile) -> std::io::Result<Machine> {
        let (memory, cache) = (Memory::new(), Cache::new()?);
        let stops = super::stops::Stops::default();
        let watched = Stops::default();
        Ok(Machine {
            memory,
            cache,
            tracer: None,
            profile,
            watched,
            watches: false,
            stops,
            first: None,
            plain: None,
            rate: None,
            prefixes: Default::default(),
        })
    }

    /// Does nobody watch memory, or wait at an instruction?
    pub(super) fn watches_nothing(&self) -> bool {
        self.watched.breaks.is_empty() && self.watched.watches.is_empty()
    }

    /// Was code ever translated from writable pages?
    pub fn watches_code(&self) -> bool {
        self.watches
    }

    /// Comes back from now on where these say: with [`Stop::Block`] at breakpoints,
    /// with [`Stop::Watch`] where memory may be touched.
    pub fn set_stops(&mut self, stops: Stops) -> std::io::Result<()> {
        if self.watched.breaks != stops.breaks {
            let breaks: Vec<u64> = stops.breaks.iter().copied().collect();
            self.stop_at(&breaks);
        }
        if !self.watched.watches_alike(&stops) {
            self.cache.reset();
        }
        stops.fill_table()?;
        self.watched = stops;
        Ok(())
    }

    /// Runs the thread whose registers are in the context page.
    pub fn run(&mut self) -> Stop {
        let stop = self.run_units();
        if matches!(stop, Stop::Fault(_) | Stop::Safepoint | Stop::Emulate) {
            self.settle_flags();
        }
        stop
    }

    /// A signal frame may be made here, and flags that are dead hold what the
    /// safepoint count left in them, which differs between recording and replay.
    pub fn settle_flags(&self) {
        let dead = self.dead_flags();
        // SAFETY: we hold the turn, and guest code has left.
        unsafe { context() }.regs.rflags &= !dead;
    }

    /// Flags whose value no instruction will see.
    pub fn dead_flags(&self) -> u64 {
        // SAFETY: as above.
        let rip = unsafe { context() }.regs.rip;
        flags::as_rflags(flags::dead_flags(rip, &|pc| self.memory.code(pc)))
    }

    fn run_units(&mut self) -> Stop {
        // SAFETY: the caller holds the turn (it has `&mut self`), and the
        // reference is not used while guest code runs: `enter` takes a pointer.
        let context: *mut Context = unsafe { context() };
        // SAFETY: as above, for every access through `context` in this loop.
        let mut pc = unsafe { (*context).regs.rip };
        loop {
            for page in self.memory.take_reopened() {
                self.cache.invalidate(page, page + crate::layout::PAGE);
            }
            let Some(unit) = self.first.take().or_else(|| self.unit(pc)) else {
                // SAFETY: as above.
                unsafe { (*context).regs.rip = pc };
                return Stop::Fault(self.bad_jump(pc));
            };
            let mut host = self.cache.unit(unit).host as u64;
            loop {
                self.cache.seal();
                // SAFETY: `host` is the entry of a unit for the guest state in
                // the context page.
                let reason = unsafe { self.enter(context, host) };
                // SAFETY: guest code has left; we hold the turn.
                let c = unsafe { &mut *context };
                match self.after(c, reason) {
                    Next::Unit(unit) => host = self.cache.unit(unit).host as u64,
                    Next::Host(next) => host = next,
                    Next::At(next) => {
                        pc = next;
                        break;
                    }
                    Next::Stop(stop) => return stop,
                }
            }
        }
    }

    /// Runs code until it comes back. Traced code has its pointer in a register of the
    /// guest.
    ///
    /// # Safety
    /// As for [`crossing::enter`].
    pub(super) unsafe fn enter(&mut self, context: *mut Context, host: u64) -> Reason {
        if self.tracer.is_none() {
            // SAFETY: the caller's promise.
            return unsafe { crossing::enter(context, host) };
        }
        // SAFETY: guest code is not running, and the caller holds the turn.
        let c = unsafe { &mut *context };
        c.slots[SLOT] = std::mem::replace(&mut c.regs.gpr[CURSOR], c.cursor);
        // SAFETY: the caller's promise.
        let reason = unsafe { crossing::enter(context, host) };
        // SAFETY: guest code has left.
        let c = unsafe { &mut *context };
        c.cursor = std::mem::replace(&mut c.regs.gpr[CURSOR], c.slots[SLOT]);
        reason
    }

    pub(super) fn after(&mut self, c: &mut Context, reason: Reason) -> Next {
        match reason {
            Reason::Unlinked => {
                let exit = ExitId(c.arg);
                let target = self.cache.exit_target(exit);
                if self.profile.stop_at_blocks {
                    c.regs.rip = target;
                    return Next::Stop(Stop::Block);
                }
                let known = self.cache.find(target);
                let Some(unit) = known.or_else(|| self.unit_unless_full(target, false)) else {
                    return Next::At(target);
                };
                self.cache.link(exit, unit);
                Next::Unit(unit)
            }
            Reason::Indirect => {
                let target = match self.arrived(c) {
                    Next::At(target) => target,
                    other => return other,
                };
                if let Some(unit) = self.cache.find(target) {
                    self.cache.land(unit);
                    return Next::Unit(unit);
                }
                match self.unit_unless_full(target, true) {
                    Some(unit) => Next::Unit(unit),
                    None => Next::At(target),
                }
            }
            Reason::Safepoint => {
                c.regs.rip = self.cache.exit_target(ExitId(c.arg));
                self.lane_ended(c)
            }
            Reason::SafepointIndirect => self.arrived(c),
            Reason::SafepointHere => self.lane_ended(c),
            Reason::Syscall => Next::Stop(Stop::Syscall),
            Reason::Emulate => Next::Stop(Stop::Emulate),
            Reason::Stop => Next::Stop(Stop::Block),
            Reason::Watch => {
                c.budget += c.arg as i64;
                Next::Stop(Stop::Watch)
            }
            Reason::Fault => self.fault(c),
            Reason::Budget => self.budget(c),
        }
    }

    /// At a safepoint with which a lane of the count was used up, and perhaps the count.
    pub(super) fn lane_ended(&self, c: &Context) -> Next {
        match c.is_counted_down() {
            true => Next::Stop(Stop::Safepoint),
            _ if self.profile.stop_at_blocks => Next::Stop(Stop::Block),
            _ => Next::At(c.regs.rip),
        }
    }

    /// From now on comes back at the end of every basic block.
    pub fn show_blocks(&mut self) {
        self.profile = Profile { count: true, ..Profile::BLOCKS };
        self.cache.trust(false);
        self.cache.reset();
    }

    /// Address of the next instruction.
    pub(super) fn pc(&self) -> u64 {
        // SAFETY: we hold the turn, and guest code has left.
        unsafe { context() }.regs.rip
    }
}

pub(super) enum Next {
    Unit(UnitId),
    /// On in the cache, at a host address.
    Host(u64),
    At(u64),
    Stop(Stop),
}
