//! Why can a question about symbols, lines or variables not be answered?

use std::path::PathBuf;

use super::dwarf::DebugStatus;
use super::located::Gone;

/// Why there is no answer. Each message is one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing was mapped from a file there.
    #[error("no file is mapped at {address:#x}")]
    NoFile {
        /// The address.
        address: u64,
    },
    /// The file at the address has no usable debug information.
    #[error("{} says nothing about its source: {status}", file.display())]
    NoDebugInfo {
        /// The file.
        file: PathBuf,
        /// What is wrong with its debug information.
        status: DebugStatus,
    },
    /// The file has debug information, but none for this code.
    #[error("no debug information describes the code at {address:#x}")]
    NotDescribed {
        /// The address.
        address: u64,
    },
    /// No source file has this name.
    #[error("no source file of the program is called `{suffix}`{}", listed("; similar: ", similar))]
    NoSuchFile {
        /// The end of a path, as asked for.
        suffix: String,
        /// Files with a similar name.
        similar: Vec<PathBuf>,
    },
    /// Several source files have this name.
    #[error(
        "several source files are called `{suffix}`; give more of the path{}",
        listed(": ", candidates)
    )]
    AmbiguousFile {
        /// The end of a path, as asked for.
        suffix: String,
        /// The files that it fits.
        candidates: Vec<PathBuf>,
    },
    /// The line has no code.
    #[error("line {line} of {} has no code; {}", file.display(), nearby_lines(nearby))]
    NoCodeOnLine {
        /// The file.
        file: PathBuf,
        /// The line.
        line: u32,
        /// The nearest lines that have code.
        nearby: Vec<u32>,
    },
    /// No variable of this name can be seen.
    #[error("there is no variable `{name}` here{}", suggestion(similar))]
    NoVariable {
        /// The name.
        name: String,
        /// Variables that can be seen here and have a similar name.
        similar: Vec<String>,
    },
    /// A type has no such member.
    #[error("`{type_name}` has no member `{member}`{}", suggestion(similar))]
    NoMember {
        /// The type.
        type_name: String,
        /// The member.
        member: String,
        /// Its members.
        similar: Vec<String>,
    },
    /// An operator does not fit its operand.
    #[error("`{operator}` does not apply to a value of type `{type_name}`")]
    WrongType {
        /// The operator.
        operator: String,
        /// The type of its operand.
        type_name: String,
    },
    /// The value is not in memory.
    #[error("`{what}` has no address: the compiler keeps it elsewhere")]
    NoAddress {
        /// What was to be located.
        what: String,
    },
    /// The value does not exist at this instant.
    #[error("the value is not available: {0}")]
    Gone(#[from] Gone),
    /// Memory cannot be read.
    #[error("the {len} bytes at {address:#x} cannot be read")]
    Unreadable {
        /// The address.
        address: u64,
        /// How many bytes.
        len: u64,
    },
    /// The expression cannot be parsed.
    #[error("`{expression}` cannot be read at character {at}: expected {expected}")]
    Syntax {
        /// The expression.
        expression: String,
        /// The position of the mistake, counted from 1.
        at: usize,
        /// What would fit.
        expected: &'static str,
    },
}

fn listed(before: &str, paths: &[PathBuf]) -> String {
    if paths.is_empty() {
        return String::new();
    }
    let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    format!("{before}{}", paths.join(", "))
}

fn nearby_lines(lines: &[u32]) -> String {
    let lines: Vec<_> = lines.iter().map(u32::to_string).collect();
    match lines.as_slice() {
        [] => "no line of it has".to_owned(),
        lines => format!("nearby lines with code: {}", lines.join(", ")),
    }
}

fn suggestion(similar: &[String]) -> String {
    match similar {
        [] => String::new(),
        names => format!("; there is {}", names.join(", ")),
    }
}
