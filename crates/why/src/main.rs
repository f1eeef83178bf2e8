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

use std::io::{self, IsTerminal, Write};
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
    let mut err = io::stderr();
    let _ = err.write_all(&notice_lines(text, err.is_terminal()));
}

/// A terminal breaks lines anywhere; who reads them by program wants each whole.
fn notice_lines(text: &str, is_terminal: bool) -> Vec<u8> {
    const NAME: &str = "why: ";
    let mut lines = Vec::new();
    let _ = match is_terminal {
        true => show::hanging(NAME, text, NAME.len(), &mut lines),
        false => writeln!(lines, "{NAME}{text}"),
    };
    lines
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io_error = error.downcast_ref::<io::Error>();
    io_error.is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::notice_lines;

    #[test]
    fn sentences_are_broken_between_words_at_a_terminal_only() {
        let text = "there is no recording called somewhere/else/entirely; `why list` shows those \
                    that exist, in the order they were made";
        let said = |terminal| String::from_utf8(notice_lines(text, terminal)).expect("text");
        assert_eq!(said(false), format!("why: {text}\n"));
        assert_eq!(
            said(true),
            "why: there is no recording called somewhere/else/entirely; `why list` shows\n     \
             those that exist, in the order they were made\n"
        );
    }
}
