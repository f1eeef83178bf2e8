//! A slice for the terminal.

use crate::slice_report::{Execution, Kind, Line, SliceReport};
use crate::style::{Style, grouped, percent};
use crate::values::Value;
use std::collections::HashMap;
use std::io::{self, Write};

impl SliceReport {
    /// Writes the slice: a header, then lines by function, nearest first.
    pub fn write_text(&self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        self.write_header(out, style)?;
        if self.lines.is_empty() {
            writeln!(out, "\n{}", self.nothing())?;
        }
        for group in self.groups() {
            writeln!(out)?;
            write_group(out, style, &group)?;
        }
        if !self.origins.is_empty() {
            writeln!(out, "\n{}", style.bold("from outside"))?;
            for origin in &self.origins {
                let Origin { from, bytes } = origin.into();
                writeln!(out, "  {}", Style::cut(&format!("{from}, {bytes}"), style.width - 2))?;
            }
        }
        Ok(())
    }

    fn write_header(&self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        let way = match self.kind {
            Kind::Backward => "What led to",
            Kind::Forward => "What followed from",
            Kind::Both => "What led to and followed from",
            Kind::Chop => "What lies between",
        };
        writeln!(out, "{} {} ({})", style.bold(way), style.bold(&self.criterion), self.followed)?;
        let share = percent(self.instances, self.instructions);
        writeln!(
            out,
            "  {} instructions executed, {} in the slice ({share})",
            grouped(self.instructions),
            grouped(self.instances),
        )?;
        let lines = self.distinct_lines();
        writeln!(
            out,
            "  {} of {} executed lines ({})",
            grouped(lines),
            grouped(self.executed_lines),
            percent(lines, self.executed_lines)
        )?;
        if self.instances_elsewhere > 0 {
            let elsewhere = match self.instances_elsewhere {
                1 => "1 instance".to_owned(),
                n => format!("{} instances", grouped(n)),
            };
            writeln!(out, "  {elsewhere} outside of the program's own lines not shown")?;
        }
        if self.lines.iter().any(|line| line.potential > 0) {
            writeln!(out, "  ? marks branches whose other way might have changed a value")?;
        }
        if !self.complete {
            writeln!(out, "  the recording breaks off: the run went on behind its end")?;
        }
        Ok(())
    }

    /// Why there are no lines.
    fn nothing(&self) -> &'static str {
        match self.kind {
            Kind::Chop => "Nothing that followed from the first led to the second.",
            _ if self.instances > 0 => {
                "No line of the program is part of it; `--via-lib` shows those of libraries."
            }
            Kind::Forward => "Nothing that is shown followed from it.",
            Kind::Backward | Kind::Both => "Nothing that is shown led to it.",
        }
    }

    /// Lines of one function together, in the order of the nearest.
    fn groups(&self) -> Vec<Vec<&Line>> {
        let mut groups: Vec<Vec<&Line>> = Vec::new();
        let mut numbers = HashMap::new();
        for line in &self.lines {
            let number = *numbers.entry((&line.function, &line.file)).or_insert(groups.len());
            match groups.get_mut(number) {
                Some(group) => group.push(line),
                None => groups.push(vec![line]),
            }
        }
        groups
    }
}

struct Origin {
    from: String,
    bytes: String,
}

impl From<&crate::slice_report::Origin> for Origin {
    fn from(origin: &crate::slice_report::Origin) -> Origin {
        let bytes = match origin.end - origin.start {
            1 => format!("byte {}", origin.start),
            _ => format!("bytes {} to {}", origin.start, origin.end - 1),
        };
        Origin { from: origin.from.clone(), bytes }
    }
}

fn write_group(out: &mut dyn Write, style: Style, group: &[&Line]) -> io::Result<()> {
    let Some(first) = group.first() else { return Ok(()) };
    let function = first.function.as_deref().unwrap_or("(no function)");
    let function = Style::cut(function, style.width / 2);
    let file = first.file.as_deref().map(|f| format!(" in {f}")).unwrap_or_default();
    let file = Style::cut(&file, style.width.saturating_sub(function.chars().count()));
    writeln!(out, "{}{}", style.bold(&function), style.dim(&file))?;
    let heading = format!("{:>5}  {:>6}  {:>TIMES$}  code", "dist", "line", "times");
    writeln!(out, "{}", style.dim(&heading))?;
    for line in group {
        write_line(out, style, line)?;
    }
    Ok(())
}

fn write_line(out: &mut dyn Write, style: Style, line: &Line) -> io::Result<()> {
    let place = match (line.line, line.address) {
        (Some(line), _) => line.to_string(),
        (None, Some(address)) => format!("{address:x}"),
        (None, None) => "?".to_owned(),
    };
    let times = times(line);
    let code = line.code.as_deref().map(str::trim).unwrap_or("(source not found)");
    let room = style.width.saturating_sub(32);
    let code = Style::cut(code, room.max(20));
    let mark = if line.potential > 0 { '?' } else { ' ' };
    writeln!(out, "{:>5}{mark} {place:>6}  {times:>TIMES$}  {code}", line.distance)?;
    if let Some(seen) = line.latest.first().and_then(|e| seen(e, line)) {
        let text = Style::cut(&seen, style.width.saturating_sub(34));
        writeln!(out, "{:32}{}", "", style.dim(&text))?;
    }
    Ok(())
}

/// `4`, or `3 of 4` if not all executions of the line take part.
fn times(line: &Line) -> String {
    if line.instances >= line.executions {
        return grouped(line.instances);
    }
    let text = format!("{} of {}", grouped(line.instances), grouped(line.executions));
    match text.len() <= TIMES {
        true => text,
        false => format!("{} of {}", rounded(line.instances), rounded(line.executions)),
    }
}

/// So wide is the column of times.
const TIMES: usize = 13;

/// A number in four characters or little more; `--json` has all of it.
fn rounded(n: u64) -> String {
    match n {
        0..10_000 => grouped(n),
        10_000..10_000_000 => format!("{}k", n / 1000),
        10_000_000..10_000_000_000 => format!("{}M", n / 1_000_000),
        _ => format!("{}G", n / 1_000_000_000),
    }
}

/// The values of the latest execution.
fn seen(latest: &Execution, line: &Line) -> Option<String> {
    if latest.values.is_empty() {
        return None;
    }
    let show = |v: &Value| format!("{} = {}", v.name, v.value);
    let all: Vec<String> = latest.values.iter().map(show).collect();
    let which = if line.executions > 1 {
        let nth = latest.position.rsplit_once('#').map_or("", |(_, n)| n);
        format!("#{nth} ")
    } else {
        String::new()
    };
    Some(format!("{which}{}", all.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(instances: u64, executions: u64) -> String {
        let (function, file, line, address, code) = Default::default();
        let (distance, potential, latest) = Default::default();
        times(&Line {
            function,
            file,
            line,
            address,
            code,
            distance,
            instances,
            potential,
            executions,
            latest,
        })
    }

    #[test]
    fn some_of_many_executions_are_told_by_both_numbers_however_many_there_are() {
        assert_eq!(told(4, 4), "4");
        assert_eq!(told(3, 4), "3 of 4");
        assert_eq!(told(1, 75_045_318), "1 of 75M");
        assert_eq!(told(123_267, 9_300_000), "123k of 9300k");
        assert_eq!(told(4_000_000_000, 75_000_000_000), "4000M of 75G");
    }
}
