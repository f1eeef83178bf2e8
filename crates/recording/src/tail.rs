//! The events since the last frame, uncompressed, in the file `tail`.
//!
//! The file is mapped shared, so an appended event is in the kernel's hands the moment it is
//! stored: killing the recorder loses nothing, and appending costs no system call. Layout, little
//! endian:
//!
//! | bytes | field |
//! | --- | --- |
//! | 0..8 | magic `WyTail01` |
//! | 8..16 | sequence number of the frame that these events will become |
//! | 16..24 | mark: low half the bytes in use, high half their CRC-32, begun with the sequence number |
//! | 64.. | events, exactly as in a frame's decompressed bytes |
//!
//! An event counts once the mark covers it. The mark is stored last and in one piece, so a torn
//! event is never seen. Emptying the tail stores a zero mark and then the next sequence number;
//! nothing is cleared. A recorder killed after a frame was appended and before its tail was emptied
//! leaves a tail with the sequence number of a frame that exists: readers then ignore the tail.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crc32fast::Hasher;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::frame::{MAX_LENGTH_BYTES, put_length, u32_at, u64_at};
use crate::mapping::Mapping;

const MAGIC: [u8; 8] = *b"WyTail01";
const SEQUENCE: usize = 8;
const MARK: usize = 16;
/// Events start on a cache line of their own.
const HEADER_LEN: usize = 64;

/// No tail is larger, so a hostile file cannot make a reader allocate without bound.
pub(crate) const MAX_CAPACITY: usize = 64 << 20;

/// The tail of a recording that is being written.
pub(crate) struct Tail {
    map: Mapping,
    used: usize,
    room: usize,
    events: u32,
    checksum: Hasher,
}

impl Tail {
    /// Creates the file for `capacity` bytes of events, all of them allocated on disk.
    pub(crate) fn create(path: &Path, capacity: usize) -> Result<Tail> {
        let len = (HEADER_LEN + capacity).next_multiple_of(4096);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(|e| Error::io("create", path, e))?;
        allocate(&file, len).map_err(|e| Error::io("allocate", path, e))?;
        let map = Mapping::new(&file, len).map_err(|e| Error::io("map", path, e))?;
        let mut tail = Tail { map, used: 0, room: capacity, events: 0, checksum: Hasher::new() };
        tail.map.bytes_mut()[..8].copy_from_slice(&MAGIC);
        tail.empty(0);
        Ok(tail)
    }

    /// Appends one event given in parts, of `len` bytes together; false if there is no room.
    #[inline]
    pub(crate) fn append(&mut self, parts: &[&[u8]], len: usize) -> bool {
        if len.saturating_add(MAX_LENGTH_BYTES) > self.room.saturating_sub(self.used) {
            return false;
        }
        let start = HEADER_LEN + self.used;
        let bytes = self.map.bytes_mut();
        let mut length = [0; MAX_LENGTH_BYTES];
        let mut at = start + put_length(&mut length, len);
        bytes[start..at].copy_from_slice(&length[..at - start]);
        for part in parts {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        self.checksum.update(&bytes[start..at]);
        self.used = at - HEADER_LEN;
        self.events += 1;
        self.map.publish(MARK, mark(self.used, self.checksum.clone()));
        true
    }

    /// Forgets the events, which are now in the frame before `sequence`.
    pub(crate) fn empty(&mut self, sequence: u64) {
        self.map.publish(MARK, 0);
        self.map.publish(SEQUENCE, sequence);
        self.used = 0;
        self.events = 0;
        self.checksum = checksum_of(sequence);
    }

    /// Limits how many bytes of events may be in here before `append` refuses.
    pub(crate) fn set_room(&mut self, room: usize) {
        self.room = room.min(self.map.bytes().len() - HEADER_LEN);
    }

    pub(crate) fn raw(&self) -> &[u8] {
        &self.map.bytes()[HEADER_LEN..HEADER_LEN + self.used]
    }

    pub(crate) fn used(&self) -> usize {
        self.used
    }

    pub(crate) fn events(&self) -> u32 {
        self.events
    }

    pub(crate) fn addresses(&self) -> Range<usize> {
        self.map.addresses()
    }
}

/// A tail found on disk, checked.
pub(crate) struct LeftOver {
    /// The frame that its events belong to.
    pub(crate) sequence: u64,
    /// Its events, as in a frame.
    pub(crate) raw: Vec<u8>,
}

/// Reads the tail at `path`, if there is one.
pub(crate) fn read(path: &Path) -> Result<Option<LeftOver>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io("open", path, e)),
    };
    let reading = |e| Error::io("read", path, e);
    let file_len = file.metadata().map_err(reading)?.len();
    let mut header = [0; HEADER_LEN];
    if file_len < HEADER_LEN as u64 {
        return Err(Error::damaged("the tail is too short", file_len));
    }
    file.read_exact_at(&mut header, 0).map_err(reading)?;
    if header[..8] != MAGIC {
        return Err(Error::damaged("the tail has no header", 0));
    }
    let sequence = u64_at(&header, SEQUENCE);
    let (used, crc) = (u32_at(&header, MARK), u32_at(&header, MARK + 4));
    if used as usize > MAX_CAPACITY || u64::from(used) > file_len - HEADER_LEN as u64 {
        return Err(Error::damaged("the tail states an impossible length", MARK as u64));
    }
    let mut raw = vec![0; used as usize];
    file.read_exact_at(&mut raw, HEADER_LEN as u64).map_err(reading)?;
    if u64::from(crc) << 32 | u64::from(used) != mark_of(sequence, &raw) {
        return Err(Error::damaged("the tail does not match its checksum", HEADER_LEN as u64));
    }
    Ok(Some(LeftOver { sequence, raw }))
}

/// Gives back the room behind the events of a tail that nobody writes to any more.
pub(crate) fn shrink(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let mut header = [0; HEADER_LEN];
    file.read_exact_at(&mut header, 0)?;
    let len = HEADER_LEN as u64 + u64::from(u32_at(&header, MARK));
    if header[..8] == MAGIC && len < file.metadata()?.len() { file.set_len(len) } else { Ok(()) }
}

fn mark_of(sequence: u64, raw: &[u8]) -> u64 {
    if raw.is_empty() {
        return 0;
    }
    let mut checksum = checksum_of(sequence);
    checksum.update(raw);
    mark(raw.len(), checksum)
}

#[inline]
fn mark(used: usize, checksum: Hasher) -> u64 {
    u64::from(checksum.finalize()) << 32 | used as u64
}

fn checksum_of(sequence: u64) -> Hasher {
    let mut checksum = Hasher::new();
    checksum.update(&sequence.to_le_bytes());
    checksum
}

/// Gives `file` its length and its blocks, so that a full disk shows now and not as a SIGBUS.
fn allocate(file: &File, len: usize) -> io::Result<()> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, len as u64) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.write_all_at(&vec![0; len], 0),
        other => Ok(other?),
    }
}
