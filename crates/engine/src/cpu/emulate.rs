//! Instructions the engine performs itself, because the CPU's own answer would
//! differ between runs or machines.

use super::shown::shown;
use super::xsave::{self, Image};
use crate::context::{Registers, reg};
use crate::guest::memory::Memory;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

/// A number the run cannot know by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The time-stamp counter.
    Tsc,
    /// Hardware randomness.
    Random,
}

/// How an instruction ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done; RIP is behind it.
    Done,
    /// It raises a signal: number, code, address.
    Raises(i32, i32, u64),
    /// Neither the CPU nor we can perform it faithfully.
    Unsupported(String),
}

/// Performs the instruction at RIP.
pub fn emulate(
    regs: &mut Registers,
    memory: &Memory,
    unknown: &mut dyn FnMut(Unknown) -> u64,
) -> Outcome {
    let pc = regs.rip;
    let code = memory.code(pc);
    let mut decoder = Decoder::with_ip(64, code, pc, DecoderOptions::NONE);
    let i = decoder.decode();
    if i.is_invalid() {
        return undecodable(pc, code.len(), memory);
    }
    let outcome = perform(&i, regs, memory, unknown);
    if outcome == Outcome::Done {
        regs.rip = i.next_ip();
    }
    outcome
}

/// Not an instruction, or one that runs off the executable page.
fn undecodable(pc: u64, available: usize, memory: &Memory) -> Outcome {
    if available < 15 {
        let end = pc + available as u64;
        let code = if memory.region(end).is_some() { SEGV_ACCERR } else { SEGV_MAPERR };
        return Outcome::Raises(libc::SIGSEGV, code, end);
    }
    Outcome::Raises(libc::SIGILL, ILL_ILLOPN, pc)
}

/// `si_code` values libc does not name for us.
pub const SEGV_MAPERR: i32 = 1;
/// Protection does not allow it.
pub const SEGV_ACCERR: i32 = 2;
const ILL_ILLOPN: i32 = 2;
/// Raised by the kernel without more to say.
pub const SI_KERNEL: i32 = 0x80;

fn perform(
    i: &Instruction,
    regs: &mut Registers,
    memory: &Memory,
    unknown: &mut dyn FnMut(Unknown) -> u64,
) -> Outcome {
    use Mnemonic::*;
    match i.mnemonic() {
        Cpuid => {
            let leaf = shown().cpuid(regs.gpr[reg::RAX] as u32, regs.gpr[reg::RCX] as u32);
            for (r, value) in [reg::RAX, reg::RBX, reg::RCX, reg::RDX].into_iter().zip(leaf) {
                regs.gpr[r] = value as u64;
            }
        }
        Rdtsc | Rdtscp => {
            let tsc = unknown(Unknown::Tsc);
            regs.gpr[reg::RAX] = tsc & 0xffff_ffff;
            regs.gpr[reg::RDX] = tsc >> 32;
            if i.mnemonic() == Rdtscp {
                regs.gpr[reg::RCX] = 0;
            }
        }
        Rdrand | Rdseed => {
            let value = unknown(Unknown::Random);
            set_register(regs, i.op0_register(), value);
            // CF says success; the other arithmetic flags are cleared.
            regs.rflags = (regs.rflags & !0x8d5) | 1;
        }
        Rdpid => set_register(regs, i.op0_register(), 0),
        Xgetbv if regs.gpr[reg::RCX] as u32 == 0 => {
            regs.gpr[reg::RAX] = shown().xcr0 & 0xffff_ffff;
            regs.gpr[reg::RDX] = shown().xcr0 >> 32;
        }
        Xsave | Xsave64 | Xsaveopt | Xsaveopt64 => return xsave_to_memory(i, regs, memory),
        Xrstor | Xrstor64 => return xrstor_from_memory(i, regs, memory),
        Fxsave | Fxsave64 => return fxsave(i, regs, memory),
        // Selector lookups: as if the selector were not there.
        Lsl => regs.rflags &= !0x40,
        Xgetbv | Int | Sgdt | Sidt | Sldt | Str | Smsw | Rdpmc => {
            return Outcome::Raises(libc::SIGSEGV, SI_KERNEL, 0);
        }
        // Not in the baseline, so a guest that asks CPUID never gets here.
        Xsavec | Xsavec64 | Xbegin | Xtest | Wrpkru | Rdpkru | Sysenter => {
            return Outcome::Raises(libc::SIGILL, ILL_ILLOPN, regs.rip);
        }
        _ => return Outcome::Unsupported(format!("{i}")),
    }
    Outcome::Done
}

fn set_register(regs: &mut Registers, register: Register, value: u64) {
    let slot = &mut regs.gpr[register.number()];
    *slot = match register.size() {
        2 => (*slot & !0xffff) | (value & 0xffff),
        4 => value & 0xffff_ffff,
        _ => value,
    };
}

/// Address of the instruction's memory operand.
fn address(i: &Instruction, regs: &Registers) -> Option<u64> {
    let operand = (0..i.op_count()).find(|n| i.op_kind(*n) == OpKind::Memory)?;
    i.virtual_address(operand, 0, |register, _, _| match register {
        Register::FS => Some(regs.fs),
        Register::GS => Some(regs.gs),
        Register::CS | Register::DS | Register::ES | Register::SS => Some(0),
        r if r.is_gpr64() => Some(regs.gpr[r.number()]),
        r if r.is_gpr32() => Some(regs.gpr[r.number()] & 0xffff_ffff),
        _ => None,
    })
}

fn mask(regs: &Registers) -> u64 {
    (regs.gpr[reg::RAX] & 0xffff_ffff | regs.gpr[reg::RDX] << 32) & shown().xcr0
}

fn load_image(memory: &Memory, at: u64, size: usize) -> Option<Image> {
    let mut image: Image = [0; _];
    image[..size].copy_from_slice(&memory.read(at, size)?);
    Some(image)
}

fn bad_address(at: u64) -> Outcome {
    Outcome::Raises(libc::SIGSEGV, SEGV_MAPERR, at)
}

fn xsave_to_memory(i: &Instruction, regs: &Registers, memory: &Memory) -> Outcome {
    let Some(at) = address(i, regs) else { return Outcome::Unsupported(i.to_string()) };
    if at % 64 != 0 {
        return Outcome::Raises(libc::SIGSEGV, SI_KERNEL, 0);
    }
    // Only up to the last component asked for may be touched.
    let size = xsave::size_for(mask(regs));
    let Some(mut image) = load_image(memory, at, size) else { return bad_address(at) };
    xsave::save(&regs.vectors, mask(regs), &mut image);
    if memory.write(at, &image[..size]) { Outcome::Done } else { bad_address(at) }
}

fn xrstor_from_memory(i: &Instruction, regs: &mut Registers, memory: &Memory) -> Outcome {
    let Some(at) = address(i, regs) else { return Outcome::Unsupported(i.to_string()) };
    if at % 64 != 0 {
        return Outcome::Raises(libc::SIGSEGV, SI_KERNEL, 0);
    }
    let mask = mask(regs);
    let size = xsave::size_for(mask);
    let Some(image) = load_image(memory, at, size) else { return bad_address(at) };
    xsave::restore(&mut regs.vectors, mask, &image);
    Outcome::Done
}

fn fxsave(i: &Instruction, regs: &Registers, memory: &Memory) -> Outcome {
    let Some(at) = address(i, regs) else { return Outcome::Unsupported(i.to_string()) };
    if at % 16 != 0 {
        return Outcome::Raises(libc::SIGSEGV, SI_KERNEL, 0);
    }
    let mut vectors = regs.vectors.clone();
    xsave::normalise(&mut vectors);
    if memory.write(at, &vectors.0[..416]) { Outcome::Done } else { bad_address(at) }
}
