//! Making a recording: events go in, one by one, and are safe from then on.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::frame::{self, MAX_EVENT, MAX_LENGTH_BYTES};
use crate::log::Log;
use crate::manifest::Manifest;
use crate::outcome::Outcome;
use crate::process::Process;
use crate::tail::{self, Tail};
use crate::{FILES, LOG, MANIFEST, OUTCOME, PROCESSES, TAIL, json};

/// How a recording is written.
#[derive(Clone, Debug)]
pub struct Options {
    /// The most bytes that log and captured files may take together; `None` for no limit.
    ///
    /// What compresses badly may exceed it by the size of a frame's header.
    pub max_bytes: Option<u64>,
    /// What all logs of the run take so far, in memory that their processes share; `None` if
    /// there is one log only.
    pub total: Option<&'static AtomicU64>,
    /// How many bytes of events become one compressed frame.
    ///
    /// One mebibyte compresses nearly as well as more, and a replaying process holds one
    /// decompressed frame in memory, which each of its forks may come to own.
    pub frame_bytes: usize,
    /// The writer's own descriptor gets this number or a higher one, out of a guest's way.
    pub lowest_fd: i32,
}

impl Default for Options {
    fn default() -> Options {
        Options { max_bytes: None, total: None, frame_bytes: 1 << 20, lowest_fd: 3 }
    }
}

/// A recording being made.
///
/// Dropping it without [`Writer::finish`] leaves what a killed recorder leaves: a recording with
/// every appended event and no outcome.
pub struct Writer {
    dir: PathBuf,
    tail: Tail,
    log: Log,
    frame_bytes: usize,
    max_bytes: Option<u64>,
    total: Option<&'static AtomicU64>,
    /// Bytes of captured files, counted by `charge`.
    charged: u64,
    /// Events appended so far.
    events: u64,
    state: State,
}

/// Whether events are still accepted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The size limit is reached.
    Full,
    /// An event could not be written: whatever came later would make a recording with a hole.
    Failed,
}

impl Writer {
    /// Makes `dir`, which may exist if it is empty or was prepared with [`prepare`], a recording
    /// without events.
    pub fn create(dir: &Path, manifest: &Manifest, options: &Options) -> Result<Writer> {
        Writer::create_with(dir, manifest, options, None)
    }

    /// The same, with the tail of a log that the process has closed.
    pub fn create_with(
        dir: &Path,
        manifest: &Manifest,
        options: &Options,
        spare: Option<SpareTail>,
    ) -> Result<Writer> {
        if manifest.process.log == Process::FIRST && !is_prepared(dir) {
            prepare(dir)?;
        }
        let frame_bytes = options.frame_bytes.clamp(1, tail::MAX_CAPACITY);
        let path = dir.join(TAIL);
        let mut writer = Writer {
            log: Log::create(&dir.join(LOG), options.lowest_fd)?,
            tail: match spare.filter(|spare| spare.frame_bytes == frame_bytes) {
                Some(spare) => spare.move_to(&path)?,
                None => Tail::create(&path, frame_bytes)?,
            },
            dir: dir.to_owned(),
            frame_bytes,
            max_bytes: options.max_bytes,
            total: options.total,
            charged: 0,
            events: 0,
            state: State::Open,
        };
        writer.set_room();
        // Last, for it is the manifest that makes a folder a recording.
        json::write(&dir.join(MANIFEST), manifest)?;
        Ok(writer)
    }

    /// Appends one event: once this returns, a kill of the process does not lose it.
    ///
    /// After any error no further event is accepted, for the log would have a hole.
    #[inline]
    pub fn append(&mut self, event: &[u8]) -> Result<()> {
        self.append_parts(&[event])
    }

    /// Appends one event whose bytes are those of all `parts` together.
    #[inline]
    pub fn append_parts(&mut self, parts: &[&[u8]]) -> Result<()> {
        let len = parts.iter().map(|part| part.len()).sum();
        self.events += 1;
        if self.tail.append(parts, len) { Ok(()) } else { self.append_slowly(parts, len) }
    }

    /// Counts `bytes` of newly captured files against the size limit.
    pub fn charge(&mut self, bytes: u64) -> Result<()> {
        self.charged = self.charged.saturating_add(bytes);
        self.count(bytes);
        if self.state == State::Open && self.max_bytes.is_some_and(|max| self.bytes_of_run() > max)
        {
            self.stop(State::Full);
        }
        self.set_room();
        self.accepting()
    }

    /// The bytes of this recording so far, captured files included if they were charged.
    pub fn bytes_written(&self) -> u64 {
        self.log.len() + self.tail.used() as u64 + self.charged
    }

    /// How many events were appended.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The recording's folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where in this process the tail is mapped: nothing but this writer may store there.
    pub fn mapped(&self) -> Range<usize> {
        self.tail.addresses()
    }

    /// Closes the recording of a run that ended so.
    pub fn finish(mut self, outcome: &Outcome) -> Result<()> {
        self.flush()?;
        self.log.close()?;
        // A closed log needs no tail. It becomes the outcome's file rather than be removed:
        // ext4 does not use the inode of a removed file again for some seconds, and looks at
        // all such inodes whenever a file is made, which costs a run of many short processes
        // more than anything else does.
        let Writer { dir, tail, .. } = self;
        drop(tail);
        json::write_over(&dir.join(TAIL), &dir.join(OUTCOME), outcome)
    }

    /// The same if the process will begin another log at once: the tail is for that one.
    pub fn finish_for_next(mut self, outcome: &Outcome) -> Result<SpareTail> {
        self.flush()?;
        self.log.close()?;
        let Writer { dir, tail, frame_bytes, .. } = self;
        json::write(&dir.join(OUTCOME), outcome)?;
        Ok(SpareTail { path: dir.join(TAIL), tail, frame_bytes })
    }

    #[cold]
    fn append_slowly(&mut self, parts: &[&[u8]], len: usize) -> Result<()> {
        self.accepting()?;
        if len > MAX_EVENT {
            self.stop(State::Failed);
            return Err(Error::EventTooLarge { len: len as u64, limit: MAX_EVENT as u64 });
        }
        self.flush().inspect_err(|_| self.stop(State::Failed))?;
        if self.left() < (len + MAX_LENGTH_BYTES) as u64 {
            self.stop(State::Full);
        }
        self.accepting()?;
        if self.tail.append(parts, len) {
            return Ok(());
        }
        self.append_alone(parts, len).inspect_err(|_| self.stop(State::Failed))
    }

    /// Appends an event that is larger than the tail as a frame of its own.
    fn append_alone(&mut self, parts: &[&[u8]], len: usize) -> Result<()> {
        let mut length = [0; MAX_LENGTH_BYTES];
        let used = frame::put_length(&mut length, len);
        let mut raw = Vec::with_capacity(used + len);
        raw.extend_from_slice(&length[..used]);
        parts.iter().for_each(|part| raw.extend_from_slice(part));
        let before = self.log.len();
        self.log.append(&raw, 1)?;
        self.count(self.log.len() - before);
        self.log.shrink_buffer();
        self.start_tail();
        Ok(())
    }

    /// Turns the tail into a frame.
    fn flush(&mut self) -> Result<()> {
        if self.tail.used() > 0 {
            let before = self.log.len();
            self.log.append(self.tail.raw(), self.tail.events())?;
            self.count(self.log.len() - before);
            self.start_tail();
        }
        Ok(())
    }

    fn start_tail(&mut self) {
        self.tail.empty(self.log.sequence());
        self.set_room();
    }

    /// The size limit is kept by making the tail smaller near its end, at no cost to `append`.
    fn set_room(&mut self) {
        let left = self.left().saturating_add(self.tail.used() as u64);
        let room = self.frame_bytes.min(usize::try_from(left).unwrap_or(usize::MAX));
        self.tail.set_room(if self.state == State::Open { room } else { 0 });
    }

    fn left(&self) -> u64 {
        self.max_bytes.map_or(u64::MAX, |max| max.saturating_sub(self.bytes_of_run()))
    }

    /// The bytes of all logs of the run, as far as their tails have become frames, and of this
    /// one.
    fn bytes_of_run(&self) -> u64 {
        match self.total {
            None => self.bytes_written(),
            Some(total) => total.load(Ordering::Relaxed) + self.tail.used() as u64,
        }
    }

    fn count(&self, bytes: u64) {
        if let Some(total) = self.total {
            total.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn stop(&mut self, state: State) {
        self.state = state;
        self.set_room();
    }

    fn accepting(&self) -> Result<()> {
        match self.state {
            State::Open => Ok(()),
            State::Full => Err(Error::LimitReached { limit: self.max_bytes.unwrap_or(u64::MAX) }),
            State::Failed => Err(Error::Stopped),
        }
    }
}

/// The tail of a closed log. Moving it costs less than making one: most of what a short process
/// costs is the files that are made for it.
pub struct SpareTail {
    path: PathBuf,
    tail: Tail,
    frame_bytes: usize,
}

impl SpareTail {
    fn move_to(mut self, path: &Path) -> Result<Tail> {
        self.tail.empty(0);
        fs::rename(&self.path, path).map_err(|e| Error::io("create", path, e))?;
        Ok(self.tail)
    }
}

/// Closes the recording in `dir`, whose recording process is gone, as that process would have.
///
/// Whoever waits for a recording process calls this when it has ended, in whatever way. If the
/// process finished the recording itself, its outcome stays; calling this again changes nothing.
pub fn finalise(dir: &Path, outcome: &Outcome) -> Result<()> {
    if !crate::is_recording(dir) {
        return Err(Error::NotARecording { path: dir.to_owned() });
    }
    let closed = close_log(dir);
    let path = dir.join(OUTCOME);
    if closed.is_err() {
        // The disk may be full, and what the tail does not use is room for the outcome.
        let _ = tail::shrink(&dir.join(TAIL));
    }
    if !path.exists() {
        json::write(&path, outcome)?;
    }
    closed?;
    remove_tail(dir)
}

/// Appends a left-over tail and the end mark to the log, unless that was done.
fn close_log(dir: &Path) -> Result<()> {
    let (mut log, closed) = Log::reopen(&dir.join(LOG))?;
    if closed {
        return Ok(());
    }
    let Some(left_over) = tail::read(&dir.join(TAIL))? else {
        return Err(Error::damaged("the log was cut short", log.len()));
    };
    if left_over.sequence > log.sequence() {
        return Err(Error::damaged("the log lacks frames at its end", log.len()));
    }
    log.cut_torn_frame()?;
    if left_over.sequence == log.sequence() && !left_over.raw.is_empty() {
        let events = frame::count_events(&left_over.raw)
            .ok_or_else(|| Error::damaged("the tail ends within an event", 0))?;
        log.append(&left_over.raw, events)?;
    }
    log.close()
}

/// Makes `dir` a folder into which files can be captured before the manifest, which names some of
/// them, is written by [`Writer::create`].
pub fn prepare(dir: &Path) -> Result<()> {
    let creating = |e| Error::io("create", dir, e);
    if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent).map_err(|e| Error::io("create", parent, e))?;
    }
    match DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            let empty = fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none());
            if !empty {
                return Err(Error::FolderInUse { path: dir.to_owned() });
            }
            fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(creating)?;
        }
        Err(e) => return Err(creating(e)),
    }
    let files = dir.join(FILES);
    DirBuilder::new().mode(0o700).create(files).map_err(creating)
}

/// Makes the folder for log number `log` of the recording in `root`, where the captured
/// files of all logs are.
pub fn prepare_process(root: &Path, log: u64) -> Result<PathBuf> {
    let folder = root.join(PROCESSES);
    let dir = folder.join(log.to_string());
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&dir);
    made.map_err(|e| Error::io("create", &dir, e))?;
    Ok(dir)
}

fn is_prepared(dir: &Path) -> bool {
    let mut entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(_) => return false,
    };
    let first = entries.next().and_then(|e| e.ok());
    first.is_some_and(|e| e.file_name() == FILES) && entries.next().is_none()
}

fn remove_tail(dir: &Path) -> Result<()> {
    let path = dir.join(TAIL);
    match fs::remove_file(&path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", &path, e)),
        _ => Ok(()),
    }
}
