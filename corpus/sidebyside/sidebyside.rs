//! sidebyside: compares two texts line by line and shows them next to each other.
//!
//! usage: sidebyside [--width N] [--only-changes] [--context N] [--brief] LEFT RIGHT
//!
//! Lines that are equal stand next to each other; `<` and `>` mark lines of one side only, `|`
//! lines that changed. Long lines are cut and end in `~`. With --context only that many equal
//! lines are shown around changes.

use std::fmt::Write;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    /// Both lines are equal.
    Same(usize, usize),
    Left(usize),
    Right(usize),
    Changed(usize, usize),
}

#[derive(Debug, Clone)]
struct Options {
    width: usize,
    only_changes: bool,
    context: Option<usize>,
    brief: bool,
    files: Vec<String>,
}

// ---- comparing ----

/// Lengths of the longest common subsequences of all pairs of ends.
fn lengths(left: &[&str], right: &[&str]) -> Vec<Vec<usize>> {
    let mut table = vec![vec![0; right.len() + 1]; left.len() + 1];
    for i in (0..left.len()).rev() {
        for j in (0..right.len()).rev() {
            table[i][j] = if left[i] == right[j] {
                table[i + 1][j + 1] + 1
            } else {
                table[i + 1][j].max(table[i][j + 1])
            };
        }
    }
    table
}

fn compare(left: &[&str], right: &[&str]) -> Vec<Row> {
    let table = lengths(left, right);
    let mut rows = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < left.len() || j < right.len() {
        if i < left.len() && j < right.len() && left[i] == right[j] {
            rows.push(Row::Same(i, j));
            i += 1;
            j += 1;
        } else if j == right.len() || (i < left.len() && table[i + 1][j] >= table[i][j + 1]) {
            rows.push(Row::Left(i));
            i += 1;
        } else {
            rows.push(Row::Right(j));
            j += 1;
        }
    }
    pair_up(rows)
}

/// Lines taken out and lines put in at one place are shown as changed, as far as they go.
fn pair_up(rows: Vec<Row>) -> Vec<Row> {
    let mut result = Vec::new();
    let mut index = 0;
    while index < rows.len() {
        if let Row::Same(..) = rows[index] {
            result.push(rows[index]);
            index += 1;
            continue;
        }
        let (mut gone, mut come) = (Vec::new(), Vec::new());
        while index < rows.len() {
            match rows[index] {
                Row::Left(i) => gone.push(i),
                Row::Right(j) => come.push(j),
                _ => break,
            }
            index += 1;
        }
        let both = gone.len().min(come.len());
        result.extend((0..both).map(|k| Row::Changed(gone[k], come[k])));
        result.extend(gone[both..].iter().map(|i| Row::Left(*i)));
        result.extend(come[both..].iter().map(|j| Row::Right(*j)));
    }
    result
}

// ---- choosing ----

/// Which rows are shown when only so many equal ones around changes are wanted.
fn near_changes(rows: &[Row], context: usize) -> Vec<bool> {
    let mut shown = vec![false; rows.len()];
    for (index, row) in rows.iter().enumerate() {
        if matches!(row, Row::Same(..)) {
            continue;
        }
        let from = index.saturating_sub(context);
        let to = (index + context).min(rows.len());
        for place in from..=to {
            shown[place] = true;
        }
    }
    shown
}

// ---- printing ----

/// Exactly `width` columns: tabs become blanks, what is too long is cut.
fn fitted(line: &str, width: usize) -> String {
    let mut text = String::new();
    for c in line.chars() {
        if c == '\t' {
            let blanks = 4 - text.chars().count() % 4;
            text.extend(std::iter::repeat_n(' ', blanks));
        } else {
            text.push(c);
        }
    }
    let length = text.chars().count();
    if length > width {
        let mut cut: String = text.chars().take(width - 1).collect();
        cut.push('~');
        cut
    } else {
        text.extend(std::iter::repeat_n(' ', width - length));
        text
    }
}

struct Printer<'a> {
    left: Vec<&'a str>,
    right: Vec<&'a str>,
    column: usize,
    output: String,
}

impl Printer<'_> {
    fn row(&mut self, row: Row) {
        let (left, mark, right) = match row {
            Row::Same(i, j) => (Some(i), ' ', Some(j)),
            Row::Left(i) => (Some(i), '<', None),
            Row::Right(j) => (None, '>', Some(j)),
            Row::Changed(i, j) => (Some(i), '|', Some(j)),
        };
        let number = |index: Option<usize>| {
            index.map_or_else(|| "    ".to_string(), |index| format!("{:>4}", index + 1))
        };
        let text = |lines: &[&str], index: Option<usize>| {
            fitted(index.map_or("", |index| lines[index]), self.column)
        };
        let line = format!(
            "{} {} {mark} {} {}",
            number(left),
            text(&self.left, left),
            number(right),
            text(&self.right, right)
        );
        self.output.push_str(line.trim_end());
        self.output.push('\n');
    }

    fn gap(&mut self, rows: usize) {
        let _ = writeln!(self.output, "     ... {rows} equal lines");
    }
}

fn print_rows(rows: &[Row], left: &str, right: &str, options: &Options) -> String {
    let mut printer = Printer {
        left: left.lines().collect(),
        right: right.lines().collect(),
        column: (options.width - 13) / 2,
        output: String::new(),
    };
    let shown = match options.context {
        Some(context) => near_changes(rows, context),
        None if options.only_changes => near_changes(rows, 0),
        None => vec![true; rows.len()],
    };
    let mut hidden = 0;
    for (row, shown) in rows.iter().zip(shown) {
        if !shown {
            hidden += 1;
            continue;
        }
        if hidden > 0 && options.context.is_some() {
            printer.gap(hidden);
        }
        hidden = 0;
        printer.row(*row);
    }
    if hidden > 0 && options.context.is_some() {
        printer.gap(hidden);
    }
    printer.output
}

fn summary(rows: &[Row]) -> String {
    let count = |wanted: fn(&Row) -> bool| rows.iter().filter(|row| wanted(row)).count();
    format!(
        "{} equal, {} changed, {} only left, {} only right",
        count(|row| matches!(row, Row::Same(..))),
        count(|row| matches!(row, Row::Changed(..))),
        count(|row| matches!(row, Row::Left(_))),
        count(|row| matches!(row, Row::Right(_)))
    )
}

// ---- main ----

fn parse_options(arguments: Vec<String>) -> Result<Options, String> {
    let mut options = Options {
        width: 80,
        only_changes: false,
        context: None,
        brief: false,
        files: Vec::new(),
    };
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let mut number = || -> Result<usize, String> {
            let text = arguments.next().ok_or_else(|| format!("{argument} needs a number"))?;
            text.parse().map_err(|_| format!("not a number: {text}"))
        };
        match argument.as_str() {
            "--width" => options.width = number()?,
            "--context" => options.context = Some(number()?),
            "--only-changes" => options.only_changes = true,
            "--brief" => options.brief = true,
            other if other.starts_with("--") => return Err(format!("no such option: {other}")),
            _ => options.files.push(argument),
        }
    }
    if options.files.len() != 2 {
        return Err("two files are needed".to_string());
    }
    if options.width < 20 || options.width > 400 {
        return Err("the width must be from 20 to 400".to_string());
    }
    Ok(options)
}

fn run() -> Result<bool, String> {
    let options = parse_options(std::env::args().skip(1).collect())?;
    let read = |path: &String| {
        std::fs::read_to_string(path).map_err(|_| format!("cannot read {path}"))
    };
    let (left, right) = (read(&options.files[0])?, read(&options.files[1])?);
    let left_lines: Vec<&str> = left.lines().collect();
    let right_lines: Vec<&str> = right.lines().collect();
    let rows = compare(&left_lines, &right_lines);
    if !options.brief {
        print!("{}", print_rows(&rows, &left, &right, &options));
    }
    println!("{}", summary(&rows));
    Ok(rows.iter().all(|row| matches!(row, Row::Same(..))))
}

fn main() {
    match run() {
        Ok(true) => {}
        Ok(false) => std::process::exit(1),
        Err(error) => {
            eprintln!("sidebyside: {error}");
            std::process::exit(2);
        }
    }
}
