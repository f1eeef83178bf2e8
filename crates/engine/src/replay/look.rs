//! Looking at a replay that stands still: threads, registers, memory, maps, files.

use super::Replayer;
use crate::context::Registers;
use crate::guest::memory::Backing;
use crate::guest::task::Thread;
use serde::{Deserialize, Serialize};

/// A thread as a debugger shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Described {
    /// Our number for it.
    pub thread: Thread,
    /// The kernel's number for it, as recorded.
    pub tid: i32,
    /// Does it wait in a system call?
    pub waits: bool,
}

/// A region of guest memory, as `/proc/PID/maps` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// First address.
    pub start: u64,
    /// First address past it.
    pub end: u64,
    /// Read, write, execute.
    pub protection: [bool; 3],
    /// Shared with others?
    pub shared: bool,
    /// Offset in its file.
    pub offset: u64,
    /// Path, `[heap]`, `[stack]` or nothing.
    pub name: Vec<u8>,
}

impl Replayer {
    /// The auxiliary vector that the program was started with, as bytes.
    pub fn auxiliary_vector(&self) -> &[u8] {
        &self.process.loaded.auxv
    }

    /// The first stack pointer of the program: arguments and environment follow.
    pub fn first_stack(&self) -> u64 {
        self.process.loaded.stack
    }

    /// All threads, the running one first.
    pub fn threads(&self) -> Vec<Described> {
        let described = |(thread, task): (&Thread, &crate::guest::task::Task)| Described {
            thread: *thread,
            tid: task.tid,
            waits: self.in_call.contains_key(thread),
        };
        let mut all: Vec<Described> = self.tasks.iter().map(described).collect();
        all.sort_by_key(|d| d.thread != self.current);
        all
    }

    /// Registers of a thread.
    pub fn registers_of(&self, thread: Thread) -> Option<Registers> {
        if thread == self.current {
            let mut registers = self.registers().clone();
            registers.gs = crate::kernel::calls::gs();
            // What is in dead flags depends on how we came here.
            registers.rflags &= !self.process.machine.dead_flags();
            return Some(registers);
        }
        self.tasks.get(&thread).map(|task| (*task.regs).clone())
    }

    /// Guest memory from an address, as far as it can be read.
    pub fn peek(&self, address: u64, len: usize) -> Vec<u8> {
        let memory = &self.process.machine.memory;
        let mapped = memory.run_mapped(address, address.saturating_add(len as u64)) - address;
        let mut bytes = vec![0u8; mapped as usize];
        let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let remote = libc::iovec { iov_base: address as *mut _, iov_len: bytes.len() };
        // SAFETY: the kernel copies into our own buffer, and fails where a page is
        // not there instead of raising a signal.
        let got = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
        bytes.truncate(got.max(0) as usize);
        bytes
    }

    /// What is mapped.
    pub fn regions(&self) -> Vec<Region> {
        let memory = &self.process.machine.memory;
        let regions = memory.regions().map(|(start, r)| {
            let (offset, name) = match &r.backing {
                Backing::Anonymous => (0, Vec::new()),
                Backing::Stack => (0, b"[stack]".to_vec()),
                Backing::Heap => (0, b"[heap]".to_vec()),
                Backing::File { path, offset } => (*offset, path.clone()),
            };
            let has = |bit| r.prot & bit != 0;
            let protection = [has(libc::PROT_READ), has(libc::PROT_WRITE), has(libc::PROT_EXEC)];
            Region { start, end: r.end, protection, shared: r.shared, offset, name }
        });
        regions.collect()
    }

    /// Files the program has opened so far or was made of, with their contents' names in the
    /// recording.
    pub fn files(&self) -> Vec<(Vec<u8>, String)> {
        let opened = self.moving.opened.iter().map(|(path, id)| (path.clone(), id.clone()));
        self.images.iter().cloned().chain(opened).collect()
    }

    /// The kernel's number of the process, as recorded.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// A number that two replays at the same instant have in common: registers of
    /// all threads and all writable private memory.
    pub fn fingerprint(&self) -> u64 {
        let start = crate::hash::memory(&self.process.machine.memory);
        self.threads().iter().fold(start, |hash, described| {
            let Some(r) = self.registers_of(described.thread) else { return hash };
            let words = r.gpr.iter().chain([&r.rip, &r.rflags, &r.fs, &r.gs]);
            let seed = hash.rotate_left(7) ^ u64::from(described.thread.0);
            let hash = words.fold(seed, |hash, w| (hash ^ w).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let vectors = r.vector_registers();
            vectors
                .iter()
                .flatten()
                .fold(hash, |hash, b| (hash ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3))
        })
    }
}

impl Registers {
    fn has(&self, component: u8) -> bool {
        self.vectors.0[512] & (1 << component) != 0
    }

    /// The sixteen YMM registers. A part that the processor left out of its save
    /// area because it has its first value is zero.
    pub fn vector_registers(&self) -> [[u8; 32]; 16] {
        let v = &self.vectors.0;
        std::array::from_fn(|n| {
            let mut bytes = [0; 32];
            if self.has(1) {
                bytes[..16].copy_from_slice(&v[160 + 16 * n..176 + 16 * n]);
            }
            if self.has(2) {
                bytes[16..].copy_from_slice(&v[576 + 16 * n..592 + 16 * n]);
            }
            bytes
        })
    }

    /// The x87 registers, ten bytes each, and its control, status and tag words.
    pub fn x87(&self) -> ([[u8; 10]; 8], [u16; 3]) {
        let v = &self.vectors.0;
        if !self.has(0) {
            return ([[0; 10]; 8], [0x37f, 0, 0xffff]);
        }
        let stack = std::array::from_fn(|n| {
            v[32 + 16 * n..42 + 16 * n].try_into().expect("ten bytes of an area that has them")
        });
        let word = |at: usize| u16::from_le_bytes([v[at], v[at + 1]]);
        (stack, [word(0), word(2), full_tags(v[4], word(2), &stack)])
    }

    /// MXCSR.
    pub fn mxcsr(&self) -> u32 {
        let v = &self.vectors.0;
        u32::from_le_bytes([v[24], v[25], v[26], v[27]])
    }
}

/// Two bits for each x87 register, from the one that is saved: valid, zero, special
/// or empty.
fn full_tags(present: u8, status: u16, stack: &[[u8; 10]; 8]) -> u16 {
    let top = usize::from(status >> 11 & 7);
    (0..8).fold(0, |tags, physical| {
        let value = &stack[(physical + 8 - top) % 8];
        let exponent = u16::from_le_bytes([value[8], value[9]]) & 0x7fff;
        let tag = match (present >> physical & 1, exponent) {
            (0, _) => 3,
            (_, 0) if value[..8] == [0; 8] => 1,
            (_, 0 | 0x7fff) => 2,
            _ if value[7] & 0x80 == 0 => 2,
            _ => 0,
        };
        tags | tag << (2 * physical)
    })
}
