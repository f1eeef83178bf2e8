//! Does damage in a file ever do more than hide what it damaged?

mod support;

use std::path::PathBuf;
use std::sync::Arc;

use object::{Object, ObjectSection};
use program::debug::{DebugStatus, Limits, MappedFile, Program, Register, State, from_disk};
use proptest::prelude::*;
use support::compile;

const C: &str = r#"#include <stdio.h>
struct node { int a : 3; struct node *next; char name[8]; union { int i; float f; }; };
struct node nodes[3];
enum e { A, B = 4 } e = B;
static inline int f(struct node *n, int k) { int t = k; if (n->next) { int u = n->a; t += u; } return t; }
int main(int argc, char **argv) { struct node *n = &nodes[argc]; printf("%d\n", f(n, argc)); return 0; }
"#;

/// A state in which everything can be read and means little.
struct Anything;

impl State for Anything {
    fn register(&self, register: Register) -> Option<u64> {
        Some(0x7000_0000 + 0x1000 * u64::from(register.0))
    }

    fn memory(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        (len <= 1 << 16).then(|| (0..len).map(|byte| (address as usize + byte) as u8).collect())
    }

    fn fs_base(&self) -> u64 {
        0x7100_0000
    }
}

/// Asks everything about every address of interest. Returns how many values there
/// were.
fn ask_everything(data: Vec<u8>) -> usize {
    let file = MappedFile { path: PathBuf::from("/prog"), data: Arc::new(data), bias: 0x1000 };
    let program = Program::new(vec![file], from_disk());
    let _ = program.debug_status(0);
    let _ = program.addresses("damaged.c", 5);
    let _ = program.functions_named("main");
    let mut addresses = program.function_entries();
    addresses.truncate(20);
    addresses.extend([0, u64::MAX, 0x1000 + 0x1139, 0x1000 + 0x1170]);
    let mut answers = 0;
    for address in addresses.iter().flat_map(|address| [*address, address.wrapping_add(9)]) {
        let _ = (program.lines(address), program.is_own(address), program.is_noreturn(address));
        for variable in program.variables(address) {
            if let Ok(located) = program.locate(&variable, address, &Anything) {
                program.show(&variable.name, &located, &Anything, Limits::default());
                answers += 1;
            }
        }
        for expression in ["n->next->name", "nodes[1].i", "e", "*argv[0]", "missing"] {
            if let Ok(located) = program.evaluate(address, expression, &Anything) {
                program.show(expression, &located, &Anything, Limits::default());
                answers += 1;
            }
        }
    }
    program.unwind(&Anything);
    answers
}

fn original() -> &'static [u8] {
    use std::sync::OnceLock;
    static ORIGINAL: OnceLock<Vec<u8>> = OnceLock::new();
    ORIGINAL.get_or_init(|| {
        let built = compile("gcc -O1 -g", "damaged.c", C);
        std::fs::read(built.path).expect("the program")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes_never_cause_a_panic(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..60),
    ) {
        let mut data = original().to_vec();
        for (place, value) in flips {
            let place = place.index(data.len());
            data[place] = value;
        }
        ask_everything(data);
    }

    #[test]
    fn a_file_that_is_cut_off_never_causes_a_panic(end in any::<prop::sample::Index>()) {
        ask_everything(original()[..end.index(original().len())].to_vec());
    }
}

#[test]
fn a_file_that_is_no_program_has_nothing_in_it() {
    ask_everything(Vec::new());
    ask_everything(b"#!/bin/sh\necho hello\n".to_vec());
}

#[test]
fn broken_debug_information_is_as_good_as_none_and_says_so() {
    let mut data = original().to_vec();
    let section = object::File::parse(original()).expect("the program");
    let section = section.section_by_name(".debug_info").expect("debug information");
    let (start, len) = section.file_range().expect("a range");
    data[start as usize..(start + len) as usize].fill(0xee);
    let file = MappedFile { path: PathBuf::from("/prog"), data: Arc::new(data), bias: 0 };
    let program = Program::new(vec![file], from_disk());
    let status = program.debug_status(0);
    assert!(matches!(status, DebugStatus::Broken(_)), "{status}");
    let main = program.functions_named("main")[0].start;
    assert_eq!(program.line(main), None);
    assert!(program.is_own(main));
    let error = program.variable(main, "argc").unwrap_err();
    assert!(error.to_string().contains("no variable `argc`"), "{error}");
}

#[test]
fn the_undamaged_file_answers() {
    let answers = ask_everything(original().to_vec());
    assert!(answers > 20, "{answers}");
}
