//! The first moments of a program: images, stack, arguments, auxiliary vector.

use super::image::{Headers, Image, ImageError};
use super::memory::{Backing, Memory};
use crate::context::{Registers, reg};
use crate::cpu;
use crate::layout;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::os::fd::RawFd;

/// All that decides a program's initial state. Kept in the recording.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Start {
    /// Path given to `execve`, as the program sees it (`AT_EXECFN`).
    #[serde(with = "crate::as_text::one")]
    pub path: Vec<u8>,
    /// Arguments.
    #[serde(with = "crate::as_text::many")]
    pub argv: Vec<Vec<u8>>,
    /// Environment.
    #[serde(with = "crate::as_text::many")]
    pub env: Vec<Vec<u8>>,
    /// Sixteen random bytes (`AT_RANDOM`).
    pub random: [u8; 16],
    /// uid, euid, gid, egid.
    pub ids: [u32; 4],
    /// Stack size limit in bytes.
    pub stack: u64,
}

/// A file to load: an open descriptor and the path the guest knows it by.
pub struct ImageFile<'a> {
    /// Open for reading.
    pub fd: RawFd,
    /// Its path.
    pub path: &'a [u8],
    /// Its first bytes, at least all headers.
    pub bytes: &'a [u8],
}

/// Where things lie in a program that was loaded.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Loaded {
    /// The program's own code.
    pub code: Range<u64>,
    /// First stack pointer.
    pub stack: u64,
    /// Strings of the arguments.
    pub arguments: Range<u64>,
    /// Strings of the environment.
    pub environment: Range<u64>,
    /// The auxiliary vector, as bytes.
    pub auxv: Vec<u8>,
}

/// Maps program, interpreter and stack, and sets the first registers.
pub fn load(
    memory: &mut Memory,
    start: &Start,
    program: &ImageFile,
    interpreter: Option<&ImageFile>,
) -> Result<(Registers, Loaded), ImageError> {
    let headers = Headers::parse(program.bytes)?;
    let image = headers.load(memory, program.fd, program.path)?;
    let interpreter = match interpreter {
        Some(file) => Some(Headers::parse(file.bytes)?.load(memory, file.fd, file.path)?),
        None => None,
    };
    let size = start.stack.clamp(1 << 17, 1 << 33);
    memory
        .map_anonymous(
            layout::STACK_TOP - size,
            size,
            libc::PROT_READ | libc::PROT_WRITE | headers.stack_prot,
            Backing::Stack,
        )
        .map_err(ImageError::Map)?;
    let mut loaded = build_stack(start, &image, interpreter.as_ref());
    let code = memory.region(image.entry).map(|(start, region)| start..region.end);
    loaded.code = code.unwrap_or_default();
    let mut regs = Registers { rflags: 0x202, ..Registers::default() };
    regs.gpr[reg::RSP] = loaded.stack;
    regs.rip = interpreter.map_or(image.entry, |i| i.entry);
    Ok((regs, loaded))
}

/// Writes strings, vectors and counts as the kernel lays them out.
fn build_stack(start: &Start, image: &Image, interpreter: Option<&Image>) -> Loaded {
    let mut stack = Stack { sp: layout::STACK_TOP - 8 };
    let execfn = stack.push_string(&start.path);
    let env: Vec<u64> = start.env.iter().rev().map(|s| stack.push_string(s)).collect();
    let environment = stack.sp..execfn;
    let argv: Vec<u64> = start.argv.iter().rev().map(|s| stack.push_string(s)).collect();
    let arguments = stack.sp..environment.start;
    let platform = stack.push_string(b"x86_64");
    stack.sp &= !15;
    let random = stack.push_bytes(&start.random);
    let [uid, euid, gid, egid] = start.ids;
    let auxv: Vec<(u64, u64)> = vec![
        (libc::AT_HWCAP, cpu::shown::shown().hwcap()),
        (libc::AT_PAGESZ, layout::PAGE),
        (libc::AT_CLKTCK, 100),
        (libc::AT_PHDR, image.phdr),
        (libc::AT_PHENT, 56),
        (libc::AT_PHNUM, image.phnum as u64),
        (libc::AT_BASE, interpreter.map_or(0, |i| i.bias)),
        (libc::AT_FLAGS, 0),
        (libc::AT_ENTRY, image.entry),
        (libc::AT_UID, uid as u64),
        (libc::AT_EUID, euid as u64),
        (libc::AT_GID, gid as u64),
        (libc::AT_EGID, egid as u64),
        (libc::AT_SECURE, 0),
        (libc::AT_RANDOM, random),
        (libc::AT_HWCAP2, 0),
        (libc::AT_EXECFN, execfn),
        (libc::AT_PLATFORM, platform),
        // Two pages, as for a CPU with AVX-512: more than our frames need.
        (51 /* AT_MINSIGSTKSZ */, 3632),
        (libc::AT_NULL, 0),
    ];
    let words = 1 + argv.len() + 1 + env.len() + 1 + auxv.len() * 2;
    stack.sp &= !15;
    if words % 2 == 1 {
        stack.sp -= 8;
    }
    for (key, value) in auxv.iter().rev() {
        stack.push(*value);
        stack.push(*key);
    }
    stack.push(0);
    for p in &env {
        stack.push(*p);
    }
    stack.push(0);
    for p in &argv {
        stack.push(*p);
    }
    stack.push(argv.len() as u64);
    let auxv = auxv.iter().flat_map(|(k, v)| [k.to_le_bytes(), v.to_le_bytes()].concat());
    let auxv = auxv.collect();
    Loaded { code: 0..0, stack: stack.sp, arguments, environment, auxv }
}

struct Stack {
    sp: u64,
}

impl Stack {
    fn push_bytes(&mut self, bytes: &[u8]) -> u64 {
        self.sp -= bytes.len() as u64;
        // SAFETY: the stack was just mapped; arguments are limited by the kernel
        // that gave them to us, to a quarter of the stack limit.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.sp as *mut u8, bytes.len());
        }
        self.sp
    }

    fn push_string(&mut self, bytes: &[u8]) -> u64 {
        self.push_bytes(&[0]);
        self.push_bytes(bytes)
    }

    fn push(&mut self, value: u64) {
        self.push_bytes(&value.to_le_bytes());
    }
}
