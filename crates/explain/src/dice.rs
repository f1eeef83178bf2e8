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
        let worked = |options: &Options| {
            let failing = few(slicer, starts, options)?;
            let working = few(slicer, right, options)?;
            Some(shares(run, failing, working))
        };
        Dice { data: worked(&data).unwrap_or_default(), all: worked(&all).unwrap_or_default() }
    }

    /// From 0, if nothing of a line was good for right output, to 1, if all of it was.
    pub fn worked(&self, line: PlaceId) -> f64 {
        self.data.get(&line).or_else(|| self.all.get(&line)).copied().unwrap_or(0.0)
    }
}

/// Instances, as long as there are not too many.
#[derive(Default)]
struct Few {
    instances: Vec<(Instance, InstructionId)>,
    cut_short: bool,
}

impl Visitor for Few {
    fn instance(&mut self, at: Instance, id: InstructionId, _: slice::Distance) {
        if self.instances.len() <= INSTANCES {
            self.instances.push((at, id));
        }
    }

    fn cut_short(&mut self) {
        self.cut_short = true;
    }
}

/// A slice, unless it is too large or takes too long.
fn few(
    slicer: &Slicer<'_>,
    starts: &[Start],
    options: &Options,
) -> Option<Vec<(Instance, InstructionId)>> {
    let Few { instances, cut_short } = slicer.visit(starts, options, &Few::default).0;
    (instances.len() <= INSTANCES && !cut_short).then_some(instances)
}

/// The share of each line's instances in the slice of the failure that are in that of right
/// output.
fn shares(
    run: &Run,
    failing: Vec<(Instance, InstructionId)>,
    working: Vec<(Instance, InstructionId)>,
) -> HashMap<PlaceId, f64> {
    let working: HashSet<Instance> = working.into_iter().map(|(at, _)| at).collect();
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
    lines.into_iter().map(|(line, counts)| (line, share(counts))).collect()
}

/// Where standard output that is right was written, if some is.
pub fn right(run: &Run, oracle: &Oracle, original: &Original) -> Option<Vec<Start>> {
    let output = &original.outputs[Stream::Out as usize];
    let is_right = right_bytes(output, oracle.stdout.as_ref()?);
    let before = locate::before(run, original, Stream::Out);
    let is_right = |byte: u64| is_right.get(byte as usize).copied().unwrap_or(false);
    let mut starts = Vec::new();
    for (n, site) in run.trace.spans.calls.iter().enumerate() {
        let transfer = run.trace.objects.transfer(n);
        let is_written =
            |t: &&trace::Transfer| t.object == ObjectId::STDOUT && t.direction == Direction::Write;
        let Some(transfer) = transfer.filter(is_written) else { continue };
        let mut byte = before.saturating_add(transfer.offset);
        let mut pieces: Vec<(u64, u64)> = Vec::new();
        for address in transfer.pieces.iter().flat_map(|&(start, len)| start..start + len) {
            match pieces.last_mut() {
                _ if !is_right(byte) => {}
                Some((start, len)) if *start + *len == address => *len += 1,
                _ => pieces.push((address, 1)),
            }
            byte = byte.saturating_add(1);
        }
        if !pieces.is_empty() {
            starts.push(Start::Before(site.instance, Cells::NONE, pieces));
        }
    }
    let early = starts.len().saturating_sub(MOST);
    starts.drain(..early);
    (!starts.is_empty()).then_some(starts)
}

/// For each byte of an output, whether it is before the first wrong word: the digits of a wrong
/// number may well be right, some of them. What is right behind that does not count: where in a
/// buffer it was put depends on what is wrong. Ends of lines say nothing.
fn right_bytes(output: &[u8], expected: &[u8]) -> Vec<bool> {
    let same = output.iter().zip(expected).take_while(|(a, b)| a == b).count();
    let begins = output[..same].iter().rposition(u8::is_ascii_whitespace).map_or(0, |n| n + 1);
    output[..begins].iter().map(|byte| !b"\r\n".contains(byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::right_bytes;

    /// The bytes that are right, ends of lines as dots.
    fn shown(output: &str, expected: &str) -> String {
        let right = right_bytes(output.as_bytes(), expected.as_bytes());
        output.chars().zip(right).map(|(c, right)| if right { c } else { '.' }).collect()
    }

    #[test]
    fn right_is_what_comes_before_the_first_wrong_word() {
        assert_eq!(shown("a\nb 12\nc\n", "a\nb 13\nc\n"), "a.b ");
        assert_eq!(shown("a\nx\nb\n", "a\nb\n"), "a.");
        assert_eq!(shown("12", "13"), "");
    }
}
