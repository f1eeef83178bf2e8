//! The tables.

use std::fmt::Write;

use super::locators::{Answer, Technique};
use super::score::{fcs, score, worst_rank};
use super::subject::Subject;
use crate::corpus::manifest::{Faulty, Level};

/// What one technique said of one program.
pub struct Row {
    program: String,
    level: Level,
    /// Was the program kept out of sight while locators were worked on?
    held_out: bool,
    kind: String,
    pub technique: Technique,
    rank: Option<usize>,
    in_story: bool,
    executed: usize,
    size: Option<usize>,
    trials: u64,
    seconds: f64,
    why_not: Option<String>,
}

/// So many places are looked at.
const LOOKED_AT: usize = 5;

impl Row {
    /// Judges an answer.
    pub fn of(subject: &Subject<'_>, technique: Technique, answer: Answer) -> Row {
        let faulty = subject.faulty();
        Row {
            program: subject.program.name.clone(),
            level: subject.level,
            held_out: subject.program.manifest.held_out,
            kind: subject.program.manifest.faults[0].kind.clone(),
            technique,
            rank: worst_rank(&answer.suspicion, &faulty),
            in_story: answer.story.iter().any(|line| faulty.contains(line)),
            executed: answer.executed,
            size: answer.size,
            trials: answer.trials,
            seconds: answer.seconds,
            why_not: answer.why_not,
        }
    }

    /// There was nothing to ask about.
    pub fn unknown(program: &Faulty, level: Level, technique: Technique, why: String) -> Row {
        Row {
            program: program.name.clone(),
            level,
            held_out: program.manifest.held_out,
            kind: program.manifest.faults[0].kind.clone(),
            technique,
            rank: None,
            in_story: false,
            executed: 0,
            size: None,
            trials: 0,
            seconds: 0.0,
            why_not: Some(why),
        }
    }

    /// Is the fault in the story or among the first places?
    pub fn is_found(&self) -> bool {
        self.in_story || self.rank.is_some_and(|rank| rank <= LOOKED_AT)
    }

    /// Lines that must be looked at.
    fn examined(&self) -> Option<f64> {
        let rank = self.rank?;
        (self.executed > 0).then(|| 100.0 - score(rank, self.executed))
    }

    fn miss(&self) -> String {
        match (&self.why_not, self.rank) {
            (Some(why), _) => why.clone(),
            (None, Some(rank)) => format!("rank {rank} of {}", self.executed),
            (None, None) => "not among the lines that the failure depends on".to_owned(),
        }
    }

    /// As a row of a Markdown table.
    pub fn line(&self) -> String {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        format!(
            "| {} | {:?} | {} | {} | {} | {} | {} | {} | {} | {} | {:.1} |",
            self.program,
            self.level,
            self.kind,
            self.technique.name(),
            if self.is_found() { "yes" } else { "no" },
            or_none(self.rank.map(|r| r.to_string())),
            or_none(self.examined().map(|e| format!("{e:.1}"))),
            or_none(self.size.map(|s| s.to_string())),
            self.executed,
            self.trials,
            self.seconds,
        )
    }
}

const HEADING: &str = "| program | level | fault | technique | found | rank | examined % | slice | executed | trials | s |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";

/// All tables: one line for each technique, how the scores are spread, every row, every miss.
pub fn tables(rows: &[Row], techniques: &[Technique], levels: &[Level]) -> String {
    let (held, seen): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|r| r.held_out);
    let (worked, seen): (Vec<&Row>, Vec<&Row>) =
        seen.into_iter().partition(|r| r.program.starts_with("worked/"));
    let mut text = LEGEND.to_owned();
    text += SEEN;
    text += &summary(&seen, techniques, levels);
    if !worked.is_empty() {
        text += WORKED;
        text += &summary(&worked, techniques, levels);
    }
    if !held.is_empty() {
        text += HELD_OUT;
        text += &summary(&held, techniques, levels);
    }
    text += &bins(rows, techniques);
    text += "\n## Every program\n\n";
    text += HEADING;
    for row in rows {
        text += &row.line();
        text.push('\n');
    }
    text += "\n## What `why explain` misses\n\n";
    for row in rows.iter().filter(|r| r.technique == Technique::Explain && !r.is_found()) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "- {} {:?} ({}): {}", row.program, row.level, row.kind, row.miss());
    }
    text
}

const LEGEND: &str = "Found: in the story, or among the first five places. Ranks take equal lines in \
    the worst order. FCS: the share of executed lines in the slice, all of them where there is \
    none.\n";
const SEEN: &str = "\n## The corpus\n\nThese figures are in-sample: `why explain` was worked on while \
    its answers about these programs were looked at.\n\n";
const WORKED: &str = "\n## Worked examples\n\nThe small programs in `corpus/worked`, in-sample \
    too.\n\n";
const HELD_OUT: &str = "\n## Held out\n\nPrograms with `held_out = true`: written before the last \
    work on `why explain`; its rules were not made for them, but chosen with their results in \
    sight. They are few and small.\n\n";

fn summary(rows: &[&Row], techniques: &[Technique], levels: &[Level]) -> String {
    let mut text = String::from(
        "| technique | level | programs | found | rank 1 | in the first 5 | median examined % | FCS | median trials | median s |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for technique in techniques {
        for level in levels {
            let of: Vec<&Row> = rows
                .iter()
                .filter(|r| r.technique == *technique && r.level == *level)
                .copied()
                .collect();
            let ranked =
                |most: usize| of.iter().filter(|r| r.rank.is_some_and(|n| n <= most)).count();
            let sizes: Vec<(Option<usize>, usize)> =
                of.iter().filter(|r| r.executed > 0).map(|r| (r.size, r.executed)).collect();
            let examined = of.iter().map(|r| r.examined().unwrap_or(100.0)).collect();
            let _ = writeln!(
                text,
                "| {} | {level:?} | {} | {} | {} | {} | {:.1} | {:.3} | {:.0} | {:.1} |",
                technique.name(),
                of.len(),
                of.iter().filter(|r| r.is_found()).count(),
                ranked(1),
                ranked(LOOKED_AT),
                median(examined),
                fcs(&sizes),
                median(of.iter().map(|r| r.trials as f64).collect()),
                median(of.iter().map(|r| r.seconds).collect()),
            );
        }
    }
    text
}

/// How many programs have which score, as the literature shows it.
fn bins(rows: &[Row], techniques: &[Technique]) -> String {
    const FROM: [f64; 11] = [99.0, 90.0, 80.0, 70.0, 60.0, 50.0, 40.0, 30.0, 20.0, 10.0, 0.0];
    let names: Vec<&str> = techniques.iter().map(|t| t.name()).collect();
    let mut text = format!("\n## Scores\n\n| score | {} |\n", names.join(" | "));
    text += &format!("| --- |{}\n", " --- |".repeat(names.len()));
    let mut to: f64 = 100.1;
    for from in FROM {
        let _ = write!(text, "| {from:.0}–{:.0} |", to.min(100.0));
        for technique in techniques {
            let scores = rows
                .iter()
                .filter(|r| r.technique == *technique)
                .map(|r| 100.0 - r.examined().unwrap_or(100.0));
            let _ = write!(text, " {} |", scores.filter(|s| *s >= from && *s < to).count());
        }
        text.push('\n');
        to = from;
    }
    text
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
