//! Keeping what the run reads: whole files at `open`.

use super::session::Session;
use crate::Error;
use recording::FileId;
use std::os::fd::{BorrowedFd, RawFd};

/// Larger files are not kept whole, only what is read of them.
const LARGEST: u64 = 64 << 20;

/// What `fstat` said of an opened file.
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    /// Device and inode.
    pub identity: (u64, u64),
    /// Size.
    pub size: u64,
    /// A regular file?
    pub regular: bool,
    /// All that `fstat` said.
    pub stat: [u8; 144],
    /// Changes when the contents do: size, and time of change in nanoseconds.
    pub stamp: Stamp,
}

/// See [`Opened::stamp`].
pub type Stamp = (u64, i64, i64);

/// Looks at a descriptor.
pub fn inspect(fd: RawFd) -> Option<Opened> {
    // SAFETY: plain fstat into a zeroed buffer.
    let stat = unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        if libc::fstat(fd, &mut stat) != 0 {
            return None;
        }
        stat
    };
    Some(Opened {
        identity: (stat.st_dev, stat.st_ino),
        size: stat.st_size as u64,
        regular: stat.st_mode & libc::S_IFMT == libc::S_IFREG,
        // SAFETY: plain data of this size, fully initialised.
        stat: unsafe { std::mem::transmute::<libc::stat, [u8; 144]>(stat) },
        stamp: (stat.st_size as u64, stat.st_mtime, stat.st_mtime_nsec),
    })
}

impl Session {
    /// Captures the contents of a regular file, unless it is too large.
    pub fn capture(&mut self, fd: RawFd, path: &[u8], size: u64) -> Result<Option<FileId>, Error> {
        if size > LARGEST {
            self.note_partly_captured(path);
            return Ok(None);
        }
        self.capture_whole(fd).map(Some)
    }

    /// Captures the contents whatever their size.
    pub fn capture_whole(&mut self, fd: RawFd) -> Result<FileId, Error> {
        // SAFETY: the descriptor is open for the time of the call.
        let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
        let captured = crate::clerk::run(|| self.store.capture(borrowed, &self.dir))?;
        self.files_captured += 1;
        if let Some(writer) = &mut self.writer {
            writer.charge(captured.added)?;
        }
        Ok(captured.id)
    }
}
