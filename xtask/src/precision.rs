//! Does every promise of precision have a test that fails without it? Each is switched off, one at
//! a time, in a copy of the code, and the tests that are named for it must fail; with everything
//! on, all of them must pass.
//!
//! The promises, their edits and their tests are in crates/slice/tests/precision/without.toml.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::Deserialize;

use crate::page;
use crate::tally::Tally;
use crate::workspace;

/// Options of `cargo xtask precision`.
#[derive(Args)]
pub struct Options {
    /// Only promises that contain this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    promise: String,
    /// Put the table of promises and tests into docs/slicing.md
    #[arg(long)]
    write: bool,
}

/// All promises.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Promises {
    /// Edits of the copy that no promise is switched off by.
    always: Vec<Edit>,
    promise: Vec<Promise>,
}

/// One, with how it is switched off.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Promise {
    /// What is promised.
    what: String,
    /// Names of the tests that must fail without it.
    tests: Vec<String>,
    edits: Vec<Edit>,
}

/// A piece of code, and what stands for it in the copy. There, `OFF` is true if the promise is
/// switched off.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    file: PathBuf,
    from: String,
    to: String,
}

const LIST: &str = "crates/slice/tests/precision/without.toml";
/// Names the promise that is switched off, to the copy.
const WITHOUT: &str = "WHY_WITHOUT";
/// Added to the copy of the crate that all others here depend on.
const SWITCH: &str = r#"
/// Is this promise switched off?
pub fn is_off(promise: &str) -> bool {
    static OFF: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    OFF.get_or_init(|| std::env::var("WHY_WITHOUT").ok()).as_deref() == Some(promise)
}
"#;

/// Switches everything off, one by one.
pub fn run(options: &Options) -> Result<bool> {
    let text = fs::read_to_string(workspace::root().join(LIST)).context("cannot read the list")?;
    let Promises { always, promise: promises } = toml::from_str(&text).context(LIST)?;
    let copy = workspace::target().join("precision");
    make_copy(&copy)?;
    for edit in &always {
        apply(edit, usize::MAX, &copy)?;
    }
    for (n, promise) in promises.iter().enumerate() {
        for edit in &promise.edits {
            apply(edit, n, &copy).with_context(|| promise.what.clone())?;
        }
    }
    let tests = build(&copy)?;
    let mut tally = Tally::default();
    let mut check = |name: &str, without: Option<usize>| -> Result<bool> {
        let passed = passes(&tests, name, without)?;
        let right = passed == without.is_none();
        tally.count(right);
        let word = if right { "pass" } else { "FAIL" };
        let said = if passed { "passes" } else { "fails" };
        let how =
            without.map_or("as it is".to_owned(), |n| format!("without {}", promises[n].what));
        println!("{word}  {name} {said} {how}");
        Ok(right)
    };
    let chosen = |promise: &Promise| promise.what.contains(&options.promise);
    let mut table = String::from("| what | fails without it |\n| --- | --- |\n");
    for (n, promise) in promises.iter().enumerate().filter(|(_, promise)| chosen(promise)) {
        let mut shown = Vec::new();
        for name in &promise.tests {
            if check(name, None)? & check(name, Some(n))? {
                shown.push(format!("`{name}`"));
            }
        }
        let shown = if shown.is_empty() { "no test yet".to_owned() } else { shown.join(", ") };
        // Writing to a string cannot fail.
        let _ = writeln!(table, "| {} | {shown} |", promise.what);
    }
    println!("{tally}");
    if options.write && options.promise.is_empty() {
        page::put("slicing.md", "precision", &table)?;
    }
    Ok(tally.all_passed())
}

/// The workspace again, but for what is built.
fn make_copy(copy: &Path) -> Result<()> {
    if copy.exists() {
        fs::remove_dir_all(copy)?;
    }
    fs::create_dir_all(copy)?;
    let parts = ["Cargo.toml", "Cargo.lock", ".cargo", "crates", "xtask"];
    let status = Command::new("cp")
        .arg("-a")
        .args(parts.map(|part| workspace::root().join(part)))
        .arg(copy)
        .status()?;
    ensure!(status.success(), "cannot copy the workspace");
    let library = copy.join("crates/program/src/lib.rs");
    let text = fs::read_to_string(&library)?;
    Ok(fs::write(&library, text + SWITCH)?)
}

fn apply(edit: &Edit, promise: usize, copy: &Path) -> Result<()> {
    let path = copy.join(&edit.file);
    let text = fs::read_to_string(&path).with_context(|| edit.file.display().to_string())?;
    let found = text.matches(&edit.from).count();
    ensure!(found == 1, "{}: found {found} times, not once: {}", edit.file.display(), edit.from);
    // The crate itself does not know its own name.
    let of = if edit.file.starts_with("crates/program") { "crate" } else { "program" };
    let to = edit.to.replace("OFF", &format!("{of}::is_off(\"{promise}\")"));
    Ok(fs::write(&path, text.replace(&edit.from, &to))?)
}

/// Builds the copy's tests. What it shares with the workspace is not built again.
fn build(copy: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["test", "--release", "--no-run", "--package", "slice", "--test", "precision"])
        .args(["--message-format", "json"])
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", workspace::target())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("the copy in {} does not build", copy.display());
    }
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    let built = messages.lines().rev().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(PathBuf::from(message["executable"].as_str()?))
    });
    built.context("cargo did not say what it built")
}

fn passes(tests: &Path, name: &str, without: Option<usize>) -> Result<bool> {
    let mut command = Command::new(tests);
    command.arg(name).stdin(Stdio::null()).stderr(Stdio::null());
    if let Some(n) = without {
        command.env(WITHOUT, n.to_string());
    }
    let output = command.output().context("cannot run the tests")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.code() {
        Some(0) if said.contains(&format!("test {name} ... ok")) => Ok(true),
        Some(1) if said.contains(&format!("test {name} ... FAILED")) => Ok(false),
        _ => bail!("{name}: there is no such test, or it could not be tried: {said}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_switches_a_promise_off_is_found_once_in_the_code() {
        let text = fs::read_to_string(workspace::root().join(LIST)).expect("the list");
        let Promises { always, promise } = toml::from_str(&text).expect("a list of promises");
        for edit in promise.iter().flat_map(|promise| &promise.edits).chain(&always) {
            let file = workspace::root().join(&edit.file);
            let text = fs::read_to_string(file).expect("a file of ours");
            let found = text.matches(&edit.from).count();
            assert_eq!(found, 1, "{}: {}", edit.file.display(), edit.from);
        }
    }
}
