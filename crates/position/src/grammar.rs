//! How people write positions and criteria.

use std::fmt;

/// An instant, as a person names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// An execution of something: `f.c:15#4`, `func#3`, `0x401a2c#17`.
    Execution {
        /// Counted within this thread only.
        thread: Option<u32>,
        /// Of what.
        of: Of,
        /// Which one.
        which: Which,
        /// Which instruction definition or branch of it, from 1.
        part: Option<u32>,
    },
    /// `@1048576`: so many instructions were executed before.
    Number(u64),
    /// Where the run crashed.
    Crash,
    /// The last instruction.
    Exit,
    /// The first instruction.
    Start,
    /// The definition of a byte of output.
    Output(Stream, Offset),
    /// The event that brought a byte in.
    Input(Option<String>, u64),
    /// A byte of an argument, the program's name being number 0.
    Argument(u64, u64),
    /// A byte of an environment variable's value.
    Environment(String, u64),
}

/// What is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    /// A source line.
    Line {
        /// The end of the file's path.
        file: String,
        /// The line.
        line: u32,
    },
    /// A function: its entry.
    Function(String),
    /// An instruction.
    Address(u64),
}

/// One of several executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// From the beginning, from 1.
    Nth(u64),
    /// From the end, from 1.
    FromEnd(u64),
}

/// Where output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
    /// A file.
    File(String),
}

/// Where in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offset {
    /// A byte, from 0.
    Byte(u64),
    /// The first byte of a line, from 1.
    Line(u64),
}

/// What is asked about an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Criterion {
    /// When.
    pub position: Position,
    /// What; all that is used there if it is not said.
    pub what: What,
}

/// What is meant at a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// All that the instance uses.
    Everything,
    /// A variable or expression.
    Expression(String),
    /// A register.
    Register(String),
    /// Bytes of memory.
    Memory(u64, u64),
}

/// Why a text is no position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a position: {why}; write one like f.c:15, f.c:15#4, func#3, 0x401a2c, @1048576, crash or output:7"
)]
pub struct Misread {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

mishap::mishaps! { Misread {
    Misread { .. } = Misread { text: "TEXT".into(), why: "its thread is no number" } =>
        "The word does not fit the grammar of positions.",
        "Write one as shown; `why slice --help` lists all forms.";
} }

impl Position {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Position, Misread> {
        let wrong = |why| Misread { text: text.to_owned(), why };
        match text {
            "crash" => return Ok(Position::Crash),
            "exit" => return Ok(Position::Exit),
            "start" => return Ok(Position::Start),
            "" => return Err(wrong("it is empty")),
            _ => {}
        }
        if let Some(number) = text.strip_prefix('@') {
            let number = number.replace('_', "");
            return number.parse().map(Position::Number).map_err(|_| wrong("`@` needs a number"));
        }
        if let Some(stream) = parse_stream(text) {
            return stream.ok_or_else(|| wrong("it names no byte"));
        }
        let (thread, rest) = parse_thread(text).ok_or_else(|| wrong("its thread is no number"))?;
        let (of, selector) = match rest.split_once('#') {
            Some((of, selector)) => (of, Some(selector)),
            None => (rest, None),
        };
        let (which, part) = match selector {
            None => (Which::FromEnd(1), None),
            Some(s) => {
                parse_selector(s).ok_or_else(|| wrong("`#` needs a number, first or last"))?
            }
        };
        let of = parse_of(of).ok_or_else(|| wrong("it names no line, function or address"))?;
        Ok(Position::Execution { thread, of, which, part })
    }
}

/// Words that name no function where a colon follows.
const STREAMS: [&str; 6] = ["output", "stderr", "file", "input", "argv", "env"];

fn parse_stream(text: &str) -> Option<Option<Position>> {
    let (word, rest) = text.split_once(':')?;
    let offset = |rest: &str| match rest.strip_prefix("line:") {
        Some(line) => line.parse().ok().filter(|n| *n > 0).map(Offset::Line),
        None => rest.parse().ok().map(Offset::Byte),
    };
    let position = match word {
        "output" => offset(rest).map(|o| Position::Output(Stream::Out, o)),
        "stderr" => offset(rest).map(|o| Position::Output(Stream::Err, o)),
        "file" => rest.rsplit_once(':').and_then(|(path, n)| {
            Some(Position::Output(Stream::File(path.to_owned()), offset(n)?))
        }),
        "input" => match rest.rsplit_once(':') {
            Some((path, n)) => n.parse().ok().map(|n| Position::Input(Some(path.to_owned()), n)),
            None => rest.parse().ok().map(|n| Position::Input(None, n)),
        },
        "argv" => rest.split_once(':').and_then(|(argument, n)| {
            Some(Position::Argument(argument.parse().ok()?, n.parse().ok()?))
        }),
        "env" => rest
            .rsplit_once(':')
            .and_then(|(name, n)| Some(Position::Environment(name.to_owned(), n.parse().ok()?))),
        _ => return None,
    };
    Some(position)
}

fn parse_thread(text: &str) -> Option<(Option<u32>, &str)> {
    match text.strip_prefix('T').and_then(|t| t.split_once('/')) {
        Some((thread, rest)) if thread.starts_with(|c: char| c.is_ascii_digit()) => {
            Some((Some(thread.parse().ok()?), rest))
        }
        _ => Some((None, text)),
    }
}

fn parse_selector(text: &str) -> Option<(Which, Option<u32>)> {
    let (which, part) = match text.split_once('.') {
        Some((which, part)) => (which, Some(part.parse().ok()?)),
        None => (text, None),
    };
    let which = match which {
        "first" => Which::Nth(1),
        "last" => Which::FromEnd(1),
        _ => match which.strip_prefix('-') {
            Some(n) => Which::FromEnd(n.parse().ok().filter(|n| *n > 0)?),
            None => Which::Nth(which.parse().ok().filter(|n| *n > 0)?),
        },
    };
    Some((which, part))
}

fn parse_of(text: &str) -> Option<Of> {
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok().map(Of::Address);
    }
    // A `::` belongs to a name.
    if let Some((file, line)) = text.rsplit_once(':')
        && !file.ends_with(':')
    {
        let line = line.parse().ok()?;
        return (!file.is_empty()).then(|| Of::Line { file: file.to_owned(), line });
    }
    (!text.is_empty() && !text.contains(char::is_whitespace)).then(|| Of::Function(text.to_owned()))
}

impl Criterion {
    /// Reads one: a position, and optionally what is meant there.
    pub fn parse(text: &str) -> Result<Criterion, Misread> {
        if let Some(rest) = text.strip_prefix("mem:") {
            return parse_memory(rest)
                .ok_or(Misread { text: text.to_owned(), why: "write mem:0xADDRESS+LENGTH@POS" })?;
        }
        if let Ok(position) = Position::parse(text) {
            return Ok(Criterion { position, what: What::Everything });
        }
        // The expression is behind the first colon that leaves a position before it.
        for (n, _) in text.match_indices(':') {
            let (before, after) = (&text[..n], &text[n + 1..]);
            if after.is_empty() || after.starts_with(':') || STREAMS.contains(&before) {
                continue;
            }
            if let Ok(position) = Position::parse(before)
                && !matches!(position, Position::Execution { of: Of::Function(_), .. } if after.starts_with(|c: char| c.is_ascii_digit()))
            {
                let what = match after.strip_prefix('$') {
                    Some(register) => What::Register(register.to_owned()),
                    None => What::Expression(after.to_owned()),
                };
                return Ok(Criterion { position, what });
            }
        }
        Position::parse(text).map(|position| Criterion { position, what: What::Everything })
    }
}

fn parse_memory(rest: &str) -> Option<Result<Criterion, Misread>> {
    let (range, position) = rest.split_once('@')?;
    let (address, len) = range.split_once('+').unwrap_or((range, "1"));
    let address = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
    let len = len.parse().ok().filter(|n| *n > 0)?;
    // `@` also begins a number: mem:0x10+4@1000 means before instruction 1000.
    let position =
        if position.starts_with(|c: char| c.is_ascii_digit()) && !position.starts_with("0x") {
            Position::parse(&format!("@{position}"))
        } else {
            Position::parse(position)
        };
    Some(position.map(|position| Criterion { position, what: What::Memory(address, len) }))
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Execution { thread, of, which, part } => {
                if let Some(thread) = thread {
                    write!(f, "T{thread}/")?;
                }
                match of {
                    Of::Line { file, line } => write!(f, "{file}:{line}")?,
                    Of::Function(name) => f.write_str(name)?,
                    Of::Address(address) => write!(f, "{address:#x}")?,
                }
                match which {
                    Which::Nth(n) => write!(f, "#{n}")?,
                    Which::FromEnd(1) if part.is_none() => {}
                    Which::FromEnd(n) => write!(f, "#-{n}")?,
                }
                part.map_or(Ok(()), |part| write!(f, ".{part}"))
            }
            Position::Number(n) => write!(f, "@{n}"),
            Position::Crash => f.write_str("crash"),
            Position::Exit => f.write_str("exit"),
            Position::Start => f.write_str("start"),
            Position::Output(stream, offset) => {
                match stream {
                    Stream::Out => f.write_str("output:")?,
                    Stream::Err => f.write_str("stderr:")?,
                    Stream::File(path) => write!(f, "file:{path}:")?,
                }
                match offset {
                    Offset::Byte(n) => write!(f, "{n}"),
                    Offset::Line(n) => write!(f, "line:{n}"),
                }
            }
            Position::Input(None, n) => write!(f, "input:{n}"),
            Position::Input(Some(path), n) => write!(f, "input:{path}:{n}"),
            Position::Argument(argument, n) => write!(f, "argv:{argument}:{n}"),
            Position::Environment(name, n) => write!(f, "env:{name}:{n}"),
        }
    }
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Everything => write!(f, "{}", self.position),
            What::Expression(e) => write!(f, "{}:{e}", self.position),
            What::Register(r) => write!(f, "{}:${r}", self.position),
            What::Memory(address, len) => {
                let position = self.position.to_string();
                write!(f, "mem:{address:#x}+{len}@{}", position.trim_start_matches('@'))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_written_again() {
        for text in [
            "f.c:15",
            "f.c:15#4",
            "f.c:15#-2",
            "T2/f.c:15#4",
            "f.c:15#4.2",
            "func#3",
            "ns::f#1",
            "0x401a2c#17",
            "@1048576",
            "crash",
            "exit",
            "start",
            "output:589",
            "output:line:3",
            "stderr:0",
            "file:a/b.txt:7",
            "input:12",
            "input:in.txt:3",
            "argv:1:0",
            "env:HOME:2",
        ] {
            assert_eq!(Position::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Position::parse("f.c:1#last"), Position::parse("f.c:1"));
        assert_eq!(Position::parse("f.c:1#first"), Position::parse("f.c:1#1"));
    }

    #[test]
    fn a_criterion_may_say_what_is_meant() {
        for text in [
            "f.c:15#4:total",
            "f.c:15:$rax",
            "f.c:15:*p",
            "f.c:9:a[i].b",
            "crash",
            "f.c:15:p->q",
            "ns::f#2:x",
            "mem:0x1000+8@crash",
            "mem:0x1000+8@1000",
        ] {
            assert_eq!(Criterion::parse(text).unwrap().to_string(), text, "{text}");
        }
        let c = Criterion::parse("f.c:15").unwrap();
        assert_eq!(c.what, What::Everything);
    }

    #[test]
    fn nonsense_is_refused_in_a_sentence() {
        for text in ["", "@x", "f.c:15#", "f.c:15#x", "output:", "mem:12"] {
            assert!(Criterion::parse(text).is_err(), "{text}");
        }
    }
}
