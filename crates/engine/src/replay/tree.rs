//! Replaying all processes of a run.
//!
//! Where the run forked, so does its replay: the copy stands where the child began, and
//! goes on with the child's log. What the copies have to tell, output above all, they send
//! to the process that was asked, which puts output into the order it had then.

use super::calls::put;
use super::replayer::{Forked, Halt, Replayer};
use super::{Finish, ReplayOptions, Until};
use crate::Error;
use crate::code::Profile;
use crate::kernel::process::Asked;
use crate::sandbox::{ends_at_interrupt, has_helpers};
use recording::{Ending, Process as Whose, Recording};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// What the replay of one log came to.
#[derive(Clone, Debug)]
pub struct LogReplayed {
    /// Number of the log.
    pub log: u64,
    /// Instructions executed, without those before the fork it began with (counting
    /// profiles).
    pub instructions: u64,
    /// How it ended, or what went wrong.
    pub end: Result<LogEnd, String>,
}

/// Where the replay of a log ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEnd {
    /// As the process did then.
    Ended(Ending),
    /// Where its log breaks off.
    BreaksOff,
}

/// No message is larger.
const PIECE: usize = 32 << 10;
const UNORDERED: u64 = u64::MAX;
const OUTPUT: u8 = 1;
const DONE: u8 = 2;

/// A replay that follows forks.
pub(super) struct Following {
    recording: Recording,
    teller: OwnedFd,
    tokens: Tokens,
    /// Must a token be given back at the end?
    has_token: bool,
    log: u64,
}

/// Replays all processes of a run, from its first one on.
pub fn replay_all(
    recording: &Recording,
    profile: Profile,
    options: &ReplayOptions,
) -> Result<Vec<LogReplayed>, Error> {
    let failed = Error::io("cannot make a socket");
    let (teller, listener) = pair(libc::SOCK_SEQPACKET).map_err(failed)?;
    let grouped = ends_at_interrupt();
    // SAFETY: a replay begins with one thread, so the child may do anything.
    match unsafe { libc::fork() } {
        -1 => Err(Error::Io { what: "cannot fork", error: io::Error::last_os_error() }),
        0 => {
            drop(listener);
            if grouped {
                // SAFETY: a group of its own, so that whoever is interrupted can end all of it.
                unsafe { libc::setpgid(0, 0) };
            }
            walk(recording, profile, options, teller)
        }
        child => {
            drop(teller);
            if grouped {
                // SAFETY: as above; whoever comes first.
                unsafe { libc::setpgid(child, child) };
                has_helpers(child);
            }
            let told = listen(&listener);
            has_helpers(0);
            // SAFETY: waits for our own child.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            told
        }
    }
}

/// Replays the first process, and becomes the others.
fn walk(recording: &Recording, profile: Profile, options: &ReplayOptions, teller: OwnedFd) -> ! {
    // SAFETY: processes that are made here are not all waited for.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    let mut following = tokens().ok().map(|tokens| Following {
        recording: recording.clone(),
        teller,
        tokens,
        has_token: false,
        log: Whose::FIRST,
    });
    let mut replayer = None;
    while let Some(mut now) = following.take() {
        // The guest's addresses must be free before the next one is made.
        if let Some(before) = replayer.take() {
            let before: Replayer = before;
            before.process.machine.cache.recycle();
        }
        let made = now.recording.log(now.log).map_err(Error::from);
        let made = made.and_then(|log| Replayer::new(&log, profile, options));
        let mut made = match made {
            Ok(made) => made,
            Err(error) => {
                now.done(0, &Err(error.to_string()));
                now.leave();
            }
        };
        made.use_stock();
        made.following = Some(Box::new(now));
        let end = match made.run(Until::End) {
            Ok(Finish::Ended(ending)) => Ok(LogEnd::Ended(ending)),
            Ok(Finish::LogEnds | Finish::Reached) => Ok(LogEnd::BreaksOff),
            Err(error) => Err(error.to_string()),
        };
        // It may be another process by now, and another log.
        now = *made.following.take().expect("just put there");
        now.done(made.own_instructions(), &end);
        match made.next_log.filter(|_| end == Ok(LogEnd::Ended(Ending::Executed))) {
            Some(next) if now.recording.has_log(next) => now.log = next,
            Some(next) => {
                // The recorder was killed before the program's log was begun.
                now.log = next;
                now.done(0, &Ok(LogEnd::BreaksOff));
                now.leave();
            }
            None => now.leave(),
        }
        following = Some(now);
        replayer = Some(made);
    }
    // SAFETY: leaves without running the parent's exit handlers.
    unsafe { libc::_exit(0) }
}

impl Following {
    /// Tells what was written.
    pub(super) fn output(&self, fd: i32, order: Option<u64>, bytes: &[u8]) {
        let pieces = bytes.chunks(PIECE);
        let last = pieces.len();
        for (n, piece) in pieces.enumerate() {
            let mut message = vec![OUTPUT, fd as u8, u8::from(n + 1 < last)];
            message.extend(order.unwrap_or(UNORDERED).to_le_bytes());
            message.extend(piece);
            self.send(&message);
        }
    }

    fn done(&self, instructions: u64, end: &Result<LogEnd, String>) {
        let (kind, number, text) = match end {
            Ok(LogEnd::Ended(Ending::Exited(status))) => (0, *status, ""),
            Ok(LogEnd::Ended(Ending::Killed { signal })) => (1, *signal, ""),
            Ok(LogEnd::Ended(Ending::Executed)) => (2, 0, ""),
            Ok(LogEnd::Ended(Ending::Unknown) | LogEnd::BreaksOff) => (3, 0, ""),
            Ok(LogEnd::Ended(Ending::Cut)) => (5, 0, ""),
            Err(text) => (4, 0, text.as_str()),
        };
        let mut message = vec![DONE, kind];
        message.extend(self.log.to_le_bytes());
        message.extend(instructions.to_le_bytes());
        message.extend(number.to_le_bytes());
        message.extend(&text.as_bytes()[..text.len().min(PIECE)]);
        self.send(&message);
    }

    fn send(&self, message: &[u8]) {
        loop {
            let fd = self.teller.as_raw_fd();
            // SAFETY: sends our own bytes.
            let sent = unsafe {
                libc::send(fd, message.as_ptr().cast(), message.len(), libc::MSG_NOSIGNAL)
            };
            if sent >= 0 {
                return;
            }
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                // Nobody listens any more.
                // SAFETY: leaves without running the parent's exit handlers.
                unsafe { libc::_exit(0) }
            }
        }
    }

    /// The replay of this process is over.
    fn leave(self) -> ! {
        if self.has_token {
            self.tokens.give();
        }
        // SAFETY: leaves without running the parent's exit handlers.
        unsafe { libc::_exit(0) }
    }
}

impl Replayer {
    /// At a call that made a process: lets a copy go on as that process. In the copy,
    /// the call is finished from the child's log, and the result is true.
    pub(super) fn follow_child(
        &mut self,
        asked: &Asked,
        state: u32,
        log: u64,
    ) -> Result<bool, Halt> {
        let Some(following) = &self.following else { return Ok(false) };
        if !following.recording.has_log(log) {
            return Ok(false);
        }
        let token = following.tokens.take();
        match self.fork()? {
            Forked::Parent { child } => {
                if !token {
                    // SAFETY: waits for our own child.
                    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
                }
                Ok(false)
            }
            Forked::Child => {
                let following = self.following.as_mut().expect("just seen");
                following.has_token = token;
                following.log = log;
                let recording = following.recording.log(log).map_err(Error::from)?;
                self.log = super::log::Log::own(&recording)?;
                self.shown_from = 0;
                self.perform(asked, state)?;
                Ok(true)
            }
        }
    }
}

/// Processes that replay at the same time besides those that processors are for: where one
/// waits for its child to be replayed, another goes on.
const MORE: usize = 2;

/// A pipe with a token for each process that may replay besides the first.
fn tokens() -> io::Result<Tokens> {
    let mut ends = [0; 2];
    // SAFETY: fills our array; the descriptors are only ours.
    let tokens = unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) != 0 {
            return Err(io::Error::last_os_error());
        }
        let high = |fd| crate::sys::move_high(fd).map(|fd| OwnedFd::from_raw_fd(fd));
        Tokens { take: high(ends[0])?, give: high(ends[1])? }
    };
    let more = std::thread::available_parallelism().map_or(0, |n| n.get() - 1 + MORE);
    (0..more.min(64)).for_each(|_| tokens.give());
    Ok(tokens)
}

/// How many more processes may replay at the same time: bytes in a pipe.
struct Tokens {
    take: OwnedFd,
    give: OwnedFd,
}

impl Tokens {
    fn take(&self) -> bool {
        let mut byte = 0u8;
        // SAFETY: reads into our own byte, from a pipe that does not wait.
        unsafe { libc::read(self.take.as_raw_fd(), (&raw mut byte).cast(), 1) == 1 }
    }

    fn give(&self) {
        // SAFETY: writes a byte of ours.
        unsafe { libc::write(self.give.as_raw_fd(), [0u8].as_ptr().cast(), 1) };
    }
}

fn pair(kind: i32) -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: fills our array; the descriptors are only ours.
    unsafe {
        if libc::socketpair(libc::AF_UNIX, kind | libc::SOCK_CLOEXEC, 0, fds.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let high = |fd| crate::sys::move_high(fd).map(|fd| OwnedFd::from_raw_fd(fd));
        Ok((high(fds[0])?, high(fds[1])?))
    }
}

/// Output that came before its turn.
#[derive(Default)]
struct Output {
    /// The piece that is written next.
    next: u64,
    waiting: BTreeMap<u64, Vec<Piece>>,
}

struct Piece {
    fd: i32,
    more: bool,
    bytes: Vec<u8>,
}

impl Output {
    fn add(&mut self, order: u64, piece: Piece) {
        if order == UNORDERED {
            return put(piece.fd, &piece.bytes);
        }
        self.waiting.entry(order).or_default().push(piece);
        while let Some(pieces) = self.waiting.get_mut(&self.next) {
            let pieces = std::mem::take(pieces);
            let whole = pieces.last().is_some_and(|piece| !piece.more);
            pieces.iter().for_each(|piece| put(piece.fd, &piece.bytes));
            if !whole {
                return;
            }
            self.waiting.remove(&self.next);
            self.next += 1;
        }
    }

    /// What is left: others never came, because their recorder was killed.
    fn flush(self) {
        self.waiting.values().flatten().for_each(|piece| put(piece.fd, &piece.bytes));
    }
}

/// Hears what the replaying processes tell until all of them have ended.
fn listen(listener: &OwnedFd) -> Result<Vec<LogReplayed>, Error> {
    let mut output = Output::default();
    let mut logs = Vec::new();
    let mut buffer = vec![0u8; PIECE + 64];
    loop {
        // SAFETY: fills our own buffer.
        let got = unsafe {
            libc::recv(listener.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0)
        };
        let Ok(len) = usize::try_from(got) else {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return Err(Error::Io { what: "cannot hear from a replay", error });
        };
        match &buffer[..len] {
            [] => break,
            [OUTPUT, fd, more, rest @ ..] if rest.len() >= 8 => {
                let (order, bytes) = rest.split_at(8);
                let order = u64::from_le_bytes(order.try_into().expect("eight"));
                let bytes = bytes.to_vec();
                output.add(order, Piece { fd: i32::from(*fd), more: *more != 0, bytes });
            }
            [DONE, kind, rest @ ..] if rest.len() >= 20 => logs.push(heard(*kind, rest)),
            _ => {}
        }
    }
    output.flush();
    logs.sort_by_key(|log: &LogReplayed| log.log);
    Ok(logs)
}

fn heard(kind: u8, rest: &[u8]) -> LogReplayed {
    let word = |n: usize| u64::from_le_bytes(rest[n..n + 8].try_into().expect("eight"));
    let number = i32::from_le_bytes(rest[16..20].try_into().expect("four"));
    let end = match kind {
        0 => Ok(LogEnd::Ended(Ending::Exited(number))),
        1 => Ok(LogEnd::Ended(Ending::Killed { signal: number })),
        2 => Ok(LogEnd::Ended(Ending::Executed)),
        3 => Ok(LogEnd::BreaksOff),
        5 => Ok(LogEnd::Ended(Ending::Cut)),
        _ => Err(String::from_utf8_lossy(&rest[20..]).into_owned()),
    };
    LogReplayed { log: word(0), instructions: word(8), end }
}
