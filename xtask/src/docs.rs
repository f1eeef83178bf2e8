//! The pages of `docs/` that the code itself writes, so that they cannot be wrong for long:
//! `--check` fails while one is stale.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::why::Why;
use crate::workspace;

/// Options of `cargo xtask docs`.
#[derive(Args)]
pub struct Options {
    /// Write nothing; fail if a page is not as it should be
    #[arg(long)]
    check: bool,
    /// The `why` to describe, instead of building the workspace's
    #[arg(long, value_name = "PATH")]
    why: Option<PathBuf>,
}

/// The texts of pages, by their paths within `docs/`.
type Pages = BTreeMap<PathBuf, String>;

/// The folders of pages that belong to us alone: what we did not write there is stale.
const VERBS: &str = "verbs";
const MANUAL: &str = "man";

/// Writes the pages, or says which are stale.
pub fn run(options: &Options) -> Result<bool> {
    let why = Why::given_or_built(options.why.as_deref())?;
    let docs = workspace::root().join("docs");
    let mut pages = verb_pages(&why)?;
    pages.insert(PathBuf::from("system-calls.md"), system_calls_page());
    pages.extend(manual_pages(&why)?);
    let stale = stale(&docs, &pages)?;
    if !options.check {
        write(&docs, &pages, &stale)?;
    }
    for path in &stale {
        let word = if options.check { "stale" } else { "written" };
        println!("docs/{}: {word}", path.display());
    }
    if options.check && !stale.is_empty() {
        println!("docs: run `cargo xtask docs`");
        return Ok(false);
    }
    println!("docs: {} pages are as they should be", pages.len());
    Ok(true)
}

/// What `why manual` writes: manual pages, and what the code knows of errors and limits.
fn manual_pages(why: &Why) -> Result<Pages> {
    let folder = tempfile::tempdir()?;
    let status =
        Command::new(&why.binary).args(["manual", "--reference"]).arg(folder.path()).status()?;
    ensure!(status.success(), "`why manual` failed");
    let mut pages = Pages::new();
    for entry in fs::read_dir(folder.path())? {
        let entry = entry?;
        let name = PathBuf::from(entry.file_name());
        let is_page = name.extension().is_some_and(|extension| extension == "md");
        let path = if is_page { name } else { Path::new(MANUAL).join(name) };
        pages.insert(path, fs::read_to_string(entry.path())?);
    }
    Ok(pages)
}

/// Who performs each system call.
fn system_calls_page() -> String {
    let mut calls: Vec<_> = engine::system_calls().collect();
    calls.sort_unstable();
    let rows: String = calls
        .iter()
        .map(|(number, name, how)| format!("| {number} | {name} | {how} |\n"))
        .collect();
    format!(
        "<!-- Written by `cargo xtask docs`; change the code instead. -->\n\n\
         # System calls\n\nCalls that are not in this table are not offered: ENOSYS.\n\n\
         | number | name | performed |\n| --- | --- | --- |\n{rows}"
    )
}

/// One page for each verb and one that lists them.
fn verb_pages(why: &Why) -> Result<Pages> {
    let overview = help(why, &[])?;
    let verbs = verbs_in(&overview);
    ensure!(!verbs.is_empty(), "`why --help` names no verbs");
    let mut pages = Pages::new();
    let links: String = verbs.iter().map(|verb| format!("- [why {verb}]({verb}.md)\n")).collect();
    pages.insert(verb_path("README"), page("why", &overview) + "\n" + &links);
    for verb in verbs {
        let text = page(&format!("why {verb}"), &help(why, &[&verb])?);
        pages.insert(verb_path(&verb), text);
    }
    Ok(pages)
}

fn verb_path(name: &str) -> PathBuf {
    Path::new(VERBS).join(format!("{name}.md"))
}

fn page(command: &str, help: &str) -> String {
    format!(
        "<!-- Written by `cargo xtask docs`; change the code instead. -->\n\n\
         # {command}\n\n```text\n$ {command} --help\n{help}```\n"
    )
}

/// What `why VERB… --help` prints for 80 columns.
fn help(why: &Why, verb: &[&str]) -> Result<String> {
    // With no terminal anywhere the width comes from COLUMNS.
    let output = Command::new(&why.binary)
        .args(verb)
        .arg("--help")
        .env("COLUMNS", "80")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", why.binary.display()))?;
    ensure!(output.status.success(), "`why {} --help` failed", verb.join(" "));
    let text = String::from_utf8(output.stdout).context("a help text is not UTF-8")?;
    Ok(text.lines().map(|line| format!("{}\n", line.trim_end())).collect())
}

/// The first words of the lines below `Verbs:`.
fn verbs_in(overview: &str) -> Vec<String> {
    let below = overview.lines().skip_while(|line| *line != "Verbs:").skip(1);
    below
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| Some(line.split_whitespace().next()?.to_owned()))
        .collect()
}

/// The paths of pages that are missing, differ, or should not be there.
fn stale(docs: &Path, pages: &Pages) -> Result<Vec<PathBuf>> {
    let differs = |(path, text): &(&PathBuf, &String)| {
        fs::read_to_string(docs.join(path)).ok().as_ref() != Some(text)
    };
    let mut stale: Vec<PathBuf> =
        pages.iter().filter(differs).map(|(path, _)| path.clone()).collect();
    for ours in [VERBS, MANUAL] {
        let folder = docs.join(ours);
        if !folder.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&folder)? {
            let path = Path::new(ours).join(entry?.file_name());
            if !pages.contains_key(&path) {
                stale.push(path);
            }
        }
    }
    Ok(stale)
}

fn write(docs: &Path, pages: &Pages, stale: &[PathBuf]) -> Result<()> {
    for ours in [VERBS, MANUAL] {
        fs::create_dir_all(docs.join(ours))?;
    }
    for path in stale {
        let place = docs.join(path);
        match pages.get(path) {
            Some(text) => fs::write(&place, text),
            None => fs::remove_file(&place),
        }
        .with_context(|| format!("cannot write {}", place.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_read_from_the_help() {
        let help = "Usage: why <VERB>\n\nVerbs:\n  record  Run a program\n          on and on\n  \
                    list    List\n\nOptions:\n  -h  Help\n";
        assert_eq!(verbs_in(help), ["record", "list"]);
        assert!(verbs_in("Usage: why\n").is_empty());
    }

    #[test]
    fn a_missing_a_changed_and_a_stray_page_are_stale() -> Result<()> {
        let docs = tempfile::tempdir()?;
        let pages: Pages = ["a", "b", "c"].map(|name| (verb_path(name), name.to_owned())).into();
        write(docs.path(), &pages, &[verb_path("a"), verb_path("b")])?;
        fs::write(docs.path().join(verb_path("b")), "other")?;
        fs::write(docs.path().join(verb_path("stray")), "")?;
        let found = stale(docs.path(), &pages)?;
        assert_eq!(found, ["b", "c", "stray"].map(verb_path));
        write(docs.path(), &pages, &found)?;
        assert!(stale(docs.path(), &pages)?.is_empty());
        Ok(())
    }
}
