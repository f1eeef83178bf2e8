//! Reading a recording's events, in order, from the start or from a position kept earlier.
//!
//! A reader holds one decompressed frame and uses `pread` only: forked processes share the
//! descriptor, but no offset.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::frame::{self, HEADER_LEN, Header};
use crate::log::{self, Found};
use crate::{LOG, TAIL, tail};

/// Buffers that one huge event made larger than this are given back.
const GREATEST_KEPT: usize = 8 << 20;

/// A place between two events.
///
/// It stays valid when the recording is closed by [`crate::finalise`], moved or copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReaderPosition {
    /// Number of events before this place.
    event: u64,
    /// Sequence number of the frame that holds the place.
    sequence: u64,
    /// Where that frame starts in the log; for the tail, where its frame will start.
    frame_at: u64,
    /// Where in the decompressed frame.
    cursor: u32,
    /// Number of the part that holds the place: ancestors' logs come before the own.
    #[serde(default)]
    part: u32,
}

/// The beginning of an ancestor's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Its folder.
    pub(crate) dir: PathBuf,
    /// How many of its events count.
    pub(crate) events: u64,
}

impl ReaderPosition {
    /// How many events of the recording come before this place.
    pub fn event(self) -> u64 {
        self.event
    }
}

/// Gives a recording's events one after the other.
pub struct Reader {
    /// The ancestors' parts, and the folder of the own log.
    before: Vec<Part>,
    own: PathBuf,
    /// The part that is open, and how many events come before its end.
    open: u32,
    until: u64,
    log: File,
    log_path: PathBuf,
    tail_path: PathBuf,
    /// The place of the next event.
    position: ReaderPosition,
    /// The decompressed frame that the position is in, if it has been loaded.
    loaded: Option<Loaded>,
    raw: Vec<u8>,
    stored: Vec<u8>,
}

/// Which frame is in the buffer, and where the one after it starts.
#[derive(Clone, Copy)]
struct Loaded {
    frame_at: u64,
    /// `None` for the tail, which has nothing behind it.
    next_frame_at: Option<u64>,
}

impl Reader {
    pub(crate) fn open(dir: &Path, before: &[Part]) -> Result<Reader> {
        let first = before.first().map_or(dir, |part| &part.dir);
        let (log, log_path) = open_log(first)?;
        Ok(Reader {
            tail_path: first.join(TAIL),
            before: before.to_vec(),
            own: dir.to_owned(),
            open: 0,
            until: before.first().map_or(u64::MAX, |part| part.events),
            log,
            log_path,
            position: ReaderPosition::default(),
            loaded: None,
            raw: Vec::new(),
            stored: Vec::new(),
        })
    }

    /// The next event, or `None` behind the last one.
    ///
    /// After [`Error::Damaged`] the same call gives the same error: nothing behind a damaged place
    /// can be trusted.
    #[expect(clippy::should_implement_trait, reason = "an event borrows the reader's buffer")]
    pub fn next(&mut self) -> Result<Option<&[u8]>> {
        while self.position.event >= self.until {
            self.open_part(self.position.part + 1)?;
            let part = self.open;
            self.position =
                ReaderPosition { event: self.position.event, part, ..Default::default() };
        }
        loop {
            let Some(loaded) = self.loaded else {
                if self.load()? {
                    continue;
                }
                return self.at_end();
            };
            let cursor = self.position.cursor as usize;
            if cursor >= self.raw.len() {
                let Some(next_frame_at) = loaded.next_frame_at else {
                    return self.at_end();
                };
                self.position.frame_at = next_frame_at;
                self.position.sequence += 1;
                self.position.cursor = 0;
                self.loaded = None;
                continue;
            }
            let event = frame::event_at(&self.raw, cursor)
                .ok_or_else(|| Error::damaged("an event is malformed", loaded.frame_at))?;
            self.position.cursor = event.end as u32;
            self.position.event += 1;
            return Ok(Some(&self.raw[event]));
        }
    }

    /// The own log may end anywhere; that of an ancestor must have what is built upon it.
    fn at_end(&self) -> Result<Option<&[u8]>> {
        match self.before.get(self.open as usize) {
            Some(_) => Err(Error::damaged(
                "the log of a parent process lacks events before the fork",
                self.position.frame_at,
            )),
            None => Ok(None),
        }
    }

    fn open_part(&mut self, part: u32) -> Result<()> {
        let dir = self.before.get(part as usize).map_or(&self.own, |part| &part.dir);
        (self.log, self.log_path) = open_log(dir)?;
        self.tail_path = dir.join(TAIL);
        self.open = part;
        self.until = match self.before.get(..=part as usize) {
            Some(parts) => parts.iter().fold(0, |sum, part| part.events.saturating_add(sum)),
            None => u64::MAX,
        };
        self.loaded = None;
        Ok(())
    }

    /// The place of the next event.
    pub fn position(&self) -> ReaderPosition {
        self.position
    }

    /// Goes to a place that a reader of the same recording was at.
    pub fn seek(&mut self, position: ReaderPosition) -> Result<()> {
        self.position = position;
        if position.part != self.open {
            if position.part as usize > self.before.len() {
                return Err(Error::damaged("no event is where one was", position.frame_at));
            }
            self.open_part(position.part)?;
        }
        if self.loaded.is_none_or(|loaded| loaded.frame_at != position.frame_at) {
            self.loaded = None;
            self.load()?;
        }
        if position.cursor as usize > self.raw.len() {
            return Err(Error::damaged("no event is where one was", position.frame_at));
        }
        Ok(())
    }

    /// Brings the frame of the current position into the buffer; false at the end.
    fn load(&mut self) -> Result<bool> {
        let ReaderPosition { frame_at, sequence, .. } = self.position;
        self.raw.clear();
        if self.raw.capacity() > GREATEST_KEPT {
            (self.raw, self.stored) = (Vec::new(), Vec::new());
        }
        let next_frame_at = match log::read_header(&self.log, &self.log_path, frame_at, sequence)? {
            Found::EndMark => return Ok(false),
            Found::Frame(header) => {
                self.load_frame(&header, frame_at)?;
                Some(frame_at + (HEADER_LEN + header.stored_len as usize) as u64)
            }
            Found::Torn => {
                let loaded = self.load_tail(frame_at, sequence);
                // Its writer may have closed the log since, and have no tail any more.
                let closed = || {
                    let found = log::read_header(&self.log, &self.log_path, frame_at, sequence);
                    matches!(found, Ok(Found::EndMark))
                };
                match loaded {
                    Err(_) if closed() => return Ok(false),
                    Err(error) => return Err(error),
                    Ok(false) => return Ok(false),
                    Ok(true) => None,
                }
            }
        };
        self.loaded = Some(Loaded { frame_at, next_frame_at });
        Ok(true)
    }

    fn load_frame(&mut self, header: &Header, at: u64) -> Result<()> {
        // The header was checked: so many bytes are in the file, and a frame is never larger.
        self.stored.resize(header.stored_len as usize, 0);
        self.log
            .read_exact_at(&mut self.stored, at + HEADER_LEN as u64)
            .map_err(|e| Error::io("read", &self.log_path, e))?;
        if crc32fast::hash(&self.stored) != header.data_crc {
            return Err(Error::damaged("a frame does not match its checksum", at));
        }
        let raw_len = header.raw_len as usize;
        self.raw
            .try_reserve_exact(raw_len)
            .map_err(|_| Error::damaged("a frame is larger than memory", at))?;
        let decompressed = zstd::bulk::Decompressor::new()
            .and_then(|mut zstd| zstd.decompress_to_buffer(&self.stored, &mut self.raw));
        if decompressed.ok() != Some(raw_len)
            || frame::count_events(&self.raw) != Some(header.events)
        {
            self.raw.clear();
            return Err(Error::damaged("a frame does not hold what its header states", at));
        }
        Ok(())
    }

    /// Loads the tail, if its events come next; false if the recording ends here.
    fn load_tail(&mut self, at: u64, sequence: u64) -> Result<bool> {
        let Some(left_over) = tail::read(&self.tail_path)? else {
            return Err(Error::damaged("the log was cut short", at));
        };
        if left_over.sequence > sequence {
            return Err(Error::damaged("the log lacks frames at its end", at));
        }
        // An older tail is in the log already: its writer died before it could empty it.
        if left_over.sequence < sequence || left_over.raw.is_empty() {
            return Ok(false);
        }
        if frame::count_events(&left_over.raw).is_none() {
            return Err(Error::damaged("the tail ends within an event", at));
        }
        self.raw = left_over.raw;
        Ok(true)
    }
}

fn open_log(dir: &Path) -> Result<(File, PathBuf)> {
    let path = dir.join(LOG);
    let file = File::open(&path).map_err(|e| Error::io("open", &path, e))?;
    Ok((file, path))
}
