//! What is known of variables and callers in optimised code?

mod support;

use program::debug::{Error, Gone, Piece, Register};
use support::{Stopped, compile};

const C: &str = r#"#include <stdio.h>
#include <stdlib.h>
struct pair { long a; long b; };
volatile int sink;
__attribute__((noinline)) void leaf(int depth) { sink = depth; abort(); }
__attribute__((noinline)) long sum(struct pair p, int n, double d)
{
    long total = p.a;
    const int fixed = 17;
    for (int i = 0; i < n; i++)
        total += p.b * i + (long)d + fixed;
    leaf(n);
    return total;
}
__attribute__((noinline)) int middle(int n)
{
    struct pair p = {n, 2 * n};
    char room[n * 100];
    room[n] = 1;
    return sum(p, n, 2.5) + room[n];
}
int main(int argc, char **argv) { return middle(argc + 6); }
"#;

fn names(stopped: &Stopped) -> Vec<String> {
    let frames = stopped.program.unwind(&stopped.state);
    frames.into_iter().filter_map(|frame| Some(frame.function?.name)).collect()
}

/// Where each frame's pc is: the same that gdb's `backtrace` shows.
const CHAIN: [&str; 4] = ["leaf", "sum", "middle", "main"];

#[test]
fn the_stack_is_unwound_at_every_instruction_of_a_function() {
    for command in ["gcc -O0 -g", "gcc -O2 -g", "clang -O2 -g", "gcc -O2 -g0"] {
        let built = compile(&format!("{command} -no-pie"), "o.c", C);
        let leaf = built.program_at(0).functions_named("leaf")[0].start;
        let run = format!("break *{leaf:#x}");
        for steps in [0, 1, 2, 5] {
            let step = format!("stepi {steps}");
            let commands = [run.as_str(), "run", step.as_str()];
            let stop = built.stop(if steps == 0 { &commands[..2] } else { &commands });
            let found = names(&stop);
            // The steps may lead into the stub of `abort`, and into `abort`.
            let tail: Vec<_> = found.iter().skip_while(|name| *name != "leaf").take(4).collect();
            assert_eq!(tail, CHAIN, "{command}, step {steps}: {found:?}");
        }
    }
}

#[test]
fn a_crash_deep_in_a_library_is_unwound_to_the_program() {
    let built = compile("gcc -O2 -g", "o.c", C);
    let stopped = built.stop(&["run"]);
    let found = names(&stopped);
    let own: Vec<_> = found.iter().filter(|name| CHAIN.contains(&name.as_str())).collect();
    assert_eq!(own, CHAIN, "{found:?}");
    assert!(found.iter().any(|name| name == "abort"), "{found:?}");
    assert!(found.last().is_some_and(|name| name == "_start"), "{found:?}");
}

#[test]
fn a_signal_handler_leads_back_to_the_interrupted_code() {
    let text = "#include <signal.h>\n#include <stdlib.h>\nvolatile int *bad;\nvoid handler(int s) { abort(); }\n__attribute__((noinline)) int faulty(void) { return *bad; }\nint main(void) { signal(SIGSEGV, handler); return faulty(); }\n";
    let built = compile("gcc -O1 -g", "s.c", text);
    let stopped = built.stop(&["handle SIGSEGV nostop pass", "break handler", "run"]);
    let frames = stopped.program.unwind(&stopped.state);
    let found = names(&stopped);
    assert_eq!(found[0], "handler");
    assert_eq!(found[2..4], ["faulty", "main"], "{found:?}");
    assert!(frames[1].is_caller && !frames[2].is_caller, "the interrupted address is exact");
    assert_eq!(frames[2].executing(), frames[2].pc);
}

#[test]
fn variables_of_callers_are_found_as_far_as_their_registers_are_known() {
    let built = compile("gcc -O0 -g", "o.c", C);
    let stopped = built.stop(&["break leaf", "run"]);
    let frames = stopped.program.unwind(&stopped.state);
    let middle = &frames[2];
    let state = middle.state(&stopped.state);
    let value = stopped.program.evaluate(middle.executing(), "p.b", &state).expect("a value");
    assert_eq!(stopped.program.integer(&value, &state), Ok(14));
    let line = stopped.program.line(middle.executing()).expect("a line");
    assert_eq!(line.line, built.line_with("return sum"));
}

#[test]
fn variables_of_an_inlined_function_come_before_its_callers() {
    let text = "#include <stdlib.h>\nvolatile int sink;\nstatic inline __attribute__((always_inline)) void inner(int twice) { int local = twice + 1; sink = local; abort(); /* HERE */ }\nint main(int argc, char **argv) { int outer = argc + 4; sink = outer; inner(outer * 2); return 0; }\n";
    for command in ["gcc -O1 -g -gdwarf-4", "gcc -O1 -g", "clang -O1 -g"] {
        let stopped = compile(command, "i.c", text).stop(&["break abort", "run", "up"]);
        let frames = stopped.program.unwind(&stopped.state);
        let main = frames.iter().find(|f| f.function.as_ref().is_some_and(|f| f.name == "main"));
        let main = main.expect("main");
        let variables = stopped.program.variables(main.executing());
        let found: Vec<_> = variables.iter().map(|v| (v.name.as_str(), v.frame)).collect();
        for expected in [("local", 0), ("outer", 1), ("argc", 1), ("argv", 1)] {
            assert!(found.contains(&expected), "{command}: {found:?}");
        }
        let inner = variables.iter().position(|v| v.name == "local");
        assert!(inner < variables.iter().position(|v| v.name == "outer"), "{command}: {found:?}");
    }
}

#[test]
fn a_constant_that_was_folded_still_has_its_value() {
    let built = compile("gcc -O2 -g", "o.c", C);
    let stopped = built.stop(&["break sum", "run"]);
    assert_eq!(stopped.text("fixed"), "17");
}

#[test]
fn parameters_in_registers_are_placed_there() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        check_parameters(&format!("gcc -O2 -g {version}"));
    }
}

fn check_parameters(command: &str) {
    let built = compile(command, "o.c", C);
    let stopped = built.stop(&["break *sum", "run"]);
    let n = stopped.program.evaluate(stopped.pc(), "n", &stopped.state).expect("a value");
    let rdx = Register::named("rdx").expect("a register");
    assert_eq!(n.pieces, [Piece::Register { number: rdx, first_byte: 0, len: 4 }]);
    assert_eq!(stopped.text("n"), "7");
    assert_eq!(stopped.text("d"), "2.5");
    // The two words of the structure are in two registers.
    let p = stopped.program.evaluate(stopped.pc(), "p", &stopped.state).expect("a value");
    assert_eq!(p.pieces.len(), 2, "{:?}", p.pieces);
    assert_eq!(stopped.text("p"), "{a = 7, b = 14}");
    assert_eq!(stopped.text("p.b"), "14");
    assert!(matches!(
        stopped.program.evaluate(stopped.pc(), "&n", &stopped.state),
        Err(Error::NoAddress { .. })
    ));
}

#[test]
fn a_value_that_is_gone_says_why() {
    let built = compile("gcc -O2 -g", "o.c", C);
    let stopped = built.stop(&["break leaf", "run"]);
    let frames = stopped.program.unwind(&stopped.state);
    let state = frames[1].state(&stopped.state);
    let pc = frames[1].executing();
    let variables = stopped.program.variables(pc);
    let all: Vec<_> = variables.iter().map(|variable| variable.name.as_str()).collect();
    assert!(all.contains(&"total") && all.contains(&"fixed"), "{all:?}");
    let reasons = variables.iter().filter_map(|variable| {
        let located = stopped.program.locate(variable, pc, &state).ok()?;
        match located.bytes(&state) {
            Err(Error::Gone(why)) => Some(why),
            _ => None,
        }
    });
    let reasons: Vec<Gone> = reasons.collect();
    assert!(!reasons.is_empty());
    assert!(!reasons.contains(&Gone::NotUnderstood), "{reasons:?}");
}

const SHARED: &str = r#"volatile int sink;
__attribute__((noinline)) int twice(int a)
{
    int b = a; /* MOVED */
    return b * 2 + sink; /* COMPUTED */
}
int main(int argc, char **argv) { return twice(argc); }
"#;

#[test]
fn a_line_without_code_of_its_own_is_found_where_it_begins() {
    let built = compile("gcc -O2 -g", "shared.c", SHARED);
    let program = built.program_at(0);
    let twice = &program.functions_named("twice")[0];
    let shared = program.shared_lines(twice.start);
    let lines: Vec<u32> = shared.iter().map(|line| line.line).collect();
    assert!(lines.contains(&built.line_with("MOVED")), "{lines:?}");
    let own = program.line(twice.start).expect("a line").line;
    assert!(!lines.contains(&own), "{own} of {lines:?}");
}

const INLINED: &str = r#"#include <vector>
int main(int argc, char **argv)
{
    std::vector<int> all;
    for (int i = 0; i < argc; i++)
        all.push_back(i); /* PUSH */
    return all[argc / 2];
}
"#;

#[test]
fn library_code_that_was_inlined_belongs_to_the_line_it_was_inlined_into() {
    let built = compile("g++ -O2 -g", "inlined.cpp", INLINED);
    let program = built.program_at(0);
    let main = &program.functions_named("main")[0];
    let is_library =
        |address: &u64| program.line(*address).is_some_and(|line| !program.is_own_line(line));
    let inlined: Vec<u64> = (main.start..main.end).filter(is_library).collect();
    assert!(!inlined.is_empty());
    for address in &inlined {
        assert!(program.is_own(*address));
        let frame = program.own_frames(*address).next().expect("a line of main");
        assert_eq!(frame.function.as_deref(), Some("main"));
    }
    let push = built.line_with("PUSH");
    let lines = inlined.iter().filter_map(|a| program.own_frames(*a).next()?.line);
    assert!(lines.map(|line| line.line).any(|line| line == push));
}
