//! Files that are mapped shared: what calls change in them goes into the log, since
//! a replay has memory files in their place.

use super::capture::{Opened, inspect};
use super::session::Session;
use crate::Error;
use crate::kernel::process::Asked;
use crate::kernel::table;
use recording::event::Effect;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;

/// A part of a file that a call changed.
struct Part {
    file: File,
    offset: u64,
    len: u64,
}

impl Session {
    /// A file was opened for writing that may already be mapped shared, as it was
    /// captured: from now on its maps show what is written.
    pub(super) fn show_shared(&mut self, fd: i32, opened: &Opened) {
        if self.live.contains(&opened.identity) || !self.process.shares(opened.identity) {
            return;
        }
        let file = reopen(fd);
        let made = file.map_err(Error::io("cannot map a file again")).and_then(|file| {
            use std::os::fd::AsRawFd;
            self.process.make_live(opened.identity, file.as_raw_fd()).map_err(|errno| {
                let error = std::io::Error::from_raw_os_error(errno);
                Error::Io { what: "cannot map a file again", error }
            })
        });
        match made {
            Ok(()) => drop(self.live.insert(opened.identity)),
            Err(error) => self.give_up(&error),
        }
    }

    /// Adds to the event what the call changed in a file that is mapped shared.
    pub(super) fn encode_changes(&mut self, asked: &Asked, result: i64) {
        if self.live.is_empty() || result < 0 {
            return;
        }
        let Some(part) = self.changed_part(asked, result as u64) else { return };
        use std::os::fd::AsRawFd;
        let opened = inspect(part.file.as_raw_fd());
        let Some(now) = opened.filter(|f| self.live.contains(&f.identity)) else { return };
        let (device, inode) = now.identity;
        let len = part.len.min(now.size.saturating_sub(part.offset));
        let mut data = vec![0; len as usize];
        if let Err(error) = part.file.read_exact_at(&mut data, part.offset) {
            self.give_up(&Error::Io { what: "cannot read a file that is mapped", error });
        }
        let (size, offset) = (now.size, part.offset);
        self.encoder.effect(&Effect::Changed { device, inode, size, offset, data: &data });
    }

    /// Where a finished call wrote to a file.
    fn changed_part(&mut self, asked: &Asked, result: u64) -> Option<Part> {
        let a = &asked.args;
        let memory = &self.process.machine.memory;
        let whole = |file: File| Part { file, offset: 0, len: u64::MAX };
        let (fd, at) = match asked.number as u32 {
            table::write | table::writev | table::sendfile => (asked.fd(0), None),
            table::pwrite64 | table::pwritev => (asked.fd(0), Some(a[3])),
            table::pwritev2 => (asked.fd(0), Some(a[3]).filter(|at| *at != u64::MAX)),
            // The pointer has been moved on by the call.
            table::splice | table::copy_file_range => {
                let after = if a[3] == 0 { None } else { memory.read_u64(a[3]) };
                (asked.fd(2), after.map(|after| after.wrapping_sub(result)))
            }
            table::ftruncate | table::fallocate => return reopen(asked.fd(0)).ok().map(whole),
            table::truncate => {
                let path = memory.read_string(a[0], 4096)?;
                return File::open(OsStr::from_bytes(&path)).ok().map(whole);
            }
            // Opening may truncate, or be the first to write to what is mapped.
            table::open | table::openat | table::openat2 | table::creat => {
                let writable = self.process.files.get(result as i32).is_some_and(|d| d.writable);
                return reopen(result as i32).ok().filter(|_| writable).map(whole);
            }
            _ => return None,
        };
        let offset = at.or_else(|| position(fd)?.checked_sub(result))?;
        Some(Part { file: reopen(fd).ok()?, offset, len: result })
    }
}

/// Where a descriptor stands.
fn position(fd: i32) -> Option<u64> {
    // SAFETY: asks only.
    let at = unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) };
    u64::try_from(at).ok()
}

/// The file behind a descriptor, for reading, and for writing if possible.
fn reopen(fd: i32) -> std::io::Result<File> {
    let path = format!("/proc/self/fd/{fd}");
    crate::clerk::run(|| {
        OpenOptions::new().read(true).write(true).open(&path).or_else(|_| File::open(&path))
    })
}
