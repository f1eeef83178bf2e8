//! Are lines and addresses found in both directions?

mod support;

use program::debug::{DebugStatus, Error, MappedFile, Program, from_disk};
use support::{Built, compile};

const INLINED: &str = r#"#include <stdio.h>
volatile int sink;
static inline __attribute__((always_inline)) int inner(int x)
{
    return x * 3 + sink; /* INNER */
}
static inline __attribute__((always_inline)) int outer(int x)
{
    return inner(x) + 1; /* OUTER */
}
int main(int argc, char **argv)
{
    int a = outer(argc); /* FIRST */
    sink = a;
    int b = outer(argc + 5); /* SECOND */
    printf("%d\n", a + b);
    return 0;
}
"#;

/// Any bias will do, and a wrong use of one shows.
const BIAS: u64 = 0x7a00_0000;

fn inlined(command: &str) -> Built {
    compile(command, "inlined.c", INLINED)
}

#[test]
fn a_line_of_an_inlined_function_has_code_in_every_copy() {
    for command in ["gcc -O2 -g -gdwarf-5", "gcc -O2 -g -gdwarf-4", "clang -O2 -g -gdwarf-5"] {
        let built = inlined(command);
        let program = built.program_at(BIAS);
        let ranges = program.addresses("inlined.c", built.line_with("INNER")).expect("code");
        assert!(ranges.len() >= 2, "{command}: {ranges:?}");
        assert!(ranges.iter().all(|range| range.start >= BIAS && range.start < range.end));
    }
}

#[test]
fn the_frames_of_inlined_code_lead_from_the_innermost_to_the_function() {
    for command in ["gcc -O2 -g -gdwarf-5", "gcc -O2 -g -gdwarf-4", "clang -O2 -g -gdwarf-5"] {
        let built = inlined(command);
        let program = built.program_at(BIAS);
        let inner = built.line_with("INNER");
        let calls = [built.line_with("FIRST"), built.line_with("SECOND")];
        let mut seen = Vec::new();
        for range in program.addresses("inlined.c", inner).expect("code") {
            let frames = program.lines(range.start);
            let names: Vec<_> = frames.iter().filter_map(|frame| frame.function.clone()).collect();
            let lines: Vec<_> = frames.iter().filter_map(|frame| Some(frame.line?.line)).collect();
            assert_eq!(names, ["inner", "outer", "main"], "{command}");
            assert_eq!(lines[..2], [inner, built.line_with("OUTER")], "{command}");
            assert!(calls.contains(&lines[2]), "{command}: {lines:?}");
            let inlined: Vec<_> = frames.iter().map(|frame| frame.inlined).collect();
            assert_eq!(inlined, [true, true, false]);
            seen.push(lines[2]);
        }
        assert!(calls.iter().all(|call| seen.contains(call)), "{command}: {seen:?}");
    }
}

#[test]
fn every_address_of_a_line_has_that_line() {
    let built = inlined("gcc -O0 -g");
    let program = built.program_at(BIAS);
    let line = built.line_with("FIRST");
    for range in program.addresses("inlined.c", line).expect("code") {
        for address in range.start..range.end {
            let found = program.line(address).expect("a line");
            assert_eq!(found.line, line);
            assert_eq!(*program.path(found.file), *built.source);
        }
    }
}

#[test]
fn a_line_without_code_names_its_neighbours() {
    let built = inlined("gcc -O0 -g");
    let program = built.program_at(0);
    let error = program.addresses("inlined.c", 1).unwrap_err();
    let Error::NoCodeOnLine { nearby, .. } = &error else { panic!("{error}") };
    assert_eq!(nearby.first(), Some(&5));
    assert!(error.to_string().contains("nearby lines with code: 5, 9"), "{error}");
}

#[test]
fn a_file_that_does_not_exist_is_said_to_be_missing() {
    let built = inlined("gcc -O0 -g");
    let error = built.program_at(0).addresses("inlined.cpp", 5).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("no source file of the program is called `inlined.cpp`; similar: /")
    );
}

#[test]
fn an_ambiguous_name_lists_the_files() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, function) in
        [("one", "int main(void) { return 0; }\n"), ("two", "int g(void) { return 1; }\n")]
    {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
        std::fs::write(folder.path().join(name).join("same.c"), function).expect("a source");
    }
    let second = folder.path().join("two/same.c");
    let command = format!("gcc -g {}", second.display());
    let built =
        compile(&command, "same.c", "int f(void) { return 2; }\nint main(void) { return f(); }\n");
    let program = built.program_at(0);
    let error = program.addresses("same.c", 1).unwrap_err();
    let Error::AmbiguousFile { candidates, .. } = &error else { panic!("{error}") };
    assert_eq!(candidates.len(), 2);
    assert!(program.addresses("two/same.c", 1).is_ok());
    assert!(program.addresses("./two/../two/same.c", 1).is_ok());
    assert!(program.addresses(second.to_str().expect("a path"), 1).is_ok());
}

#[test]
fn the_source_text_comes_from_the_loader() {
    let built = inlined("gcc -O0 -g");
    let program = built.program_at(0);
    let file = program.source_file("inlined.c").expect("the file");
    let source = program.source(file).expect("its text");
    assert!(
        source.line(built.line_with("INNER")).is_some_and(|line| line.contains("x * 3 + sink"))
    );
}

#[test]
fn a_file_without_debug_information_says_so() {
    let built = inlined("gcc -O0");
    let program = built.program_at(0);
    assert_eq!(program.debug_status(0), DebugStatus::Missing);
    let main = program.functions_named("main")[0].start;
    assert_eq!(program.line(main), None);
    assert_eq!(program.lines(main)[0].function.as_deref(), Some("main"));
}

#[test]
fn split_debug_information_is_named_and_lines_still_work() {
    let built = inlined("gcc -O0 -g -gsplit-dwarf");
    let program = built.program_at(0);
    assert_eq!(program.debug_status(0), DebugStatus::Split);
    assert!(program.addresses("inlined.c", built.line_with("FIRST")).is_ok());
}

#[test]
fn separate_and_compressed_debug_information_is_found() {
    let built = inlined("gcc -O0 -g -gz");
    let separate = built.folder.path().join("prog.debug");
    let run = |program: &str, arguments: &[&std::ffi::OsStr]| {
        let status = std::process::Command::new(program).args(arguments).status();
        assert!(status.expect("binutils").success());
    };
    let (path, separate) = (built.path.as_os_str(), separate.as_os_str());
    run("objcopy", &["--only-keep-debug".as_ref(), path, separate]);
    run("strip", &[path]);
    let mut link = std::ffi::OsString::from("--add-gnu-debuglink=");
    link.push(separate);
    run("objcopy", &[&link, path]);
    let program = built.program_at(BIAS);
    assert_eq!(program.debug_status(0), DebugStatus::Present);
    let ranges = program.addresses("inlined.c", built.line_with("FIRST")).expect("code");
    let function = program.function(ranges[0].start).expect("a function");
    assert_eq!(function.name, "main");
    assert_eq!(program.functions_named("main"), [program.function(function.start).expect("main")]);
}

#[test]
fn separate_debug_information_of_another_build_is_not_used() {
    let (first, second) = (inlined("gcc -O0 -g"), inlined("gcc -O2 -g"));
    let status = std::process::Command::new("objcopy")
        .arg("--strip-debug")
        .arg(format!("--add-gnu-debuglink={}", second.path.display()))
        .args([&first.path, &first.folder.path().join("stripped")])
        .status();
    assert!(status.expect("objcopy").success());
    // The link names a file that is called like the other build, beside the first.
    std::fs::copy(&second.path, first.folder.path().join("prog")).expect("a copy");
    let data = std::fs::read(first.folder.path().join("stripped")).expect("the stripped program");
    let path = first.folder.path().join("stripped");
    let file = MappedFile { path, data: std::sync::Arc::new(data), bias: 0 };
    let program = Program::new(vec![file], from_disk());
    assert_eq!(program.debug_status(0), DebugStatus::Missing);
}
