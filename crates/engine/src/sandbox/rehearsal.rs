//! What goes before all trials: forks that replay the whole run. What they translate
//! is kept for all others, and what one of them sees of the outside are the [`Facts`].

use super::facts::{Captured, Facts};
use super::rejoin::Meetings;
use super::walker::{Child, fork, pipe};
use crate::Error;
use crate::code::Cache;
use crate::guest::plain::Rate;
use crate::record::beginning::Beginning;
use crate::replay::{Finish, Replayer, Until};
use recording::Ending;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;

/// What the run came to without any change.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Original {
    /// Standard output and standard error.
    pub outputs: [Vec<u8>; 2],
    /// Instructions executed.
    pub instructions: u64,
    /// How it ended: status as `wait` gives it; `None` where the recording breaks
    /// off.
    pub status: Option<i32>,
    /// Where it stood then.
    pub pc: u64,
    /// When it wrote what, in order.
    pub written: Vec<Written>,
}

/// A call that wrote to standard output or standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// To which: 0 or 1.
    pub stream: usize,
    /// Bytes that were written to it then.
    pub end: usize,
    /// Instructions executed by then.
    pub number: u64,
}

impl Original {
    /// How many instructions had been executed when a byte was written, if it was.
    pub fn written_at(&self, stream: usize, byte: usize) -> Option<u64> {
        let calls = self.written.iter().filter(|call| call.stream == stream);
        calls.filter(|call| call.end > byte).map(|call| call.number).next()
    }
}

#[derive(Serialize, Deserialize)]
struct Rehearsed {
    original: Original,
    facts: Facts,
    safepoints: u64,
    /// May its translations be used?
    stable: bool,
}

/// Lets forks replay the whole run, and prepares a replay that stands at its first
/// instruction for trials.
pub(super) fn rehearse(replayer: &mut Replayer, beginning: &Beginning) -> Result<Original, Error> {
    let (mut read, counted) = rehearse_counted(replayer)?;
    let plain = rehearse_plain(replayer)?;
    let mut bytes = Vec::new();
    read.read_to_end(&mut bytes).map_err(Error::io("the rehearsal died"))?;
    drop(counted);
    let said: Result<Result<Rehearsed, String>, _> = postcard::from_bytes(&bytes);
    let rehearsed = match said {
        Ok(Ok(rehearsed)) => rehearsed,
        Ok(Err(text)) => return Err(Error::CannotGoOn(text)),
        Err(_) => return Err(Error::CannotGoOn("the rehearsal of the run died".to_owned())),
    };
    let machine = &mut replayer.process.machine;
    if !rehearsed.stable {
        machine.cache.reset();
    }
    let no_map = Error::io("cannot map the code cache");
    machine.cache.keep_to_itself(rehearsed.stable).map_err(no_map)?;
    let (child, cache) = plain;
    // Code that changes is translated where it runs.
    if child.ends_well() && rehearsed.stable {
        let instructions = rehearsed.original.instructions;
        let rate = Rate { instructions, safepoints: rehearsed.safepoints };
        machine.keep_plain(cache, rate).map_err(Error::io("cannot map the code cache"))?;
    }
    if let Some(world) = &mut replayer.world {
        world.facts = rehearsed.facts;
        world.facts.changed.clear();
        know_images(&mut world.facts, beginning);
        for (path, stat) in &beginning.around {
            let said = stat.clone().ok_or(-i64::from(libc::ENOENT));
            world.facts.stats.entry((path.clone(), true)).or_insert(said);
        }
    }
    Ok(rehearsed.original)
}

/// The program and its interpreter can be opened even if the run did not: they are in
/// the recording.
fn know_images(facts: &mut Facts, beginning: &Beginning) {
    let program = (beginning.program, beginning.program_path.clone());
    let images = std::iter::once(program).chain(beginning.interpreter.clone());
    for (n, (file, path)) in images.enumerate() {
        let captured = Captured { file: Some(file.0.0), identity: (3, n as u64) };
        facts.opens.entry(path).or_insert(Ok(captured));
    }
}

/// Replays the run with counted code, and looks at what is outside.
fn rehearse_counted(replayer: &mut Replayer) -> Result<(File, Child), Error> {
    let (read, write) = pipe().map_err(Error::io("cannot make a pipe"))?;
    let (read, mut write) = (File::from(read), File::from(write));
    let read_fd = read.as_raw_fd();
    let child = fork(|| {
        // SAFETY: the parent's end.
        unsafe { libc::close(read_fd) };
        let said = run_counted(replayer).map_err(|error| error.to_string());
        let bytes = postcard::to_allocvec(&said).unwrap_or_default();
        let _ = write.write_all(&bytes);
        // SAFETY: not dropped, because the replay's memory need not be unmapped.
        unsafe { libc::_exit(0) }
    })?;
    Ok((read, child))
}

fn run_counted(replayer: &mut Replayer) -> Result<Rehearsed, Error> {
    if let Some(world) = &mut replayer.world {
        world.facts.meetings = Meetings::collecting();
    }
    let program = replayer.process.program.clone();
    replayer.written = Some(Vec::new());
    let status = match replayer.run(Until::End)? {
        Finish::Ended(Ending::Exited(status)) => Some(status << 8),
        Finish::Ended(Ending::Killed { signal }) => Some(signal),
        _ => None,
    };
    let machine = &replayer.process.machine;
    // Another program has other code at the same addresses.
    let executed = replayer.process.program != program;
    let stable = !executed && !machine.watches_code() && machine.cache.discarded() == 0;
    let mut world = replayer.world.take().expect("it was given");
    world.facts.meetings.finish(replayer.instructions());
    let original = Original {
        outputs: world.outputs,
        instructions: replayer.instructions(),
        status,
        pc: replayer.registers().rip,
        written: replayer.written.take().unwrap_or_default(),
    };
    Ok(Rehearsed { original, facts: world.facts, safepoints: replayer.passed, stable })
}

/// Replays the run with plain code, for its translations.
fn rehearse_plain(replayer: &mut Replayer) -> Result<(Child, Cache), Error> {
    let no_map = || Error::io("cannot map the code cache");
    let cache = Cache::to_be_filled().map_err(no_map())?;
    let theirs = &raw const cache;
    let child = fork(|| {
        // SAFETY: in the child nobody else uses it, and the child ends without
        // dropping the original.
        let cache = unsafe { std::ptr::read(theirs) };
        replayer.world = None;
        let done = replayer.process.machine.run_plain(cache).map_err(no_map());
        let done = done.and_then(|()| replayer.run(Until::End));
        // SAFETY: as above.
        unsafe { libc::_exit(i32::from(done.is_err())) }
    })?;
    Ok((child, cache))
}
