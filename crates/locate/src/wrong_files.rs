//! Files that a run left otherwise than expected, as far as its trace tells.

use crate::failure::{Error, Other, written_byte};
use position::{Run, Stream};
use program::debug::State;
use slice::Start;
use trace::Direction;
use whatif::{Oracle, first_wrong};

/// How the files that a run left are.
#[derive(Debug, PartialEq, Eq)]
pub enum Compared {
    /// As expected, or nothing was expected of any.
    Right,
    /// One is not.
    Wrong(Other),
    /// What was left in one of them cannot be told.
    Unknown,
}

/// Compares what a run wrote to files with what was expected of them.
pub fn compare(run: &Run, oracle: &Oracle) -> Result<Compared, Error> {
    let mut compared = Compared::Right;
    for (path, expected) in &oracle.files {
        let Some(contents) = contents(run, path)? else {
            compared = Compared::Unknown;
            continue;
        };
        if let Some(unit) = first_wrong(&contents, expected, true, oracle.unit) {
            let (path, expected) = (path.clone(), expected.clone());
            return Ok(Compared::Wrong(Other::File { path, contents, expected, unit }));
        }
    }
    Ok(compared)
}

/// The first byte that is wrong, where it was written; `None` if it is missing.
pub fn first_byte(run: &Run, wrong: &Other) -> Result<Option<Start>, Error> {
    let Other::File { path, contents, expected, .. } = wrong else { return Ok(None) };
    let byte = contents.iter().zip(expected).take_while(|(a, b)| a == b).count();
    if byte >= contents.len() {
        return Ok(None);
    }
    written_byte(run, Stream::File(named(path)), byte as u64).map(Some)
}

/// What a run wrote to a file from its beginning on, one piece after the other. `None` for
/// all that is more involved, such as a file that was written to twice.
fn contents(run: &Run, path: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let trace = &run.trace;
    let Some(object) = trace.objects.named(&named(path)).filter(|_| trace.is_from_start()) else {
        return Ok(None);
    };
    let mut states = run.states()?;
    let mut contents: Option<Vec<u8>> = None;
    for (n, site) in trace.spans.calls.iter().enumerate() {
        let transfer = trace.objects.transfer(n);
        let Some(transfer) =
            transfer.filter(|t| t.object == object && t.direction == Direction::Write)
        else {
            continue;
        };
        let all = contents.get_or_insert_default();
        if transfer.offset != all.len() as u64 {
            return Ok(None);
        }
        let state = states.before(site.instance)?;
        for &(start, len) in &transfer.pieces {
            all.extend(state.memory(start, len as usize).unwrap_or_default());
        }
    }
    Ok(contents)
}

/// As the trace names it.
fn named(path: &[u8]) -> String {
    let path = String::from_utf8_lossy(path).into_owned();
    path.strip_prefix("./").map(str::to_owned).unwrap_or(path)
}
