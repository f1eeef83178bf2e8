//! The parent of the recorded process: waits, passes signals on, and closes the
//! recording however the child ended.

use super::RecordOptions;
use super::launch::Launch;
use super::tree::Tree;
use crate::Error;
use crate::sandbox::note_only;
use recording::{Ending, Outcome, Recording};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// The way for the recording process to say why it failed.
#[derive(Clone, Debug)]
pub struct Report {
    pipe: i32,
}

impl Report {
    /// Says why, and ends the process.
    pub fn fail(&self, error: &Error) -> ! {
        let text = format!("{}\n{error}\0", error.status());
        // SAFETY: writes our own bytes and ends the process.
        unsafe {
            libc::write(self.pipe, text.as_ptr().cast(), text.len());
            libc::_exit(125)
        }
    }
}

static CHILD: AtomicI32 = AtomicI32::new(0);

extern "C" fn pass_on(signal: i32) {
    let child = CHILD.load(Ordering::Relaxed);
    if child > 0 {
        // SAFETY: async-signal-safe.
        unsafe { libc::kill(child, signal) };
    }
}

/// Forks the recording process and waits for it.
pub fn run(options: &RecordOptions, launch: Launch) -> Result<Outcome, Error> {
    let (read, write) = pipe().map_err(Error::io("cannot make a pipe"))?;
    let tree = Tree::new().map_err(Error::io("cannot make shared memory"))?;
    let recorder = std::process::id();
    // SAFETY: `why` has one thread here, so the child may do anything.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(Error::Io { what: "cannot fork", error: io::Error::last_os_error() });
    }
    if child == 0 {
        // SAFETY: our own descriptor.
        unsafe { libc::close(read) };
        end_with(recorder);
        super::session::run(options, launch, tree, Report { pipe: write });
    }
    // SAFETY: our own descriptor.
    unsafe { libc::close(write) };
    drop(launch);
    CHILD.store(child, Ordering::Relaxed);
    let old = forward_signals();
    if let Some(timeout) = options.timeout {
        limit_time(&options.dir, timeout);
    }
    let status = wait(child);
    stop_timer();
    restore_signals(old);
    let message = read_all(read);
    let mut outcome = close(options, status, &message)?;
    if tree.has_switched_off() {
        // Whichever process it was.
        outcome.switched_off.insert(super::leaks::LEAK_CHECKING.to_owned());
    }
    Ok(outcome)
}

/// Kills this process when the recorder is killed: whoever does that means the program.
fn end_with(recorder: u32) {
    // SAFETY: only says when this process ends.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() as u32 != recorder {
            // It was faster.
            libc::_exit(125);
        }
    }
}

fn pipe() -> io::Result<(i32, i32)> {
    let mut fds = [0; 2];
    // SAFETY: fills our array.
    if unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    crate::sys::reserve_descriptors()?;
    Ok((crate::sys::move_high(fds[0])?, crate::sys::move_high(fds[1])?))
}

const PASSED_ON: [i32; 4] = [libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2];
const FROM_TERMINAL: [i32; 2] = [libc::SIGINT, libc::SIGQUIT];

/// Terminal signals reach the child anyway, and an interrupt is noted; others are passed on.
fn forward_signals() -> Vec<(i32, libc::sigaction)> {
    let mut old = Vec::new();
    for signal in PASSED_ON.into_iter().chain(FROM_TERMINAL) {
        // SAFETY: the handler is async-signal-safe.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = match signal {
                libc::SIGINT => note_only as *const () as usize,
                libc::SIGQUIT => libc::SIG_IGN,
                _ => pass_on as *const () as usize,
            };
            action.sa_flags = libc::SA_RESTART;
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, &action, &mut before);
            old.push((signal, before));
        }
    }
    old
}

fn restore_signals(old: Vec<(i32, libc::sigaction)>) {
    for (signal, action) in old {
        // SAFETY: what was there before.
        unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    }
}

/// The process that ends the run when its time is over.
static TIMER: AtomicI32 = AtomicI32::new(0);

/// How long processes may take to end when they are asked to.
const GRACE: Duration = Duration::from_secs(2);

/// Ends all processes of the run after some time: asked first, so that they end where
/// they are, at an event of the log; killed if they do not.
fn limit_time(dir: &Path, timeout: Duration) {
    let recorder = std::process::id();
    // SAFETY: `why` has one thread here, so the child may do anything.
    let timer = unsafe { libc::fork() };
    if timer != 0 {
        TIMER.store(timer, Ordering::Relaxed);
        return;
    }
    end_with(recorder);
    std::thread::sleep(timeout);
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        let logs = Recording::open(dir).and_then(|first| first.unfinished()).unwrap_or_default();
        for log in &logs {
            // SAFETY: a process of the run, which has not closed its log.
            unsafe { libc::kill(log.process().pid, signal) };
        }
        std::thread::sleep(GRACE);
    }
    // SAFETY: leaves without running the parent's exit handlers.
    unsafe { libc::_exit(0) }
}

fn stop_timer() {
    let timer = TIMER.swap(0, Ordering::Relaxed);
    if timer > 0 {
        // SAFETY: our own child, which has nothing to lose.
        unsafe {
            libc::kill(timer, libc::SIGKILL);
            libc::waitpid(timer, std::ptr::null_mut(), 0);
        }
    }
}

/// Waits for the end; stops and goes on with the child.
fn wait(child: i32) -> i32 {
    let mut status = 0;
    loop {
        // SAFETY: waits for our own child.
        let got = unsafe { libc::waitpid(child, &mut status, libc::WUNTRACED | libc::WCONTINUED) };
        if got < 0 {
            if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return 0;
        }
        if libc::WIFSTOPPED(status) {
            stop_with(child);
        } else if !libc::WIFCONTINUED(status) {
            return status;
        }
    }
}

/// Stops ourselves, as the shell expects when the program stops, until we or the
/// program go on; then so does the other.
fn stop_with(child: i32) {
    // SAFETY: plain calls; we have one thread, so the watcher may do anything.
    unsafe {
        let parent = libc::getpid();
        let watcher = libc::fork();
        if watcher == 0 {
            watch(parent, child);
        }
        if watcher > 0 {
            libc::raise(libc::SIGSTOP);
            libc::kill(watcher, libc::SIGKILL);
            libc::waitpid(watcher, std::ptr::null_mut(), 0);
        }
        if is_stopped(child) {
            libc::kill(child, libc::SIGCONT);
        }
    }
}

/// A stopped process cannot notice that its child goes on: this one does, for it.
fn watch(parent: i32, child: i32) -> ! {
    // SAFETY: plain calls of a process that ends here.
    unsafe {
        libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0);
        while libc::getppid() == parent {
            libc::usleep(20_000);
            if is_stopped(parent) && !is_stopped(child) {
                libc::kill(parent, libc::SIGCONT);
            }
        }
        libc::_exit(0)
    }
}

fn is_stopped(process: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

fn read_all(fd: i32) -> String {
    use std::io::Read;
    use std::os::fd::FromRawFd;
    // SAFETY: our own descriptor, given up to the file.
    let mut file = unsafe { std::fs::File::from_raw_fd(fd) };
    // Children of the recorded process may still hold the other end.
    // SAFETY: changes flags of our own descriptor.
    unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) };
    let mut text = Vec::new();
    let _ = file.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn close(options: &RecordOptions, status: i32, message: &str) -> Result<Outcome, Error> {
    // Where one process of a run cannot be recorded, others often meet the same: once is enough.
    let first = message.split('\0').next().unwrap_or_default();
    if let Some((_, text)) = first.split_once('\n') {
        if recording::is_recording(&options.dir) {
            let _ = recording::finalise(&options.dir, &Outcome::stopped(text));
        }
        return Err(Error::Recorder(text.to_owned()));
    }
    let ending = if libc::WIFSIGNALED(status) {
        Ending::Killed { signal: libc::WTERMSIG(status) }
    } else {
        Ending::Unknown
    };
    recording::finalise(&options.dir, &Outcome::new(ending))?;
    let recording = Recording::open(&options.dir)?;
    close_gone(&recording)?;
    Ok(recording.outcome().cloned().unwrap_or_default())
}

/// Closes the logs of other processes that are gone and could not do so themselves.
/// Those that go on, daemons and the like, go on being recorded.
fn close_gone(recording: &Recording) -> Result<(), Error> {
    if !recording.has_processes() {
        return Ok(());
    }
    for log in recording.unfinished()? {
        let pid = log.process().pid;
        // SAFETY: asks whether there is such a process.
        let gone = unsafe { libc::kill(pid, 0) } != 0
            && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH);
        if gone {
            recording::finalise(log.dir(), &Outcome::new(Ending::Unknown))?;
        }
    }
    Ok(())
}
