//! `why cut`: a part of a recording as a recording of its own.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use engine::Point;
use position::Position;
use recording::Recording;
use trace::{Instance, Time, Trace};

use crate::engine_calls;
use crate::notice;
use crate::status::usage;
use crate::subject::Subject;

/// Make a part of a recording a recording of its own.
///
/// It starts at --from with the very state that the run had there, so what comes before need not
/// be replayed any more, and the original recording is not needed. It ends at the first safepoint
/// (a call, or the end of a turn of a loop) or event that is not before --to. Instructions and
/// executions are counted from its start.
///
/// With --slice, only the instructions of a kept slice are in it. What the others did to memory
/// and registers is put in between, so all values at the slice's instructions are those of the
/// run. `why replay` checks that, and `why debug` steps from one of them to the next.
#[derive(Args)]
#[command(after_help = "Examples:
  why cut --from parse#3 --to crash -o last-file
  why cut 7 --from @1000000 -o rest
  why replay last-file
  why slice crash --save bad
  why cut --slice bad -o bad-only
  why debug bad-only")]
pub struct Cut {
    /// A recording [default: the latest]
    #[arg(value_name = "[REC]", num_args = 0..=1)]
    words: Vec<String>,

    #[command(flatten)]
    subject: Subject,

    /// Its first instruction
    #[arg(long, value_name = "POS", default_value = "start")]
    from: String,

    /// Its last instruction
    #[arg(long, value_name = "POS", default_value = "exit")]
    to: String,

    /// Only the instructions of a slice that was kept with `why slice --save NAME`
    #[arg(long, value_name = "NAME", conflicts_with_all = ["from", "to"])]
    slice: Option<String>,

    /// Write what the slice leaves out to FILE, as JSON
    #[arg(long, value_name = "FILE", requires = "slice")]
    exclusions: Option<PathBuf>,

    /// Put it into DIR, a new or empty folder
    #[arg(short, value_name = "DIR")]
    output: PathBuf,
}

impl Cut {
    /// Cuts.
    pub fn run(&self) -> anyhow::Result<u8> {
        let (recording, words) = self.subject.open(&self.words)?;
        crate::status::no_more(words)?;
        if recording::is_recording(&self.output) {
            return Err(recording::Error::FolderInUse { path: self.output.clone() }.into());
        }
        if let Some(name) = &self.slice {
            return self.cut_slice(recording, name);
        }
        let positions = (Position::parse(&self.from)?, Position::parse(&self.to)?);
        let (from, to) = self.numbers(&recording, &positions.0, &positions.1)?;
        if from >= to {
            return usage(&format!("{} is not before {}; swap them", self.from, self.to));
        }
        let cut = engine_calls::cut(&recording, from, to, &self.output).map_err(|f| f.error)?;
        if !self.subject.quiet {
            notice(&format!(
                "{}: {} instructions from @{}; outcome: {}",
                self.output.display(),
                cut.instructions,
                cut.from,
                cut.ending
            ));
        }
        Ok(0)
    }

    fn cut_slice(&self, recording: Recording, name: &str) -> anyhow::Result<u8> {
        let numbers = super::slices::load_points(&recording, name)?;
        let run = self.subject.run(recording, false)?;
        // What the run crashed at was not executed.
        let total = run.trace.records.instructions();
        let at = |number: &u64| match *number {
            n if n == total => Some(run.trace.last_instance()),
            n => run.trace.at_number(n),
        };
        let points: Option<Vec<Point>> = numbers
            .iter()
            .map(|number| Some(Point { number: *number, pc: run.address(at(number)?) }))
            .collect();
        let Some(points) = points else {
            return usage(&format!("the slice {name} is of another run; slice again"));
        };
        if let Some(path) = &self.exclusions {
            let left_out = serde_json::to_vec_pretty(&slice::exclusions(&run.trace, &numbers))?;
            std::fs::write(path, left_out)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        let mut stored = |numbers| stored(&run.trace, numbers);
        engine_calls::cut_slice(&run.recording, &points, &mut stored, &self.output)
            .map_err(|f| f.error)?;
        if !self.subject.quiet {
            notice(&format!(
                "{}: {} of {} instructions",
                self.output.display(),
                points.len(),
                total
            ));
        }
        Ok(0)
    }

    /// The first instruction, and the one behind the last. Most positions need a trace.
    fn numbers(
        &self,
        recording: &Recording,
        from: &Position,
        to: &Position,
    ) -> anyhow::Result<(u64, u64)> {
        let known = |position: &Position| match position {
            Position::Start => Some(0),
            Position::Number(n) => Some(*n),
            Position::Exit => Some(u64::MAX - 1),
            _ => None,
        };
        if let (Some(from), Some(to)) = (known(from), known(to)) {
            return Ok((from, to + 1));
        }
        let run = self.subject.run(recording.clone(), false)?;
        let number = |position: &Position| -> anyhow::Result<u64> {
            match known(position) {
                Some(n) => Ok(n),
                None => Ok(run.trace.number(position::resolve(&run, position)?.instance())),
            }
        };
        Ok((number(from)?, number(to)? + 1))
    }
}

/// The memory that the instructions between two numbers wrote by themselves.
fn stored(trace: &Trace, numbers: std::ops::Range<u64>) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    let Some(Instance { mut time, mut index }) = trace.at_number(numbers.start) else {
        return all;
    };
    let mut left = numbers.end.saturating_sub(numbers.start);
    while left > 0 && time.0 < trace.records.len() {
        let len = trace.code.path(trace.records.path(time)).len;
        while left > 0 && index < len {
            let at = Instance { time, index };
            let info = trace.code.info(trace.instruction(at));
            if info.effects.accesses.iter().any(|access| access.writes) {
                all.extend(trace.stored(at).iter().map(|range| (range.start, range.len)));
            }
            (index, left) = (index + 1, left - 1);
        }
        (time, index) = (Time(time.0 + 1), 0);
    }
    all
}
