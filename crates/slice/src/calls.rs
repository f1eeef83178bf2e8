//! Which registers a system call looks at.

use program::effects::Cells;

/// RDI, RSI, RDX, R10, R8, R9.
const REGISTERS: [u8; 6] = [7, 6, 2, 10, 8, 9];

/// The call's number and as many argument registers as it has.
pub fn arguments(number: u32) -> Cells {
    registers(number).fold(Cells::NONE, |all, r| all.union(Cells::gpr(r, 8)))
}

/// The same, register by register.
pub fn registers(number: u32) -> impl Iterator<Item = u8> {
    std::iter::once(0).chain(REGISTERS[..count(number)].iter().copied())
}

/// How many arguments a call has; six where it is not listed.
fn count(number: u32) -> usize {
    match number {
        // sched_yield, pause, getpid, rt_sigreturn and the like
        15 | 24 | 34 | 39 | 102 | 104 | 107 | 108 | 110 | 111 | 112 | 186 => 0,
        // close, brk, dup, exit, uname, chdir, umask, exit_group, …
        3 | 12 | 22 | 32 | 37 | 60 | 63 | 74 | 75 | 80 | 81 | 84 | 87 | 95 | 99 | 100 | 201
        | 231 => 1,
        // open (its mode only matters for new files), stat, munmap, access, …
        4 | 5 | 6 | 11 | 21 | 33 | 35 | 36 | 62 | 76 | 77 | 79 | 82 | 83 | 86 | 88 | 96 | 97
        | 98 | 131 | 158 | 160 | 200 | 228 | 229 | 293 => 2,
        // read, write, open, lseek, mprotect, ioctl, readv, writev, fcntl, …
        0 | 1 | 2 | 7 | 8 | 10 | 13 | 16 | 19 | 20 | 28 | 41 | 42 | 43 | 49 | 51 | 52 | 72 | 78
        | 89 | 92 | 93 | 217 | 218 | 234 | 292 | 318 => 3,
        14 | 17 | 18 | 53 | 61 | 257 | 262 | 302 => 4,
        25 | 54 | 55 | 56 | 157 | 295 | 296 => 5,
        _ => 6,
    }
}
