//! Searching far back, and what keeping instants costs.

mod support;

use debugger::{Met, Timeline, Wanted};
use engine::{Stops, Watch};
use std::path::Path;
use std::process::ExitCode;
use support::{Test, compile, record, symbol};

const TESTS: &[Test] = &[
    ("writes_far_back_are_found_in_turn_whatever_their_size", writes_far_back),
    ("reads_far_back_are_found_too", reads_far_back),
    ("a_breakpoint_after_the_last_write_is_met_first", breakpoint_first),
    ("what_is_written_all_the_time_is_found_at_once", written_always),
    ("what_the_kernel_writes_is_found_both_ways", kernel_writes),
    ("a_kept_instant_comes_back_exactly_and_costs_what_is_written_after_it", kept_instant),
];

fn main() -> ExitCode {
    support::main(TESTS)
}

/// A few writes of a variable, far apart; others nearby all the time.
const FAR: &str = r#"
volatile long others[8], busy;
volatile struct { char before[64]; long marked; char behind[64]; } room;
__attribute__((noinline)) void churn(void)
{
    for (long i = 0; i < 600000; i++) { others[i & 7] += i; busy++; }
}
__attribute__((noinline)) long look(void) { return room.marked; }
int main(void)
{
    for (long n = 0; n < 6; n++) {
        churn();
        ((volatile char *) &room.marked)[n] = 1;
        churn();
        others[0] += look();
    }
    return 0;
}
"#;

fn watch(address: u64, len: u64, reads: bool, writes: bool) -> Wanted {
    let watch = Watch { address, len, reads, writes };
    Wanted { stops: Stops { watches: [watch].into(), ..Stops::default() }, ..Wanted::default() }
}

/// All that is met, forward from the beginning and backward from the end.
fn both_ways(recording: &Path, wanted: &Wanted) -> Vec<u64> {
    let mut t = Timeline::open(recording).expect("opens");
    let mut forward = Vec::new();
    while !matches!(t.forward(wanted).expect("runs").met, Met::End(_)) {
        forward.push(t.now().instructions);
    }
    let mut backward = Vec::new();
    loop {
        match t.backward(wanted).expect("runs").met {
            Met::Begin => break,
            // Backward, one stands before it.
            Met::Watched(_) => backward.push(t.now().instructions + 1),
            _ => backward.push(t.now().instructions),
        }
    }
    backward.reverse();
    assert_eq!(forward, backward);
    // A search from the end itself, without anything kept on the way.
    let mut fresh = Timeline::open(recording).expect("opens");
    fresh.go_to_end().expect("goes");
    fresh.backward(wanted).expect("runs");
    let last = *backward.last().expect("something");
    assert!([last, last - 1].contains(&fresh.now().instructions));
    forward
}

fn far(folder: &Path) -> (std::path::PathBuf, u64, u64) {
    let program = compile(folder, "far", FAR, &["-O1", "-no-pie"]);
    let symbols = (symbol(&program, "room") + 64, symbol(&program, "look"));
    (record(folder, &program, &[]), symbols.0, symbols.1)
}

fn writes_far_back(folder: &Path) {
    let (recording, marked, _) = far(folder);
    // What the processor watches itself, odd sizes, and more than it can watch.
    for (offset, len, times) in [(0, 8, 6), (0, 1, 1), (1, 3, 3), (2, 2, 2), (0, 16, 6)] {
        let met = both_ways(&recording, &watch(marked + offset, len, false, true));
        assert_eq!(met.len(), times, "{len} bytes at {offset}");
    }
    let wide = both_ways(&recording, &watch(marked - 3, 60, false, true));
    assert_eq!(wide.len(), 6, "sixty bytes");
}

/// The bytes are read by `look`.
fn reads_far_back(folder: &Path) {
    let (recording, marked, _) = far(folder);
    assert_eq!(both_ways(&recording, &watch(marked, 8, true, false)).len(), 6);
    assert_eq!(both_ways(&recording, &watch(marked, 8, true, true)).len(), 12);
}

fn breakpoint_first(folder: &Path) {
    let (recording, marked, look) = far(folder);
    let mut wanted = watch(marked, 8, false, true);
    wanted.stops.breaks.insert(look);
    let met = both_ways(&recording, &wanted);
    assert_eq!(met.len(), 12, "six writes, and six calls");
}

/// Written in every round of every loop: the last one is near.
fn written_always(folder: &Path) {
    let program = compile(folder, "far", FAR, &["-O1", "-no-pie"]);
    let busy = symbol(&program, "busy");
    let mut t = Timeline::open(&record(folder, &program, &[])).expect("opens");
    t.go_to_end().expect("goes");
    let value = |t: &mut Timeline| {
        i64::from_le_bytes(t.memory(busy, 8).expect("reads").try_into().expect("eight"))
    };
    let all = 6 * 2 * 600_000;
    assert_eq!(value(&mut t), all);
    for n in 1..4 {
        let stop = t.backward(&watch(busy, 8, false, true)).expect("runs");
        assert!(matches!(stop.met, Met::Watched(_)));
        assert_eq!(value(&mut t), all - n);
    }
}

const READER: &str = r#"
#include <fcntl.h>
#include <unistd.h>
char first[16], second[16];
int main(void)
{
    int fd = open("/proc/self/cmdline", O_RDONLY);
    read(fd, first, 4);
    read(fd, second, 4);
    return 0;
}
"#;

/// By the very first call after somebody began to watch, too.
fn kernel_writes(folder: &Path) {
    let program = compile(folder, "reader", READER, &["-O1", "-no-pie"]);
    let recording = record(folder, &program, &[]);
    for (name, other) in [("first", "second"), ("second", "first")] {
        let (watched, other) = (symbol(&program, name), symbol(&program, other));
        let met = both_ways(&recording, &watch(watched, 4, false, true));
        assert_eq!(met.len(), 1, "{name}");
        let mut t = Timeline::open(&recording).expect("opens");
        // Somebody watched something else before.
        t.forward(&watch(other, 4, false, true)).expect("runs");
        t.go_to_end().expect("goes");
        let stop = t.backward(&watch(watched, 4, false, true)).expect("runs");
        assert!(matches!(stop.met, Met::Watched(_)), "{name}: {stop:?}");
        t.backward(&watch(watched, 4, false, true)).expect("runs");
        assert_eq!(t.now().instructions, 0, "{name}: once");
    }
}

/// Much memory, of which little is written, then all.
const PAGES: &str = r#"
#include <string.h>
enum { SIZE = 64 << 20 };
static char room[SIZE];
__attribute__((noinline)) void begin(void) { memset(room, 1, SIZE); }
__attribute__((noinline)) void little(void) { for (int i = 0; i < 64; i++) room[i << 12] = 2; }
__attribute__((noinline)) void much(void) { memset(room, 3, SIZE / 2); }
__attribute__((noinline)) void end(void) { __asm__ volatile(""); }
int main(void)
{
    begin();
    little();
    much();
    end();
    return 0;
}
"#;

/// F-001-12: what is put back is what there was, and what it costs grows with what was
/// written.
fn kept_instant(folder: &Path) {
    let program = compile(folder, "pages", PAGES, &["-O1", "-no-pie"]);
    let recording = record(folder, &program, &[]);
    let mut t = Timeline::open(&recording).expect("opens");
    let at = |name: &str| {
        let stops = Stops { breaks: [symbol(&program, name)].into(), ..Stops::default() };
        Wanted { stops, ..Wanted::default() }
    };
    let mut kept = Vec::new();
    let mut sizes = Vec::new();
    for name in ["little", "much", "end"] {
        assert_eq!(t.forward(&at(name)).expect("runs").met, Met::Break);
        t.checkpoint();
        kept.push((t.now(), t.fingerprint().expect("has one")));
        sizes.push(memory_of_walkers(folder));
    }
    let (little, much) = (sizes[1] - sizes[0], sizes[2] - sizes[1]);
    let mib = 1 << 20;
    assert!(little < 8 * mib, "64 pages were written: {little}");
    assert!((32 * mib..56 * mib).contains(&much), "32 MiB were written: {much}");
    for (instant, print) in kept.iter().rev().chain(&kept) {
        t.go_to(*instant).expect("goes");
        assert_eq!(t.fingerprint().expect("has one"), *print);
        let mut fresh = Timeline::open(&recording).expect("opens");
        fresh.go_to(*instant).expect("goes");
        assert_eq!(fresh.fingerprint().expect("has one"), *print);
    }
}

/// Bytes of memory that the processes of this test have, whoever shares them counted once.
fn memory_of_walkers(folder: &Path) -> i64 {
    let folder = folder.to_str().expect("UTF-8");
    let of_process = |entry: std::fs::DirEntry| -> Option<i64> {
        let read = |name: &str| std::fs::read_to_string(entry.path().join(name)).ok();
        if !read("cmdline")?.contains(folder) {
            return None;
        }
        let map = read("smaps_rollup")?;
        let line = map.lines().find_map(|l| l.strip_prefix("Pss_Anon:"))?;
        line.trim().trim_end_matches(" kB").parse::<i64>().ok()
    };
    let all = std::fs::read_dir("/proc").expect("is there");
    all.flatten().filter_map(of_process).sum::<i64>() * 1024
}
