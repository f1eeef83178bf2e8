//! Running guest code: finds, translates, links and enters units until something
//! happens that only a session can deal with.

use super::memory::Memory;
use super::stock::LookedAt;
use crate::code::cache::{ExitId, forget_returns};
use crate::code::cache::{ReturnStub, Unit, return_stub};
use crate::code::translate::{Place, Request, Spilled, Translation, translate};
use crate::code::{Cache, Profile, Stops, UnitId, flags};
use crate::context::{Context, context, reg};
use crate::cpu::emulate::{SEGV_ACCERR, SEGV_MAPERR, SI_KERNEL};
use crate::crossing::{self, Reason};
use crate::signal::host::{self, HostFault};
use crate::trace::Tracer;
use std::collections::BTreeSet;

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
    watched: Stops,
    watches: bool,
    pub(super) stops: super::stops::Stops,
    /// The unit to begin with, if it is not the one that is found by its address.
    first: Option<UnitId>,
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
                let reason = unsafe { crossing::enter(context, host) };
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
                c.regs.gpr[reg::RCX] = c.slots[0];
                let target = c.slots[1];
                if self.profile.stop_at_blocks {
                    c.regs.rip = target;
                    return Next::Stop(Stop::Block);
                }
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
                Next::Stop(Stop::Safepoint)
            }
            Reason::SafepointIndirect => {
                c.regs.gpr[reg::RCX] = c.slots[0];
                c.regs.gpr[reg::RAX] = c.slots[6];
                c.regs.rip = c.slots[1];
                Next::Stop(Stop::Safepoint)
            }
            Reason::SafepointHere => Next::Stop(Stop::Safepoint),
            Reason::SafepointReturn => {
                c.regs.gpr[reg::RCX] = c.slots[0];
                c.regs.gpr[reg::RSP] += 8;
                c.regs.rip = c.slots[1];
                Next::Stop(Stop::Safepoint)
            }
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

    /// The budget does not reach to the end of the unit at RIP: run what it
    /// reaches for.
    fn budget(&mut self, c: &mut Context) -> Next {
        c.budget += c.arg as i64;
        if c.budget == 0 {
            return Next::Stop(Stop::Budget);
        }
        let instructions = c.budget as usize;
        c.budget = 0;
        match self.run_some(c.regs.rip, instructions, true) {
            Stop::Block => Next::Stop(Stop::Budget),
            stop => Next::Stop(stop),
        }
    }

    /// Runs exactly so many instructions of one unit, from a one-off translation.
    pub fn run_prefix(&mut self, pc: u64, instructions: usize) -> Stop {
        self.run_some(pc, instructions, false)
    }

    /// The same, where wanted with a look at watched memory.
    fn run_some(&mut self, pc: u64, instructions: usize, watched: bool) -> Stop {
        if let Some(kept) = self.kept_prefix(pc, instructions) {
            return self.run_kept(&kept);
        }
        static NONE: Stops = Stops { breaks: BTreeSet::new(), watches: BTreeSet::new() };
        if self.cache.is_full() {
            self.cache.reset();
        }
        let host = self.cache.next_host();
        let first_exit = self.cache.next_exit();
        let memory = &self.memory;
        let fetch = |pc| memory.code(pc);
        let request = Request {
            pc,
            host,
            cold: self.cache.next_cold(),
            landing: false,
            first_exit,
            profile: self.profile,
            watched: if watched { &self.watched } else { &NONE },
            trace: None,
            stop_after: Some(instructions),
            stops: &[],
            past: false,
            limit: self.profile.unit_limit(),
            known: &|_| false,
            fetch: &fetch,
        };
        let Some(t) = translate(&request) else { return Stop::Fault(self.bad_jump(pc)) };
        if self.may_keep(&t) {
            let kept = self.keep_prefix(pc, instructions, host, t);
            return self.run_kept(&kept);
        }
        self.cache.put(&t);
        // SAFETY: we hold the turn.
        let context: *mut Context = unsafe { context() };
        self.cache.seal();
        // SAFETY: a one-off translation of the code at RIP.
        let reason = unsafe { crossing::enter(context, host) };
        // A call in it expects its return in code that is gone now.
        if t.calls {
            forget_returns();
        }
        // SAFETY: guest code has left.
        let c = unsafe { &mut *context };
        match reason {
            Reason::Stop => Stop::Block,
            Reason::Unlinked => {
                // A branch at the end of the prefix, whose exits are not installed; or
                // behind the call that it returned to.
                c.regs.rip = match c.arg.checked_sub(first_exit) {
                    Some(own) => t.exits[own as usize].target,
                    None => self.cache.exit_target(ExitId(c.arg)),
                };
                Stop::Block
            }
            Reason::Safepoint => {
                c.regs.rip = t.exits[(c.arg - first_exit) as usize].target;
                Stop::Safepoint
            }
            Reason::Fault => {
                let fault = host::take_fault();
                let seen = self.locate(c, &fault, pc, host, &t);
                if self.is_code_store(&fault) {
                    // A store may touch two pages that are watched.
                    self.open_code_page(seen.address);
                    let done = t.places.iter().take_while(|p| p.pc != c.regs.rip).count();
                    return self.run_prefix(c.regs.rip, instructions - done.min(instructions - 1));
                }
                Stop::Fault(seen)
            }
            Reason::Indirect => {
                c.regs.gpr[reg::RCX] = c.slots[0];
                c.regs.rip = c.slots[1];
                Stop::Block
            }
            other => match self.after(c, other) {
                Next::Stop(stop) => stop,
                Next::Unit(_) | Next::At(_) | Next::Host(_) => Stop::Block,
            },
        }
    }

    /// Tracing: the record of the instruction at RIP, which is about to run outside
    /// of traced code.
    pub fn trace_one(&mut self, c: &Context) {
        if let Some(tracer) = &mut self.tracer {
            tracer.one(&c.regs, &|pc| self.memory.code(pc));
        }
    }

    /// First address past the guest code of the unit at a guest address.
    pub fn unit_end(&mut self, pc: u64) -> Option<u64> {
        let unit = self.unit(pc)?;
        Some(pc + u64::from(self.cache.unit(unit).guest_len))
    }

    /// The unit at a guest address, translated if need be.
    fn unit(&mut self, pc: u64) -> Option<UnitId> {
        if let Some(unit) = self.cache.find(pc) {
            return Some(unit);
        }
        if self.cache.is_full() {
            self.cache.reset();
        }
        self.unit_unless_full(pc, false)
    }

    /// Like [`Self::unit`], but never throws other units away: exits and units
    /// the caller holds stay valid.
    fn unit_unless_full(&mut self, pc: u64, landing: bool) -> Option<UnitId> {
        if self.cache.is_full() {
            return None;
        }
        self.translate_unit(pc, landing, false)
    }

    fn translate_unit(&mut self, pc: u64, landing: bool, past: bool) -> Option<UnitId> {
        if !past && let Some(unit) = self.woken(pc, landing) {
            return Some(unit);
        }
        let memory = &self.memory;
        let looked_at = LookedAt::default();
        let fetch = |pc| looked_at.note(pc, memory.code(pc));
        let (host, cold) = (self.cache.next_host(), self.cache.next_cold());
        let first_exit = self.cache.next_exit();
        let cache = &self.cache;
        let request = Request {
            pc,
            host,
            cold,
            landing,
            first_exit,
            profile: self.profile,
            watched: &self.watched,
            trace: self.tracer.as_ref().map(Tracer::next_path),
            stop_after: None,
            stops: self.stops.addresses(),
            past,
            limit: self.profile.unit_limit(),
            known: &|pc| cache.find(pc).is_some(),
            fetch: &fetch,
        };
        let t = translate(&request)?;
        if let (Some(tracer), Some(unit)) = (&mut self.tracer, &t.trace) {
            tracer.add_unit(unit, &fetch);
        }
        self.watch_code(&t.places);
        self.stops.expect(pc..pc + u64::from(t.guest_len), self.cache.next_unit());
        self.note_source(pc, looked_at);
        if past {
            return Some(self.cache.add_apart(pc, &t));
        }
        if let Some(learnt) = &mut self.stops.learnt {
            learnt.push(pc);
        }
        Some(self.cache.add(pc, &t))
    }

    /// A unit at a stop that does not stop.
    pub(super) fn unit_past(&mut self, pc: u64) -> Option<UnitId> {
        if self.cache.is_full() {
            self.cache.reset();
        }
        self.translate_unit(pc, false, true)
    }

    /// The next run begins with this unit.
    pub(super) fn begin_at(&mut self, unit: UnitId) {
        self.first = Some(unit);
    }

    /// Translates a unit before it is needed, and lets all that would come to it go
    /// there directly.
    pub(super) fn translate_ahead(&mut self, pc: u64) {
        if let Some(unit) = self.unit_unless_full(pc, false) {
            self.cache.link_all(unit);
            self.cache.land(unit);
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

    /// Pages that are both writable and executed are write-protected, so that a
    /// store into them is noticed and their translations discarded.
    fn watch_code(&mut self, places: &[Place]) {
        let mut last = 0;
        for place in places {
            for page in [place.pc, place.pc + 15].map(crate::layout::page_floor) {
                if page != last && self.memory.is_writable(page, 1) {
                    // SAFETY: a guest page; its guest-visible protection stays.
                    unsafe { libc::mprotect(page as *mut _, 4096, libc::PROT_READ) };
                    self.memory.watch(page);
                    self.watches = true;
                }
                last = page;
            }
        }
    }

    /// A jump to where there is no code.
    fn bad_jump(&self, pc: u64) -> Fault {
        if (pc << 16) as i64 >> 16 != pc as i64 {
            // Not canonical: the branch itself is at fault, without an address.
            let (signal, code) = (libc::SIGSEGV, SI_KERNEL);
            return Fault { signal, code, address: 0, trap: 13, error: 0 };
        }
        let mapped = self.memory.region(pc).is_some();
        if self.memory.region(pc).is_some_and(|(_, r)| r.prot & libc::PROT_EXEC != 0) {
            // It may be executed, but there is nothing: beyond the end of a file.
            let (signal, code) = (libc::SIGBUS, libc::BUS_ADRERR);
            return Fault { signal, code, address: pc, trap: 14, error: 0x14 };
        }
        Fault {
            signal: libc::SIGSEGV,
            code: if mapped { SEGV_ACCERR } else { SEGV_MAPERR },
            address: pc,
            trap: 14,
            // User-mode instruction fetch; present if it was a protection fault.
            error: 0x14 | mapped as u64,
        }
    }

    /// Finds the guest instruction behind a host fault.
    fn fault(&mut self, c: &mut Context) -> Next {
        let fault = host::take_fault();
        if let Some(stub) = return_stub(fault.at()) {
            // The stack slot cannot be written. The predicted way out needs that
            // for a moment, the return itself does not.
            c.regs.gpr[reg::RCX] = c.slots[0];
            if stub == ReturnStub::BeforePop {
                c.regs.gpr[reg::RSP] += 8;
            }
            if self.profile.stop_at_blocks {
                c.regs.rip = c.slots[1];
                return Next::Stop(Stop::Block);
            }
            return Next::At(c.slots[1]);
        }
        let id = self.cache.unit_at_host(fault.at());
        let Some(unit) = id.map(|id| self.cache.unit(id)) else {
            unreachable!("the handler only claims faults in the cache");
        };
        if self.is_code_store(&fault) {
            return self.code_store(c, &fault, &unit);
        }
        let again = self.translate_again(&unit);
        if self.tracer.as_ref().is_some_and(|t| t.is_full(fault.fault.address)) {
            return self.next_chunk(c, &fault, unit.start as u64, &again.places);
        }
        Next::Stop(Stop::Fault(self.locate(c, &fault, unit.pc, unit.start as u64, &again)))
    }

    /// The trace buffer is full: the record that did not fit begins anew in the
    /// next one, and the store is made again.
    fn next_chunk(
        &mut self,
        c: &mut Context,
        fault: &HostFault,
        host: u64,
        places: &[Place],
    ) -> Next {
        let place = place_at(places, (fault.at() - host) as usize);
        let register = place.and_then(|p| p.cursor).expect("only traced code stores there");
        let tracer = self.tracer.as_mut().expect("just seen");
        c.regs.gpr[register] = tracer.next_chunk(c.regs.gpr[register]);
        Next::Host(fault.host_pc)
    }

    fn translate_again(&self, unit: &Unit) -> Translation {
        let memory = &self.memory;
        let fetch = |pc| memory.code(pc);
        let request = Request {
            pc: unit.pc,
            host: unit.start as u64,
            // Does not matter for the places, but must be in reach.
            cold: crate::layout::CACHE.start,
            landing: unit.host != unit.start,
            first_exit: 0,
            profile: self.profile,
            watched: &self.watched,
            trace: self.tracer.as_ref().map(|_| 0),
            stop_after: None,
            // Its length says where it ended.
            stops: &[],
            past: false,
            // The unit may have ended early where another one began.
            limit: unit.instructions as usize,
            known: &|_| false,
            fetch: &fetch,
        };
        translate(&request).expect("it was translated before")
    }

    /// Sets RIP, restores spilled registers and takes back the instructions that
    /// were counted but not executed. Returns the fault as the guest sees it.
    pub(super) fn locate(
        &mut self,
        c: &mut Context,
        fault: &HostFault,
        pc: u64,
        host: u64,
        t: &Translation,
    ) -> Fault {
        let mut seen = fault.fault;
        let Some(place) = place_at(&t.places, (fault.at() - host) as usize) else {
            c.regs.rip = pc;
            return seen;
        };
        c.regs.rip = place.pc;
        if let Some(Spilled { register, slot }) = place.spilled {
            c.regs.gpr[register] = c.slots[slot];
        }
        if let Some(register) = place.counter {
            c.count = c.regs.gpr[register] as i64;
            c.regs.gpr[register] = c.slots[7];
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.cut(c, &place, t.trace.as_ref(), &|pc| self.memory.code(pc));
        }
        if self.profile.count {
            c.budget += (t.instructions - place.index) as i64;
        }
        if seen.address == fault.host_pc {
            // SIGFPE and SIGILL name the instruction.
            seen.address = c.regs.rip;
        }
        if fault.is_breakpoint() {
            c.regs.rip += 1;
            c.budget -= self.profile.count as i64;
        }
        seen
    }

    /// Is it a store to a page we protected because code came from it?
    pub(super) fn is_code_store(&self, fault: &HostFault) -> bool {
        let address = fault.fault.address;
        // A write that the guest may make: only our protection can have stopped it.
        self.watches
            && fault.fault.signal == libc::SIGSEGV
            && fault.fault.error & 2 != 0
            && self.memory.is_writable(address, 1)
    }

    /// The guest changes its own code: discard what came from the page, let the
    /// store happen, go on at the same instruction.
    fn code_store(&mut self, c: &mut Context, fault: &HostFault, unit: &Unit) -> Next {
        let again = self.translate_again(unit);
        self.locate(c, fault, unit.pc, unit.start as u64, &again);
        self.open_code_page(fault.fault.address);
        if self.profile.count {
            c.budget -= 1;
        }
        // Run the storing instruction alone, so that a page that holds both the
        // store and its target makes progress.
        self.trace_one(c);
        match self.run_prefix(c.regs.rip, 1) {
            Stop::Block => Next::At(c.regs.rip),
            stop => Next::Stop(stop),
        }
    }

    /// Makes a watched page writable again and forgets its translations.
    pub fn open_code_page(&mut self, address: u64) {
        let page = crate::layout::page_floor(address);
        self.cache.invalidate(page, page + crate::layout::PAGE);
        if let Some((_, region)) = self.memory.region(page) {
            let prot = super::memory::host_prot(region.prot);
            // SAFETY: a guest page, given the protection the guest asked for.
            unsafe { libc::mprotect(page as *mut _, 4096, prot) };
        }
    }

    /// Before the kernel or the engine writes guest memory: pages that were
    /// protected to watch code must not make it fail.
    pub fn prepare_write(&mut self, address: u64, len: u64) {
        if !self.watches || len == 0 || !self.cache.covers(address, address.saturating_add(len)) {
            return;
        }
        let mut page = crate::layout::page_floor(address);
        while page < address.saturating_add(len) {
            if self.memory.is_writable(page, 1) && self.cache.covers(page, page + 1) {
                self.open_code_page(page);
            }
            page += crate::layout::PAGE;
        }
    }
}

/// The place that a host address belongs to.
fn place_at(places: &[Place], offset: usize) -> Option<Place> {
    let n = places.partition_point(|p| p.offset <= offset);
    n.checked_sub(1).map(|n| places[n])
}

pub(super) enum Next {
    Unit(UnitId),
    /// On in the cache, at a host address.
    Host(u64),
    At(u64),
    Stop(Stop),
}
