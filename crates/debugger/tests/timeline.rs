//! Moving about in recorded runs, forward and backward.

mod support;

use debugger::{Met, Timeline, Wanted};
use engine::{Calls, Stops, Watch};
use std::path::Path;
use std::process::ExitCode;
use support::{Test, compile, record, symbol};
use whatif::{Change, Target, Trigger};

const TESTS: &[Test] = &[
    ("a_random_walk_shows_what_a_fresh_replay_shows", random_walk_single),
    ("a_random_walk_through_threads_shows_what_a_fresh_replay_shows", random_walk_threads),
    ("a_random_walk_through_signals_shows_what_a_fresh_replay_shows", random_walk_signals),
    ("a_random_walk_in_a_branch_shows_what_a_fresh_branch_shows", random_walk_branch),
    ("a_random_walk_in_a_branch_with_threads_shows_the_same", random_walk_branch_threads),
    ("a_reverse_watchpoint_finds_every_write_in_turn", reverse_watch),
    ("a_breakpoint_is_met_as_often_backward_as_forward", breaks_both_ways),
    ("a_crash_is_met_and_left_backward", crash),
];

fn main() -> ExitCode {
    support::main(TESTS)
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    /// A number below `n`.
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

const LOOP: &str = r#"
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <unistd.h>
volatile int total;
char text[64];
__attribute__((noinline)) int twice(int n) { return n + n; }
int main(void)
{
    for (int i = 0; i < 20; i++) {
        total += twice(i);
        char *p = malloc(100 + i);
        memset(p, i, 100 + i);
        text[i % 64] = p[50];
        free(p);
        if (i % 5 == 0) { printf("%d\n", total); fflush(stdout); }
    }
    return total & 0x7f;
}
"#;

const THREADS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
volatile long shared;
static void *work(void *argument)
{
    for (int i = 0; i < 3000; i++) {
        pthread_mutex_lock(&lock);
        shared += (long) argument;
        pthread_mutex_unlock(&lock);
    }
    return 0;
}
int main(void)
{
    pthread_t threads[3];
    for (long n = 0; n < 3; n++) pthread_create(&threads[n], 0, work, (void *) (n + 1));
    for (int n = 0; n < 3; n++) pthread_join(threads[n], 0);
    printf("%ld\n", shared);
    return 0;
}
"#;

const SIGNALS: &str = r#"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
static sigjmp_buf back;
static volatile int faults, alarms, raised;
static void on_fault(int s) { faults++; siglongjmp(back, 1); }
static void on_alarm(int s) { alarms++; }
static void on_usr1(int s) { raised++; }
int main(void)
{
    signal(SIGSEGV, on_fault);
    signal(SIGALRM, on_alarm);
    signal(SIGUSR1, on_usr1);
    struct itimerval every = { { 0, 2000 }, { 0, 2000 } };
    setitimer(ITIMER_REAL, &every, 0);
    for (int i = 0; i < 3; i++) {
        if (sigsetjmp(back, 1) == 0) *(volatile int *) 8 = i;
        raise(SIGUSR1);
    }
    while (alarms < 3) ;
    printf("%d %d\n", faults, raised);
    return 0;
}
"#;

const CRASH: &str = r#"
#include <string.h>
struct node { struct node *next; int value; };
struct node last = { 0, 3 }, middle = { &last, 2 }, first = { &middle, 1 };
int sum;
int main(void)
{
    for (struct node *n = &first; ; n = n->next) sum += n->value;
}
"#;

fn random_walk_single(folder: &Path) {
    let program = compile(folder, "loop", LOOP, &["-O1"]);
    random_walk(&record(folder, &program, &[]), 1);
}

fn random_walk_threads(folder: &Path) {
    let program = compile(folder, "threads", THREADS, &["-O2", "-pthread"]);
    random_walk(&record(folder, &program, &[]), 2);
}

fn random_walk_signals(folder: &Path) {
    let program = compile(folder, "signals", SIGNALS, &["-O0"]);
    random_walk(&record(folder, &program, &[]), 3);
}

/// What is changed whenever it comes by: `twice` is called with 5.
fn random_walk_branch(folder: &Path) {
    let program = compile(folder, "loop", LOOP, &["-O1", "-no-pie"]);
    let five = Change::Set { target: Target::Register(7), bytes: vec![5, 0, 0, 0, 0, 0, 0, 0] };
    let always = Trigger::at(symbol(&program, "twice"), 0, five);
    let total = symbol(&program, "total");
    branch_walk(&record(folder, &program, &[]), total, &[always], 4);
}

/// Row F-001-46.
fn random_walk_branch_threads(folder: &Path) {
    let program = compile(folder, "threads", THREADS, &["-O2", "-pthread", "-no-pie"]);
    let shared = symbol(&program, "shared");
    branch_walk(&record(folder, &program, &[]), shared, &[], 5);
}

/// A random walk in history. Row F-001-45.
fn random_walk(recording: &Path, seed: u64) {
    let fresh = || Timeline::open(recording).expect("opens");
    wander(&mut fresh(), &fresh, seed);
}

/// A random walk in a branch, and before it; then in history again.
fn branch_walk(recording: &Path, address: u64, triggers: &[Trigger], seed: u64) {
    let mut plain = Timeline::open(recording).expect("opens");
    plain.go_to_end().expect("goes");
    let middle = plain.now().instructions / 2;
    let bytes = vec![0x21, 0x43, 0x05, 0];
    let change = Change::Set { target: Target::Memory(address), bytes: bytes.clone() };
    let branched = || {
        let mut timeline = Timeline::open(recording).expect("opens");
        timeline.go_to_number(middle).expect("goes");
        timeline.alter_always(&change, triggers).expect("can be changed");
        timeline
    };
    let mut walk = branched();
    assert_eq!(walk.memory(address, 4).expect("reads"), bytes);
    wander(&mut walk, &branched, seed);
    walk.roll_back().expect("history is there");
    assert_eq!(walk.branch(), None);
    wander(&mut walk, &|| Timeline::open(recording).expect("opens"), seed + 100);
}

/// Moves at random; each time the state must be that of another timeline that went
/// there straight.
fn wander(walk: &mut Timeline, straight: &dyn Fn() -> Timeline, seed: u64) {
    let mut dice = Dice(seed);
    walk.go_to_end().expect("goes");
    let total = walk.now().instructions;
    let mut seen = std::collections::HashMap::new();
    for n in 0..120 {
        let state = walk.state().expect("stands");
        let thread = state.threads[dice.below(state.threads.len() as u64) as usize].thread;
        let before = walk.now();
        let signals = Wanted { signals: true, ..Wanted::default() };
        let what = match dice.below(8) {
            _ if n % 3 == 0 => walk.go_to_number(dice.below(total)).map(|()| "go"),
            0..3 => walk.step(thread, 0..0, &Wanted::default()).map(|_| "step"),
            3 => walk.step(thread, 0..0, &signals).map(|_| "step with signals"),
            4 | 5 => walk.step_back(thread).map(|_| "step back"),
            6 => walk.backward(&signals).map(|_| "back"),
            _ => walk.forward(&signals).map(|_| "on"),
        };
        let what = what.unwrap_or_else(|e| panic!("step {n} from {before:?}: {e}"));
        let now = walk.now();
        let print = walk.fingerprint().expect("has one");
        let there = || {
            let mut other = straight();
            other.go_to(now).expect("goes");
            assert_eq!(other.now(), now);
            other
        };
        let fresh = *seen.entry(now).or_insert_with(|| there().fingerprint().expect("has one"));
        if print != fresh {
            differences(walk, &mut there());
        }
        assert_eq!(
            print, fresh,
            "after `{what}` number {n} from {before:?}, {thread:?} to {now:?}"
        );
    }
    assert!(seen.len() > 40, "it went to many places: {}", seen.len());
}

/// Says what differs.
fn differences(a: &mut Timeline, b: &mut Timeline) {
    let threads = a.state().expect("stands").threads;
    eprintln!("{threads:?}\n{:?}", b.state().expect("stands").threads);
    for described in threads {
        let of = |t: &mut Timeline| t.registers(described.thread).expect("reads");
        let (a, b) = (of(a), of(b));
        if a != b {
            eprintln!("{:?}: {a:?}\n{b:?}", described.thread);
        }
    }
    for region in a.regions().expect("maps") {
        let mut at = region.start;
        while at < region.end {
            let (x, y) = (a.memory(at, 4096).expect("reads"), b.memory(at, 4096).expect("reads"));
            for (n, (x, y)) in x.iter().zip(&y).enumerate().filter(|(_, (x, y))| x != y) {
                eprintln!("{:#x}: {x:#x} {y:#x}", at + n as u64);
            }
            at += 4096;
        }
    }
}

fn watching(address: u64, len: u64) -> Wanted {
    let watch = Watch { address, len, reads: false, writes: true };
    Wanted { stops: Stops { watches: [watch].into(), ..Stops::default() }, ..Wanted::default() }
}

fn reverse_watch(folder: &Path) {
    let program = compile(folder, "loop", LOOP, &["-O1", "-no-pie"]);
    let total = symbol(&program, "total");
    let mut t = Timeline::open(&record(folder, &program, &[])).expect("opens");
    let wanted = watching(total, 4);
    let value = |t: &mut Timeline| {
        i32::from_le_bytes(t.memory(total, 4).expect("reads").try_into().expect("four"))
    };
    let mut forward = Vec::new();
    while let Met::Watched(_) = t.forward(&wanted).expect("runs").met {
        forward.push((t.now(), value(&mut t)));
    }
    let sums: Vec<i32> = (0..20).map(|i| i * (i + 1)).collect();
    assert_eq!(forward.iter().map(|f| f.1).collect::<Vec<_>>(), sums);
    let mut backward = Vec::new();
    while let Met::Watched(_) = t.backward(&wanted).expect("runs").met {
        backward.push((t.now().instructions + 1, value(&mut t)));
    }
    backward.reverse();
    let instants = |all: &[(u64, i32)]| all.iter().map(|b| b.0).collect::<Vec<_>>();
    let forward_numbers: Vec<u64> = forward.iter().map(|f| f.0.instructions).collect();
    assert_eq!(instants(&backward), forward_numbers);
    assert_eq!(backward[1..].iter().map(|b| b.1).collect::<Vec<_>>(), sums[..19]);
}

fn breaks_both_ways(folder: &Path) {
    let program = compile(folder, "loop", LOOP, &["-O1", "-no-pie"]);
    let twice = symbol(&program, "twice");
    let mut t = Timeline::open(&record(folder, &program, &[])).expect("opens");
    let stops = Stops { breaks: [twice].into(), ..Stops::default() };
    let wanted = Wanted { stops, ..Wanted::default() };
    let mut forward = Vec::new();
    while t.forward(&wanted).expect("runs").met == Met::Break {
        forward.push(t.now());
        let state = t.state().expect("stands");
        let registers = t.registers(state.threads[0].thread).expect("reads").expect("is there");
        assert_eq!(registers.rip, twice);
        assert_eq!(registers.gpr[7], forward.len() as u64 - 1, "the argument");
    }
    assert_eq!(forward.len(), 20);
    let mut backward = Vec::new();
    while t.backward(&wanted).expect("runs").met == Met::Break {
        backward.push(t.now());
    }
    backward.reverse();
    assert_eq!(forward, backward);
    let calls = Wanted { calls: Calls::These([1].into()), ..Wanted::default() };
    let mut writes = 0;
    while !matches!(t.forward(&calls).expect("runs").met, Met::End(_)) {
        writes += 1;
    }
    assert_eq!(writes, 8, "four writes, each before and after");
}

fn crash(folder: &Path) {
    let program = compile(folder, "crash", CRASH, &["-O0", "-no-pie"]);
    let sum = symbol(&program, "sum");
    let mut t = Timeline::open(&record(folder, &program, &[])).expect("opens");
    let signals = Wanted { signals: true, ..Wanted::default() };
    assert_eq!(t.forward(&signals).expect("runs").met, Met::Signal(11));
    let at = t.now();
    assert!(matches!(t.forward(&signals).expect("runs").met, Met::End(Some(_))));
    assert_eq!(t.now(), at, "the last instant is the one before the signal");
    let stop = t.backward(&watching(sum, 4)).expect("runs");
    assert!(matches!(stop.met, Met::Watched(_)));
    assert_eq!(t.memory(sum, 4).expect("reads"), [3, 0, 0, 0], "before the last addition");
}
