//! What a search found, for people.

use std::io::Write;

use super::report::{Branch, Report, Slices};

/// So many statements are shown.
const STATEMENTS: usize = 10;

impl Report {
    /// Writes it for people.
    pub fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        writeln!(out, "failure     {}", self.failure)?;
        writeln!(
            out,
            "candidates  {} branches executed before it, {} of them in the slice; order: {}",
            self.predicates, self.in_slice, self.order
        )?;
        let counts = self.verdicts.iter().map(|(word, n)| format!("{n} {word}"));
        let counts = counts.collect::<Vec<_>>().join(", ");
        writeln!(out, "trials      {} in {:.2} s: {counts}", self.trials, self.seconds)?;
        for (what, n) in &self.unserved {
            writeln!(out, "            {n} × unserved: {what}")?;
        }
        if self.avoided > 0 {
            writeln!(
                out,
                "avoided     {} switches only keep it from the crash point: {}",
                self.avoided,
                self.avoiding.join(", ")
            )?;
        }
        for branch in &self.critical {
            branch.write(out, "critical")?;
        }
        for branch in self.pair.iter().flatten() {
            branch.write(out, "together")?;
        }
        if self.interrupted {
            writeln!(out, "interrupted; `--resume` goes on")?;
        }
        if self.critical.is_empty() && self.pair.is_none() {
            return writeln!(out, "no critical predicate was found");
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
        writeln!(
            out,
            "\n{}  {} in {function}: the branch at {:#x}{how} (trial {}, {} from the end{distance})",
            crate::show::bold(word),
            self.position,
            self.address,
            self.trial,
            self.backward
        )?;
        for (n, text) in &self.source {
            let mark = if Some(*n) == self.line { '>' } else { ' ' };
            writeln!(out, "  {mark} {n:>5}  {}", report::Style::cut(text, 90))?;
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
            let text = report::Style::cut(text.trim(), 60);
            writeln!(out, "  {:>3}  {:<24} {text}", look.distance, look.position)?;
        }
        if self.statements.len() > STATEMENTS {
            writeln!(out, "       … {} more with --json", self.statements.len() - STATEMENTS)?;
        }
        Ok(())
    }
}
