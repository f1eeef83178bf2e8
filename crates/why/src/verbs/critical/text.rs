//! What a search found, for people.

use std::io::Write;

use super::report::{Branch, Report, Slices};

/// So many statements are shown.
const STATEMENTS: usize = 10;

/// Columns that are used.
const WIDTH: usize = 80;
/// Columns for names.
const NAMES: usize = 12;

/// A name and what is said of it, in lines that fit.
fn field(out: &mut dyn Write, name: &str, text: &str) -> std::io::Result<()> {
    shown(out, name.len(), name, text)
}

/// The same with a name that takes so many columns.
fn shown(out: &mut dyn Write, columns: usize, name: &str, text: &str) -> std::io::Result<()> {
    for (n, line) in report::Style::wrapped(text, WIDTH - NAMES).iter().enumerate() {
        let (name, columns) = if n == 0 { (name, columns) } else { ("", 0) };
        writeln!(out, "{name}{:room$}{line}", "", room = NAMES - columns)?;
    }
    Ok(())
}

impl Report {
    /// Writes it for people.
    pub fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        field(out, "failure", &self.failure)?;
        if self.remembered {
            field(out, "", "(by what was expected of this recording before)")?;
        }
        // Other orders need no slice.
        let in_slice = match self.order.starts_with("PRIOR") {
            true => format!(", {} of them in the slice", self.in_slice),
            false => String::new(),
        };
        let candidates = format!(
            "{} branches executed before it{in_slice}; order: {}",
            self.predicates, self.order
        );
        field(out, "candidates", &candidates)?;
        let counts = self.verdicts.iter().map(|(word, n)| format!("{n} {word}"));
        let counts = match self.verdicts.is_empty() {
            true => "none was made".to_owned(),
            false => counts.collect::<Vec<_>>().join(", "),
        };
        field(out, "trials", &format!("{} in {:.2} s: {counts}", self.trials, self.seconds))?;
        for (what, n) in &self.unserved {
            field(out, "", &format!("{n} × unserved: {what}"))?;
        }
        if self.avoided > 0 {
            let more = if self.avoided > self.avoiding.len() { ", …" } else { "" };
            let avoiding = self.avoiding.join(", ") + more;
            let switches = match self.avoided {
                1 => "1 switch only keeps".to_owned(),
                n => format!("{n} switches only keep"),
            };
            let text = format!("{switches} it from the crash point: {avoiding}");
            field(out, "avoided", &text)?;
        }
        for branch in &self.critical {
            branch.write(out, "critical")?;
        }
        for branch in self.pair.iter().flatten() {
            branch.write(out, "together")?;
        }
        if let (Some(tried), None) = (self.pairs_tried, &self.pair) {
            field(out, "pairs", &format!("{tried} were tried, and none helps"))?;
        }
        if self.interrupted {
            writeln!(out, "interrupted; `--resume` goes on")?;
        }
        if self.critical.is_empty() && self.pair.is_none() {
            let left = self.predicates.saturating_sub(self.trials);
            return match left {
                0 => writeln!(out, "no critical predicate was found"),
                _ => {
                    writeln!(out, "no critical predicate was found; {left} branches were not tried")
                }
            };
        }
        self.slices.as_ref().map_or(Ok(()), |slices| slices.write(out))
    }
}

impl Branch {
    fn write(&self, out: &mut dyn Write, word: &str) -> std::io::Result<()> {
        let function = self.function.as_deref().unwrap_or("?");
        let how = match self.taken {
            Some(true) => " was taken",
            Some(false) => " was not taken",
            None => "",
        };
        let distance = self.distance.map(|d| format!(", distance {d}")).unwrap_or_default();
        writeln!(out)?;
        let text = format!(
            "{} in {function}: the branch at {:#x}{how} (trial {}, {} from the end{distance})",
            self.position, self.address, self.trial, self.backward
        );
        shown(out, word.len(), &crate::show::bold(word), &text)?;
        for (n, text) in &self.source {
            let mark = if Some(*n) == self.line { '>' } else { ' ' };
            writeln!(
                out,
                "  {mark} {n:>5}  {}",
                report::Style::cut(&text.replace('\t', "    "), WIDTH - 11)
            )?;
        }
        Ok(())
    }
}

impl Slices {
    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        writeln!(
            out,
            "\nslices      {} lines ran; {} led to the branch, {} followed, {} in all",
            self.executed, self.upstream, self.downstream, self.bidirectional
        )?;
        for (n, what) in [(self.failing, "led to the failure"), (self.input, "used the input")] {
            if let Some(n) = n {
                writeln!(out, "            {n} {what}")?;
            }
        }
        writeln!(out, "            {} are in all of these", self.statements.len())?;
        writeln!(out, "look at")?;
        for look in self.statements.iter().take(STATEMENTS) {
            let text = look.text.as_deref().unwrap_or("");
            let room = WIDTH.saturating_sub(8 + look.position.chars().count().max(24));
            let text = report::Style::cut(text.trim(), room);
            writeln!(out, "  {:>3}  {:<24} {text}", look.distance, look.position)?;
        }
        if self.statements.len() > STATEMENTS {
            writeln!(out, "       … {} more with --json", self.statements.len() - STATEMENTS)?;
        }
        Ok(())
    }
}
