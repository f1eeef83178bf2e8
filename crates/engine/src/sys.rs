//! System calls the engine makes for itself, kept out of the guest's sight.

use std::io;
use std::ops::Range;
use std::sync::OnceLock;

/// Engine descriptors start here; the guest's limit is kept below.
const FIRST_ENGINE_FD: i32 = 1000;

/// Moves one of the engine's descriptors out of the range guests use.
pub fn move_high(fd: i32) -> io::Result<i32> {
    // SAFETY: plain descriptor calls.
    unsafe {
        let high = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, first_engine_fd());
        let error = io::Error::last_os_error();
        libc::close(fd);
        if high < 0 { Err(error) } else { Ok(high) }
    }
}

/// A raw system call: the kernel's answer with errors as small negatives.
///
/// # Safety
/// As the system call itself.
pub unsafe fn raw(nr: u64, args: [u64; 6]) -> i64 {
    let result: i64;
    // SAFETY: the caller vouches for the call; the clobbers are the ABI's.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") nr as i64 => result,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2],
            in("r10") args[3], in("r8") args[4], in("r9") args[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    result
}

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

static FIRST: AtomicI32 = AtomicI32::new(FIRST_ENGINE_FD);

/// Most descriptors the engine itself has open at once.
const ENGINE_FDS: i32 = 64;

/// First descriptor of the engine's range.
pub fn first_engine_fd() -> i32 {
    FIRST.load(Ordering::Relaxed)
}

/// Descriptors of the engine's range that were open before it began.
static INHERITED: AtomicU64 = AtomicU64::new(0);

/// The engine's range may hold what the guest inherits.
fn note_inherited(first: i32) {
    // SAFETY: asking for flags changes nothing.
    let is_open = |fd: i32| unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 };
    let open = (0..ENGINE_FDS).filter(|n| is_open(first + n));
    INHERITED.store(open.fold(0, |set, n| set | 1 << n), Ordering::Relaxed);
}

/// Is it an open descriptor of the engine?
pub fn is_engine_fd(fd: i32) -> bool {
    let first = first_engine_fd();
    let inherited = INHERITED.load(Ordering::Relaxed);
    (first..first + ENGINE_FDS).contains(&fd) && inherited >> (fd - first) & 1 == 0 && {
        // SAFETY: asking for flags changes nothing.
        unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 }
    }
}

/// The parts of a range of descriptors that are not the engine's.
pub fn around_engine_fds(first: u32, last: u32) -> Vec<(u32, u32)> {
    let (from, to) = (first_engine_fd() as u32, (first_engine_fd() + ENGINE_FDS) as u32);
    let mut parts = Vec::new();
    if first < from {
        parts.push((first, last.min(from - 1)));
    }
    if last >= to {
        parts.push((first.max(to), last));
    }
    parts
}

/// A resource limit: soft, hard.
pub fn limit(resource: u32) -> (u64, u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: plain query.
    unsafe { libc::getrlimit(resource, &mut limit) };
    (limit.rlim_cur, limit.rlim_max)
}

/// Sets a limit: soft, hard.
pub fn set_limit(resource: u32, (soft, hard): (u64, u64)) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: changes our own limit.
    if unsafe { libc::setrlimit(resource, &limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Frees the engine from a limit as far as possible. Returns what the guest shall
/// see of it.
pub fn lift_limit(resource: u32) -> (u64, u64) {
    let (soft, hard) = limit(resource);
    if soft < hard {
        let _ = set_limit(resource, (hard, hard));
    }
    (soft, hard)
}

/// May the calling thread raise hard limits?
pub fn may_raise_limits() -> bool {
    const CAP_SYS_RESOURCE: u32 = 24;
    let header: [u32; 2] = [0x2008_0522, 0];
    let mut sets = [0u32; 6];
    // SAFETY: version 3 of the call fills six words.
    let done = unsafe {
        let args = [header.as_ptr() as u64, sets.as_mut_ptr() as u64, 0, 0, 0, 0];
        raw(libc::SYS_capget as u64, args)
    };
    done == 0 && sets[0] >> CAP_SYS_RESOURCE & 1 != 0
}

/// Which descriptors are the engine's, where the guest sees these limits.
///
/// High descriptors cost the kernel a large table, which every fork copies; guests that
/// go past ours meet a gap, which the kernel skips.
pub fn engine_range(soft: u64, hard: u64) -> Range<i32> {
    let first = wanted_first(soft).min(hard) as i32;
    first..first + ENGINE_FDS
}

/// Above all that the guest may open, unless that is so many that a gap hurts less. Programs
/// do open a few thousand.
fn wanted_first(soft: u64) -> u64 {
    soft.clamp(4096, 16384)
}

/// What the guest shall see of a limit on descriptors: all of it, unless that leaves no
/// room for the engine's above it.
fn leaving_room(soft: u64, hard: u64) -> (u64, u64) {
    let most = hard.saturating_sub(ENGINE_FDS as u64);
    if wanted_first(soft) <= most { (soft, hard) } else { (soft.min(most), most) }
}

/// Makes room for the engine's descriptors above the guest's. Returns the limit
/// the guest shall see.
pub fn reserve_descriptors() -> io::Result<(u64, u64)> {
    static RESERVED: OnceLock<(u64, u64)> = OnceLock::new();
    if let Some(seen) = RESERVED.get() {
        return Ok(*seen);
    }
    let (soft, hard) = limit(libc::RLIMIT_NOFILE);
    let seen = leaving_room(soft, hard);
    let first = engine_range(seen.0, seen.1).start;
    // The guest's own limit is ours to keep; it may raise it.
    if soft < hard {
        set_limit(libc::RLIMIT_NOFILE, (hard, hard))?;
    }
    FIRST.store(first, Ordering::Relaxed);
    note_inherited(first);
    Ok(*RESERVED.get_or_init(|| seen))
}

/// Engine descriptors of a process that only replays start here: its guests have none of
/// their own, and checkpoints and trials are forks, each of which copies the table.
const FIRST_OF_REPLAY: i32 = 192;

/// Makes room for the engine's descriptors where nothing is recorded.
pub fn reserve_few_descriptors() -> io::Result<()> {
    let (soft, hard) = limit(libc::RLIMIT_NOFILE);
    if soft < hard {
        set_limit(libc::RLIMIT_NOFILE, (hard, hard))?;
    }
    // Whoever recorded before has placed them already.
    let first = FIRST_OF_REPLAY.min(hard.saturating_sub(ENGINE_FDS as u64) as i32);
    let _ = FIRST.compare_exchange(FIRST_ENGINE_FD, first, Ordering::Relaxed, Ordering::Relaxed);
    Ok(())
}

/// Descriptors the program inherits.
pub fn guest_descriptors() -> Vec<i32> {
    let Ok(folder) = std::fs::read_dir("/proc/self/fd") else { return vec![0, 1, 2] };
    let listed: Vec<i32> = folder
        .filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd < first_engine_fd() || !is_engine_fd(*fd))
        .collect();
    // The listing's own descriptor is in the list but closed by now.
    // SAFETY: asking for flags changes nothing.
    let mut open: Vec<i32> =
        listed.into_iter().filter(|fd| unsafe { libc::fcntl(*fd, libc::F_GETFD) } >= 0).collect();
    open.sort_unstable();
    open
}

/// The absolute path behind a descriptor.
pub fn path_of(fd: i32) -> Option<Vec<u8>> {
    use std::os::unix::ffi::OsStringExt;
    let path = std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
    Some(path.into_os_string().into_vec())
}

/// The device of `/proc`.
pub fn proc_device() -> u64 {
    use std::os::unix::fs::MetadataExt;
    static DEVICE: OnceLock<u64> = OnceLock::new();
    *DEVICE.get_or_init(|| std::fs::metadata("/proc").map_or(0, |m| m.dev()))
}

/// Sixteen random bytes.
pub fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    // SAFETY: fills our own buffer.
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), 16, 0) };
    bytes
}

/// uid, euid, gid, egid.
pub fn ids() -> [u32; 4] {
    // SAFETY: these calls touch nothing.
    unsafe { [libc::getuid(), libc::geteuid(), libc::getgid(), libc::getegid()] }
}

/// Permissions that new files do not get.
pub fn umask() -> u32 {
    // SAFETY: there is one thread; the old value is put back.
    unsafe {
        let umask = libc::umask(0);
        libc::umask(umask);
        umask
    }
}

/// The name `ps` shows for this thread.
pub fn set_name(name: &[u8]) {
    let mut bytes = [0u8; 16];
    let n = name.len().min(15);
    bytes[..n].copy_from_slice(&name[..n]);
    // SAFETY: a NUL-terminated buffer of 16.
    unsafe { libc::prctl(libc::PR_SET_NAME, bytes.as_ptr()) };
}

static IGNORED: AtomicU64 = AtomicU64::new(0);
static MASK: AtomicU64 = AtomicU64::new(0);

/// Before `main`: Rust's runtime sets SIGPIPE to be ignored, but the guest must
/// get what we got.
extern "C" fn remember_signals() {
    let mut ignored = 0u64;
    for signal in 1..=64 {
        // SAFETY: queries only.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &mut action) == 0
                && action.sa_sigaction == libc::SIG_IGN
            {
                ignored |= 1 << (signal - 1);
            }
        }
    }
    IGNORED.store(ignored, Ordering::Relaxed);
    let mut mask = 0u64;
    // SAFETY: a query into our own word.
    unsafe {
        raw(libc::SYS_rt_sigprocmask as u64, [0, 0, &raw mut mask as u64, 8, 0, 0]);
    }
    MASK.store(mask, Ordering::Relaxed);
}

#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER: extern "C" fn() = remember_signals;

/// Signals that were ignored and blocked when `why` was started.
pub fn inherited_signals() -> (u64, u64) {
    (IGNORED.load(Ordering::Relaxed), MASK.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_is_above_all_that_a_guest_may_open_where_there_is_room() {
        for hard in [1024, 4096, 4160, 5000, 20_000, 1 << 20] {
            for soft in [256, 1024, 4096, hard].into_iter().filter(|soft| *soft <= hard) {
                let seen = leaving_room(soft, hard);
                let range = engine_range(seen.0, seen.1);
                assert!(range.end as u64 <= hard, "{soft} {hard}: the kernel allows {range:?}");
                assert!(seen == (soft, hard) || range.start as u64 >= seen.1, "{soft} {hard}");
            }
        }
    }
}
