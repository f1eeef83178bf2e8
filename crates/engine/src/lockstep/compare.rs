//! What differs between the two sides at a stop.

use super::walk::Met;
use crate::context::{Registers, Vectors};
use crate::cpu::xsave;
use crate::guest::machine::Stop;

const NAMES: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

/// Arithmetic flags, DF and AC. The others are not the guest's to change.
const FLAGS: u64 = 0x4_0cd5;

/// Did both stop for the same reason? `rip` is where, translated and native.
pub fn stops(replay: &Stop, native: &Met, rip: (u64, u64)) -> Vec<String> {
    match (replay, native) {
        (Stop::Block, Met::Block)
        | (Stop::Safepoint, Met::Safepoint | Met::Block)
        | (Stop::Syscall, Met::Syscall)
        | (Stop::Emulate, Met::Emulate) => Vec::new(),
        (Stop::Fault(fault), Met::Fault(raised)) => {
            let ours = (fault.signal, fault.code, fault.address);
            let theirs = (raised.signal, raised.code, raised.address);
            if ours == theirs {
                return Vec::new();
            }
            vec![format!(
                "signal, code, address: translated {} {} {:#x}, native {} {} {:#x}",
                ours.0, ours.1, ours.2, theirs.0, theirs.1, theirs.2
            )]
        }
        _ => vec![format!(
            "translated code stops at {:#x} ({replay:?}), native code at {:#x} ({native:?})",
            rip.0, rip.1
        )],
    }
}

/// General registers, RIP, bases and flags.
pub fn registers(replay: &Registers, native: &Registers, dead_flags: u64) -> Vec<String> {
    let mut what = Vec::new();
    let mut check = |name: &str, ours: u64, theirs: u64| {
        if ours != theirs {
            what.push(format!("{name}: translated {ours:#x}, native {theirs:#x}"));
        }
    };
    for (n, name) in NAMES.iter().enumerate() {
        check(name, replay.gpr[n], native.gpr[n]);
    }
    check("rip", replay.rip, native.rip);
    check("fs base", replay.fs, native.fs);
    check("gs base", replay.gs, native.gs);
    let mask = FLAGS & !dead_flags;
    check("flags", replay.rflags & mask, native.rflags & mask);
    what
}

/// x87, SSE and AVX state; the native one is normalised already.
pub fn vectors(replay: &Registers, native: &Vectors) -> Vec<String> {
    let mut ours = replay.vectors.clone();
    xsave::normalise(&mut ours);
    let (ours, theirs) = (&ours.0, &native.0);
    if ours[..416] == theirs[..416] && ours[576..832] == theirs[576..832] {
        return Vec::new();
    }
    let mut what = Vec::new();
    let mut check = |name: String, range: std::ops::Range<usize>| {
        if ours[range.clone()] != theirs[range.clone()] {
            what.push(format!(
                "{name}: translated {}, native {}",
                hex(&ours[range.clone()]),
                hex(&theirs[range])
            ));
        }
    };
    check("x87 control word".into(), 0..2);
    check("x87 status word".into(), 2..4);
    check("x87 tags".into(), 4..6);
    check("mxcsr".into(), 24..28);
    for n in 0..8 {
        check(format!("st{n}"), 32 + 16 * n..42 + 16 * n);
    }
    for n in 0..16 {
        check(format!("xmm{n}"), 160 + 16 * n..176 + 16 * n);
        check(format!("ymm{n} high"), 576 + 16 * n..592 + 16 * n);
    }
    what
}

/// The number with the bytes in memory order, as a number.
fn hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().rev().map(|b| format!("{b:02x}")).collect();
    format!("0x{digits}")
}
