//! `why explain`: why a run failed.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use recording::Recording;
use report::Story;
use whatif::{Laboratory, Oracle, Original};

use crate::expected::{Expected, Judged};
use crate::subject::Subject;
use crate::{hung, show};

/// Explain why a recorded run failed.
///
/// Without an oracle, a run failed if a signal killed it or its exit status is not 0. The status
/// is 0, whether it failed or not; 130 after ^C, with the story of what was found by then if
/// experiments had begun.
#[derive(Args)]
#[command(after_help = "Examples:
  why explain                             of the latest recording
  why explain 7 --expect right.txt        its output should have been as in a file
  why explain --json -o story.json
  why explain -- ./prog input.txt         record and explain in one step
  why ./prog input.txt                    the same
  why --expect-text '42\\n' -- ./prog 6 7")]
pub struct Explain {
    /// A recording [default: the latest]
    #[arg(value_name = "[REC]", num_args = 0..=1)]
    words: Vec<String>,

    #[command(flatten)]
    subject: Subject,

    #[command(flatten)]
    pub how: How,
}

/// What both ways to an explanation share.
#[derive(Args)]
pub struct How {
    #[command(flatten)]
    expected: Expected,

    /// About so long for all of it, as in 30s or 2m
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = show::parse_time)]
    time: Duration,

    /// A program that runs longer hangs: it is ended, and that is the failure [default: ^C ends it]
    #[arg(long, value_name = "TIME", value_parser = show::parse_time)]
    timeout: Option<Duration>,

    /// At most N trials
    #[arg(long, value_name = "N", default_value_t = 3000)]
    trials: usize,

    /// Switch conditions only, once or in all their executions: no small changes of the program
    /// are tried
    #[arg(long)]
    no_edits: bool,

    /// All steps of the causal path
    #[arg(long)]
    full: bool,

    /// Name N places to look at
    #[arg(long, value_name = "N", default_value_t = 10)]
    places: usize,

    /// Write the report to FILE
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// As JSON
    #[arg(long, group = "form")]
    json: bool,

    /// As one page
    #[arg(long, group = "form")]
    html: bool,

    /// As SARIF 2.1.0, for editors and code-hosting sites
    #[arg(long, group = "form")]
    sarif: bool,

    /// As Markdown, for a bug report
    #[arg(long, group = "form")]
    markdown: bool,
}

impl Explain {
    /// Explains a recording.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<u8> {
        let (recording, words) = self.subject.open(&self.words)?;
        crate::status::no_more(words)?;
        let told = self.how.tell(recording, &self.subject)?;
        match told {
            Told::Passed(sentence) => writeln!(out, "{sentence}")?,
            Told::Story(story) => self.how.write(&story, out)?,
        }
        Ok(interrupted().unwrap_or(0))
    }
}

/// Of a program that hangs, so many instructions are looked at: nearly all of what it does
/// over and over is in its slice, so that more of it takes long.
const HANGING: u64 = 10_000_000;

/// So many instructions are traced in a second, with all that is found out about a trace.
const TRACED: f64 = 20e6;
/// So much of the time tracing may take.
const TRACING: f64 = 0.3;

/// The call that shows a failure is traced to its end.
const BEHIND: u64 = 1000;

/// Says so if somebody pressed ^C, and with which status to end then.
fn interrupted() -> Option<u8> {
    engine::sandbox::is_interrupted().then(|| {
        crate::notice("interrupted; the story has what was found by then");
        engine::sandbox::INTERRUPTED_STATUS
    })
}

/// The exit status as a shell shows it, of one that `wait` gives.
fn shell(status: i32) -> i32 {
    match status & 0x7f {
        0 => status >> 8 & 0xff,
        signal => 128 + signal,
    }
}

/// What there is to tell of a run.
pub enum Told {
    /// Nothing is wrong with it.
    Passed(String),
    /// It failed.
    Story(Box<Story>),
}

impl How {
    /// Looks for the story of a run.
    pub fn tell(&self, recording: Recording, subject: &Subject) -> anyhow::Result<Told> {
        let begun = Instant::now();
        // What is done until experiments begin leaves nothing behind.
        engine::sandbox::end_at_interrupt();
        // First of all, while this process is small: it is forked.
        let mut laboratory = Laboratory::open(&recording)?;
        let replay = begun.elapsed();
        let original = laboratory.original().clone();
        let mut judged: Judged = self.expected.oracle(&recording, &original)?;
        let status = original.status.unwrap_or(0);
        let hung = self.timeout.or_else(|| hung::remembered(&recording));
        let hung = hung.filter(|_| hung::ENDED_BY.contains(&(status & 0x7f)));
        // Whatever else is expected of it, it should have ended by itself.
        judged.oracle.no_crash |= hung.is_some();
        let expects = Oracle { no_crash: false, ..judged.oracle.clone() };
        if hung.is_some() && expects.is_empty() {
            // A run that gives up instead of hanging is no better.
            judged.oracle.exit = Some(0);
        }
        judged.or_success(&original);
        if judged.oracle.is_empty() {
            return Ok(Told::Passed(
                "the run ended with status 0, and nothing else was expected of it".to_owned(),
            ));
        }
        let accepted = judged.accepts(&original.outputs, original.status.map_or(-1, shell))?;
        if (Oracle { asks: !accepted, ..judged.oracle.clone() }).is_empty() {
            return Ok(Told::Passed("the oracle accepts the run".to_owned()));
        }
        if status != 0 {
            subject.name_the_failed(&recording)?;
        }
        let part = match hung {
            // What a program that hangs does over and over, it has done long before.
            Some(_) => (original.instructions > HANGING).then_some(0..HANGING),
            None => self.part(&judged.oracle, &original),
        };
        let run = match part {
            Some(part) => subject.run_part(recording, part)?,
            None => subject.run(recording, false)?,
        };
        let limits = explain::Limits {
            time: self.time,
            begun,
            replay,
            trials: self.trials,
            edits: !self.no_edits,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            steps: match hung {
                Some(_) => original.instructions.clamp(1_000_000, 4 * HANGING),
                None => (10 * original.instructions).max(1_000_000),
            },
            full: self.full,
            places: self.places,
            hung,
        };
        let bar = self.bar(subject);
        let mut experiments = false;
        let mut progress = |done: usize, total: usize| {
            if !experiments {
                // What they show by then is worth telling.
                engine::sandbox::catch_interrupts();
                experiments = true;
            }
            bar.set_length(total as u64);
            bar.set_position(done as u64);
            !engine::sandbox::is_interrupted()
        };
        let decide =
            |outcome: &mut whatif::Outcome| super::what_if::decide(&judged, outcome).is_ok();
        let judge = explain::Judge { oracle: &judged.oracle, decide: Some(&decide), accepted };
        let story = explain::explain(&run, &mut laboratory, &judge, &limits, &mut progress);
        bar.finish_and_clear();
        match story {
            Ok(story) => Ok(Told::Story(Box::new(story))),
            Err(explain::Error::Locate(locate::Error::Succeeds)) => {
                Ok(Told::Passed("the run did what was expected of it".to_owned()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The part of a long run that there is time to trace: what went before the failure
    /// showed. `None` if that is all of it.
    fn part(&self, oracle: &Oracle, original: &Original) -> Option<Range<u64>> {
        let enough = (self.time.as_secs_f64() * TRACING * TRACED) as u64;
        let shown = locate::shown_at(oracle, original);
        let start = shown.unwrap_or(original.instructions).saturating_sub(enough);
        let part = start..shown.map_or(u64::MAX, |end| end + BEHIND);
        (original.instructions > enough).then_some(part)
    }

    /// Writes a story where and how it is wanted.
    pub fn write(&self, story: &Story, out: &mut dyn Write) -> anyhow::Result<()> {
        let Some(path) = &self.output else { return self.write_form(story, out, show::style()) };
        let mut file = std::fs::File::create(path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        self.write_form(story, &mut file, report::Style::PLAIN)
    }

    fn write_form(
        &self,
        story: &Story,
        out: &mut dyn Write,
        style: report::Style,
    ) -> anyhow::Result<()> {
        if self.json {
            serde_json::to_writer_pretty(&mut *out, story).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else if self.html {
            out.write_all(story.html().as_bytes())?;
        } else if self.sarif {
            serde_json::to_writer_pretty(&mut *out, &story.sarif())
                .map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else if self.markdown {
            story.write_markdown(out)?;
        } else {
            story.write_text(out, style)?;
        }
        Ok(())
    }

    /// Is the form one that needs a file when the program has stdout?
    pub fn needs_file(&self) -> bool {
        (self.json || self.html || self.sarif || self.markdown) && self.output.is_none()
    }

    fn bar(&self, subject: &Subject) -> ProgressBar {
        if subject.quiet || !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new(0);
        let template = "{bar:30} {human_pos}/{human_len} trials, {per_sec}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar
    }
}

/// Record a program and explain the run if it failed.
///
/// The program keeps its stdin, stdout and stderr; the report goes to stderr, or to
/// the file that -o names. `why` ends as the program did, or with 1 if the program
/// ended with 0 but was expected to do something else.
#[derive(Args)]
#[command(after_help = "Examples:
  why ./prog input.txt
  why --expect right.txt -- ./prog input.txt
  why --timeout 10 -- ./server --once
  why -o story.html --html -- ./tests")]
pub struct Program {
    #[command(flatten)]
    how: How,

    /// No progress or notices on stderr
    #[arg(short, long)]
    quiet: bool,

    /// The program, found as a shell would, and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROG")]
    command: Vec<OsString>,
}

impl Program {
    /// Records, then explains.
    pub fn run(&self) -> anyhow::Result<u8> {
        anyhow::ensure!(
            !self.how.needs_file(),
            "the program has standard output; say where the report goes with -o FILE"
        );
        // Whoever waited for a long run would not like to hear of it only then.
        self.how.expected.check().map_err(|error| anyhow::anyhow!("{error}"))?;
        let (status, dir) = super::record::numbered(&self.command, self.how.timeout, self.quiet)?;
        let Some(dir) = dir else { return Ok(status) };
        let subject = Subject::quietly(self.quiet);
        let recording = subject.choose(Recording::open(&dir)?)?;
        let told = self.how.tell(recording, &subject)?;
        let mut err = std::io::stderr().lock();
        match told {
            Told::Passed(sentence) => {
                if !self.quiet {
                    crate::notice(&sentence);
                }
                Ok(status)
            }
            Told::Story(story) => {
                self.how.write(&story, &mut err)?;
                Ok(interrupted().unwrap_or(if status == 0 { 1 } else { status }))
            }
        }
    }
}
