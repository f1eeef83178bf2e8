//! The file `log`: frames one after the other, then the end mark.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use zstd::zstd_safe::compress_bound;

use crate::error::{Error, Result};
use crate::frame::{HEADER_LEN, Header};

/// Fast enough to keep up with a recorder, and still three to ten times smaller.
const LEVEL: i32 = 1;

/// A log being written: knows where its last whole frame ends.
pub(crate) struct Log {
    file: File,
    path: PathBuf,
    /// Where the next frame goes.
    end: u64,
    /// The next frame's sequence number, which is the number of frames so far.
    sequence: u64,
    /// One frame as it goes to disk, kept to avoid allocating for each.
    buffer: Vec<u8>,
}

impl Log {
    /// Creates an empty log; its descriptor will be numbered `lowest_fd` or higher.
    pub(crate) fn create(path: &Path, lowest_fd: i32) -> Result<Log> {
        let create = || -> io::Result<File> {
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            Ok(File::from(rustix::io::fcntl_dupfd_cloexec(file.as_fd(), lowest_fd)?))
        };
        let file = create().map_err(|e| Error::io("create", path, e))?;
        Ok(Log { file, path: path.to_owned(), end: 0, sequence: 0, buffer: Vec::new() })
    }

    /// Opens a log whose writer died, to go on after its last whole frame.
    ///
    /// Returns whether it is closed already, that is, whether it has its end mark.
    pub(crate) fn reopen(path: &Path) -> Result<(Log, bool)> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|e| Error::io("open", path, e))?;
        let mut log = Log { file, path: path.to_owned(), end: 0, sequence: 0, buffer: Vec::new() };
        loop {
            match read_header(&log.file, path, log.end, log.sequence)? {
                Found::Frame(header) => {
                    log.end += (HEADER_LEN + header.stored_len as usize) as u64;
                    log.sequence += 1;
                }
                Found::EndMark => return Ok((log, true)),
                Found::Torn => return Ok((log, false)),
            }
        }
    }

    /// Compresses `events` events, which are `raw` together, and appends them as one frame.
    pub(crate) fn append(&mut self, raw: &[u8], events: u32) -> Result<()> {
        let room = HEADER_LEN + compress_bound(raw.len());
        if self.buffer.len() < room {
            self.buffer.resize(room, 0);
        }
        let stored_len = zstd::bulk::Compressor::new(LEVEL)
            .and_then(|mut zstd| zstd.compress_to_buffer(raw, &mut self.buffer[HEADER_LEN..]))
            .map_err(|e| Error::io("compress events for", &self.path, e))?;
        let stored = HEADER_LEN + stored_len;
        let header = Header {
            sequence: self.sequence,
            raw_len: raw.len() as u32,
            stored_len: stored_len as u32,
            events,
            data_crc: crc32fast::hash(&self.buffer[HEADER_LEN..stored]),
        };
        self.buffer[..HEADER_LEN].copy_from_slice(&header.encode());
        self.write_frame(stored)?;
        self.sequence += 1;
        Ok(())
    }

    /// Appends the end mark.
    pub(crate) fn close(mut self) -> Result<()> {
        self.buffer.clear();
        self.buffer.extend_from_slice(&Header::end_mark(self.sequence).encode());
        self.write_frame(HEADER_LEN)
    }

    /// Cuts off what a killed writer left behind the last whole frame.
    pub(crate) fn cut_torn_frame(&mut self) -> Result<()> {
        self.file.set_len(self.end).map_err(|e| Error::io("shorten", &self.path, e))
    }

    /// The length of all whole frames.
    pub(crate) fn len(&self) -> u64 {
        self.end
    }

    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Gives back the memory that one huge frame took.
    pub(crate) fn shrink_buffer(&mut self) {
        self.buffer = Vec::new();
    }

    /// Writes the first `len` bytes of the buffer; on failure the log is as it was.
    fn write_frame(&mut self, len: usize) -> Result<()> {
        self.file.write_all_at(&self.buffer[..len], self.end).map_err(|e| {
            let _ = self.file.set_len(self.end);
            Error::io("write", &self.path, e)
        })?;
        self.end += len as u64;
        Ok(())
    }
}

/// What stands at some place of a log.
pub(crate) enum Found {
    /// A frame, all of whose bytes are there.
    Frame(Header),
    /// The end mark.
    EndMark,
    /// Nothing, or the beginning of a frame that was never finished.
    Torn,
}

/// Reads the header of the frame number `sequence`, which is at `at`.
pub(crate) fn read_header(file: &File, path: &Path, at: u64, sequence: u64) -> Result<Found> {
    let reading = |e| Error::io("read", path, e);
    let left = file.metadata().map_err(reading)?.len().saturating_sub(at);
    if left < HEADER_LEN as u64 {
        return Ok(Found::Torn);
    }
    let mut bytes = [0; HEADER_LEN];
    file.read_exact_at(&mut bytes, at).map_err(reading)?;
    let header = Header::decode(&bytes).map_err(|what| Error::damaged(what, at))?;
    if header.sequence != sequence {
        let what = format!("frame {} stands where frame {sequence} belongs", header.sequence);
        return Err(Error::damaged(what, at));
    }
    Ok(if header.is_end_mark() {
        Found::EndMark
    } else if left - (HEADER_LEN as u64) < u64::from(header.stored_len) {
        Found::Torn
    } else {
        Found::Frame(header)
    })
}
