//! Files that the run mapped shared and wrote to: memory files in a replay.

use crate::sys;
use std::collections::HashMap;
use std::io;

/// A memory file's device and inode, and what it holds.
pub type Kept = ((u64, u64), Vec<u8>);

/// Memory files by the device and inode of what they stand for.
#[derive(Default)]
pub struct Live {
    files: HashMap<(u64, u64), i32>,
}

impl Live {
    /// The memory file for an identity, with these contents from now on.
    pub fn set(&mut self, identity: (u64, u64), contents: &[u8]) -> io::Result<i32> {
        let fd = match self.files.get(&identity) {
            Some(fd) => *fd,
            None => {
                let fd = memory_file()?;
                self.files.insert(identity, fd);
                fd
            }
        };
        set_len(fd, contents.len() as u64);
        write_changed(fd, contents);
        Ok(fd)
    }

    /// Copies of all memory files, for a process that goes its own way.
    pub fn copies(&self) -> io::Result<Live> {
        let mut copy = Live::default();
        for (identity, fd) in &self.files {
            copy.set(*identity, &read_all(*fd)?)?;
        }
        Ok(copy)
    }

    /// What the memory files hold, by what they stand for.
    pub fn contents(&self) -> io::Result<Vec<Kept>> {
        self.files.iter().map(|(identity, fd)| Ok((*identity, read_all(*fd)?))).collect()
    }

    /// Closes the memory files.
    pub fn close(self) {
        for fd in self.files.into_values() {
            // SAFETY: our own descriptor.
            unsafe { libc::close(fd) };
        }
    }

    /// The memory files, by what they stand for.
    pub fn files(&self) -> impl Iterator<Item = ((u64, u64), i32)> {
        self.files.iter().map(|(identity, fd)| (*identity, *fd))
    }

    /// Descriptors of all memory files.
    pub fn descriptors(&self) -> Vec<i32> {
        self.files.values().copied().collect()
    }

    /// A file that is mapped was changed by a call.
    pub fn change(&self, identity: (u64, u64), size: u64, offset: u64, data: &[u8]) {
        if let Some(fd) = self.files.get(&identity) {
            set_len(*fd, size);
            write_all(*fd, data, offset);
        }
    }
}

pub fn memory_file() -> io::Result<i32> {
    // SAFETY: a new descriptor that nobody else owns.
    let fd = unsafe { libc::memfd_create(c"why-live".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    sys::move_high(fd)
}

pub fn set_len(fd: i32, len: u64) {
    // SAFETY: our own descriptor.
    unsafe { libc::ftruncate(fd, len as i64) };
}

fn read_all(fd: i32) -> io::Result<Vec<u8>> {
    std::fs::read(format!("/proc/self/fd/{fd}"))
}

/// Writes only the pages that differ: most of the time none does.
fn write_changed(fd: i32, contents: &[u8]) {
    let old = read_all(fd).unwrap_or_default();
    for (n, page) in contents.chunks(4096).enumerate() {
        if old.get(n * 4096..n * 4096 + page.len()) != Some(page) {
            write_all(fd, page, n as u64 * 4096);
        }
    }
}

pub fn write_all(fd: i32, mut data: &[u8], mut offset: u64) {
    while !data.is_empty() {
        // SAFETY: writes our own bytes to our own descriptor.
        let n = unsafe { libc::pwrite(fd, data.as_ptr().cast(), data.len(), offset as i64) };
        if n <= 0 {
            return;
        }
        data = &data[n as usize..];
        offset += n as u64;
    }
}
