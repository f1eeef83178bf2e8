//! `docs/errors.md`: each error that a person can meet, its cause, its remedy and the
//! status that `why` ends with.

use std::fmt::Write;

use mishap::{Advice, Mishap};

use super::cell;
use crate::engine_calls::Failure;
use crate::status;

/// One error.
struct Row {
    message: String,
    advice: Advice,
    status: u8,
}

/// Errors of one kind, under a heading.
struct Section {
    title: &'static str,
    rows: Vec<Row>,
}

/// The whole page.
pub fn page() -> String {
    let mut page = include_str!("errors.md").to_owned();
    for section in sections() {
        let _ = write!(page, "\n## {}\n", section.title);
        for row in section.rows {
            let _ = write!(
                page,
                "\n### {}\n\n| | |\n| --- | --- |\n| Cause | {} |\n| Remedy | {} |\n| Status | {} |\n",
                heading(&row.message),
                cell(row.advice.cause),
                cell(row.advice.remedy),
                row.status
            );
        }
    }
    page
}

/// As a heading, a message may not be read as markup.
fn heading(message: &str) -> String {
    message.replace('*', "\\*").replace('<', "&lt;")
}

fn sections() -> Vec<Section> {
    let engine_error = |error: engine::Error| Failure::from(error).status;
    let program = std::path::Path::new("PROG");
    let not_executable = |why| engine::Error::NotExecutable { path: program.to_owned(), why };
    let image = |error| engine::Error::Image { path: program.to_owned(), error };
    let mut programs = passed_on(not_executable, engine_error);
    programs.extend(passed_on(image, engine_error));
    vec![
        Section { title: "Programs that are not run", rows: programs },
        Section {
            title: "Runs that are stopped",
            rows: passed_on(engine::Error::Refused, engine_error),
        },
        Section { title: "Recording and replaying", rows: rows(engine_error) },
        Section { title: "Recordings on disk", rows: rows(of::<recording::Error>) },
        Section {
            title: "Positions",
            rows: both(rows(of::<position::Misread>), rows(of::<position::Error>)),
        },
        Section {
            title: "Lines, names and values",
            rows: passed_on(position::Error::Program, of::<position::Error>),
        },
        Section { title: "Traces", rows: passed_on(position::Error::Trace, of::<position::Error>) },
        Section {
            title: "Alterations",
            rows: both(rows(of::<whatif::Misread>), rows(of::<whatif::Unresolved>)),
        },
        Section {
            title: "Experiments and searches",
            rows: both(rows(of::<whatif::Error>), rows(of::<locate::Error>)),
        },
        Section { title: "The debugger", rows: rows(of::<debugger::Error>) },
        Section { title: "The command line", rows: rows(of::<status::Usage>) },
    ]
}

fn both(mut first: Vec<Row>, second: Vec<Row>) -> Vec<Row> {
    first.extend(second);
    first
}

/// The status for an error that reaches the end of `main`.
fn of<E: std::error::Error + Send + Sync + 'static>(error: E) -> u8 {
    status::of(&error.into())
}

/// Every kind of an error.
fn rows<E: Mishap>(status: impl Fn(E) -> u8) -> Vec<Row> {
    passed_on(|error| error, status)
}

/// Every kind of an error, as the sentence of another one shows it.
fn passed_on<E: Mishap, F: std::error::Error>(
    within: impl Fn(E) -> F,
    status: impl Fn(F) -> u8,
) -> Vec<Row> {
    let row = |(error, advice)| {
        let shown = within(error);
        Row { message: shown.to_string(), advice, status: status(shown) }
    };
    E::every().into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_on_the_page_has_a_cause_and_a_remedy_in_whole_sentences() {
        let rows: Vec<Row> = sections().into_iter().flat_map(|s| s.rows).collect();
        assert!(rows.len() > 60, "{} errors", rows.len());
        for row in rows {
            for text in [row.advice.cause, row.advice.remedy] {
                assert!(text.ends_with('.') && text.len() > 10, "{}: {text:?}", row.message);
            }
        }
    }

    /// A row of the wrong variant would give wrong advice.
    fn advice_is_its_own<E: Mishap>() {
        for (error, advice) in E::every() {
            assert_eq!(error.advice(), Some(advice), "{error}");
        }
    }

    #[test]
    fn every_sample_stands_in_the_row_of_its_variant() {
        advice_is_its_own::<engine::Error>();
        advice_is_its_own::<engine::Refusal>();
        advice_is_its_own::<engine::NotExecutable>();
        advice_is_its_own::<engine::ImageError>();
        advice_is_its_own::<recording::Error>();
        advice_is_its_own::<position::Error>();
        advice_is_its_own::<trace::Error>();
        advice_is_its_own::<program::debug::Error>();
        advice_is_its_own::<whatif::Error>();
        advice_is_its_own::<whatif::Unresolved>();
        advice_is_its_own::<locate::Error>();
        advice_is_its_own::<debugger::Error>();
    }

    #[test]
    fn the_page_says_the_status_of_missing_and_unfit_programs() {
        let page = page();
        let status_below = |heading: &str| {
            let (_, below) = page.split_once(heading).unwrap_or_else(|| panic!("no {heading}"));
            below.lines().find(|l| l.starts_with("| Status")).unwrap_or_default().to_owned()
        };
        assert_eq!(status_below("### cannot find the program"), "| Status | 127 |");
        assert_eq!(status_below("it is setuid or setgid"), "| Status | 126 |");
        assert_eq!(status_below("uses ptrace"), "| Status | 125 |");
        assert_eq!(status_below("### `TEXT` is not a position"), "| Status | 2 |");
        assert_eq!(status_below("### the run did not crash; name"), "| Status | 1 |");
    }
}
