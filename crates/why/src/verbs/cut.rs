//! `why cut`: a part of a recording as a recording of its own.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use engine::SliceSource;
use indicatif::ProgressBar;
use position::Position;
use recording::Recording;
use serde::Serialize;
use slice::Stretches;
use trace::Walk;

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

/// More instructions than a run has.
const TO_THE_END: u64 = u64::MAX - 1;

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
        let bar = self.subject.instructions_bar("cutting", Some(to).filter(|to| *to < TO_THE_END));
        let made = self.making(&mut |dir| {
            engine_calls::cut(&recording, from, to, dir, &mut |done| shown(&bar, done))
        });
        bar.finish_and_clear();
        let cut = made?;
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
        let runs = super::slices::load_runs(&recording, name)?;
        let run = self.subject.run(recording, false)?;
        let total = run.trace.records.instructions();
        // What the run crashed at was not executed.
        if runs.end() > total + 1 {
            return usage(&format!("the slice {name} is of another run; slice again"));
        }
        let bar = self.subject.instructions_bar("cutting", Some(total));
        let made = self.making(&mut |dir| {
            let (mut walk, mut ranges) = (Walk::new(&run.trace), Vec::new());
            let slice = SliceSource {
                addresses: &slice::addresses(&run.trace, &runs),
                stretches: &mut Stretches::new(&run.trace, &runs),
                stored: &mut |numbers, pieces| {
                    walk.stored(numbers, &mut ranges);
                    pieces.extend(ranges.drain(..).map(|range| (range.start, range.len)));
                },
                progress: &mut |done| shown(&bar, done),
            };
            engine_calls::cut_slice(&run.recording, slice, dir)
        });
        bar.finish_and_clear();
        made?;
        if let Some(path) = &self.exclusions {
            write_json(path, &slice::exclusions(&run.trace, &runs))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        if !self.subject.quiet {
            notice(&format!(
                "{}: {} of {} instructions",
                self.output.display(),
                runs.instructions(),
                total
            ));
        }
        Ok(0)
    }

    /// Lets the new recording be made. If it is not, nothing of it is left.
    fn making<T>(
        &self,
        make: &mut dyn FnMut(&Path) -> Result<T, engine_calls::Failure>,
    ) -> anyhow::Result<T> {
        let existed = self.output.exists();
        let is_new =
            std::fs::read_dir(&self.output).map_or(!existed, |mut all| all.next().is_none());
        engine::sandbox::catch_interrupts();
        let made = make(&self.output);
        if made.is_err() && is_new {
            // What cannot be removed was not made.
            let _ = std::fs::remove_dir_all(&self.output);
            if existed {
                let _ = std::fs::create_dir(&self.output);
            }
        }
        made.map_err(|failure| failure.error)
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
            Position::Exit => Some(TO_THE_END),
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

/// Shows how far it is. False if it is to end.
fn shown(bar: &ProgressBar, done: u64) -> bool {
    bar.set_position(done);
    !engine::sandbox::is_interrupted()
}

/// Writes a file in one step: who looks sees all of it or what was there before.
fn write_json(path: &Path, contents: &impl Serialize) -> anyhow::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(format!(".{}", std::process::id()));
    let write = || {
        let mut file = BufWriter::new(std::fs::File::create(&new)?);
        serde_json::to_writer(&mut file, contents)?;
        file.flush()?;
        Ok(std::fs::rename(&new, path)?)
    };
    let written = write();
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written
}
