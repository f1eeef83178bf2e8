//! A folder with a program that is compiled, recorded and experimented with.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// See the module.
pub struct Lab {
    folder: tempfile::TempDir,
}

impl Lab {
    /// Compiles a C program.
    pub fn new(source: &str, flags: &[&str]) -> Lab {
        let lab = Lab { folder: tempfile::tempdir().unwrap() };
        std::fs::write(lab.path("prog.c"), source).unwrap();
        lab.compile("prog.c", flags);
        lab
    }

    /// Compiles a program of the corpus.
    pub fn of_corpus(name: &str, flags: &[&str]) -> Lab {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/predicates");
        let source = std::fs::read_to_string(root.join(format!("{name}.c"))).unwrap();
        Lab::new(&source, flags)
    }

    fn compile(&self, source: &str, flags: &[&str]) {
        let done = Command::new("gcc")
            .args(["-g", "-w", "-o", "prog", source])
            .args(flags)
            .current_dir(self.folder.path())
            .status()
            .expect("gcc is needed");
        assert!(done.success());
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What the program writes when it runs by itself.
    pub fn native(&self, args: &[&str], input: &str) -> Vec<u8> {
        let out = self.command(self.path("prog"), input).args(args).output().unwrap();
        out.stdout
    }

    fn command(&self, program: PathBuf, input: &str) -> Command {
        let file = self.path("stdin");
        std::fs::write(&file, input).unwrap();
        let mut command = Command::new(program);
        command
            .current_dir(self.folder.path())
            .env("WHY_DIR", self.path("home"))
            .stdin(std::fs::File::open(file).unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Records a run.
    pub fn record(&self, args: &[&str], input: &str) {
        let mut command = self.command(env!("CARGO_BIN_EXE_why").into(), input);
        let out = command.args(["record", "-q", "--", "./prog"]).args(args).output().unwrap();
        assert_ne!(out.status.code(), Some(125), "{}", String::from_utf8_lossy(&out.stderr));
    }

    /// Runs `why`.
    pub fn why(&self, args: &[&str]) -> Output {
        self.command_of_why(args).output().unwrap()
    }

    /// `why`, not yet begun.
    pub fn command_of_why(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_why").into(), "");
        command.args(args);
        command
    }

    /// Runs `why` with `--json`.
    pub fn json(&self, args: &[&str]) -> Value {
        let out = self.why(&[args, &["--json"]].concat());
        match serde_json::from_slice(&out.stdout) {
            Ok(value) => value,
            Err(_) => panic!("{args:?}: {}", String::from_utf8_lossy(&out.stderr)),
        }
    }

    /// The number of the first line that contains a text.
    pub fn line(&self, text: &str) -> usize {
        let source = std::fs::read_to_string(self.path("prog.c")).unwrap();
        1 + source.lines().position(|line| line.contains(text)).expect("the text is there")
    }
}
