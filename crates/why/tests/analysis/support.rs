//! A folder with a program, its recording, and what `why` says about it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// A recorded run.
pub struct Bench {
    folder: tempfile::TempDir,
    file: &'static str,
}

/// What `why` said.
pub struct Said {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Bench {
    /// A folder with one source file.
    pub fn new(file: &'static str, source: &str) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(file), source).unwrap();
        Bench { folder, file }
    }

    /// The same, compiled and run once.
    pub fn ran(file: &'static str, source: &str, flags: &[&str], args: &[&str]) -> Bench {
        let bench = Bench::new(file, source);
        bench.compile(flags);
        bench.record(args, "");
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Compiles the source file to `prog`.
    pub fn compile(&self, flags: &[&str]) {
        let compiler = match self.file.rsplit_once('.') {
            Some((_, "cpp")) => "g++",
            Some((_, "rs")) => "rustc",
            _ => "gcc",
        };
        self.tool(compiler, &[flags, &["-o", "prog", self.file]].concat());
    }

    /// Runs a tool in the folder.
    pub fn tool(&self, tool: &str, args: &[&str]) -> String {
        let output = Command::new(tool)
            .args(args)
            .current_dir(self.folder())
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|e| panic!("{tool} cannot be run ({e}); see `cargo xtask setup`"));
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{tool} {args:?}: {err}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Records a run of `prog`; returns its status.
    pub fn record(&self, args: &[&str], input: &str) -> i32 {
        std::fs::write(self.path("input"), input).unwrap();
        let output = self
            .command(&[&["record", "-q", "./prog"], args].concat())
            .stdin(std::fs::File::open(self.path("input")).unwrap())
            .env("COLOUR", "blue")
            .output()
            .unwrap();
        output.status.code().unwrap()
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_why"));
        command.args(words).env("WHY_DIR", self.path("home")).current_dir(self.folder());
        command.stdin(Stdio::null());
        command
    }

    /// Asks, and checks what holds for every answer: nothing for a terminal where
    /// there is none, one sentence if something is wrong, text of 80 columns.
    pub fn ask(&self, words: &[&str]) -> Said {
        let output = self.command(words).output().unwrap();
        let said = Said {
            status: output.status.code().expect("why is not killed"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        };
        assert!(!said.out.contains('\x1b') && !said.err.contains('\x1b'), "{words:?}");
        if !words.contains(&"--json") && !words.contains(&"--dot") {
            for line in said.out.lines() {
                assert!(line.chars().count() <= 80, "{words:?}: {line}");
            }
        }
        said
    }

    /// An answer that is found.
    pub fn text(&self, words: &[&str]) -> String {
        let said = self.ask(words);
        assert_eq!((said.status, said.err.as_str()), (0, ""), "{words:?}\n{}", said.out);
        said.out
    }

    /// The same as JSON.
    pub fn json(&self, words: &[&str]) -> Value {
        let text = self.text(&[words, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{words:?}: {e}\n{text}"))
    }

    /// Line numbers of a slice, in order.
    pub fn lines(&self, words: &[&str]) -> Vec<u64> {
        lines_of(&self.json(words))
    }

    /// The sentence with which something is refused.
    pub fn refusal(&self, words: &[&str], status: i32) -> String {
        let said = self.ask(words);
        assert_eq!((said.status, said.out.as_str()), (status, ""), "{words:?}\n{}", said.err);
        let err = said.err.strip_prefix("why: ").expect("it is ours").trim_end().to_owned();
        assert!(!err.contains('\n'), "{err}");
        err
    }
}

/// Line numbers of a slice, in order, each once.
pub fn lines_of(slice: &Value) -> Vec<u64> {
    let lines = slice["lines"].as_array().expect("lines");
    let mut numbers: Vec<u64> = lines.iter().filter_map(|l| l["line"].as_u64()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// C without optimisation, with lines.
pub const O0: &[&str] = &["-g", "-O0"];
