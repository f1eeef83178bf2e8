//! What an analysis is about: a recording, and words behind it.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::ops::Range;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use position::{Criterion, Position, Run};
use recording::{Home, Recording};

use crate::hung;
use crate::which::found;

/// Of a program that hangs, so many instructions are traced at most.
const HANGING: u64 = 300_000_000;

/// A recording, if the first word names one, and the words that are left.
#[derive(Args)]
pub struct Subject {
    /// The same as a first word that names a recording
    #[arg(short, value_name = "REC")]
    recording: Option<OsString>,

    /// One process of the run; `why info` lists them [default: the one that crashed,
    /// else the first]
    #[arg(short, long = "process", value_name = "PID")]
    process: Option<i32>,

    /// No progress or notices on stderr
    #[arg(short, long)]
    pub quiet: bool,
}

/// Opens the recording that is meant; the words behind its name are left.
impl Subject {
    /// No recording is named; only how much to say.
    pub fn quietly(quiet: bool) -> Subject {
        Subject { recording: None, process: None, quiet }
    }

    /// The recording, and the words that do not name it.
    pub fn open<'a>(&self, words: &'a [String]) -> anyhow::Result<(Recording, &'a [String])> {
        // Until somebody has something to tidy up, there is nothing to lose.
        engine::sandbox::end_at_interrupt();
        let (recording, rest) = self.find(words)?;
        Ok((self.choose(recording)?, rest))
    }

    /// The process of a run that is meant.
    pub fn choose(&self, recording: Recording) -> anyhow::Result<Recording> {
        crate::processes::choose(recording, self.process, self.quiet)
    }

    /// Says which process failed, if the one that is asked about may only have passed that on.
    pub fn name_the_failed(&self, recording: &Recording) -> anyhow::Result<()> {
        let first = recording.process().log == recording::Process::FIRST;
        if self.quiet || self.process.is_some() || !first || !recording.has_processes() {
            return Ok(());
        }
        if let Some(failed) = crate::processes::failed_by_itself(recording)? {
            let command = crate::show::command(&failed.last().manifest().command);
            let (pid, how) = (failed.pid, failed.ending());
            crate::notice(&format!(
                "about the first process; process {pid} ({command}) failed by itself, {how}: \
                 `why explain -p {pid}` is about that one"
            ));
        }
        Ok(())
    }

    fn find<'a>(&self, words: &'a [String]) -> anyhow::Result<(Recording, &'a [String])> {
        let home = Home::from_env()?;
        if let Some(name) = &self.recording {
            return Ok((Recording::open(&found(&home, Some(name))?)?, words));
        }
        if let [first, rest @ ..] = words
            && is_a_name(first)
            && let Ok(dir) = home.resolve(Some(first.as_ref()))
        {
            return Ok((Recording::open(&dir)?, rest));
        }
        let latest = home.resolve(None);
        if let (Err(recording::Error::NoRecordings), [first, ..]) = (&latest, words)
            && is_a_path(first)
        {
            found(&home, Some(first.as_ref()))?;
        }
        Ok((Recording::open(&latest?)?, words))
    }

    /// Traces a recording, showing how far it is. Libraries have lines of their own
    /// if they are to be looked into.
    pub fn run(&self, recording: Recording, libraries: bool) -> anyhow::Result<Run> {
        if hung::remembered(&recording).is_some() {
            return self.run_of_hanging(recording, libraries);
        }
        let bar = self.bar();
        let run = Run::open(recording, &mut |instructions| {
            bar.set_position(instructions);
        });
        bar.finish_and_clear();
        let mut run = run?;
        if libraries {
            run.show_libraries();
        }
        if !run.trace.ended.complete && !self.quiet {
            crate::notice("the recording breaks off; what follows it is not known");
        }
        self.warn_of_sources(&run);
        Ok(run)
    }

    /// A program that hangs does the same over and over: its beginning is traced.
    fn run_of_hanging(&self, recording: Recording, libraries: bool) -> anyhow::Result<Run> {
        let mut run = self.run_part(recording, 0..HANGING)?;
        if libraries {
            run.show_libraries();
        }
        if !run.trace.ended.complete && !self.quiet {
            let traced = report::grouped(run.trace.records.instructions());
            crate::notice(&format!(
                "the program hung; only its first {traced} instructions are looked at"
            ));
        }
        Ok(run)
    }

    /// Says which sources are no longer those of the recorded program.
    fn warn_of_sources(&self, run: &Run) {
        if self.quiet {
            return;
        }
        for path in run.changed_sources() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let text = "was changed after the run; its lines may be others than those that ran";
            crate::notice(&format!("{name} {text}"));
        }
    }

    /// Traces a part of the run.
    pub fn run_part(&self, recording: Recording, part: Range<u64>) -> anyhow::Result<Run> {
        let bar = self.bar();
        let from = part.start;
        let run = Run::open_part(recording, part, &mut |done| bar.set_position(done - from));
        bar.finish_and_clear();
        let run = run?;
        self.warn_of_sources(&run);
        Ok(run)
    }

    /// A bar for work on so many instructions, if that is known.
    pub fn instructions_bar(&self, doing: &str, total: Option<u64>) -> ProgressBar {
        let template = match total {
            Some(_) => "{msg}: {bar:30} {human_pos} of {human_len} instructions",
            None => "{spinner} {msg}: {human_pos} instructions",
        };
        let bar =
            self.styled(total.map_or_else(ProgressBar::new_spinner, ProgressBar::new), template);
        bar.set_message(doing.to_owned());
        bar
    }

    fn bar(&self) -> ProgressBar {
        self.instructions_bar("tracing", None)
    }

    /// Nothing is shown to who is quiet or not at a terminal.
    fn styled(&self, bar: ProgressBar, template: &str) -> ProgressBar {
        if self.quiet || !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    }
}

/// A word with a colon or an at-sign is a position, and a bare `crash` is too.
fn is_a_name(word: &str) -> bool {
    !matches!(word, "crash" | "exit" | "start") && !word.contains([':', '@', '#'])
}

/// A name with folders in it that is no position is meant for a recording, or for a function
/// of the latest if there is one: Go's have a path.
fn is_a_path(word: &str) -> bool {
    is_a_name(word) && word.contains('/')
}

/// What is asked for when nothing is said: the crash, else the last
/// byte of output that ends no line.
pub fn default_criterion(run: &Run) -> anyhow::Result<Criterion> {
    let text = if position::crash(run).is_some() {
        "crash".to_owned()
    } else {
        match position::last_output(run)? {
            Some(position) => position.to_string(),
            None => "exit".to_owned(),
        }
    };
    Ok(Criterion::parse(&text)?)
}

/// Reads a position.
pub fn position(text: &str) -> anyhow::Result<Position> {
    Ok(Position::parse(text)?)
}

/// Says so where another line answers for the one that was named.
pub fn say_who_answers(run: &position::Run, position: &Position) {
    if let Some(other) = position::answers_for(run, position) {
        crate::notice(&format!(
            "{position} has no code of its own: the compiler gave what it begins with to {other}"
        ));
    }
}
