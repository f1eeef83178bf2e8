//! A folder of its own for a test: its programs and its recordings.

#![allow(dead_code, reason = "each test needs some of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub struct Place(tempfile::TempDir);

impl Place {
    pub fn new() -> Place {
        Place(tempfile::tempdir().expect("a folder"))
    }

    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Compiles a program, whose source is beside it.
    pub fn compile(&self, name: &str, source: &str, flags: &[&str]) -> PathBuf {
        let (file, program) = (self.path(&format!("{name}.c")), self.path(name));
        fs::write(&file, source).expect("writes");
        let mut gcc = Command::new("gcc");
        gcc.args(flags).arg("-o").args([&program, &file]);
        assert!(gcc.status().expect("gcc is installed (cargo xtask setup)").success());
        program
    }

    /// `why` in this folder, with recordings of its own. It does not run for ever.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut why = Command::new("timeout");
        why.args(["-k", "1", "300", env!("CARGO_BIN_EXE_why")]).args(arguments);
        why.env("WHY_DIR", self.path("home")).current_dir(self.folder()).stdin(Stdio::null());
        why
    }

    pub fn why(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().expect("why runs");
        assert_ne!(output.status.code(), Some(124), "{arguments:?} took too long");
        output
    }
}

/// What was written, for people.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
