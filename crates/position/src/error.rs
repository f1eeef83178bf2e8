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
    #[error("@{n} is past the end: {total} instructions are known of the run")]
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
    /// No such thread.
    #[error("{} has no thread {n}; {}", traced(*whole), those_it_has(threads))]
    NoThread {
        /// Which was asked for.
        n: u32,
        /// Those that ran.
        threads: Vec<u32>,
        /// Is all of the run traced? Others may have run elsewhere.
        whole: bool,
    },
    /// No such function.
    #[error("{}", no_function(name))]
    NoFunction {
        /// The name.
        name: String,
    },
    /// The line's execution has fewer instructions.
    #[error("that execution has no part {n}: it has {}", parts(*of))]
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
/// A path was perhaps not meant for a function.
fn no_function(name: &str) -> String {
    let is_file = [".c", ".cc", ".cpp", ".h", ".rs", ".go"].iter().any(|end| name.ends_with(end));
    match name.contains('/') {
        _ if is_file => format!("a line of {name} is meant? Write {name}:LINE"),
        true => format!("{name} is neither a recording nor a function of the program"),
        false => format!("no function is called {name}"),
    }
}

fn parts(of: usize) -> String {
    match of {
        1 => "one instruction".to_owned(),
        of => format!("{of} instructions"),
    }
}

fn traced(whole: bool) -> &'static str {
    if whole { "the run" } else { "the traced part of the run" }
}

/// So many threads are listed.
const LISTED: usize = 8;

fn those_it_has(threads: &[u32]) -> String {
    let list: Vec<String> = threads.iter().take(LISTED).map(u32::to_string).collect();
    let more = if threads.len() > LISTED { ", …" } else { "" };
    match &list[..] {
        [only] => format!("its only one is {only}"),
        _ => format!("it has {}{more}", list.join(", ")),
    }
}

mishap::mishaps! { Error {
    Error::Empty = Error::Empty =>
        "The recording ends before the program's first instruction: it was cut short at once.",
        "Record the program again.";
    Error::NoCrash = Error::NoCrash =>
        "`crash` was asked for, and no signal ended the run.",
        "Name `exit`, a line, or the output that is wrong.";
    Error::PastEnd { .. } = Error::PastEnd { n: 5000, total: 4000 } =>
        "The number of an instruction is larger than the run is long.",
        "Name a smaller one, or `exit`.";
    Error::Never { .. } = Error::Never { of: "f.c:15".into(), times: 0, nearby: vec![14, 17] } =>
        "The line or function was not executed so often in this run; optimising compilers also move and merge lines.",
        "Name one of the lines nearby, or another execution: `#first`, `#last`.";
    Error::NoThread { .. } = Error::NoThread { n: 9, threads: vec![1, 2], whole: true } =>
        "No thread of the process that is asked about has this number, or none in the part of its run that is traced.",
        "Name one of those that the message lists, or `-p PID` if another process is meant.";
    Error::NoFunction { .. } = Error::NoFunction { name: "NAME".into() } =>
        "No symbol of the program or its libraries has this name.",
        "Look for its spelling with `nm -C`; C++ functions have their namespace before them.";
    Error::NoPart { .. } = Error::NoPart { n: 9, of: 4 } =>
        "The number behind the dot is larger than that execution of the line is long.",
        "Name a smaller one.";
    Error::NoArgument { .. } = Error::NoArgument { what: "argv[1]".into(), byte: 80 } =>
        "The argument or variable is shorter, or is not there.",
        "`why info` shows the command line.";
    Error::NoRegister { .. } = Error::NoRegister { name: "NAME".into() } =>
        "No register of this processor has this name.",
        "Write it in small letters behind a `$`.";
    Error::Nowhere { .. } = Error::Nowhere { what: "EXPRESSION".into() } =>
        "The compiler has computed it away, or it is a constant.",
        "Name a variable that it was computed from, or compile with `-Og`.";
    Error::NoFile { .. } = Error::NoFile { path: "PATH".into() } =>
        "No file of this name was read or written by this process.",
        "Give the path as the program did; `why info` names captured files; `-p PID` looks at another process.";
    Error::NoOutput { .. } = Error::NoOutput { what: "stdout".into(), offset: 80, total: 40 } =>
        "Bytes are counted from 0, and so many were not written.",
        "Name a smaller offset, or `-p PID` if another process wrote it.";
    Error::NoOutputLine { .. } = Error::NoOutputLine { what: "stdout".into(), line: 9, lines: 4 } =>
        "Lines are counted from 1, and so many were not written.",
        "Name a smaller one, or `-p PID` if another process wrote it.";
    Error::NoInput { .. } = Error::NoInput { what: "stdin".into(), offset: 80 } =>
        "The run never read so far.",
        "Name an earlier byte.";
} passes on { Error::Misread(_), Error::Trace(_), Error::Engine(_), Error::Program(_) } }
