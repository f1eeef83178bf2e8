//! Does a process that is not recorded have a file mapped that the program maps shared?
//!
//! What such a process stores is in no log, so the run is stopped. Seen are maps that exist
//! when the program makes its own, of processes that this user may look at.

use super::capture::Opened;
use super::session::Session;
use crate::kernel::memory::Map;
use crate::{Error, Refusal};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// A process of ours that has just been forked has no log yet; a moment later it has.
const MOMENT: Duration = Duration::from_millis(30);

impl Session {
    /// Stops the run if the file that is to be mapped shared is another's to change.
    pub(super) fn refuse_outsiders(&mut self, map: &Map, opened: &Opened) {
        if !map.is_shared() {
            return;
        }
        let dir = std::fs::canonicalize(&self.dir).unwrap_or_else(|_| self.dir.clone());
        let look = || crate::clerk::run(|| outsider(opened.identity, dir.as_os_str().as_bytes()));
        if look().is_none() {
            return;
        }
        std::thread::sleep(MOMENT);
        if let Some(pid) = look() {
            let path = crate::sys::path_of(map.fd).unwrap_or_default();
            let path = String::from_utf8_lossy(&path).into_owned();
            self.give_up(&Error::Refused(Refusal::SharedOutside { path, pid }));
        }
    }
}

/// A process without a log in `dir` that has the file mapped, shared and writable.
fn outsider(identity: (u64, u64), dir: &[u8]) -> Option<i32> {
    let names = std::fs::read_dir("/proc").ok()?.flatten();
    let pids = names.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.into_iter().find(|pid| {
        let maps = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
        let lines = || maps.split(|byte| *byte == b'\n').filter_map(Line::parse);
        lines().any(|line| line.changes(identity))
            && !lines().any(|line| line.path.starts_with(dir))
    })
}

/// A line of `maps`.
struct Line<'a> {
    protection: &'a [u8],
    device: u64,
    inode: u64,
    path: &'a [u8],
}

impl Line<'_> {
    fn parse(line: &[u8]) -> Option<Line<'_>> {
        let mut words = line.splitn(6, |byte| *byte == b' ');
        let mut next = || words.next();
        let (_, protection, _, device, inode) = (next()?, next()?, next()?, next()?, next()?);
        let device = std::str::from_utf8(device).ok()?;
        let (major, minor) = device.split_once(':')?;
        let number = |text| u32::from_str_radix(text, 16).ok();
        Some(Line {
            protection,
            device: libc::makedev(number(major)?, number(minor)?),
            inode: std::str::from_utf8(inode).ok()?.parse().ok()?,
            path: next().unwrap_or_default().trim_ascii_start(),
        })
    }

    /// Can it change the file?
    fn changes(&self, (device, inode): (u64, u64)) -> bool {
        self.inode == inode
            && self.protection.get(1) == Some(&b'w')
            && self.protection.get(3) == Some(&b's')
            && (self.device == device || self.is_file((device, inode)))
    }

    /// Some file systems show another device in maps than in `stat`.
    fn is_file(&self, identity: (u64, u64)) -> bool {
        let found = std::fs::metadata(std::ffi::OsStr::from_bytes(self.path));
        found.is_ok_and(|file| (file.dev(), file.ino()) == identity)
    }
}

#[cfg(test)]
mod tests {
    use super::Line;

    #[test]
    fn only_shared_writable_maps_of_the_file_change_it() {
        let changes = |protection: &str, inode: &str| {
            let text = format!("7f0000-7f1000 {protection} 00000000 fd:01 {inode}   /tmp/a b");
            let line = Line::parse(text.as_bytes()).expect("a line");
            assert_eq!(line.path, b"/tmp/a b");
            line.changes((libc::makedev(0xfd, 1), 42))
        };
        assert!(changes("rw-s", "42"));
        assert!(!changes("r--s", "42") && !changes("rw-p", "42") && !changes("rw-s", "43"));
        assert!(Line::parse(b"").is_none());
    }
}
