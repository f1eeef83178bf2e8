//! A trace that is kept comes back as it was, or not at all. One process, one
//! thread: recording and tracing fork.

use engine::RecordOptions;
use recording::{Recording, Store};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use trace::{Instance, Time, Trace};

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; long value; };
static long sum(struct node *n) { long s = 0; for (; n; n = n->next) s += n->value; return s; }
int main(int argc, char **argv) {
    struct node *head = 0;
    for (long i = 0; i < 300 * argc; i++) {
        struct node *n = malloc(sizeof *n + i % 5);
        n->next = head; n->value = i; head = n;
    }
    long total = argc > 1 ? atol("17") : 0;
    for (int i = 0; i < 500; i++) total += sum(head);
    printf("%ld\n", total);
}
"#;

fn record(folder: &Path, name: &str, arguments: &[&str]) -> Recording {
    let (source, program) = (folder.join("program.c"), folder.join("program"));
    std::fs::write(&source, PROGRAM).expect("writes");
    let compiled = Command::new("gcc").args(["-O1", "-o"]).args([&program, &source]).status();
    assert!(compiled.expect("gcc is installed (./test installs it)").success());
    let arguments: Vec<_> = arguments.iter().map(Into::into).collect();
    let mut options = RecordOptions::new(&folder.join(name), &program, &arguments);
    options.store = Store::at(folder.join("store"));
    engine::record(&options).expect("records");
    Recording::open(&folder.join(name)).expect("a recording")
}

fn assert_equal(one: &Trace, other: &Trace) {
    assert_eq!(one.records.instructions(), other.records.instructions());
    assert_eq!(one.records.segments().len(), other.records.segments().len());
    for (n, segment) in one.records.segments().iter().enumerate() {
        let again = &other.records.segments()[n];
        assert!(one.records.paths_of(n) == other.records.paths_of(n));
        assert_eq!(segment.instructions, again.instructions);
        let (one, other) = (one.records.captured(n), other.records.captured(n));
        assert!(one.all().all().eq(other.all().all()));
    }
    assert_eq!((&one.events, one.ended), (&other.events, other.ended));
    for time in (0..one.records.len()).step_by(97).map(Time) {
        let at = Instance { time, index: 0 };
        assert_eq!(one.instruction(at), other.instruction(at));
        assert_eq!(one.parent(at), other.parent(at));
        assert_eq!(one.loaded(at), other.loaded(at));
    }
}

fn build(recording: &Recording) -> Trace {
    Trace::build(recording, &mut |_| ()).expect("a trace")
}

fn what_is_packed_in_memory_is_the_same(recording: &Recording, trace: &Trace) {
    let packed = Trace::build_within(recording, 0, &mut |_| ()).expect("a trace");
    assert!(trace.records.segments().len() > 2, "several segments are packed");
    assert!(packed.records.size() < trace.records.size() * 3 / 4);
    assert_equal(trace, &packed);
}

fn what_is_stored_comes_back(recording: &Recording, trace: &Trace) {
    let bytes = trace.store(recording).expect("stores");
    assert_eq!(Trace::stored_size(recording), Some(bytes));
    assert_equal(trace, &Trace::load(recording).expect("it is there"));
}

fn a_damaged_file_counts_as_none(recording: &Recording, trace: &Trace) {
    let path = recording.derived("trace");
    let whole = std::fs::read(&path).expect("it is there");
    for at in (0..whole.len()).step_by(whole.len() / 23) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        std::fs::write(&path, &damaged).expect("writes");
        assert!(Trace::load(recording).is_none(), "byte {at} is wrong");
        std::fs::write(&path, &whole[..at]).expect("writes");
        assert!(Trace::load(recording).is_none(), "it ends at {at}");
    }
    assert_equal(trace, &Trace::open(recording, &mut |_| ()).expect("traced again"));
    std::fs::write(&path, &whole).expect("writes");
}

fn the_trace_of_another_run_counts_as_none(recording: &Recording, other: &Recording) {
    let whole = std::fs::read(recording.derived("trace")).expect("it is there");
    other.keep_derived("trace", &whole).expect("writes");
    assert!(Trace::load(other).is_none());
}

/// Every executed instruction, with the memory it touched; and now and then why it ran.
fn story(trace: &Trace) -> (Vec<u64>, Vec<Option<u64>>) {
    let (mut executed, mut reasons) = (Vec::new(), Vec::new());
    for time in (0..trace.records.len()).map(Time) {
        let path = trace.code.path(trace.records.path(time));
        for (index, op) in trace.code.ops(path).iter().enumerate() {
            executed.push(trace.code.info(op.instruction).address());
            let at = Instance { time, index: index as u16 };
            executed.extend(trace.loaded(at).iter().chain(&trace.stored(at)).map(|r| r.start));
            if executed.len().is_multiple_of(97) {
                reasons.push(trace.parent(at).map(|parent| trace.number(parent)));
            }
        }
    }
    (executed, reasons)
}

fn what_kept_code_traces_is_the_same(folder: &Path, recording: &Recording, other: &Recording) {
    let (fresh, fresh_other) = (story(&build(recording)), story(&build(other)));
    let code = folder.join("code");
    engine::keep_translations_in(code.clone());
    // A file that is written again is another one.
    let kept = || -> Vec<u64> {
        let files = std::fs::read_dir(&code).into_iter().flatten();
        files.map(|file| file.expect("a file").metadata().expect("a file").ino()).collect()
    };
    assert!(kept().is_empty());
    assert!(story(&build(recording)) == fresh, "translated and kept");
    let first = kept();
    assert_eq!(first.len(), 1, "of one program");
    assert!(story(&build(recording)) == fresh, "from what was kept");
    assert_eq!(kept(), first, "nothing was translated");
    assert!(story(&build(other)) == fresh_other, "some paths were never met before");
    assert!(story(&build(recording)) == fresh, "some of what is kept does not run");
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = record(folder.path(), "one", &[]);
    let other = record(folder.path(), "other", &["more"]);
    let trace = build(&recording);
    what_is_packed_in_memory_is_the_same(&recording, &trace);
    what_is_stored_comes_back(&recording, &trace);
    a_damaged_file_counts_as_none(&recording, &trace);
    the_trace_of_another_run_counts_as_none(&recording, &other);
    what_kept_code_traces_is_the_same(folder.path(), &recording, &other);
}
