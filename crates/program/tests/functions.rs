//! Are functions, stubs and the user's own code told apart?

mod support;

use std::path::Path;
use std::process::Command;

use program::flow::Boundary;
use support::compile;

const C: &str = r#"#include <stdio.h>
#include <stdlib.h>
__attribute__((noreturn)) void give_up(void) { exit(3); }
__attribute__((noinline)) static int helper(int x) { if (x > 100) abort(); return x + 1; }
int main(int argc, char **argv) { if (argc > 5) give_up(); printf("%d\n", helper(argc)); return 0; }
"#;

#[test]
fn a_function_is_found_by_name_and_by_each_of_its_addresses() {
    for command in ["gcc -g", "gcc -g0", "clang -g -O2"] {
        let program = compile(command, "f.c", C).program_at(0x1000_0000);
        let [helper] = &program.functions_named("helper")[..] else { panic!("{command}") };
        assert!(helper.start > 0x1000_0000 && helper.end > helper.start);
        let last = program.function(helper.end - 1).expect("a function");
        assert_eq!((last.name.as_str(), last.start), ("helper", helper.start));
        assert_eq!(last.offset, helper.end - 1 - helper.start);
        assert!(program.is_entry(helper.start) && !program.is_entry(helper.start + 1));
        assert!(program.function_entries().contains(&helper.start));
    }
}

#[test]
fn stripped_code_has_functions_by_its_frame_information() {
    let named = compile("gcc -O1 -g0", "f.c", C);
    let helper = named.program_at(0).functions_named("helper")[0].clone();
    assert!(Command::new("strip").arg(&named.path).status().expect("strip").success());
    let program = named.program_at(0);
    assert!(program.functions_named("helper").is_empty());
    let found = program.function(helper.start + 2).expect("a function");
    assert_eq!(found.name, format!("prog+{:#x}", helper.start));
    assert_eq!((found.start, found.end), (helper.start, helper.end));
    assert!(program.is_entry(helper.start));
}

#[test]
fn nothing_begins_within_undivided_code() {
    let nested = r#"
        __attribute__((cold, noinline)) void rare(int x) { __builtin_printf("%d", x); }
        int f(int x) { if (x > 7) rare(x); return x * 2; }
        asm(".globl inner\n outer: nop\n inner: nop\n nop\n ret\n .type outer, @function\n"
            ".size outer, .-outer\n .type inner, @function\n .size inner, .-inner\n");
        int inner(void);
        int main(int argc, char **argv) { return f(argc) + inner(); }
    "#;
    for (command, source) in [("gcc -O2 -g", C), ("gcc -O2 -g0", nested), ("clang -O1", nested)] {
        for stripped in [false, true] {
            let built = compile(command, "f.c", source);
            if stripped {
                let status = Command::new("strip").arg(&built.path).status();
                assert!(status.expect("strip").success());
            }
            let program = built.program_at(0x1000_0000);
            let mut bytes = 0;
            for entry in program.function_entries() {
                let code = program.undivided(entry);
                assert_eq!(code.start, entry);
                for address in code.skip(1) {
                    assert_eq!(program.boundary(address), Boundary::None, "{address:#x}");
                    assert_eq!(program.extent_start(address), Some(entry), "{address:#x}");
                    bytes += 1;
                }
            }
            assert!(bytes > 50, "{command}: most code is undivided, not {bytes} bytes");
        }
    }
}

#[test]
fn stubs_lead_to_named_functions() {
    let variants = [
        "gcc -Wl,-z,lazy",
        "gcc -Wl,-z,now",
        "gcc -fcf-protection -Wl,-z,lazy -Wl,-z,ibtplt",
        "clang -fno-plt",
        "gcc -no-pie",
    ];
    for command in variants {
        let program = compile(&format!("{command} -O0 -g"), "f.c", C).program_at(0);
        let entries = program.function_entries();
        let stubs: Vec<_> = entries.iter().filter_map(|entry| program.plt_target(*entry)).collect();
        if command.contains("no-plt") {
            assert!(!stubs.contains(&"abort"), "{command}: {stubs:?}");
            continue;
        }
        for name in ["abort", "exit", "printf"] {
            assert!(stubs.contains(&name), "{command}: {stubs:?}");
        }
        for entry in entries.iter().filter(|entry| program.plt_target(**entry).is_some()) {
            let target = program.plt_target(*entry).expect("a target");
            assert!(program.is_plt(*entry));
            assert!(!program.is_own(*entry));
            assert_eq!(
                program.is_noreturn(*entry),
                ["abort", "exit"].contains(&target),
                "{target}"
            );
            assert_eq!(program.function(*entry).expect("a stub").name, format!("{target}@plt"));
        }
    }
}

#[test]
fn a_function_that_is_declared_so_never_returns() {
    let program = compile("gcc -g", "f.c", C).program_at(0);
    let noreturn = |name| program.is_noreturn(program.functions_named(name)[0].start);
    assert!(noreturn("give_up"));
    assert!(!noreturn("helper"));
    assert!(!noreturn("main"));
}

#[test]
fn a_static_library_is_not_the_users_code() {
    let program = compile("gcc -g -static", "f.c", C).program_at(0);
    let own = |name| program.is_own(program.functions_named(name)[0].start);
    assert!(own("main") && own("helper"));
    assert!(!own("printf") && !own("malloc"));
    assert!(program.is_noreturn(program.functions_named("abort")[0].start));
}

#[test]
fn all_of_a_program_without_debug_information_is_the_users() {
    let program = compile("gcc -g0", "f.c", C).program_at(0);
    assert!(program.is_own(program.functions_named("main")[0].start));
    assert!(!program.is_own(0x10));
}

#[test]
fn names_of_cpp_are_found_by_their_end() {
    let text = "namespace a { namespace b { template <class T> T f(T x) { return x; } int g() { return f(1); } } }\nint main() { return a::b::g(); }\n";
    let program = compile("g++ -g", "n.cpp", text).program_at(0);
    assert_eq!(program.functions_named("g")[0].name, "a::b::g");
    assert_eq!(program.functions_named("b::g").len(), 1);
    assert_eq!(program.functions_named("a::b::g").len(), 1);
    assert_eq!(program.functions_named("_ZN1a1b1gEv").len(), 1);
    assert_eq!(program.functions_named("f")[0].name, "a::b::f<int>");
    assert!(program.functions_named("x::g").is_empty());
}

#[test]
fn rust_code_of_the_standard_library_is_not_the_users() {
    let text = "fn own(x: usize) -> Vec<usize> { (0..x).collect() }\nfn main() { println!(\"{:?}\", own(std::env::args().count())); }\n";
    let program = compile("rustc -g", "r.rs", text).program_at(0);
    let [own] = &program.functions_named("own")[..] else { panic!("own is found") };
    assert!(own.name.ends_with("::own"), "{}", own.name);
    assert!(program.is_own(own.start));
    let panic = program.functions_named("core::panicking::panic_fmt");
    assert!(panic.iter().all(|function| !program.is_own(function.start)));
    assert!(panic.iter().all(|function| program.is_noreturn(function.start)));
    assert!(!panic.is_empty());
}

#[test]
fn the_main_function_of_a_rust_program_is_the_users() {
    let text = "fn main() { println!(\"hello\"); }\n";
    let program = compile("rustc -g", "hello.rs", text).program_at(0);
    let [main] = &program.functions_named("main")[..] else { panic!("one main") };
    assert_eq!(main.name, "hello::main");
}

#[test]
fn a_program_can_be_asked_by_several_threads() {
    fn is_shareable<T: Send + Sync>() {}
    is_shareable::<program::debug::Program>();
}

#[test]
fn a_large_library_is_opened_without_being_read_whole() {
    let path = Path::new("/lib/x86_64-linux-gnu/libc.so.6");
    let Ok(data) = std::fs::read(path) else { return };
    let file = program::debug::MappedFile {
        path: path.to_owned(),
        data: std::sync::Arc::new(data),
        bias: 0x5000_0000,
    };
    let program = program::debug::Program::new(vec![file], program::debug::from_disk());
    let puts = &program.functions_named("puts")[0];
    assert_eq!(puts.name, "puts");
    assert!(puts.start > 0x5000_0000);
    assert!(program.function_entries().len() > 2000);
}
