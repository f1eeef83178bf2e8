//! `why what-if`: one experiment with a recorded run.

use std::io::Write;

use clap::Args;
use serde::Serialize;
use whatif::{Batch, Crash, Laboratory, Limits, Outcome, Stopped, Verdict, Words};

use crate::expected::{Expected, Judged, Source, shell_status, steps};
use crate::show;
use crate::subject::Subject;

/// Replay a run, change one thing in it, and see what would have happened.
///
/// The run is replayed to the first alteration and goes on from there in a sandbox: files as the
/// recording saw them, standard input as recorded, virtual time. Nothing outside is touched. What
/// the recording cannot answer ends the experiment with a name.
#[derive(Args)]
#[command(after_help = "Examples:
  why what-if switch list.c:42#3            the branch goes the other way
  why what-if switch list.c:42#all          at every execution
  why what-if set list.c:40#2 n=5           n is 5 before that line runs
  why what-if skip free_item#1              the call is left out
  why what-if skip list.c:17 =0             the call there returns 0
  why what-if switch list.c:42#3 --expect right.txt")]
pub struct WhatIf {
    /// A recording [default: the latest], and what to alter: `switch POS`,
    /// `set POS LVALUE=VALUE`, `skip POS [=VALUE]`; POS#all and POS#next mean every
    /// and the next execution, POS.2 the second branch of the line
    #[arg(value_name = "[REC] ALTERATION", required = true, allow_hyphen_values = false)]
    words: Vec<String>,

    #[command(flatten)]
    subject: Subject,

    #[command(flatten)]
    expected: Expected,

    /// At most so many instructions: a number, or a multiple of the recorded run [default: 10x,
    /// 1x of a run that hung]
    #[arg(long, value_name = "N|Nx")]
    steps: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl WhatIf {
    /// Makes the experiment, and shows what came out.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<u8> {
        let (recording, words) = self.subject.open(&self.words)?;
        let words = Words::parse(words)?;
        let mut laboratory = Laboratory::open(&recording)?;
        let original = laboratory.original().clone();
        let judged = self.expected.oracle(&recording, &original)?;
        let steps = steps(self.steps.as_deref(), &recording, original.instructions)?;
        let run = self.subject.run(recording, false)?;
        let crash = Crash::of(&run)?.filter(|_| judged.oracle.no_crash);
        let experiment = whatif::experiment(&run, &words, crash.as_ref())?;
        let mut batch = Batch::new(vec![experiment.clone()], judged.oracle.clone());
        batch.limits = Limits { steps, memory: 1 << 30 };
        batch.keep_outputs = true;
        batch.exact = true;
        batch.crash = crash.map(|crash| crash.point);
        let mut outcome = Outcome::of(Verdict::Lost);
        laboratory.perform(&batch, &mut |_, found| {
            outcome = found;
            true
        })?;
        decide(&judged, &mut outcome)?;
        let differs = laboratory.first_difference(&experiment, batch.limits)?;
        let at = differs.and_then(|number| run.trace.at_number(number));
        let names = position::Names::of(&run, at);
        let answer = Answer {
            alterations: words.iter().map(ToString::to_string).collect(),
            first_difference: at.map(|at| names.name(at)),
            instruction: experiment.at,
            judged: !judged.oracle.is_empty(),
            judged_by: judged.source,
            verdict: Judgement::of(&outcome.verdict, &judged),
            ending: outcome.stopped.as_ref().map(ending),
            steps: outcome.steps,
            output: difference(&original.outputs[0], outcome.outputs.as_ref().map(|o| &o[0])),
            stderr: difference(&original.outputs[1], outcome.outputs.as_ref().map(|o| &o[1])),
            was_run: outcome.outputs.is_some(),
        };
        if self.json {
            serde_json::to_writer_pretty(&mut *out, &answer).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            answer.write(out)?;
        }
        let known = !answer.judged
            && outcome.verdict == Verdict::Passed
            && matches!(outcome.stopped, Some(Stopped::Exited(_)));
        Ok(if outcome.verdict == Verdict::Passed || known { 0 } else { 1 })
    }
}

/// Lets the oracle's command decide what is undecided.
pub fn decide(judged: &Judged, outcome: &mut Outcome) -> anyhow::Result<()> {
    if outcome.verdict == Verdict::Unjudged
        && let (Some(outputs), Some(stopped)) = (&outcome.outputs, &outcome.stopped)
    {
        let accepted = judged.accepts(outputs, shell_status(stopped))?;
        outcome.verdict = if accepted { Verdict::Passed } else { Verdict::Rejected };
    }
    Ok(())
}

/// A verdict: its word, and the whole sentence.
#[derive(Serialize)]
struct Judgement {
    word: &'static str,
    text: String,
}

impl Judgement {
    fn of(verdict: &Verdict, judged: &Judged) -> Judgement {
        if judged.oracle.is_empty() && *verdict == Verdict::Passed {
            let text = "nothing was expected of it, so nobody judged".to_owned();
            return Judgement { word: Verdict::Unjudged.word(), text };
        }
        Judgement { word: verdict.word(), text: verdict.sentence(judged.oracle.unit) }
    }
}

#[derive(Serialize)]
struct Answer {
    alterations: Vec<String>,
    /// Where the path leaves the recorded one.
    first_difference: Option<String>,
    instruction: u64,
    /// Was anything expected?
    judged: bool,
    /// Who said what was expected.
    judged_by: Source,
    verdict: Judgement,
    ending: Option<String>,
    steps: u64,
    output: Vec<Change>,
    stderr: Vec<Change>,
    /// Is it known what it wrote?
    #[serde(skip)]
    was_run: bool,
}

/// A line that is only in one of two outputs.
#[derive(Serialize, PartialEq, Debug)]
struct Change {
    /// `-` in the recorded run, `+` in the altered one.
    side: char,
    line: usize,
    text: String,
}

/// Lines that differ between the end of what both begin with and the beginning of
/// what both end with.
fn difference(before: &[u8], after: Option<&Vec<u8>>) -> Vec<Change> {
    let Some(after) = after else { return Vec::new() };
    let lines = |bytes: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect()
    };
    let (old, new) = (lines(before), lines(after));
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - head;
    let tail =
        old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let side = |side, lines: &[String]| -> Vec<Change> {
        let changed = lines[head..lines.len() - tail].iter().enumerate();
        changed.map(|(n, text)| Change { side, line: head + n + 1, text: text.clone() }).collect()
    };
    let mut all = side('-', &old);
    all.extend(side('+', &new));
    all
}

fn ending(stopped: &Stopped) -> String {
    match stopped {
        Stopped::Exited(status) => format!("exits with status {status}"),
        Stopped::Killed { signal, pc, .. } => format!("dies of signal {signal} at {pc:#x}"),
        Stopped::Unserved(what) => {
            format!("asks for what the recording does not know ({what}) and is given up")
        }
        Stopped::NeedsChild => "wants another process and is given up".to_owned(),
        Stopped::StepLimit => "goes on for too long and is given up".to_owned(),
        Stopped::MemoryLimit => "takes too much memory and is given up".to_owned(),
        Stopped::Deadlock => "waits for ever".to_owned(),
        Stopped::Enough | Stopped::At(_) => "fails, and is not followed any further".to_owned(),
        Stopped::Rejoined => "comes back to the recorded run".to_owned(),
    }
}

/// So many lines of a difference are shown.
const SHOWN: usize = 40;

impl Answer {
    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        for alteration in &self.alterations {
            field(out, "what if", alteration)?;
        }
        if let Some(place) = &self.first_difference {
            writeln!(out, "path differs  from {place} on")?;
        }
        if let Some(ending) = &self.ending {
            let steps = match self.steps {
                1 => "1 more instruction".to_owned(),
                n => format!("{n} more instructions"),
            };
            field(out, "then", &format!("it {ending} after {steps}"))?;
        }
        for (name, changes) in [("output", &self.output), ("stderr", &self.stderr)] {
            if !self.was_run {
                continue;
            }
            if changes.is_empty() {
                writeln!(out, "{name:<13} is the same")?;
                continue;
            }
            writeln!(out, "{name:<13} differs:")?;
            for change in changes.iter().take(SHOWN) {
                let text = report::Style::cut(&change.text, WIDTH - 10);
                writeln!(out, "  {} {:>4}  {text}", change.side, change.line)?;
            }
            if changes.len() > SHOWN {
                writeln!(out, "  … {} more lines", changes.len() - SHOWN)?;
            }
        }
        lines(out, "verdict", &self.verdict.text, show::bold)?;
        match self.judged_by {
            Source::Remembered => {
                let text = "by what was expected of this recording before; options such as \
                            --expect replace that";
                field(out, "judged", text)
            }
            _ => Ok(()),
        }
    }
}

/// Columns that are used.
const WIDTH: usize = 80;
/// Columns for names.
const NAMES: usize = 14;

/// A name and what is said of it, in lines that fit.
fn field(out: &mut dyn Write, name: &str, text: &str) -> std::io::Result<()> {
    lines(out, name, text, str::to_owned)
}

/// The same, each line shown in some way.
fn lines(
    out: &mut dyn Write,
    name: &str,
    text: &str,
    shown: impl Fn(&str) -> String,
) -> std::io::Result<()> {
    for (n, line) in report::Style::wrapped(text, WIDTH - NAMES).iter().enumerate() {
        let name = if n == 0 { name } else { "" };
        writeln!(out, "{name:NAMES$}{}", shown(line))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_verdict_fits_into_80_columns() {
        let (pc, same_place, passed_point) = (0x7fff_ffff_f000, true, false);
        let verdict = Verdict::CrashedElsewhere { signal: 11, pc, same_place, passed_point };
        let mut out = Vec::new();
        lines(&mut out, "verdict", &verdict.sentence(whatif::Unit::Line), str::to_owned)
            .expect("memory");
        let text = String::from_utf8(out).expect("text");
        assert!(text.lines().count() > 1, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn a_difference_leaves_out_what_both_begin_and_end_with() {
        let after = b"a\nx\ny\nd\n".to_vec();
        let changes = difference(b"a\nb\nd\n", Some(&after));
        let shown: Vec<(char, usize, &str)> =
            changes.iter().map(|c| (c.side, c.line, &c.text[..])).collect();
        assert_eq!(shown, [('-', 2, "b"), ('+', 2, "x"), ('+', 3, "y")]);
        assert!(difference(b"a\n", Some(&b"a\n".to_vec())).is_empty());
    }
}
