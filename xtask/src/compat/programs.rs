//! Sources that are kept beside this file, and what is made of them when a row needs it.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::inputs::Inputs;

/// A file that a row may ask for.
struct Program {
    /// What the row calls it.
    name: &'static str,
    /// The file it is made from, and that file's text.
    source: (&'static str, &'static str),
    /// How it is made; nothing if it is the source itself.
    command: &'static str,
    /// Packages without which it cannot be made or run.
    needs: &'static str,
}

macro_rules! program {
    ($name:literal, $source:literal, $command:literal, $needs:literal) => {
        Program {
            name: $name,
            source: ($source, include_str!(concat!("programs/", $source))),
            command: $command,
            needs: $needs,
        }
    };
    ($source:literal, $needs:literal) => {
        program!($source, $source, "", $needs)
    };
}

const PROGRAMS: &[Program] = &[
    program!("goroutines", "goroutines.go", "go build goroutines.go", "golang-go"),
    program!("deadlock", "deadlock.go", "go build deadlock.go", "golang-go"),
    program!("nil_pointer", "nil_pointer.go", "go build nil_pointer.go", "golang-go"),
    program!("goroutines.go", "golang-go"),
    program!("untidy.go", "golang-go"),
    program!("traces.lua", "luajit"),
    program!("events.js", "nodejs"),
    program!("workers.js", "nodejs"),
    program!("Threads.java", "default-jdk-headless"),
    program!("Threads.class", "Threads.java", "javac Threads.java", "default-jdk-headless"),
    program!(
        "heap.gcc",
        "heap_overflow.c",
        "gcc -g -fsanitize=address -o heap.gcc heap_overflow.c",
        "gcc"
    ),
    program!(
        "heap.clang",
        "heap_overflow.c",
        "clang -g -fsanitize=address -o heap.clang heap_overflow.c",
        "clang libclang-rt-14-dev"
    ),
    program!(
        "signed.gcc",
        "signed_overflow.c",
        "gcc -g -fsanitize=undefined -o signed.gcc signed_overflow.c",
        "gcc"
    ),
    program!(
        "signed.clang",
        "signed_overflow.c",
        "clang -g -fsanitize=undefined -o signed.clang signed_overflow.c",
        "clang libclang-rt-14-dev"
    ),
    program!("race.gcc", "data_race.c", "gcc -g -fsanitize=thread -o race.gcc data_race.c", "gcc"),
    program!(
        "race.clang",
        "data_race.c",
        "clang -g -fsanitize=thread -o race.clang data_race.c",
        "clang libclang-rt-14-dev"
    ),
    program!("redis.sh", "redis-server"),
    program!("nginx.sh", "nginx-light"),
    program!("http.sh", "python3 curl"),
    program!("terminal.py", "python3 vim less procps"),
];

/// Makes an input if it is one of these and not there yet.
pub fn make(inputs: &Inputs, name: &str) -> Result<()> {
    let Some(program) = PROGRAMS.iter().find(|program| program.name == name) else {
        return Ok(());
    };
    let (source, text) = program.source;
    fs::write(inputs.path(source), text)?;
    if program.command.is_empty() || inputs.path(name).exists() {
        return Ok(());
    }
    let mut words = program.command.split(' ');
    let output = Command::new(words.next().unwrap_or_default())
        .args(words)
        .current_dir(inputs.path("."))
        .env("GOCACHE", inputs.path("go-cache"))
        .env("GO111MODULE", "off")
        .output()
        .with_context(|| needs(program))?;
    if !output.status.success() {
        let said = super::compare::first_line(&output.stderr);
        bail!("{}: `{}` failed: {said}", needs(program), program.command);
    }
    Ok(())
}

fn needs(program: &Program) -> String {
    format!("needs {}; try `cargo xtask setup`", program.needs)
}
