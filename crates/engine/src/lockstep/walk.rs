//! The native side's own idea of where to stop.
//!
//! It decodes each instruction before it steps over it, so it finds the ends of
//! blocks, safepoints, system calls and instructions the engine performs without
//! being told by the replay; that both sides stop for the same reason is part of
//! the check.
//!
//! A stretch of straight code is stepped through instruction by instruction the
//! first times it is met. Later, breakpoints save most of the steps (a step costs
//! several times as much where a hypervisor stands behind the debug registers).

use super::native::{Native, Raised, Step};
use crate::Error;
use crate::code::flags;
use crate::code::translate::{leaks_instruction_pointer, must_emulate};
use crate::context::Registers;
use crate::guest::machine::Machine;
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

/// Instructions shown when something differs.
const LISTED: usize = 24;
/// `si_code` of a trap that single-stepping made.
const TRAP_TRACE: i32 = 2;
/// `si_code` of a breakpoint of ours.
const TRAP_BRKPT: i32 = 1;

/// How often a block is stepped through before breakpoints may be used.
const STEPPED: u32 = 2;
/// Straight code shorter than this is always stepped through.
const WORTHWHILE: usize = 2;
/// Longest stretch, in instructions.
const LONGEST: usize = 200;

/// Where the native side shall stop, if nothing stops it before.
pub struct Goal {
    /// Behind the instruction that ends at this address.
    pub block_end: Option<u64>,
    /// After so many safepoints.
    pub safepoints: i64,
}

/// What stopped it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// The end of the block.
    Block,
    /// The last safepoint wanted.
    Safepoint,
    /// The next instruction is `syscall`.
    Syscall,
    /// The next instruction is one that the engine performs.
    Emulate,
    /// The next instruction raised a signal.
    Fault(Raised),
    /// Bytes that the engine cannot decode, but the CPU executes.
    Undecoded,
}

/// How far a block was run at full speed.
enum Did {
    /// Not at all, or to its last instruction.
    Nothing,
    /// Over the branch at its end.
    All(Instruction),
    /// To an instruction that raised a signal.
    Raised(Raised),
}

/// Where execution came to by a branch.
#[derive(Default)]
struct Head {
    /// How often.
    met: u32,
    /// The straight code there, once it is wanted.
    code: Option<Rc<Vec<Instruction>>>,
}

/// The walk of the native side.
pub struct Walk {
    /// Instructions executed so far.
    pub executed: u64,
    known: HashMap<u64, Instruction>,
    heads: HashMap<u64, Head>,
    recent: VecDeque<Instruction>,
    /// Flags that translated code may have changed because the guest overwrites
    /// them before it reads them.
    dead: u32,
}

impl Walk {
    /// At the first instruction.
    pub fn new() -> Walk {
        Walk {
            executed: 0,
            known: HashMap::new(),
            heads: HashMap::new(),
            recent: VecDeque::new(),
            dead: 0,
        }
    }

    /// The guest's code may have changed.
    pub fn forget_code(&mut self) {
        self.known.clear();
        self.heads.clear();
    }

    /// Both sides have the same flags again.
    pub fn flags_are_exact(&mut self) {
        self.dead = 0;
    }

    /// Flags that need not agree here.
    pub fn dead_flags(&self) -> u64 {
        flags::as_rflags(self.dead)
    }

    /// The engine cleared all flags that are dead here. No others may be off.
    pub fn flags_were_settled(&mut self, machine: &Machine, rip: u64) {
        self.dead = flags::dead_flags(rip, &|pc| machine.memory.code(pc));
    }

    /// The last instructions executed.
    pub fn listing(&self) -> Vec<String> {
        self.recent.iter().map(|i| format!("{:#x}  {i}", i.ip())).collect()
    }

    /// Steps to the goal.
    pub fn run(
        &mut self,
        native: &mut Native,
        machine: &Machine,
        goal: &Goal,
    ) -> Result<Met, Error> {
        let mut left = goal.safepoints;
        self.recent.clear();
        let mut at_head = true;
        loop {
            let did = if at_head { self.run_block(native, machine, goal)? } else { Did::Nothing };
            let i = match did {
                Did::Raised(raised) => return Ok(Met::Fault(raised)),
                Did::All(branch) => branch,
                Did::Nothing => match self.one(native, machine)? {
                    Ok(i) => i,
                    Err(met) => return Ok(met),
                },
            };
            self.count(&i);
            at_head = i.flow_control() != FlowControl::Next;
            let next = native.rip()?;
            if passes_safepoint(&i, next) {
                left -= 1;
                self.note_dead_flags(next, machine);
                if left == 0 {
                    return Ok(Met::Safepoint);
                }
            }
            if goal.block_end == Some(i.next_ip()) {
                return Ok(Met::Block);
            }
        }
    }

    /// Executes one instruction, unless there is something about it.
    fn one(
        &mut self,
        native: &mut Native,
        machine: &Machine,
    ) -> Result<Result<Instruction, Met>, Error> {
        let ip = native.rip()?;
        let i = self.decode(native, machine, ip);
        if i.mnemonic() == Mnemonic::Syscall {
            return Ok(Err(Met::Syscall));
        }
        if i.is_invalid() && !machine.memory.code(ip).is_empty() {
            return Ok(Err(match native.step()? {
                Step::Signal(_) => Met::Emulate,
                Step::Done => Met::Undecoded,
            }));
        }
        if !i.is_invalid() && engine_performs(&i) {
            return Ok(Err(Met::Emulate));
        }
        Ok(match execute(native, &i)? {
            Some(raised) => {
                self.list(&i);
                Err(Met::Fault(raised))
            }
            None => Ok(i),
        })
    }

    /// An instruction was executed.
    fn count(&mut self, i: &Instruction) {
        self.list(i);
        self.executed += 1;
        self.dead &= !flags::always_written(i);
    }

    fn list(&mut self, i: &Instruction) {
        if self.recent.len() == LISTED {
            self.recent.pop_front();
        }
        self.recent.push_back(*i);
    }

    /// Runs a block at full speed if it has been stepped through before: up to its
    /// last instruction, and over it if it is a direct branch.
    fn run_block(
        &mut self,
        native: &mut Native,
        machine: &Machine,
        goal: &Goal,
    ) -> Result<Did, Error> {
        if machine.watches_code() {
            return Ok(Did::Nothing);
        }
        let ip = native.rip()?;
        let Some(code) = self.stretch(machine, ip) else { return Ok(Did::Nothing) };
        // The block may end sooner.
        let ends = |i: &Instruction| Some(i.next_ip()) == goal.block_end;
        let n = code.iter().position(ends).unwrap_or(code.len());
        let end = n.checked_sub(1).map_or(ip, |n| code[n].next_ip());
        let last = self.decode(native, machine, end);
        let branch = branch_targets(&last, ip).filter(|_| n == code.len());
        let step = match &branch {
            Some(targets) => native.run_to(targets)?,
            None if n >= WORTHWHILE => native.run_to(&[end])?,
            None => None,
        };
        let Some(step) = step else { return Ok(Did::Nothing) };
        let at = native.rip()?;
        let raised = step != Step::Done;
        for i in code[..n].iter().take_while(|i| !raised || i.ip() != at) {
            self.count(i);
        }
        Ok(match (step, branch) {
            (Step::Signal(_), _) => Did::Raised(native.raised()?),
            (Step::Done, Some(_)) => Did::All(last),
            (Step::Done, None) => Did::Nothing,
        })
    }

    /// The straight code at an address, if it was stepped through often enough.
    fn stretch(&mut self, machine: &Machine, ip: u64) -> Option<Rc<Vec<Instruction>>> {
        let head = self.heads.entry(ip).or_default();
        head.met += 1;
        if head.met <= STEPPED {
            return None;
        }
        let code = head.code.get_or_insert_with(|| {
            let decoder = Decoder::with_ip(64, machine.memory.code(ip), ip, DecoderOptions::NONE);
            Rc::new(decoder.into_iter().take_while(is_straight).take(LONGEST).collect())
        });
        Some(code.clone())
    }

    fn note_dead_flags(&mut self, target: u64, machine: &Machine) {
        let fetch = |pc| machine.memory.code(pc);
        if flags::dead_at(target, &fetch) {
            self.dead = flags::ARITHMETIC;
        }
    }

    fn decode(&mut self, native: &Native, machine: &Machine, ip: u64) -> Instruction {
        if machine.watches_code() {
            // The replay is ahead and may have changed the code already.
            let mut bytes = [0; 15];
            let n = (1..=15).rev().find(|n| native.read(ip, &mut bytes[..*n]).is_ok());
            let code = &bytes[..n.unwrap_or(0).min(machine.memory.code(ip).len())];
            return Decoder::with_ip(64, code, ip, DecoderOptions::NONE).decode();
        }
        *self.known.entry(ip).or_insert_with(|| {
            Decoder::with_ip(64, machine.memory.code(ip), ip, DecoderOptions::NONE).decode()
        })
    }
}

/// Where a direct branch at the end of the block at `head` goes, if a breakpoint
/// there does not lie in the block itself.
fn branch_targets(i: &Instruction, head: u64) -> Option<Vec<u64>> {
    if i.is_invalid() || engine_performs(i) || i.op0_kind() != OpKind::NearBranch64 {
        return None;
    }
    let mut targets = vec![i.near_branch_target()];
    if i.flow_control() == FlowControl::ConditionalBranch {
        targets.push(i.next_ip());
    }
    let block = head..i.next_ip();
    targets.iter().all(|target| !block.contains(target)).then_some(targets)
}

/// Nothing special about it?
fn is_straight(i: &Instruction) -> bool {
    !i.is_invalid()
        && i.flow_control() == FlowControl::Next
        && !engine_performs(i)
        && !i.is_string_instruction()
        && !leaks_instruction_pointer(i)
        && !is_push_flags(i)
}

/// Executes the instruction at RIP, all iterations of it.
fn execute(native: &mut Native, i: &Instruction) -> Result<Option<Raised>, Error> {
    let environment = if leaks_instruction_pointer(i) || is_push_flags(i) {
        Some(native.registers()?)
    } else {
        None
    };
    let repeats = i.has_rep_prefix() || i.has_repne_prefix();
    loop {
        let run = if repeats && i.is_string_instruction() {
            native.run_to(&[i.next_ip()])?
        } else {
            None
        };
        let step = match run {
            Some(step) => step,
            None => native.step()?,
        };
        if let Step::Signal(_) = step {
            return native.raised().map(Some);
        }
        if may_trap(i) {
            let raised = native.raised()?;
            if raised.code != TRAP_TRACE && raised.code != TRAP_BRKPT {
                return Ok(Some(raised));
            }
        }
        if !repeats || native.rip()? != i.ip() {
            break;
        }
    }
    if let Some(before) = environment {
        normalise_stores(native, i, &before)?;
    }
    Ok(None)
}

/// What these instructions store differs by intention: the trap flag that
/// single-stepping sets, and the x87 pointers that translated code clears.
fn normalise_stores(native: &mut Native, i: &Instruction, before: &Registers) -> Result<(), Error> {
    if is_push_flags(i) {
        let at = native.registers()?.gpr[4] + 1;
        let mut byte = [0];
        if native.read(at, &mut byte).is_ok() {
            native.write(at, &[byte[0] & !1])?;
        }
        return Ok(());
    }
    let address = i.virtual_address(0, 0, |register, _, _| match register {
        Register::FS => Some(before.fs),
        Register::GS => Some(before.gs),
        Register::CS | Register::DS | Register::ES | Register::SS => Some(0),
        r if r.is_gpr64() => Some(before.gpr[r.number()]),
        r if r.is_gpr32() => Some(before.gpr[r.number()] & 0xffff_ffff),
        _ => None,
    });
    match address {
        // FIP, FCS and FOP, FDP, FDS.
        Some(at) => native.write(at + 12, &[0; 16]),
        None => Ok(()),
    }
}

fn is_push_flags(i: &Instruction) -> bool {
    matches!(i.mnemonic(), Mnemonic::Pushf | Mnemonic::Pushfd | Mnemonic::Pushfq)
}

fn may_trap(i: &Instruction) -> bool {
    matches!(i.mnemonic(), Mnemonic::Int3 | Mnemonic::Int1 | Mnemonic::Int | Mnemonic::Into)
}

/// Instructions at which translated code asks the engine.
pub fn engine_performs(i: &Instruction) -> bool {
    match i.flow_control() {
        FlowControl::UnconditionalBranch | FlowControl::Call => {
            i.op0_kind() != OpKind::NearBranch64
        }
        FlowControl::IndirectBranch | FlowControl::IndirectCall => {
            !matches!(i.code(), Code::Jmp_rm64 | Code::Call_rm64)
        }
        FlowControl::Return => !matches!(i.code(), Code::Retnq | Code::Retnq_imm16),
        FlowControl::XbeginXabortXend => true,
        _ => must_emulate(i),
    }
}

/// Was a safepoint passed on the way from the instruction to `next`? The rule is
/// that of `code::translate`: direct jumps that do not go forward, indirect jumps
/// and calls, returns.
fn passes_safepoint(i: &Instruction, next: u64) -> bool {
    match i.flow_control() {
        FlowControl::UnconditionalBranch => next <= i.ip(),
        FlowControl::ConditionalBranch => next <= i.ip() && next == i.near_branch_target(),
        FlowControl::IndirectBranch | FlowControl::IndirectCall | FlowControl::Return => true,
        _ => false,
    }
}
