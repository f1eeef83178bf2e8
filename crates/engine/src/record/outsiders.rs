//! Does a process that is not recorded have a file mapped that the program maps shared?
//!
//! What such a process stores is in no log, so the run is stopped. Seen are processes that
//! this user may look at, when the program maps the file and now and then as long as it can
//! change.

use super::capture::Opened;
use super::session::Session;
use super::tree::Tree;
use crate::kernel::memory::Map;
use crate::{Error, Refusal};
use std::ffi::OsStr;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// A file that a process outside can change, since it has it mapped.
struct Changed {
    pid: i32,
    device: u64,
    inode: u64,
    path: Vec<u8>,
}

/// What processes outside had mapped, and when that was.
pub struct Outsiders {
    seen: Instant,
    changed: Vec<Changed>,
}

/// Looking at all processes takes milliseconds, and programs may map many files at once.
const FRESH: Duration = Duration::from_millis(50);

/// So often it is looked whether somebody came later.
const AGAIN: Duration = Duration::from_secs(1);

impl Session {
    /// Stops the run if the file that is to be mapped shared is another's to change.
    pub(super) fn refuse_outsiders(&mut self, map: &Map, opened: &Opened) {
        if map.is_shared() && !crate::clerk::run(|| nobody_writes(map.fd)) {
            self.look_outside(FRESH);
            self.refuse_changes(|other| other.is(opened.identity));
        }
    }

    /// Stops the run if another came to map what this process has mapped shared.
    pub(super) fn refuse_late_outsiders(&mut self) {
        if !self.live.is_empty() && self.look_outside(AGAIN) {
            let live = self.live.clone();
            self.refuse_changes(|other| live.iter().any(|identity| other.is(*identity)));
        }
    }

    /// Looks, unless it did so lately.
    fn look_outside(&mut self, fresh: Duration) -> bool {
        let stale = self.outsiders.as_ref().is_none_or(|known| known.seen.elapsed() > fresh);
        if stale {
            self.outsiders = Some(crate::clerk::run(|| look(self.tree)));
        }
        stale
    }

    fn refuse_changes(&mut self, of: impl Fn(&Changed) -> bool) {
        let mut known = self.outsiders.iter().flat_map(|known| &known.changed);
        let Some(other) = known.find(|other| of(other)) else { return };
        let path = String::from_utf8_lossy(&other.path).into_owned();
        let refusal = Refusal::SharedOutside { path, pid: other.pid };
        self.give_up(&Error::Refused(refusal));
    }
}

const F_SETSIG: i32 = 10;

/// Is it certain that no process can change a file? The kernel grants a lease for reading
/// only where nobody has the file open for writing, or mapped so; and it grants some to
/// the file's owner and to root only. Far cheaper than to look at all processes.
fn nobody_writes(fd: i32) -> bool {
    // A description of our own: the guest's stays as it is. Closing it ends the lease.
    let Ok(own) = std::fs::File::open(format!("/proc/self/fd/{fd}")) else { return false };
    // SAFETY: asks for a lease on our own descriptor. Should somebody want to write in
    // this instant, we are told by a signal that does nothing.
    unsafe {
        libc::fcntl(own.as_raw_fd(), F_SETSIG, libc::SIGCONT) == 0
            && libc::fcntl(own.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) == 0
    }
}

/// Looks at all processes that are not of this run.
fn look(tree: Tree) -> Outsiders {
    let seen = Instant::now();
    let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = names.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let own = lines_of("self").iter().find_map(|line| {
        let line = Line::parse(line)?;
        line.addresses.contains(&tree.address()).then_some((line.device, line.inode))
    });
    let mut changed = Vec::new();
    // Without /proc nothing can be told.
    for pid in pids.filter(|_| own.is_some()) {
        let maps = lines_of(&pid.to_string());
        let lines = || maps.iter().filter_map(|line| Line::parse(line));
        // All processes of a run have its page.
        if lines().any(|line| Some((line.device, line.inode)) == own) {
            continue;
        }
        changed.extend(lines().filter(Line::changes_file).map(|line| Changed {
            pid,
            device: line.device,
            inode: line.inode,
            path: line.path.to_vec(),
        }));
    }
    Outsiders { seen, changed }
}

/// What a process has mapped, line by line; nothing if it may not be looked at.
fn lines_of(process: &str) -> Vec<Vec<u8>> {
    let maps = std::fs::read(format!("/proc/{process}/maps")).unwrap_or_default();
    maps.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

impl Changed {
    fn is(&self, identity: (u64, u64)) -> bool {
        // Some file systems show another device in maps than in `stat`.
        let stat = || std::fs::metadata(OsStr::from_bytes(&self.path));
        self.inode == identity.1
            && (self.device == identity.0
                || stat().is_ok_and(|file| (file.dev(), file.ino()) == identity))
    }
}

/// A line of `maps`.
struct Line<'a> {
    addresses: std::ops::Range<u64>,
    protection: &'a [u8],
    device: u64,
    inode: u64,
    path: &'a [u8],
}

impl Line<'_> {
    fn parse(line: &[u8]) -> Option<Line<'_>> {
        let mut words = line.splitn(6, |byte| *byte == b' ');
        let mut next = || words.next();
        let (addresses, protection, _, device) = (next()?, next()?, next()?, next()?);
        let (inode, path) = (next()?, next().unwrap_or_default());
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let pair = |word, at: char| {
            let (left, right) = std::str::from_utf8(word).ok()?.split_once(at)?;
            Some((hex(left)?, hex(right)?))
        };
        let (start, end) = pair(addresses, '-')?;
        let (major, minor) = pair(device, ':')?;
        Some(Line {
            addresses: start..end,
            protection,
            device: libc::makedev(major as u32, minor as u32),
            inode: std::str::from_utf8(inode).ok()?.parse().ok()?,
            path: path.trim_ascii_start(),
        })
    }

    /// Can a file be changed through it?
    fn changes_file(&self) -> bool {
        let is = |at, byte| self.protection.get(at) == Some(&byte);
        self.inode != 0 && is(1, b'w') && is(3, b's')
    }
}

#[cfg(test)]
mod tests {
    use super::Line;

    #[test]
    fn only_shared_writable_maps_of_files_change_them() {
        let changes = |protection: &str, inode: &str| {
            let text = format!("7f0000-7f1000 {protection} 00000000 fd:01 {inode}   /tmp/a b");
            let line = Line::parse(text.as_bytes()).expect("a line");
            assert_eq!((line.addresses.start, line.path), (0x7f_0000, &b"/tmp/a b"[..]));
            assert_eq!(line.device, libc::makedev(0xfd, 1));
            line.changes_file()
        };
        assert!(changes("rw-s", "42"));
        assert!(!changes("r--s", "42") && !changes("rw-p", "42") && !changes("rw-s", "0"));
        assert!(Line::parse(b"").is_none());
    }
}
