//! The system calls, as data: what each writes, whether it may wait, and who
//! performs it.
//!
//! In replay only the [`How::Engine`] calls do anything by themselves; the memory
//! the others wrote is in the log, because recording looked it up here.

/// Memory a call writes. Numbers are argument positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Out {
    /// So many bytes at the pointer.
    Fixed(usize, u32),
    /// So many bytes at the pointer, only when the call was interrupted.
    Interrupted(usize, u32),
    /// So many bytes at the pointer, however the call ends.
    Always(usize, u32),
    /// The array of `poll`, also when the call was interrupted.
    Polled(usize, usize),
    /// As many bytes as the call returned.
    Returned(usize),
    /// So many bytes for each that the call returned.
    Each(usize, u32),
    /// As many bytes as another argument says.
    Len(usize, usize),
    /// One byte for each page of the length in another argument.
    PageEach(usize, usize),
    /// What the call returned, scattered over an I/O vector.
    Vector(usize, usize),
    /// A buffer whose length is at another pointer, before and after.
    LenAt(usize, usize),
    /// A `msghdr` that was received into.
    Message(usize),
    /// Several of them.
    Messages(usize, usize),
    /// The lengths that `sendmmsg` fills in.
    Sent(usize),
    /// A descriptor set of `select`, sized by argument 0.
    Set(usize),
    /// What `ioctl` writes, by request number.
    Ioctl,
    /// What `fcntl` writes, by command.
    Fcntl,
    /// `futex` operations that change the word themselves.
    Futex,
}

/// Who performs a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The host, at once.
    Host,
    /// The host, and it may wait: other threads run meanwhile.
    Waits,
    /// The engine.
    Engine,
    /// Nobody: ENOSYS, as an older kernel would say.
    Missing,
    /// Nobody: the run stops, because its replay would be wrong.
    Refused,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Number.
    pub number: u32,
    /// Name.
    pub name: &'static str,
    /// Who performs it.
    pub how: How,
    /// What it writes.
    pub outs: &'static [Out],
    /// May an interrupted call be restarted (`SA_RESTART`)?
    pub restarts: bool,
}

macro_rules! table {
    ($($how:ident: $($name:ident $(! $restart:ident)? $([$($out:expr),*])?),* ;)*) => {
        /// Every call we know by name.
        pub const TABLE: &[Call] = &[
            $($(row(
                libc_number::$name,
                stringify!($name),
                How::$how,
                &[$($($out),*)?],
                false $(|| stringify!($restart).len() > 0)?,
            ),)*)*
        ];
    };
}

const fn row(
    number: u32,
    name: &'static str,
    how: How,
    outs: &'static [Out],
    restarts: bool,
) -> Call {
    Call { number, name, how, outs, restarts }
}

macro_rules! numbers {
    ($($name:ident = $number:literal),* $(,)?) => {
        mod libc_number {
            $(#[allow(non_upper_case_globals)] pub const $name: u32 = $number;)*
        }
        $(
            #[allow(non_upper_case_globals, missing_docs, dead_code)]
            pub const $name: u32 = $number;
        )*
    };
}

numbers! {
    read = 0, write = 1, open = 2, close = 3, stat = 4, fstat = 5, lstat = 6, poll = 7, lseek = 8,
    mmap = 9, mprotect = 10, munmap = 11, brk = 12, rt_sigaction = 13, rt_sigprocmask = 14,
    rt_sigreturn = 15, ioctl = 16, pread64 = 17, pwrite64 = 18, readv = 19, writev = 20,
    access = 21, pipe = 22, select = 23, sched_yield = 24, mremap = 25, msync = 26, mincore = 27,
    madvise = 28, shmget = 29, shmat = 30, shmctl = 31, dup = 32, dup2 = 33, pause = 34,
    nanosleep = 35, getitimer = 36, alarm = 37, setitimer = 38, getpid = 39, sendfile = 40,
    socket = 41, connect = 42, accept = 43, sendto = 44, recvfrom = 45, sendmsg = 46,
    recvmsg = 47, shutdown = 48, bind = 49, listen = 50, getsockname = 51, getpeername = 52,
    socketpair = 53, setsockopt = 54, getsockopt = 55, clone = 56, fork = 57, vfork = 58,
    execve = 59, exit = 60, wait4 = 61, kill = 62, uname = 63, semget = 64, semop = 65,
    semctl = 66, shmdt = 67, msgget = 68, msgsnd = 69, msgrcv = 70, msgctl = 71, fcntl = 72,
    flock = 73, fsync = 74, fdatasync = 75, truncate = 76, ftruncate = 77, getdents = 78,
    getcwd = 79, chdir = 80, fchdir = 81, rename = 82, mkdir = 83, rmdir = 84, creat = 85,
    link = 86, unlink = 87, symlink = 88, readlink = 89, chmod = 90, fchmod = 91, chown = 92,
    fchown = 93, lchown = 94, umask = 95, gettimeofday = 96, getrlimit = 97, getrusage = 98,
    sysinfo = 99, times = 100, ptrace = 101, getuid = 102, syslog = 103, getgid = 104,
    setuid = 105, setgid = 106, geteuid = 107, getegid = 108, setpgid = 109, getppid = 110,
    getpgrp = 111, setsid = 112, setreuid = 113, setregid = 114, getgroups = 115,
    setgroups = 116, setresuid = 117, getresuid = 118, setresgid = 119, getresgid = 120,
    getpgid = 121, setfsuid = 122, setfsgid = 123, getsid = 124, capget = 125, capset = 126,
    rt_sigpending = 127, rt_sigtimedwait = 128, rt_sigqueueinfo = 129, rt_sigsuspend = 130,
    sigaltstack = 131, utime = 132, mknod = 133, personality = 135, ustat = 136, statfs = 137,
    fstatfs = 138, getpriority = 140, setpriority = 141, sched_setparam = 142,
    sched_getparam = 143, sched_setscheduler = 144, sched_getscheduler = 145,
    sched_get_priority_max = 146, sched_get_priority_min = 147, sched_rr_get_interval = 148,
    mlock = 149, munlock = 150, mlockall = 151, munlockall = 152, modify_ldt = 154, prctl = 157,
    arch_prctl = 158, setrlimit = 160, chroot = 161, sync = 162, gettid = 186, readahead = 187,
    setxattr = 188, lsetxattr = 189, fsetxattr = 190, getxattr = 191, lgetxattr = 192,
    fgetxattr = 193, listxattr = 194, llistxattr = 195, flistxattr = 196, removexattr = 197,
    lremovexattr = 198, fremovexattr = 199, tkill = 200, time = 201, futex = 202,
    sched_setaffinity = 203, sched_getaffinity = 204, io_setup = 206, io_destroy = 207,
    io_getevents = 208, io_submit = 209, io_cancel = 210, epoll_create = 213, getdents64 = 217,
    set_tid_address = 218, restart_syscall = 219, semtimedop = 220, fadvise64 = 221,
    timer_create = 222, timer_settime = 223, timer_gettime = 224, timer_getoverrun = 225,
    timer_delete = 226, clock_settime = 227, clock_gettime = 228, clock_getres = 229,
    clock_nanosleep = 230, exit_group = 231, epoll_wait = 232, epoll_ctl = 233, tgkill = 234,
    utimes = 235, mbind = 237, set_mempolicy = 238, get_mempolicy = 239, mq_open = 240,
    mq_unlink = 241, mq_timedsend = 242, mq_timedreceive = 243, mq_notify = 244,
    mq_getsetattr = 245, waitid = 247, add_key = 248, request_key = 249, keyctl = 250,
    ioprio_set = 251, ioprio_get = 252, inotify_init = 253, inotify_add_watch = 254,
    inotify_rm_watch = 255, openat = 257, mkdirat = 258, mknodat = 259, fchownat = 260,
    futimesat = 261, newfstatat = 262, unlinkat = 263, renameat = 264, linkat = 265,
    symlinkat = 266, readlinkat = 267, fchmodat = 268, faccessat = 269, pselect6 = 270,
    ppoll = 271, unshare = 272, set_robust_list = 273, get_robust_list = 274, splice = 275,
    tee = 276, sync_file_range = 277, vmsplice = 278, move_pages = 279, utimensat = 280,
    epoll_pwait = 281, signalfd = 282, timerfd_create = 283, eventfd = 284, fallocate = 285,
    timerfd_settime = 286, timerfd_gettime = 287, accept4 = 288, signalfd4 = 289, eventfd2 = 290,
    epoll_create1 = 291, dup3 = 292, pipe2 = 293, inotify_init1 = 294, preadv = 295,
    pwritev = 296, rt_tgsigqueueinfo = 297, perf_event_open = 298, recvmmsg = 299,
    fanotify_init = 300, prlimit64 = 302, name_to_handle_at = 303, open_by_handle_at = 304,
    clock_adjtime = 305, syncfs = 306, sendmmsg = 307, setns = 308, getcpu = 309,
    process_vm_readv = 310, process_vm_writev = 311, kcmp = 312, sched_setattr = 314,
    sched_getattr = 315, renameat2 = 316, seccomp = 317, getrandom = 318, memfd_create = 319,
    bpf = 321, execveat = 322, userfaultfd = 323, membarrier = 324, mlock2 = 325,
    copy_file_range = 326, preadv2 = 327, pwritev2 = 328, pkey_mprotect = 329, pkey_alloc = 330,
    pkey_free = 331, statx = 332, io_pgetevents = 333, rseq = 334, pidfd_send_signal = 424,
    io_uring_setup = 425, io_uring_enter = 426, io_uring_register = 427, pidfd_open = 434,
    clone3 = 435, close_range = 436, openat2 = 437, pidfd_getfd = 438, faccessat2 = 439,
    process_madvise = 440, epoll_pwait2 = 441, landlock_create_ruleset = 444,
    memfd_secret = 447, futex_waitv = 449, fchmodat2 = 452, map_shadow_stack = 453,
}

use Out::*;

table! {
    Engine: mmap, mprotect, munmap, brk, mremap, madvise, rt_sigaction, rt_sigprocmask,
        rt_sigreturn, sigaltstack, arch_prctl, set_tid_address, set_robust_list,
        get_robust_list, clone, fork, vfork, execve, execveat, exit, exit_group, open, openat, openat2,
        creat, close, close_range, dup, dup2, dup3, readlink, readlinkat, getrlimit, setrlimit,
        prlimit64, prctl, sendfile, chdir, fchdir, personality, getdents, getdents64;

    Host: lseek, access, mincore[PageEach(2, 1)], getitimer[Fixed(1, 32)], alarm,
        setitimer[Fixed(2, 32)], getpid, socket, bind, listen,
        getsockname[LenAt(1, 2)], getpeername[LenAt(1, 2)], setsockopt,
        getsockopt[LenAt(3, 4)], kill, tkill, tgkill, rt_sigqueueinfo, rt_tgsigqueueinfo,
        uname[Fixed(0, 390)], stat[Fixed(1, 144)], fstat[Fixed(1, 144)], lstat[Fixed(1, 144)],
        newfstatat[Fixed(2, 144)], statx[Fixed(4, 256)], pipe[Fixed(0, 8)], pipe2[Fixed(0, 8)],
        socketpair[Fixed(3, 8)], truncate, ftruncate,
        getcwd[Returned(0)], rename, mkdir, rmdir, link, unlink, symlink, chmod,
        fchmod, chown, fchown, lchown, umask, gettimeofday[Fixed(0, 16), Fixed(1, 8)],
        getrusage[Fixed(1, 144)], sysinfo[Fixed(0, 112)], times[Fixed(0, 32)], getuid, getgid,
        setuid, setgid, geteuid, getegid, setpgid, getppid, getpgrp, setsid, setreuid, setregid,
        getgroups[Each(1, 4)], setgroups, setresuid,
        getresuid[Fixed(0, 4), Fixed(1, 4), Fixed(2, 4)], setresgid,
        getresgid[Fixed(0, 4), Fixed(1, 4), Fixed(2, 4)], getpgid, setfsuid, setfsgid, getsid,
        capget[Always(0, 4), Fixed(1, 24)], capset, rt_sigpending[Len(0, 1)], utime, mknod,
        statfs[Fixed(1, 120)], fstatfs[Fixed(1, 120)], getpriority, setpriority, sched_setparam,
        sched_getparam[Fixed(1, 4)], sched_setscheduler, sched_getscheduler,
        sched_get_priority_max, sched_get_priority_min, sched_rr_get_interval[Fixed(1, 16)],
        mlock, munlock, mlockall, munlockall, mlock2, sync, gettid, readahead, setxattr,
        lsetxattr, fsetxattr, getxattr[Returned(2)], lgetxattr[Returned(2)],
        fgetxattr[Returned(2)], listxattr[Returned(1)], llistxattr[Returned(1)],
        flistxattr[Returned(1)], removexattr, lremovexattr, fremovexattr, time[Fixed(0, 8)],
        sched_setaffinity, sched_getaffinity[Returned(2)], epoll_create,
        fadvise64, timer_create[Fixed(2, 4)], timer_settime[Fixed(3, 32)],
        timer_gettime[Fixed(1, 32)], timer_getoverrun, timer_delete,
        clock_gettime[Fixed(1, 16)], clock_getres[Fixed(1, 16)], epoll_ctl, utimes,
        ioprio_set, ioprio_get, inotify_init, inotify_add_watch, inotify_rm_watch, mkdirat,
        mknodat, fchownat, futimesat, unlinkat, renameat, renameat2, linkat, symlinkat,
        fchmodat, fchmodat2, faccessat, faccessat2, sync_file_range, utimensat, signalfd,
        signalfd4, timerfd_create, timerfd_settime[Fixed(3, 32)], timerfd_gettime[Fixed(1, 32)],
        eventfd, eventfd2, fallocate, epoll_create1, inotify_init1, syncfs,
        getcpu[Fixed(0, 4), Fixed(1, 4)], getrandom[Returned(0)], memfd_create, membarrier,
        msync, sched_getattr[Len(1, 2)], sched_setattr, shutdown, get_mempolicy[Fixed(0, 4)], set_mempolicy,
        mbind, ustat[Fixed(1, 32)], fdatasync, fsync, clock_adjtime[Fixed(1, 208)],
        pidfd_open, pidfd_send_signal, kcmp;

    Waits: fcntl!yes[Fcntl], sched_yield, read!yes[Returned(1)], write!yes, pread64!yes[Returned(1)], pwrite64!yes,
        readv!yes[Vector(1, 2)], writev!yes, preadv!yes[Vector(1, 2)], pwritev!yes,
        preadv2!yes[Vector(1, 2)], pwritev2!yes, poll[Polled(0, 1)],
        ppoll[Polled(0, 1), Always(2, 16)],
        select[Set(1), Set(2), Set(3), Always(4, 16)],
        pselect6[Set(1), Set(2), Set(3), Always(4, 16)],
        pause, nanosleep[Interrupted(1, 16)], clock_nanosleep[Interrupted(3, 16)],
        connect!yes, accept!yes[LenAt(1, 2)], accept4!yes[LenAt(1, 2)], sendto!yes,
        recvfrom!yes[Returned(1), LenAt(4, 5)], sendmsg!yes, sendmmsg!yes[Sent(1)], recvmsg!yes[Message(1)],
        recvmmsg!yes[Messages(1, 2), Fixed(4, 16)], wait4!yes[Fixed(1, 4), Fixed(3, 144)],
        waitid!yes[Fixed(2, 128), Fixed(4, 144)], flock!yes, futex!yes[Futex],
        rt_sigtimedwait[Fixed(1, 128)], rt_sigsuspend, epoll_wait[Each(1, 12)],
        epoll_pwait[Each(1, 12)], epoll_pwait2[Each(1, 12)], splice!yes[Fixed(1, 8), Fixed(3, 8)], tee!yes,
        copy_file_range[Fixed(1, 8), Fixed(3, 8)], ioctl!yes[Ioctl],
        mq_open, mq_unlink, mq_timedsend, mq_timedreceive[Returned(1), Fixed(3, 4)], mq_notify,
        mq_getsetattr[Fixed(2, 64)], msgget, msgsnd, msgrcv[Returned(1)], semget, semop,
        semtimedop;

    Missing: msgctl, semctl, shmget, shmat, shmctl, shmdt, io_setup, io_destroy, io_getevents, io_submit,
        io_cancel, io_pgetevents, io_uring_setup, io_uring_enter, io_uring_register, rseq,
        clone3, perf_event_open, bpf, userfaultfd, seccomp, vmsplice,
        move_pages, process_vm_readv, process_vm_writev, pidfd_getfd, process_madvise,
        add_key, request_key, keyctl, memfd_secret, futex_waitv, pkey_mprotect, pkey_alloc,
        pkey_free, landlock_create_ruleset, map_shadow_stack, modify_ldt, unshare, setns,
        fanotify_init, name_to_handle_at, open_by_handle_at, clock_settime, restart_syscall,
        chroot, syslog;

    Refused: ptrace;
}

/// Which arguments of a call are descriptors (or `AT_FDCWD`).
#[allow(non_upper_case_globals)]
pub fn descriptor_arguments(number: u32) -> &'static [usize] {
    match number {
        read | write | fstat | lseek | ioctl | pread64 | pwrite64 | readv | writev | preadv
        | pwritev | preadv2 | pwritev2 | fcntl | flock | fsync | fdatasync | ftruncate
        | getdents | getdents64 | fchdir | fchmod | fchown | fstatfs | fadvise64 | fallocate
        | readahead | sync_file_range | syncfs | close | dup | connect | accept | accept4
        | sendto | recvfrom | sendmsg | recvmsg | sendmmsg | recvmmsg | shutdown | bind
        | listen | getsockname | getpeername | setsockopt | getsockopt | fsetxattr | fgetxattr
        | flistxattr | fremovexattr | epoll_wait | epoll_pwait | epoll_pwait2 | timerfd_settime
        | timerfd_gettime | inotify_add_watch | inotify_rm_watch | signalfd | signalfd4
        | openat | openat2 | mkdirat | mknodat | fchownat | futimesat | newfstatat | unlinkat
        | readlinkat | fchmodat | fchmodat2 | faccessat | faccessat2 | utimensat | statx
        | mq_timedsend | mq_timedreceive | mq_notify | mq_getsetattr | pidfd_send_signal
        | execveat => &[0],
        dup2 | dup3 | tee | sendfile => &[0, 1],
        splice | copy_file_range | epoll_ctl | renameat | renameat2 | linkat => &[0, 2],
        symlinkat => &[1],
        mmap => &[4],
        _ => &[],
    }
}

/// Which argument of a call is the path it looks up first.
#[allow(non_upper_case_globals)]
pub fn path_argument(number: u32) -> Option<usize> {
    match number {
        stat | lstat | access | readlink | statfs | getxattr | lgetxattr | listxattr
        | llistxattr | chdir | truncate | chmod | chown | lchown | utime | utimes => Some(0),
        newfstatat | faccessat | faccessat2 | statx | readlinkat | utimensat | fchmodat
        | fchmodat2 | fchownat => Some(1),
        _ => None,
    }
}

/// May the calling thread have other rights after the call?
#[allow(non_upper_case_globals)]
pub fn changes_credentials(number: u32) -> bool {
    matches!(
        number,
        setuid
            | setgid
            | setreuid
            | setregid
            | setresuid
            | setresgid
            | setgroups
            | setfsuid
            | setfsgid
            | capset
    )
}

/// Does the call return a new descriptor?
#[allow(non_upper_case_globals)]
pub fn gives_descriptor(number: u32) -> bool {
    matches!(
        number,
        open | openat
            | openat2
            | creat
            | dup
            | socket
            | accept
            | accept4
            | epoll_create
            | epoll_create1
            | eventfd
            | eventfd2
            | timerfd_create
            | inotify_init
            | inotify_init1
            | memfd_create
            | mq_open
            | pidfd_open
    )
}

/// How a call is performed, in words, for the documentation.
pub fn words(how: How) -> &'static str {
    match how {
        How::Host => "by the kernel; results and memory written are in the log",
        How::Waits => "by the kernel, other threads run meanwhile; likewise in the log",
        How::Engine => "by the engine, again in every replay",
        How::Missing => "not offered: ENOSYS",
        How::Refused => "stops the run",
    }
}

/// Why a call is not offered; None if it is.
#[allow(non_upper_case_globals)]
pub fn missing_because(call: &Call) -> Option<&'static str> {
    if call.how != How::Missing {
        return None;
    }
    Some(match call.number {
        io_setup | io_destroy | io_getevents | io_submit | io_cancel | io_pgetevents
        | io_uring_setup | io_uring_enter | io_uring_register | userfaultfd | vmsplice => {
            "the kernel would change memory at a moment that no log holds"
        }
        rseq | restart_syscall => "the kernel would change where the program goes on",
        shmget | shmat | shmctl | shmdt => {
            "memory shared with processes that are not recorded; maps of files are offered"
        }
        msgctl | semctl => "what it writes depends on its command",
        process_vm_readv | process_vm_writev | process_madvise | move_pages | pidfd_getfd => {
            "it reaches into other processes"
        }
        clone3 => "`clone` is asked for instead, by every C library",
        futex_waitv => "the engine knows the older `futex`, which programs fall back to",
        seccomp | landlock_create_ruleset => "a filter would bind the recorder too",
        pkey_mprotect | pkey_alloc | pkey_free | map_shadow_stack | modify_ldt | memfd_secret => {
            "the processor shown has nothing of the kind"
        }
        _ => "it concerns the machine, not the program",
    })
}

/// The row of a call; calls we do not know are missing.
pub fn call(number: u64) -> Call {
    let found = usize::try_from(number).ok().and_then(|n| INDEX.get(n)).copied().flatten();
    match found {
        Some(i) => TABLE[i as usize],
        None => Call {
            number: number as u32,
            name: "unknown",
            how: How::Missing,
            outs: &[],
            restarts: false,
        },
    }
}

const INDEX: [Option<u16>; 512] = index();

const fn index() -> [Option<u16>; 512] {
    let mut index = [None; 512];
    let mut i = 0;
    while i < TABLE.len() {
        index[TABLE[i].number as usize] = Some(i as u16);
        i += 1;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_has_one_row() {
        let mut seen = std::collections::HashSet::new();
        for call in TABLE {
            assert!(seen.insert(call.number), "{} stands twice", call.name);
        }
    }

    #[test]
    fn a_row_is_found_by_its_number() {
        assert_eq!(call(0).name, "read");
        assert_eq!(call(231).name, "exit_group");
        assert_eq!(call(9999).how, How::Missing);
    }
}
