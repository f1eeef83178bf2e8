//! The story for the terminal.

use crate::story::{Critical, Edited, Link, Spot, Step, Story, Suspect};
use crate::style::{Style, grouped, percent};
use std::io::{self, Write};

impl Story {
    /// Writes the story: what failed, how it came about, what would have helped,
    /// where to look.
    pub fn write_text(&self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        let title = |text: &str| style.bold(text);
        writeln!(out, "{}", title("What failed"))?;
        for line in Style::wrapped(&self.failure.sentence, style.width - 2) {
            writeln!(out, "  {line}")?;
        }
        if let Some(spot) = &self.failure.spot {
            write_spot(out, style, "at", spot)?;
        }
        for call in &self.failure.calls {
            let function = call.function.as_deref().unwrap_or("?");
            writeln!(
                out,
                "  {}",
                style.dim(&format!("called from {} in {function}", call.name()))
            )?;
        }
        if self.path.len() > 1 {
            writeln!(out, "\n{}", title("How it came about"))?;
            for step in &self.path {
                write_step(out, style, step)?;
            }
        }
        self.write_memory(out, style)?;
        self.write_critical(out, style)?;
        if !self.suspects.is_empty() {
            writeln!(out, "\n{}", title("Where to look"))?;
            for (n, suspect) in self.suspects.iter().enumerate() {
                write_suspect(out, style, n + 1, suspect)?;
            }
        }
        writeln!(out)?;
        for doubt in &self.doubts {
            for line in Style::wrapped(&format!("Not certain: {doubt}."), style.width) {
                writeln!(out, "{line}")?;
            }
        }
        let share = percent(self.slice_lines, self.executed_lines);
        let places = match (self.has_lines(), self.executed_lines) {
            (true, 1) => "line",
            (true, _) => "lines",
            (false, 1) => "different instruction",
            (false, _) => "different instructions",
        };
        let facts = format!(
            "{} instructions, {} {places} executed, {} of them in the slice ({share}); {:.1} s",
            grouped(self.instructions),
            grouped(self.executed_lines),
            grouped(self.slice_lines),
            self.seconds,
        );
        for line in Style::wrapped(&facts, style.width) {
            writeln!(out, "{}", style.dim(&line))?;
        }
        Ok(())
    }

    /// Does the program have lines, or only instructions?
    fn has_lines(&self) -> bool {
        let spots = self.failure.spot.iter().chain(self.suspects.iter().map(|s| &s.spot));
        let mut all = spots.chain(self.path.iter().map(|step| &step.spot)).peekable();
        all.peek().is_none() || all.any(|spot| spot.line.is_some())
    }

    fn write_memory(&self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        if self.memory.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{}", style.bold("What was wrong with memory"))?;
        for misused in &self.memory {
            let [used, call] = misused.kind.words();
            writeln!(out, "  {used}")?;
            write_spot(out, style, "at", &misused.spot)?;
            let is_last = |step: &Step| step.spot.position == misused.call.position;
            if misused.path.len() < 2 || !misused.path.last().is_some_and(is_last) {
                write_spot(out, style, &format!("{call} at"), &misused.call)?;
            }
            for step in misused.path.iter().skip(1) {
                match is_last(step) {
                    true => write_spot(out, style, &format!("← {call} at"), &step.spot)?,
                    false => write_step(out, style, step)?,
                }
            }
        }
        Ok(())
    }

    fn write_critical(&self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        let tried = &self.tried;
        if self.critical.is_empty() && tried.trials == 0 {
            return Ok(());
        }
        writeln!(out, "\n{}", style.bold("What would have helped"))?;
        for critical in &self.critical {
            write_branch(out, style, critical)?;
        }
        for edited in &self.edits {
            write_edited(out, style, edited)?;
        }
        if self.critical.is_empty() {
            writeln!(out, "  no single branch that goes the other way helps")?;
        }
        for sentence in tried.sentences() {
            for line in Style::wrapped(&sentence, style.width - 2) {
                writeln!(out, "  {}", style.dim(&line))?;
            }
        }
        Ok(())
    }
}

fn write_spot(out: &mut dyn Write, style: Style, word: &str, spot: &Spot) -> io::Result<()> {
    let function = spot.function.as_deref().map(|f| format!(" in {f}")).unwrap_or_default();
    let thread = spot.thread.map(|t| format!(", thread {t}")).unwrap_or_default();
    writeln!(out, "  {word} {}{function}{thread}", spot.name())?;
    if let Some(code) = &spot.code {
        writeln!(out, "      {}", Style::cut(code, style.width - 6))?;
    }
    write_values(out, style, spot)
}

fn write_values(out: &mut dyn Write, style: Style, spot: &Spot) -> io::Result<()> {
    if spot.values.is_empty() {
        return Ok(());
    }
    let all: Vec<String> =
        spot.values.iter().map(|v| format!("{} = {}", v.name, v.value)).collect();
    let text = Style::cut(&all.join(", "), style.width - 8);
    writeln!(out, "        {}", style.dim(&text))
}

fn write_step(out: &mut dyn Write, style: Style, step: &Step) -> io::Result<()> {
    let word = match step.link {
        Link::Value => "←",
        Link::Control => "← because of",
        Link::Call => "← called at",
    };
    let folded = if step.folded > 1 { format!(" ({} times)", step.folded) } else { String::new() };
    let word = format!("{word}{folded}");
    write_spot(out, style, &word, &step.spot)
}

fn write_branch(out: &mut dyn Write, style: Style, critical: &Critical) -> io::Result<()> {
    write_spot(out, style, "switch", &critical.spot)?;
    let mut text = critical.sentence();
    if critical.others > 0 {
        text += &format!(" (the same holds for {} more of this line)", critical.others);
    }
    for line in Style::wrapped(&text, style.width - 6) {
        writeln!(out, "      {line}")?;
    }
    Ok(())
}

fn write_edited(out: &mut dyn Write, style: Style, edited: &Edited) -> io::Result<()> {
    write_spot(out, style, "change", &edited.spot)?;
    let mut text = format!("if {} here, {}", edited.change, edited.effect);
    if edited.others > 0 {
        let changes = if edited.others == 1 { "change" } else { "changes" };
        text += &format!(" (so it is with {} other {changes} of this line)", edited.others);
    }
    for line in Style::wrapped(&text, style.width - 6) {
        writeln!(out, "      {line}")?;
    }
    Ok(())
}

fn write_suspect(out: &mut dyn Write, style: Style, n: usize, suspect: &Suspect) -> io::Result<()> {
    let spot = &suspect.spot;
    let place = match (&spot.file, spot.line) {
        (Some(_), Some(_)) => spot.name().split(['#', ' ']).next().unwrap_or("").to_owned(),
        _ => spot.position.clone(),
    };
    let code = spot.code.as_deref().unwrap_or("");
    let room = style.width.saturating_sub(29);
    writeln!(out, "  {n:>2} {:<22} {}", style.bold(&place), Style::cut(code, room))?;
    for reason in suspect.reasons.iter().take(2) {
        writeln!(out, "       {}", style.dim(&Style::cut(reason, style.width - 7)))?;
    }
    Ok(())
}
