//! The command line `why`: thin, one file per verb.
//!
//! Results go to stdout, notices and errors to stderr. The exit status is the recorded program's
//! for `record` and `replay`, else 0; 1 if nothing was found, 2 for words that are not
//! understood, 125 for a failure of our own.

mod command_line;
mod engine_calls;
mod expected;
mod hung;
mod processes;
mod reference;
mod show;
mod status;
mod subject;
mod verbs;
mod which;

use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let verb = match command_line::parse(std::env::args_os()) {
        Ok(verb) => verb,
        Err(refused) => return refused.report(),
    };
    engine_calls::keep_translations();
    let mut out = io::BufWriter::new(io::stdout().lock());
    let result = verb.run(&mut out).and_then(|status| {
        out.flush()?;
        Ok(status)
    });
    match result {
        Ok(status) => ExitCode::from(status),
        // Whoever read our output has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            notice(&format!("{error:#}"));
            ExitCode::from(status::of(&error))
        }
    }
}

/// Says something on stderr that is no result; if nobody can read it, that is no failure.
fn notice(text: &str) {
    let _ = writeln!(io::stderr(), "why: {text}");
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io_error = error.downcast_ref::<io::Error>();
    io_error.is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
