//! One step back, in words.

use crate::deps_report::{Because, Dependence, DepsReport};
use crate::style::Style;
use std::io::{self, Write};

impl DepsReport {
    /// Writes a sentence, then the lines it speaks of.
    pub fn write_text(&self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        for line in Style::wrapped(&self.sentence(), style.width) {
            writeln!(out, "{line}")?;
        }
        writeln!(out)?;
        row(out, style, &self.position, self.code.as_deref())?;
        for d in &self.dependences {
            row(out, style, &format!("← {}", d.position), d.code.as_deref())?;
        }
        if let Some(because) = &self.because {
            let how = if because.call { "called at" } else { "because of" };
            row(out, style, &format!("{how} {}", because.position), because.code.as_deref())?;
        }
        Ok(())
    }

    /// `sum = 7 at f.c:12#4 ← a[2] (f.c:8#1) and i (f.c:9#4); runs because …`.
    pub fn sentence(&self) -> String {
        let given = self.values.iter().filter(|v| v.assigned);
        let given: Vec<String> = given.map(|v| format!("{} = {}", v.name, v.value)).collect();
        let thread = self.thread.map(|t| format!(", thread {t}")).unwrap_or_default();
        let mut text = match &given[..] {
            [] => format!("{}{thread}", self.position),
            list => format!("{} at {}{thread}", list.join(", "), self.position),
        };
        let mut sources = self.sources();
        sources.extend(self.outside.iter().cloned());
        if !sources.is_empty() {
            text += &format!(" ← {}", joined(&sources));
        }
        if let Some(because) = &self.because {
            text += &format!("; runs because {}", because.words());
        }
        text
    }

    /// Each thing that was used, with where it comes from.
    fn sources(&self) -> Vec<String> {
        let value = |name: &str| self.values.iter().find(|v| v.name == name && !v.assigned);
        let words = |d: &Dependence| {
            let thread = d.thread.filter(|t| Some(*t) != self.thread);
            let thread = thread.map(|t| format!(", thread {t}")).unwrap_or_default();
            match &d.what {
                Some(what) => {
                    let value = value(what).map(|v| format!(" = {}", v.value)).unwrap_or_default();
                    format!("{what}{value} ({}{thread})", d.position)
                }
                None => format!("{}{thread}", d.position),
            }
        };
        self.dependences.iter().map(words).collect()
    }
}

impl Because {
    fn words(&self) -> String {
        match (self.outcome, self.call) {
            (Some(true), _) => format!("{} was true", self.position),
            (Some(false), _) => format!("{} was false", self.position),
            (None, true) => format!("{} called it", self.position),
            (None, false) => format!("{} led there", self.position),
        }
    }
}

fn joined(list: &[String]) -> String {
    match list {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

fn row(out: &mut dyn Write, style: Style, name: &str, code: Option<&str>) -> io::Result<()> {
    let room = style.width.saturating_sub(34);
    let code = Style::cut(code.unwrap_or(""), room);
    writeln!(out, "  {}  {code}", style.dim(&format!("{name:<30}")))
}
