//! Why a position leads nowhere.

/// Each says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is no position.
    #[error(transparent)]
    Misread(#[from] crate::Misread),
    /// The run could not be traced.
    #[error(transparent)]
    Trace(#[from] trace::Error),
    /// The replay failed.
    #[error("the run cannot be replayed")]
    Engine(#[from] engine::Error),
    /// Debug information has no answer.
    #[error(transparent)]
    Program(#[from] program::debug::Error),
    /// Nothing was executed.
    #[error("nothing was executed in this run")]
    Empty,
    /// The run did not crash.
    #[error("the run did not crash; name another position, such as `exit` or a line")]
    NoCrash,
    /// A number past the end.
    #[error("@{n} is past the end: the run executed {total} instructions")]
    PastEnd {
        /// The number.
        n: u64,
        /// Instructions executed.
        total: u64,
    },
    /// A line or function that was not executed so often.
    #[error("{of} was executed {}{}", how_often(*times), executed_nearby(nearby))]
    Never {
        /// What.
        of: String,
        /// How often it was.
        times: usize,
        /// Lines near it that were executed.
        nearby: Vec<u32>,
    },
    /// No such function.
    #[error("no function is called {name}")]
    NoFunction {
        /// The name.
        name: String,
    },
    /// The line's execution has fewer instructions.
    #[error("that execution has no part {n}: it has {of} instructions")]
    NoPart {
        /// Which was asked for.
        n: u32,
        /// How many there are.
        of: usize,
    },
    /// No such argument.
    #[error("the program has no byte {byte} in {what}")]
    NoArgument {
        /// Argument or environment variable.
        what: String,
        /// Asked for.
        byte: u64,
    },
    /// No such register.
    #[error("there is no register called {name}; write one like $rax or $xmm0")]
    NoRegister {
        /// The name.
        name: String,
    },
    /// The value is nowhere.
    #[error("{what} has no place in registers or memory there, so it has no history to follow")]
    Nowhere {
        /// The expression.
        what: String,
    },
    /// The run neither read nor wrote such a file.
    #[error("the run neither read nor wrote a file called {path}")]
    NoFile {
        /// The path.
        path: String,
    },
    /// Output that short.
    #[error("{what} has no byte {offset}: the run wrote {total} bytes")]
    NoOutput {
        /// To what.
        what: String,
        /// Asked for.
        offset: u64,
        /// There are.
        total: u64,
    },
    /// Output with so few lines.
    #[error("{what} has no line {line}: the run wrote {lines} lines")]
    NoOutputLine {
        /// To what.
        what: String,
        /// Asked for.
        line: u64,
        /// There are.
        lines: u64,
    },
    /// Input that was not read.
    #[error("the run did not read byte {offset} of {what}")]
    NoInput {
        /// From what.
        what: String,
        /// Asked for.
        offset: u64,
    },
}

fn how_often(n: usize) -> String {
    match n {
        0 => "never".to_owned(),
        1 => "once only".to_owned(),
        n => format!("{n} times only"),
    }
}

fn executed_nearby(lines: &[u32]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let list: Vec<String> = lines.iter().map(u32::to_string).collect();
    format!("; nearby, lines {} were", list.join(", "))
}
