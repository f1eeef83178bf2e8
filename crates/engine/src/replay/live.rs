//! Files that the run mapped shared and wrote to: memory files in a replay.

use crate::sys;
use std::collections::HashMap;
use std::io;

/// Memory files by the device and inode of what they stand for.
#[derive(Default)]
pub struct Live {
    files: HashMap<(u64, u64), i32>,
}

impl Live {
    /// The memory file for an identity, made with `contents` if it is new.
    pub fn get_or_make(&mut self, identity: (u64, u64), contents: &[u8]) -> io::Result<i32> {
        if let Some(fd) = self.files.get(&identity) {
            return Ok(*fd);
        }
        // SAFETY: a new memory file, filled from our own bytes.
        let fd = unsafe {
            let fd = libc::memfd_create(c"why-live".as_ptr(), libc::MFD_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = sys::move_high(fd)?;
            libc::ftruncate(fd, contents.len() as i64);
            write_all(fd, contents, 0);
            fd
        };
        self.files.insert(identity, fd);
        Ok(fd)
    }

    /// Descriptors of all memory files.
    pub fn descriptors(&self) -> Vec<i32> {
        self.files.values().copied().collect()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// A `write` to a file that is mapped too.
    pub fn write(&self, identity: (u64, u64), data: &[u8], offset: u64) {
        if let Some(fd) = self.files.get(&identity) {
            write_all(*fd, data, offset);
        }
    }

    /// A change of its length.
    pub fn truncate(&self, identity: (u64, u64), len: u64) {
        if let Some(fd) = self.files.get(&identity) {
            // SAFETY: our own descriptor.
            unsafe { libc::ftruncate(*fd, len as i64) };
        }
    }
}

fn write_all(fd: i32, mut data: &[u8], mut offset: u64) {
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
