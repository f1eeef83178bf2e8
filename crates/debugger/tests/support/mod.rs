//! Tests that fork: each runs alone in this single-threaded process.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// A test's name and what it does in a folder of its own.
pub type Test = (&'static str, fn(&Path));

/// Runs the tests whose name contains the first argument, each in a process.
pub fn main(tests: &[Test]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, name, folder] = &arguments[..]
        && flag == "--in-child"
    {
        let test = tests.iter().find(|t| t.0 == name).expect("a test's name");
        test.1(Path::new(folder));
        return ExitCode::SUCCESS;
    }
    let wanted = arguments.get(1).filter(|a| !a.starts_with('-')).cloned().unwrap_or_default();
    let mut failed = 0;
    let chosen: Vec<&Test> = tests.iter().filter(|t| t.0.contains(&wanted)).collect();
    for (name, _) in &chosen {
        let folder = tempfile::tempdir().expect("a folder");
        let status = Command::new(&arguments[0])
            .args(["--in-child", name])
            .arg(folder.path())
            .status()
            .expect("this program runs");
        println!("test {name} ... {}", if status.success() { "ok" } else { "FAILED" });
        failed += usize::from(!status.success());
    }
    println!("test result: {} passed; {failed} failed", chosen.len() - failed);
    ExitCode::from(u8::from(failed > 0))
}

/// Compiles a program.
pub fn compile(folder: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let file = folder.join(format!("{name}.c"));
    let program = folder.join(name);
    std::fs::write(&file, source).expect("writes");
    let compiled = Command::new("gcc")
        .arg("-g")
        .args(flags)
        .arg("-o")
        .args([&program, &file])
        .status()
        .expect("gcc is installed (cargo xtask setup)");
    assert!(compiled.success());
    program
}

/// Records a run.
pub fn record(folder: &Path, program: &Path, arguments: &[&str]) -> PathBuf {
    let recording = folder.join("recording");
    let arguments: Vec<std::ffi::OsString> = arguments.iter().map(Into::into).collect();
    let mut options = engine::RecordOptions::new(&recording, program, &arguments);
    options.store = recording::Store::at(folder.join("store"));
    engine::record(&options).expect("records");
    recording
}

/// Address of a symbol of a program that is not moved.
pub fn symbol(program: &Path, name: &str) -> u64 {
    let output = Command::new("nm").arg(program).output().expect("binutils");
    let text = String::from_utf8(output.stdout).expect("text");
    let line = text.lines().find(|l| l.ends_with(&format!(" {name}"))).expect("a symbol");
    u64::from_str_radix(&line[..16], 16).expect("a number")
}
