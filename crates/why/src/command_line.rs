//! What was asked for: from words to a verb, or to a sentence that says what is wrong with them.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::notice;
use crate::status::FAILED;
use crate::verbs::{Program, Verb};

/// Record a failing run of a program once, replay it exactly, and find out why it failed.
#[derive(Parser)]
#[command(
    name = "why",
    version,
    max_term_width = 80,
    disable_help_subcommand = true,
    subcommand_value_name = "VERB",
    subcommand_help_heading = "Verbs",
    override_usage = "why VERB ...\n       why [OPTIONS] [--] PROG [ARGS]...",
    after_help = "With a program instead of a verb, the program is recorded, and the run explained
on stderr if it fails. `--` is needed if PROG has no slash in it. OPTIONS say
what is right, and how to tell the story; `why explain --help` has all of them:
  --expect FILE     standard output should be as in FILE
  --oracle CMD      the shell command CMD decides
  --timeout TIME    a program that runs longer hangs
  --time TIME       about so long for the explanation
  -o FILE           the story goes to FILE, as --json, --html, --markdown
The status is the program's own; 1 if that is 0 and the run failed all the same;
127 if there is no such program, 126 if it cannot be executed, 125 if recording
failed, 130 after ^C.

Examples:
  why ./prog input.txt           run a program, and explain the run if it fails
  why --expect right.txt -- ls   the same, if its output is not as it should be
  why demo                       the same with a bundled faulty program
  why record ./prog input.txt    run a program and record the run
  why replay                     the same run again, from the recording alone
  why info                       what is in the latest recording
  why list                       all recordings"
)]
pub struct CommandLine {
    #[command(subcommand)]
    verb: Verb,
}

/// `why [ORACLE] [--] PROG ARGS…`.
#[derive(Parser)]
#[command(name = "why", version, max_term_width = 80)]
struct ProgramLine {
    #[command(flatten)]
    program: Program,
}

/// What is to be done.
pub enum Line {
    /// A verb.
    Verb(Box<Verb>),
    /// A program is to be recorded and explained.
    Program(Box<Program>),
}

impl Line {
    /// Does it, and returns the status to exit with.
    pub fn run(&self, out: &mut dyn std::io::Write) -> anyhow::Result<u8> {
        match self {
            Line::Verb(verb) => verb.run(out),
            Line::Program(program) => program.run(),
        }
    }
}

/// A command line that leads to no verb.
#[derive(Debug)]
pub struct Refused {
    text: Text,
    status: u8,
}

#[derive(Debug)]
enum Text {
    Ours(String),
    Clap(clap::Error),
}

impl Refused {
    /// Says why, or gives the help that was asked for; returns the status to exit with.
    pub fn report(&self) -> ExitCode {
        match &self.text {
            Text::Ours(text) => notice(text),
            Text::Clap(error) => drop(error.print()),
        }
        ExitCode::from(self.status)
    }
}

/// Understands the words of a command line, the first of which is our own name.
pub fn parse(words: impl Iterator<Item = OsString>) -> Result<Line, Refused> {
    let mut words: Vec<OsString> = words.collect();
    if names_a_program(&words) {
        words.remove(1);
    }
    if explains_a_program(&words) {
        return match ProgramLine::try_parse_from(&words) {
            Ok(line) => Ok(Line::Program(Box::new(line.program))),
            Err(error) => Err(Refused { status: status_of(&error, true), text: Text::Clap(error) }),
        };
    }
    match CommandLine::try_parse_from(&words) {
        Ok(command_line) => Ok(Line::Verb(Box::new(command_line.verb))),
        Err(error) => Err(refuse(error, words.get(1).map(OsString::as_os_str))),
    }
}

/// Is it `why explain [ORACLE] -- PROG…`? That is the same without its verb.
fn names_a_program(words: &[OsString]) -> bool {
    let dashes = words.iter().position(|word| word == "--");
    words.get(1).is_some_and(|verb| verb == "explain")
        && dashes.is_some_and(|at| at + 1 < words.len())
}

/// Is it `why [ORACLE] [--] PROG…`? It is if the first word is an option that is not
/// ours alone, two dashes, or a path.
fn explains_a_program(words: &[OsString]) -> bool {
    let Some(first) = words.get(1) else { return false };
    let bytes = first.as_encoded_bytes();
    let own = ["--help", "-h", "--version", "-V"].iter().any(|w| first == w);
    bytes.contains(&b'/') && !bytes.starts_with(b"-") || bytes.starts_with(b"-") && !own
}

fn refuse(error: clap::Error, verb: Option<&OsStr>) -> Refused {
    let runs_a_program = verb.is_some_and(|verb| verb == "record" || verb == "replay");
    let status = status_of(&error, runs_a_program);
    let text = match error.kind() {
        ErrorKind::InvalidSubcommand => Text::Ours(no_such_verb(&error)),
        _ => Text::Clap(error),
    };
    Refused { text, status }
}

fn status_of(error: &clap::Error, runs_a_program: bool) -> u8 {
    match error.exit_code() {
        0 => 0,
        // As `env` and `timeout` do: 2 may be the program's own.
        _ if runs_a_program => FAILED,
        _ => 2,
    }
}

fn no_such_verb(error: &clap::Error) -> String {
    let said = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(said)) => said.as_str(),
        _ => "",
    };
    let advice = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(all)) if !all.is_empty() => {
            format!("did you mean `{}`? To", all.join("` or `"))
        }
        _ => "`why --help` lists them; to".to_owned(),
    };
    format!("no such verb: {said}; {advice} explain a run of a program write `why -- {said}`")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn refusal(words: &[&str]) -> (String, u8) {
        let words = ["why"].iter().chain(words).map(OsString::from);
        match parse(words) {
            Ok(_) => panic!("understood"),
            Err(Refused { text: Text::Ours(text), status }) => (text, status),
            Err(Refused { text: Text::Clap(error), status }) => (error.to_string(), status),
        }
    }

    #[test]
    fn a_misspelt_verb_is_corrected() {
        let (text, status) = refusal(&["recrod", "ls"]);
        let expected = "no such verb: recrod; did you mean `record`? \
                        To explain a run of a program write `why -- recrod`";
        assert_eq!((text.as_str(), status), (expected, 2));
    }

    #[test]
    fn a_word_like_no_verb_gets_advice() {
        let (text, _) = refusal(&["gzip"]);
        let expected = "no such verb: gzip; `why --help` lists them; \
                        to explain a run of a program write `why -- gzip`";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_program_instead_of_a_verb_is_recorded_and_explained() {
        for words in [
            &["./prog", "x"][..],
            &["--", "prog"],
            &["--expect", "f", "--", "prog", "--json"],
            &["-q", "./prog"],
            &["explain", "--", "prog"],
            &["explain", "--expect", "f", "--", "./prog", "--json"],
        ] {
            let words = ["why"].iter().chain(words).map(OsString::from);
            assert!(matches!(parse(words), Ok(Line::Program(_))));
        }
        for words in [&["why", "info"][..], &["why", "explain", "7"], &["why", "explain", "--"]] {
            assert!(matches!(parse(words.iter().map(OsString::from)), Ok(Line::Verb(_))));
        }
    }

    #[test]
    fn wrong_usage_of_verbs_that_run_programs_is_our_own_failure() {
        assert_eq!(refusal(&["record", "--no-such"]).1, 125);
        assert_eq!(refusal(&["record"]).1, 125);
        assert_eq!(refusal(&["replay", "--no-such"]).1, 125);
        assert_eq!(refusal(&["info", "--no-such"]).1, 2);
        assert_eq!(refusal(&["remove"]).1, 2);
        assert_eq!(refusal(&["info", "--help"]).1, 0);
    }

    #[test]
    fn definitions_are_sound() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn every_help_fits_80_columns_and_has_examples() {
        let mut command = CommandLine::command();
        command.build();
        let helps = command
            .get_subcommands()
            .cloned()
            .chain([CommandLine::command()])
            .flat_map(|mut verb| [verb.render_help(), verb.render_long_help()]);
        for help in helps.map(|help| help.to_string()) {
            assert!(help.contains("Examples:"), "{help}");
            for line in help.lines() {
                assert!(line.chars().count() <= 80, "{line}");
            }
        }
    }
}
