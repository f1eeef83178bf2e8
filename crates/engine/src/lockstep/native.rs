//! The traced process: guest code as the CPU itself runs it.

use crate::Error;
use crate::context::{Registers, Vectors, reg};
use crate::cpu::xsave;
use crate::layout;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// A page with a `syscall` instruction, in the engine's part of the window.
const GADGET: u64 = layout::ENGINE.end - 0x10_0000;

const NT_X86_XSTATE: usize = 0x202;
/// Trap flag: single-stepping sets it behind the guest's back.
const TRAP_FLAG: u64 = 0x100;

/// A process that stands at a guest instruction.
pub struct Native {
    pid: libc::pid_t,
    memory: File,
    /// A file without contents: a map of it answers every access with SIGBUS.
    empty: File,
    cached: Option<libc::user_regs_struct>,
}

/// How one step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The instruction (or one iteration of it) was executed.
    Done,
    /// It raised a signal.
    Signal(i32),
}

/// What the kernel tells of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raised {
    /// Number.
    pub signal: i32,
    /// `si_code`.
    pub code: i32,
    /// `si_addr`.
    pub address: u64,
}

impl Native {
    /// Forks this process; the child waits to be driven.
    pub fn fork() -> Result<Native, Error> {
        Native::try_fork().map_err(Error::io("cannot trace a child"))
    }

    fn try_fork() -> io::Result<Native> {
        stay_on_one_cpu();
        map_gadget()?;
        let empty = empty_file()?;
        // SAFETY: the caller promises that there is only this thread. The child
        // stops itself and never runs engine code again.
        let pid = unsafe {
            let pid = libc::fork();
            if pid == 0 {
                libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
                libc::raise(libc::SIGSTOP);
                libc::_exit(0);
            }
            pid
        };
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        let memory = File::options().read(true).write(true).open(format!("/proc/{pid}/mem"))?;
        let mut native = Native { pid, memory, empty, cached: None };
        native.wait()?;
        native.trace(libc::PTRACE_SETOPTIONS, 0, libc::PTRACE_O_EXITKILL as usize)?;
        Ok(native)
    }

    fn trace(&self, request: libc::c_uint, address: usize, data: usize) -> io::Result<()> {
        // SAFETY: requests are made on our own stopped child; pointers in `data`
        // are to live buffers of the caller.
        let result = unsafe { libc::ptrace(request, self.pid, address, data) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits for the next stop; the answer is its signal.
    fn wait(&mut self) -> io::Result<i32> {
        let mut status = 0;
        // SAFETY: waits for our own child.
        let got = unsafe { libc::waitpid(self.pid, &mut status, libc::__WALL) };
        if got < 0 {
            return Err(io::Error::last_os_error());
        }
        if !libc::WIFSTOPPED(status) {
            return Err(io::Error::other(format!("the traced process ended ({status:#x})")));
        }
        Ok(libc::WSTOPSIG(status))
    }

    /// Executes one instruction, or one iteration of a `rep` instruction.
    pub fn step(&mut self) -> Result<Step, Error> {
        self.resume(libc::PTRACE_SINGLESTEP).map_err(Error::io("cannot step the native program"))
    }

    fn resume(&mut self, request: libc::c_uint) -> io::Result<Step> {
        self.cached = None;
        self.trace(request, 0, 0)?;
        Ok(match self.wait()? {
            libc::SIGTRAP => Step::Done,
            signal => Step::Signal(signal),
        })
    }

    /// Runs at full speed to whichever of these addresses comes first, unless a
    /// signal comes before. `None` if there is no code at one of them.
    pub fn run_to(&mut self, stops: &[u64]) -> Result<Option<Step>, Error> {
        let mut old = Vec::with_capacity(stops.len());
        for stop in stops {
            let mut byte = [0];
            let set = self.memory.read_exact_at(&mut byte, *stop).is_ok()
                && self.memory.write_all_at(&[0xcc], *stop).is_ok();
            if !set {
                break;
            }
            old.push((*stop, byte));
        }
        let all = old.len() == stops.len();
        let step = if all { self.run_until_stop(stops).map(Some) } else { Ok(None) };
        for (stop, byte) in old.iter().rev() {
            self.write(*stop, byte)?;
        }
        let step = step.map_err(Error::io("cannot run the native program"))?;
        Ok(step)
    }

    fn run_until_stop(&mut self, stops: &[u64]) -> io::Result<Step> {
        loop {
            let step = self.resume(libc::PTRACE_CONT)?;
            if step != Step::Done {
                return Ok(step);
            }
            let mut regs = *self.raw()?;
            if stops.contains(&(regs.rip - 1)) {
                regs.rip -= 1;
                self.set_raw(regs)?;
                return Ok(step);
            }
            // A step over `popf` can leave the trap flag set.
            regs.eflags &= !TRAP_FLAG;
            self.set_raw(regs)?;
        }
    }

    /// What the last signal was about.
    pub fn raised(&mut self) -> Result<Raised, Error> {
        // SAFETY: an all-zero siginfo is valid; the kernel fills it.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        self.trace(libc::PTRACE_GETSIGINFO, 0, &raw mut info as usize)
            .map_err(Error::io("cannot ask about a signal"))?;
        // SAFETY: reading the address field of a union of plain integers.
        let address = unsafe { info.si_addr() } as u64;
        Ok(Raised { signal: info.si_signo, code: info.si_code, address })
    }

    fn raw(&mut self) -> io::Result<&libc::user_regs_struct> {
        if self.cached.is_none() {
            // SAFETY: plain integers.
            let mut regs: libc::user_regs_struct = unsafe { std::mem::zeroed() };
            self.trace(libc::PTRACE_GETREGS, 0, &raw mut regs as usize)?;
            self.cached = Some(regs);
        }
        Ok(self.cached.as_ref().expect("just read"))
    }

    fn set_raw(&mut self, regs: libc::user_regs_struct) -> io::Result<()> {
        self.trace(libc::PTRACE_SETREGS, 0, &raw const regs as usize)?;
        self.cached = Some(regs);
        Ok(())
    }

    /// Address of the next instruction.
    pub fn rip(&mut self) -> Result<u64, Error> {
        Ok(self.raw().map_err(Error::io("cannot read native registers"))?.rip)
    }

    /// Its registers, without vectors.
    pub fn registers(&mut self) -> Result<Registers, Error> {
        let raw = *self.raw().map_err(Error::io("cannot read native registers"))?;
        let mut regs = Registers {
            rip: raw.rip,
            rflags: raw.eflags & !TRAP_FLAG,
            fs: raw.fs_base,
            gs: raw.gs_base,
            ..Registers::default()
        };
        for (number, value) in general(&raw) {
            regs.gpr[number] = value;
        }
        Ok(regs)
    }

    /// Its vector state.
    pub fn vectors(&self) -> Result<Vectors, Error> {
        let area = self.xstate(832)?;
        let mut vectors = Vectors::default();
        let n = area.len().min(832);
        vectors.0[..n].copy_from_slice(&area[..n]);
        xsave::normalise(&mut vectors);
        Ok(vectors)
    }

    fn xstate(&self, len: usize) -> Result<Vec<u8>, Error> {
        let mut area = vec![0u8; len];
        let mut vector = libc::iovec { iov_base: area.as_mut_ptr().cast(), iov_len: area.len() };
        self.trace(libc::PTRACE_GETREGSET, NT_X86_XSTATE, &raw mut vector as usize)
            .map_err(Error::io("cannot read native vector registers"))?;
        area.truncate(vector.iov_len);
        Ok(area)
    }

    /// Gives it the registers of a guest thread.
    pub fn load(&mut self, regs: &Registers) -> Result<(), Error> {
        self.try_load(regs).map_err(Error::io("cannot set native registers"))?;
        let mut area = self.xstate(16384)?;
        let mut vectors = regs.vectors.clone();
        xsave::normalise(&mut vectors);
        area[..416].copy_from_slice(&vectors.0[..416]);
        area[512] |= 7;
        area[576..832].copy_from_slice(&vectors.0[576..832]);
        let mut vector = libc::iovec { iov_base: area.as_mut_ptr().cast(), iov_len: area.len() };
        self.trace(libc::PTRACE_SETREGSET, NT_X86_XSTATE, &raw mut vector as usize)
            .map_err(Error::io("cannot set native vector registers"))
    }

    /// Gives it general registers and flags; vector registers stay as they are.
    pub fn load_general(&mut self, regs: &Registers) -> Result<(), Error> {
        self.try_load(regs).map_err(Error::io("cannot set native registers"))
    }

    fn try_load(&mut self, regs: &Registers) -> io::Result<()> {
        let mut raw = *self.raw()?;
        set_general(&mut raw, &regs.gpr);
        raw.rip = regs.rip;
        raw.eflags = regs.rflags & !TRAP_FLAG;
        raw.fs_base = regs.fs;
        raw.gs_base = regs.gs;
        // Not in a system call: nothing to be restarted.
        raw.orig_rax = u64::MAX;
        self.set_raw(raw)
    }

    /// Makes a system call there. Its registers are lost.
    pub fn inject(&mut self, number: i64, args: [u64; 6]) -> Result<u64, Error> {
        self.try_inject(number, args).map_err(Error::io("cannot change the native program's maps"))
    }

    fn try_inject(&mut self, number: i64, args: [u64; 6]) -> io::Result<u64> {
        let mut raw = *self.raw()?;
        raw.rip = GADGET;
        raw.orig_rax = u64::MAX;
        raw.rax = number as u64;
        [raw.rdi, raw.rsi, raw.rdx, raw.r10, raw.r8, raw.r9] = args;
        self.set_raw(raw)?;
        self.resume(libc::PTRACE_SINGLESTEP)?;
        let result = self.raw()?.rax;
        match result as i64 {
            error @ -4095..0 => Err(io::Error::from_raw_os_error(-error as i32)),
            _ => Ok(result),
        }
    }

    /// Opens a file there; the answer is its descriptor.
    pub fn open(&mut self, path: &str) -> Result<i32, Error> {
        let at = GADGET + layout::PAGE / 2;
        self.write(at, &[path.as_bytes(), &[0]].concat())?;
        let flags = (libc::O_RDWR | libc::O_CLOEXEC) as u64;
        let fd = self.inject(libc::SYS_openat, [libc::AT_FDCWD as u64, at, flags, 0, 0, 0])?;
        Ok(fd as i32)
    }

    /// Descriptor, there and here, of a file without contents.
    pub fn empty_file(&self) -> i32 {
        self.empty.as_raw_fd()
    }

    /// Reads its memory, whatever its protection.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.memory.read_exact_at(bytes, address)
    }

    /// Writes its memory, whatever its protection.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.memory
            .write_all_at(bytes, address)
            .map_err(Error::io("cannot write the native program's memory"))
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        // SAFETY: our own child, which nobody else waits for.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, std::ptr::null_mut(), 0);
        }
    }
}

/// Both sides on one CPU: each step is then a direct switch between the two.
fn stay_on_one_cpu() {
    // SAFETY: queries and sets our own affinity in a local set. If it fails, all
    // is merely slower.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of_val(&set), &mut set) != 0 {
            return;
        }
        let allowed: Vec<usize> =
            (0..libc::CPU_SETSIZE as usize).filter(|cpu| libc::CPU_ISSET(*cpu, &set)).collect();
        // Checks that run beside each other spread by their process number.
        let cpu = allowed[std::process::id() as usize % allowed.len()];
        libc::CPU_ZERO(&mut set);
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

fn map_gadget() -> io::Result<()> {
    // SAFETY: a fixed map in the engine's own range, where nothing else is.
    unsafe {
        let page = libc::mmap(
            GADGET as *mut _,
            layout::PAGE as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        );
        if page as u64 != GADGET {
            return Err(io::Error::last_os_error());
        }
        // syscall; int3
        page.cast::<[u8; 3]>().write([0x0f, 0x05, 0xcc]);
        let rx = libc::PROT_READ | libc::PROT_EXEC;
        if libc::mprotect(page, layout::PAGE as usize, rx) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

fn empty_file() -> io::Result<File> {
    use std::os::fd::FromRawFd;
    // SAFETY: a new descriptor that nobody else owns.
    unsafe {
        let fd = libc::memfd_create(c"why-empty".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(File::from_raw_fd(crate::sys::move_high(fd)?))
    }
}

fn general(raw: &libc::user_regs_struct) -> [(usize, u64); 16] {
    [
        (reg::RAX, raw.rax),
        (reg::RCX, raw.rcx),
        (reg::RDX, raw.rdx),
        (reg::RBX, raw.rbx),
        (reg::RSP, raw.rsp),
        (reg::RBP, raw.rbp),
        (reg::RSI, raw.rsi),
        (reg::RDI, raw.rdi),
        (reg::R8, raw.r8),
        (reg::R9, raw.r9),
        (reg::R10, raw.r10),
        (reg::R11, raw.r11),
        (reg::R12, raw.r12),
        (reg::R13, raw.r13),
        (reg::R14, raw.r14),
        (reg::R15, raw.r15),
    ]
}

fn set_general(raw: &mut libc::user_regs_struct, gpr: &[u64; 16]) {
    raw.rax = gpr[reg::RAX];
    raw.rcx = gpr[reg::RCX];
    raw.rdx = gpr[reg::RDX];
    raw.rbx = gpr[reg::RBX];
    raw.rsp = gpr[reg::RSP];
    raw.rbp = gpr[reg::RBP];
    raw.rsi = gpr[reg::RSI];
    raw.rdi = gpr[reg::RDI];
    raw.r8 = gpr[reg::R8];
    raw.r9 = gpr[reg::R9];
    raw.r10 = gpr[reg::R10];
    raw.r11 = gpr[reg::R11];
    raw.r12 = gpr[reg::R12];
    raw.r13 = gpr[reg::R13];
    raw.r14 = gpr[reg::R14];
    raw.r15 = gpr[reg::R15];
}
