//! The second wall around a trial: a filter on the system calls of its process.
//!
//! The first wall is the engine, which passes nothing on. Should a trial ever get
//! past it, the kernel kills it at the first call that could be felt outside.

use std::io;

const LOAD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_SET: u16 = 0x45;
const RETURN: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const KILL: u32 = 0x8000_0000;
const X86_64: u32 = 0xc000_003e;

/// What a trial's process may ask of the kernel: memory, signals of its own, its
/// result, its end.
const ALLOWED: &[i64] = &[
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigprocmask,
    libc::SYS_write,
    libc::SYS_close,
    libc::SYS_exit_group,
    libc::SYS_fstat,
    libc::SYS_pread64,
    libc::SYS_lseek,
    libc::SYS_statx,
    libc::SYS_futex,
    // For the fork that tries out what a child of the guest would do.
    libc::SYS_wait4,
    // The standard library looks at a descriptor before it closes it, where
    // assertions are on.
    #[cfg(debug_assertions)]
    libc::SYS_fcntl,
];

/// What all trials of this process need before [`raise`].
pub fn prepare() {
    // SAFETY: only takes rights away. Should it fail, so will `raise`.
    unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
}

/// Writes go to the result alone, because every other descriptor is closed to it or
/// was opened for reading; files are opened for reading only.
pub fn raise() -> io::Result<()> {
    let mut program = vec![
        op(LOAD, 0, 0, 4),
        op(JUMP_EQUAL, 1, 0, X86_64),
        op(RETURN, 0, 0, KILL),
        op(LOAD, 0, 0, 0),
    ];
    for call in ALLOWED {
        program.push(op(JUMP_EQUAL, 0, 1, *call as u32));
        program.push(op(RETURN, 0, 0, ALLOW));
    }
    // ioctl: only to ask which pages of its own there are, by the second argument.
    program.push(op(JUMP_EQUAL, 0, 4, libc::SYS_ioctl as u32));
    program.push(op(LOAD, 0, 0, 24));
    program.push(op(JUMP_EQUAL, 0, 1, crate::pages::PAGEMAP_SCAN as u32));
    program.push(op(RETURN, 0, 0, ALLOW));
    program.push(op(RETURN, 0, 0, KILL));
    // clone: only a copy of this process, under the same filter; prctl: only to end with it.
    for (call, argument) in
        [(libc::SYS_clone, libc::SIGCHLD), (libc::SYS_prctl, libc::PR_SET_PDEATHSIG)]
    {
        program.push(op(JUMP_EQUAL, 0, 4, call as u32));
        program.push(op(LOAD, 0, 0, 16));
        program.push(op(JUMP_EQUAL, 0, 1, argument as u32));
        program.push(op(RETURN, 0, 0, ALLOW));
        program.push(op(RETURN, 0, 0, KILL));
    }
    // openat: the flags are the third argument.
    let writing = (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC) as u32;
    program.push(op(JUMP_EQUAL, 0, 4, libc::SYS_openat as u32));
    program.push(op(LOAD, 0, 0, 32));
    program.push(op(JUMP_SET, 0, 1, writing));
    program.push(op(RETURN, 0, 0, KILL));
    program.push(op(RETURN, 0, 0, ALLOW));
    program.push(op(RETURN, 0, 0, KILL));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: installs a filter from our own memory; it only takes rights away.
    let done = unsafe { libc::syscall(libc::SYS_seccomp, 1, 0, &raw const filter) == 0 };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn op(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}
