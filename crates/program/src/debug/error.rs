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

mishap::mishaps! { Error {
    Error::NoFile { .. } = Error::NoFile { address: 0x1000 } =>
        "The address lies in no file: it was made at run time, or is no code at all.",
        "Name an address from `why trace` or `why info`.";
    Error::NoDebugInfo { .. } = Error::NoDebugInfo { file: "PROG".into(), status: DebugStatus::Missing } =>
        "Lines and variables are known from debug information only.",
        "Compile with `-g`, install the package's `-dbgsym`, or name functions and addresses.";
    Error::NotDescribed { .. } = Error::NotDescribed { address: 0x401000 } =>
        "This part of the program was built without debug information.",
        "Build that part with `-g`, or name addresses.";
    Error::NoSuchFile { .. } = Error::NoSuchFile { suffix: "f.c".into(), similar: vec!["src/g.c".into()] } =>
        "No compiled file ends with these words.",
        "Take one of those named, or write more or less of the path.";
    Error::AmbiguousFile { .. } = Error::AmbiguousFile { suffix: "f.c".into(), candidates: vec!["a/f.c".into(), "b/f.c".into()] } =>
        "Several compiled files end with these words.",
        "Write one of those named.";
    Error::NoCodeOnLine { .. } = Error::NoCodeOnLine { file: "f.c".into(), line: 15, nearby: vec![14, 17] } =>
        "The line is a comment, a declaration, or was optimised away.",
        "Name one of the lines nearby.";
    Error::NoVariable { .. } = Error::NoVariable { name: "NAME".into(), similar: vec!["count".into()] } =>
        "No variable of this name can be seen at that place.",
        "Take one of those named, or a place within the variable's scope.";
    Error::NoMember { .. } = Error::NoMember { type_name: "struct T".into(), member: "NAME".into(), similar: vec!["next".into()] } =>
        "The structure has no such member.",
        "Take one of those named.";
    Error::WrongType { .. } = Error::WrongType { operator: "*".into(), type_name: "int".into() } =>
        "The expression does to a value what its type does not allow.",
        "Dereference pointers, index arrays, and name members of structures only.";
    Error::NoAddress { .. } = Error::NoAddress { what: "x".into() } =>
        "The variable is in a register or computed away.",
        "Ask for its value, or compile with `-O0`.";
    Error::Gone(_) = Error::Gone(Gone::OptimisedOut) =>
        "Optimised code keeps a value only as long as it is needed.",
        "Ask at an earlier line, or compile with `-Og`.";
    Error::Unreadable { .. } = Error::Unreadable { address: 0x10, len: 8 } =>
        "Nothing is mapped there at that instant: the pointer is wrong, or what it points to is gone.",
        "If the program follows that pointer, that is its mistake: ask for the pointer's history.";
    Error::Syntax { .. } = Error::Syntax { expression: "a +".into(), at: 4, expected: "a name" } =>
        "The expression is none: names, members, `*`, `&` and `[N]` are understood.",
        "Correct it at the named character.";
} }

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
