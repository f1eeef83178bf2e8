//! Exceptions of translated code: which guest instruction they belong to, and those that
//! come from our own protection of pages that code came from.

use super::machine::{Fault, Machine, Next, Stop};
use crate::code::cache::{Unit, is_wrong_return};
use crate::code::dense;
use crate::code::tracing::{CURSOR, STANDS_SLOT};
use crate::code::translate::{Place, Spilled, Translation};
use crate::context::{Context, reg};
use crate::cpu::emulate::{SEGV_ACCERR, SEGV_MAPERR, SI_KERNEL};
use crate::lanes;
use crate::layout::is_address;
use crate::signal::host::{self, HostFault};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl};

impl Machine {
    /// A jump to where there is no code.
    pub(super) fn bad_jump(&self, pc: u64) -> Fault {
        if !is_address(pc) {
            // No branch came here, but what the kernel was told to go on with.
            return no_address();
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
    pub(super) fn fault(&mut self, c: &mut Context) -> Next {
        self.fault_at(c, host::take_fault())
    }

    /// The same for a fault in a unit, or on the way out of it.
    pub(super) fn fault_at(&mut self, c: &mut Context, fault: HostFault) -> Next {
        if is_wrong_return(fault.at()) {
            return self.arrived(c);
        }
        let id = self.cache.unit_at_host(fault.at());
        let Some(unit) = id.map(|id| self.cache.unit(id)) else {
            unreachable!("the handler only claims faults in the cache");
        };
        let again = self.translate_again(&unit);
        if returns(&fault, unit.start as u64, &again) {
            pop_return(c);
            return self.arrived(c);
        }
        if self.is_code_store(&fault) {
            return self.code_store(c, &fault, &unit);
        }
        if self.tracer.as_ref().is_some_and(|t| t.is_full(fault.fault.address)) {
            return self.next_chunk(c, &fault, unit.start as u64, &again.places);
        }
        Next::Stop(Stop::Fault(self.locate(c, &fault, unit.pc, unit.start as u64, &again)))
    }

    /// An indirect branch has come to the engine instead of its target, where it would have
    /// counted as a safepoint.
    pub(super) fn arrived(&mut self, c: &mut Context) -> Next {
        if !is_address(c.slots[1]) {
            let id = self.cache.unit_at_host(c.branch.into());
            let unit = self.cache.unit(id.expect("the branch was in a unit"));
            let again = self.translate_again(&unit);
            return self.strayed(c, unit.pc, unit.start as u64, &again);
        }
        c.regs.gpr[reg::RCX] = c.slots[0];
        c.regs.rip = c.slots[1];
        c.count -= 1;
        self.lane_ended(c)
    }

    /// The same for code that is in no unit.
    pub(super) fn arrived_from(
        &mut self,
        c: &mut Context,
        pc: u64,
        host: u64,
        t: &Translation,
    ) -> Next {
        let own = host..host + t.bytes.len() as u64;
        match !is_address(c.slots[1]) && own.contains(&c.branch.into()) {
            true => self.strayed(c, pc, host, t),
            false => self.arrived(c),
        }
    }

    /// An indirect branch to what cannot be an address is itself at fault, as if it had
    /// done nothing.
    fn strayed(&mut self, c: &mut Context, pc: u64, host: u64, t: &Translation) -> Next {
        c.regs.gpr[reg::RCX] = c.slots[0];
        let at = HostFault { host_pc: c.branch.into(), fault: no_address() };
        let seen = self.locate(c, &at, pc, host, t);
        let bytes = self.memory.code(c.regs.rip);
        let i = Decoder::with_ip(64, bytes, c.regs.rip, DecoderOptions::NONE).decode();
        let rsp = &mut c.regs.gpr[reg::RSP];
        match i.code() {
            Code::Retnq => *rsp -= 8,
            Code::Retnq_imm16 => *rsp -= 8 + u64::from(i.immediate16()),
            Code::Call_rm64 => *rsp += 8,
            _ => {}
        }
        c.count += i64::from(dense::branch_weight(&i)) - 1;
        Next::Stop(Stop::Fault(seen))
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
        debug_assert!(place.is_some_and(|p| p.open), "only traced code stores there");
        let tracer = self.tracer.as_mut().expect("just seen");
        c.cursor = tracer.next_chunk(c.cursor);
        Next::Host(fault.host_pc)
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
            c.regs.gpr[usize::from(register)] = c.slots[usize::from(slot)];
        }
        if let Some(register) = place.counter {
            let register = &mut c.regs.gpr[usize::from(register)];
            let count = std::mem::replace(register, c.slots[7]);
            c.put_lane(lanes::of(pc), count as i64);
        }
        if let Some(register) = place.budget {
            let register = &mut c.regs.gpr[usize::from(register)];
            c.budget = std::mem::replace(register, c.slots[3]) as i64;
        }
        if let Some(register) = place.stands {
            let register = &mut c.regs.gpr[usize::from(register)];
            c.regs.gpr[CURSOR] = std::mem::replace(register, c.slots[STANDS_SLOT]);
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
        // The same store may reach into the page beside it; it happens once.
        self.prepare_write(fault.fault.address.saturating_sub(LONGEST), 2 * LONGEST);
        if self.profile.count {
            c.budget -= 1;
        }
        // Run the storing instruction alone, so that a page that holds both the
        // store and its target makes progress.
        self.trace_one(c);
        let pc = c.regs.rip;
        let i = Decoder::with_ip(64, self.memory.code(pc), pc, DecoderOptions::NONE).decode();
        // A call stores, too.
        let ends_block = self.profile.stop_at_blocks && i.flow_control() != FlowControl::Next;
        match self.run_prefix(pc, 1) {
            Stop::Block if ends_block || self.profile.stop_at_instructions => {
                Next::Stop(Stop::Block)
            }
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

/// Bytes that most instructions store at most.
const LONGEST: u64 = 64;

fn no_address() -> Fault {
    Fault { signal: libc::SIGSEGV, code: SI_KERNEL, address: 0, trap: 13, error: 0 }
}

/// Is it the store of a return that only leaves?
pub(super) fn returns(fault: &HostFault, host: u64, t: &Translation) -> bool {
    let offset = fault.at().wrapping_sub(host) as usize;
    offset < t.bytes.len() && place_at(&t.places, offset).is_some_and(|place| place.returns)
}

/// A return whose stack slot cannot be written. The predicted way out needs that for a
/// moment, the return itself does not.
pub(super) fn pop_return(c: &mut Context) {
    c.regs.gpr[reg::RSP] += 8;
}

/// The place that a host address belongs to.
fn place_at(places: &[Place], offset: usize) -> Option<Place> {
    let n = places.partition_point(|p| p.offset as usize <= offset);
    n.checked_sub(1).map(|n| places[n])
}
