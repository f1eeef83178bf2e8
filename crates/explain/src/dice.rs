//! Which lines worked for output that is right, too? What gave a right value once did its work
//! there; what only the wrong output depends on is the more suspect.

use crate::options;
use position::{PlaceId, Run};
use program::effects::Cells;
use slice::{Options, Slicer, Start, Visitor};
use std::collections::{HashMap, HashSet};
use std::time::Instant;
use trace::{Direction, Instance, InstructionId, ObjectId};
use whatif::{Oracle, Original, Stream};

/// So many calls that wrote right output are looked at, the last ones.
const MOST: usize = 4096;

/// Slices with more instances than this are not compared: it would take too much memory.
const INSTANCES: usize = 4_000_000;

/// How much of what lines did, as far as the failure depends on it, was good for right output.
#[derive(Default)]
pub struct Dice {
    /// Along values and addresses.
    data: HashMap<PlaceId, f64>,
    /// Along control too.
    all: HashMap<PlaceId, f64>,
}

impl Dice {
    /// Compares what the failure depends on with what right output depends on.
    pub fn of(
        run: &Run,
        slicer: &Slicer<'_>,
        starts: &[Start],
        right: &[Start],
        until: Instant,
    ) -> Dice {
        let all = Options { until: Some(until), ..options(run) };
        let data = Options { control: false, ..all.clone() };
        let worked = |options| worked(run, slicer, starts, right, options).unwrap_or_default();
        Dice { data: worked(&data), all: worked(&all) }
    }

    /// From 0, if nothing of a line was good for right output, to 1, if all of it was.
    pub fn worked(&self, line: PlaceId) -> f64 {
        self.data.get(&line).or_else(|| self.all.get(&line)).copied().unwrap_or(0.0)
    }
}

/// Instances, as long as there are not too many.
#[derive(Default)]
struct Few(Vec<(Instance, InstructionId)>);

impl Visitor for Few {
    fn instance(&mut self, at: Instance, id: InstructionId, _: slice::Distance) {
        if self.0.len() <= INSTANCES {
            self.0.push((at, id));
        }
    }
}

/// The share of each line's instances in the slice of the failure that are in that of right
/// output, unless there are too many.
fn worked(
    run: &Run,
    slicer: &Slicer<'_>,
    starts: &[Start],
    right: &[Start],
    options: &Options,
) -> Option<HashMap<PlaceId, f64>> {
    let slice = |starts: &[Start]| {
        let Few(found) = slicer.visit(starts, options, &Few::default).0;
        (found.len() <= INSTANCES).then_some(found)
    };
    let failing = slice(starts)?;
    let working: HashSet<Instance> = slice(right)?.into_iter().map(|(at, _)| at).collect();
    let mut lines: HashMap<PlaceId, (u64, u64)> = HashMap::new();
    for (at, id) in failing {
        let own = if run.is_own(id) { Some(at) } else { run.own_instance(at) };
        let Some(place) = own.and_then(|own| run.places.at(run.trace.instruction(own))) else {
            continue;
        };
        let (all, worked) = lines.entry(place).or_default();
        *all += 1;
        *worked += u64::from(working.contains(&at));
    }
    let share = |(all, worked)| worked as f64 / all as f64;
    Some(lines.into_iter().map(|(line, counts)| (line, share(counts))).collect())
}

/// Where standard output that is right was written, if some is.
pub fn right(run: &Run, oracle: &Oracle, original: &Original) -> Option<Vec<Start>> {
    let output = &original.outputs[Stream::Out as usize];
    let is_right = right_bytes(output, oracle.stdout.as_ref()?);
    let is_right = |byte: u64| is_right.get(byte as usize).copied().unwrap_or(false);
    let mut starts = Vec::new();
    for (n, site) in run.trace.spans.calls.iter().enumerate() {
        let transfer = run.trace.objects.transfer(n);
        let is_written =
            |t: &&trace::Transfer| t.object == ObjectId::STDOUT && t.direction == Direction::Write;
        let Some(transfer) = transfer.filter(is_written) else { continue };
        let mut pieces: Vec<(u64, u64)> = Vec::new();
        for byte in (transfer.offset..transfer.offset + transfer.len()).filter(|n| is_right(*n)) {
            match (transfer.address_of(byte), pieces.last_mut()) {
                (Some(address), Some((start, len))) if *start + *len == address => *len += 1,
                (Some(address), _) => pieces.push((address, 1)),
                (None, _) => {}
            }
        }
        if !pieces.is_empty() {
            starts.push(Start::Before(site.instance, Cells::NONE, pieces));
        }
    }
    let early = starts.len().saturating_sub(MOST);
    starts.drain(..early);
    (!starts.is_empty()).then_some(starts)
}

/// For each byte of an output, whether it is in a line that is as expected, or before the first
/// wrong word: the digits of a wrong number may well be right, some of them. Ends of lines say
/// nothing.
fn right_bytes(output: &[u8], expected: &[u8]) -> Vec<bool> {
    let mut right = Vec::with_capacity(output.len());
    let mut wanted = expected.split_inclusive(|b| *b == b'\n');
    for line in output.split_inclusive(|b| *b == b'\n') {
        let same = wanted.next() == Some(line);
        right.extend(line.iter().map(|_| same));
    }
    let same = output.iter().zip(expected).take_while(|(a, b)| a == b).count();
    let begins = output[..same].iter().rposition(u8::is_ascii_whitespace).map_or(0, |n| n + 1);
    right[..begins].fill(true);
    for (right, byte) in right.iter_mut().zip(output) {
        *right &= !b"\r\n".contains(byte);
    }
    right
}

#[cfg(test)]
mod tests {
    use super::right_bytes;

    /// The bytes that are right, others as dots.
    fn shown(output: &str, expected: &str) -> String {
        let right = right_bytes(output.as_bytes(), expected.as_bytes());
        output.chars().zip(right).map(|(c, right)| if right { c } else { '.' }).collect()
    }

    #[test]
    fn right_is_what_comes_before_anything_wrong_and_later_lines_as_expected() {
        assert_eq!(shown("a\nb 12\nc\n", "a\nb 13\nc\n"), "a.b ...c.");
        assert_eq!(shown("a\nx\nb\n", "a\nb\n"), "a.....");
        assert_eq!(shown("12", "13"), "..");
    }
}
