//! What a faulty program promises: `manifest.toml` in its folder. `corpus/README.md` describes it.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

/// One faulty program of the corpus: its folder and what its manifest says.
#[derive(Debug)]
pub struct Faulty {
    /// The folder below `corpus/`, as in `bank` or `worked/loop`.
    pub name: String,
    pub folder: PathBuf,
    pub manifest: Manifest,
}

/// The contents of `manifest.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub title: String,
    pub language: Language,
    /// What the build command is given, relative to the folder.
    pub sources: Vec<PathBuf>,
    /// Files that the sources include.
    #[serde(default)]
    pub headers: Vec<PathBuf>,
    /// How often a failing test may be run until it fails: more than once for races only.
    #[serde(default = "once")]
    pub tries: usize,
    /// Kept out of sight while locators are worked on; reported apart.
    #[serde(default)]
    pub held_out: bool,
    /// The worked example that a small program repeats.
    #[serde(default)]
    pub from: Option<String>,
    pub build: Build,
    /// None for a worked example that only shows how values depend on each other.
    #[serde(default, rename = "fault")]
    pub faults: Vec<Fault>,
    #[serde(default)]
    pub chain: Option<Chain>,
    #[serde(rename = "test")]
    pub tests: Vec<Test>,
}

/// The language of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Language {
    #[serde(rename = "c")]
    C,
    #[serde(rename = "c++")]
    Cpp,
    #[serde(rename = "rust")]
    Rust,
}

/// How a program was optimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    O0,
    O2,
}

impl Level {
    pub const ALL: [Level; 2] = [Level::O0, Level::O2];
}

/// Build commands, one per level; `{sources}` and `{out}` stand for the files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    #[serde(rename = "O0")]
    pub o0: String,
    #[serde(rename = "O2")]
    pub o2: String,
}

impl Build {
    /// The command of a level.
    pub fn command(&self, level: Level) -> &str {
        match level {
            Level::O0 => &self.o0,
            Level::O2 => &self.o2,
        }
    }
}

/// One fault and where it is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    pub kind: String,
    /// The faulty lines; with `missing`, the lines between which something is missing.
    pub lines: Vec<Place>,
    #[serde(default)]
    pub missing: bool,
    /// Lines that count as finding it too: uses of a wrong constant, what missing code would have
    /// influenced.
    #[serde(default)]
    pub also: Vec<Place>,
    pub note: String,
}

/// The lines through which a fault becomes a failure, in order of time, for one test.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    pub test: String,
    pub lines: Vec<Place>,
}

/// A source line of the faulty version, written `file.c:12`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Place {
    pub file: PathBuf,
    pub line: usize,
}

impl FromStr for Place {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Place> {
        let wrong = || format!("`{text}` is not a line; write it as file.c:12");
        let (file, line) = text.rsplit_once(':').with_context(wrong)?;
        let line = line.parse().with_context(wrong)?;
        ensure!(line > 0 && !file.is_empty(), wrong());
        Ok(Place { file: file.into(), line })
    }
}

impl TryFrom<String> for Place {
    type Error = anyhow::Error;

    fn try_from(text: String) -> Result<Place> {
        text.parse()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.file.display(), self.line)
    }
}

/// One run of the program and what must come of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Test {
    pub name: String,
    #[serde(default)]
    pub args: Vec<String>,
    /// Relative to the program's folder; absent: empty input.
    #[serde(default)]
    pub stdin: Option<PathBuf>,
    /// Copied into the working folder under their last name.
    #[serde(default)]
    pub files: Vec<PathBuf>,
    /// The exit status of the fixed program.
    #[serde(default)]
    pub exit: i32,
    /// Seconds after which the run counts as hanging.
    #[serde(default = "ten_seconds")]
    pub timeout: u64,
    /// How the faulty program fails; absent: it passes.
    #[serde(default)]
    pub fails: Option<Fails>,
}

impl Test {
    /// Where the output of the fixed program is kept, relative to the program's folder.
    pub fn expected(&self) -> PathBuf {
        Path::new("expected").join(format!("{}.out", self.name))
    }

    /// How the faulty program fails when built at `level`, if it does.
    pub fn failure(&self, level: Level) -> Option<Failure> {
        match (&self.fails, level) {
            (None, _) => None,
            (Some(Fails::Always(failure)), _) => Some(*failure),
            (Some(Fails::ByLevel { o0, .. }), Level::O0) => Some(*o0),
            (Some(Fails::ByLevel { o2, .. }), Level::O2) => Some(*o2),
        }
    }
}

/// How a failing test fails, at all levels alike or not.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Fails {
    Always(Failure),
    ByLevel {
        #[serde(rename = "O0")]
        o0: Failure,
        #[serde(rename = "O2")]
        o2: Failure,
    },
}

/// What a failure looks like from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// Killed by a signal.
    Crash,
    /// A Rust panic: status 101.
    Panic,
    /// Another exit status than expected, not by a signal nor a panic.
    ExitStatus,
    /// The expected exit status, but other output.
    WrongOutput,
    /// Not ended within the test's `timeout`.
    Hang,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Failure::Crash => "crash",
            Failure::Panic => "panic",
            Failure::ExitStatus => "exit-status",
            Failure::WrongOutput => "wrong-output",
            Failure::Hang => "hang",
        })
    }
}

fn once() -> usize {
    1
}

fn ten_seconds() -> u64 {
    10
}

/// Reads a manifest and checks what it says about itself.
pub fn parse(text: &str) -> Result<Manifest> {
    let manifest: Manifest = toml::from_str(text)?;
    for (index, test) in manifest.tests.iter().enumerate() {
        let earlier = &manifest.tests[..index];
        ensure!(!earlier.iter().any(|t| t.name == test.name), "two tests named {}", test.name);
    }
    let fails = manifest.tests.iter().any(|test| test.fails.is_some());
    if manifest.faults.is_empty() {
        ensure!(manifest.from.is_some(), "no fault is given");
        ensure!(!fails, "a test fails, but no fault is given");
    } else {
        ensure!(fails, "no test fails");
    }
    ensure!(manifest.faults.iter().all(|fault| !fault.lines.is_empty()), "a fault has no line");
    if let Some(chain) = &manifest.chain {
        let known = manifest.tests.iter().any(|t| t.name == chain.test && t.fails.is_some());
        ensure!(known, "the chain's test {} is not a failing test", chain.test);
    }
    Ok(manifest)
}

/// All programs in `corpus` and its folder `worked`, by name.
pub fn read_all(corpus: &Path) -> Result<Vec<Faulty>> {
    let mut programs = Vec::new();
    for prefix in ["", "worked/"] {
        let folder = corpus.join(prefix);
        let entries =
            fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let folder = entry?.path();
            if folder.join("manifest.toml").exists() {
                programs.push(read(&folder, prefix)?);
            }
        }
    }
    if programs.is_empty() {
        bail!("no program in {}", corpus.display());
    }
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(programs)
}

fn read(folder: &Path, prefix: &str) -> Result<Faulty> {
    let path = folder.join("manifest.toml");
    let text = fs::read_to_string(&path)?;
    let manifest = parse(&text).with_context(|| format!("{} is wrong", path.display()))?;
    let last = folder.file_name().unwrap_or_default().to_string_lossy();
    Ok(Faulty { name: format!("{prefix}{last}"), folder: folder.into(), manifest })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
        title = "Sums numbers"
        language = "c"
        sources = ["sum.c"]
        [build]
        O0 = "gcc -O0 -o {out} {sources}"
        O2 = "gcc -O2 -o {out} {sources}"
        [[fault]]
        kind = "wrong-operator"
        lines = ["sum.c:7"]
        note = "< for <="
        [chain]
        test = "three"
        lines = ["sum.c:7", "sum.c:9"]
        [[test]]
        name = "none"
        [[test]]
        name = "three"
        args = ["1", "2", "3"]
        fails = "wrong-output"
    "#;

    #[test]
    fn a_small_manifest_is_read_with_its_defaults() {
        let manifest = parse(SMALL).unwrap();
        assert_eq!(manifest.faults[0].lines, ["sum.c:7".parse().unwrap()]);
        let [none, three] = &manifest.tests[..] else { panic!("two tests") };
        assert_eq!((none.exit, none.timeout, none.failure(Level::O0)), (0, 10, None));
        assert_eq!(three.failure(Level::O2), Some(Failure::WrongOutput));
        assert_eq!(three.expected(), Path::new("expected/three.out"));
        assert_eq!((manifest.tries, manifest.language), (1, Language::C));
    }

    #[test]
    fn a_failure_may_differ_by_level() {
        let text = SMALL.replace(r#""wrong-output""#, r#"{ O0 = "panic", O2 = "wrong-output" }"#);
        let test = &parse(&text).unwrap().tests[1];
        assert_eq!(test.failure(Level::O0), Some(Failure::Panic));
        assert_eq!(test.failure(Level::O2), Some(Failure::WrongOutput));
    }

    #[test]
    fn each_level_has_its_own_build_command() {
        let build = parse(SMALL).unwrap().build;
        assert!(build.command(Level::O0).contains("-O0"));
        assert!(build.command(Level::O2).contains("-O2"));
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let text = SMALL.replace("title =", "titel = \"x\"\ntitle =");
        assert!(format!("{:#}", parse(&text).unwrap_err()).contains("titel"));
    }

    #[test]
    fn a_manifest_without_a_failing_test_is_refused() {
        let text = SMALL.replace(r#"fails = "wrong-output""#, "");
        assert!(format!("{:#}", parse(&text).unwrap_err()).contains("no test fails"));
    }

    #[test]
    fn only_a_worked_example_may_be_without_a_fault() {
        let start = SMALL.find("[[fault]]").unwrap();
        let end = SMALL.find("[[test]]").unwrap();
        let text = [&SMALL[..start], &SMALL[end..]].concat();
        let passing = text.replace(r#"fails = "wrong-output""#, "");
        let worked = passing.replace("title", "from = \"a figure\"\ntitle");
        assert!(parse(&text).is_err() && parse(&passing).is_err());
        assert!(parse(&worked).unwrap().faults.is_empty());
    }

    #[test]
    fn two_tests_of_one_name_are_refused() {
        let text = SMALL.replace(r#"name = "none""#, r#"name = "three""#);
        assert!(format!("{:#}", parse(&text).unwrap_err()).contains("two tests named three"));
    }

    #[test]
    fn the_chain_must_be_that_of_a_failing_test() {
        let text = SMALL.replace(r#"test = "three""#, r#"test = "none""#);
        assert!(format!("{:#}", parse(&text).unwrap_err()).contains("not a failing test"));
    }

    #[test]
    fn a_place_is_a_file_and_a_line() {
        let place: Place = "src/a.c:12".parse().unwrap();
        assert_eq!((place.file.as_path(), place.line), (Path::new("src/a.c"), 12));
        assert_eq!(place.to_string(), "src/a.c:12");
        for wrong in ["a.c", "a.c:", "a.c:x", ":3", "a.c:0"] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
    }
}
