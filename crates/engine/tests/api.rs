//! The Rust API on real recordings. Guests live at fixed addresses of their
//! process, so every test runs in a process of its own.

use engine::{
    Access, Finish, Forked, Grain, Observer, Profile, RecordOptions, ReplayOptions, Replayer, Until,
};
use recording::{Ending, Recording, Store};
use std::path::Path;
use std::process::{Command, ExitCode};

const QUIET: ReplayOptions = ReplayOptions { verify: true, silent: true };

type Test = (&'static str, fn(&Recording));

const TESTS: &[Test] = &[
    ("running_to_an_instruction_equals_stepping_there", running_to_an_instruction),
    ("an_observer_sees_every_instruction_that_is_counted", observer_sees_every_instruction),
    ("an_observer_sees_the_store_that_a_program_makes", observer_sees_the_store),
    ("a_fork_goes_on_by_itself_and_both_sides_end_alike", fork_goes_on_by_itself),
    ("a_replay_ends_as_the_run_did", replay_ends_as_the_run_did),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, name, folder] = &arguments[..]
        && flag == "--in-child"
    {
        let recording = Recording::open(Path::new(folder)).expect("a recording");
        let test = TESTS.iter().find(|t| t.0 == name).expect("a test's name");
        test.1(&recording);
        return ExitCode::SUCCESS;
    }
    let wanted = arguments.get(1).filter(|a| !a.starts_with('-')).cloned().unwrap_or_default();
    let folder = std::env::temp_dir().join(format!("why-api-{}", std::process::id()));
    let recording = record(&folder);
    let mut failed = 0;
    let chosen: Vec<&Test> = TESTS.iter().filter(|t| t.0.contains(&wanted)).collect();
    for (name, _) in &chosen {
        let status = Command::new(&arguments[0])
            .args(["--in-child", name])
            .arg(&recording)
            .status()
            .expect("this program runs");
        println!("test {name} ... {}", if status.success() { "ok" } else { "FAILED" });
        failed += usize::from(!status.success());
    }
    let _ = std::fs::remove_dir_all(&folder);
    let passed = chosen.len() - failed;
    println!("test result: {passed} passed; {failed} failed");
    ExitCode::from(u8::from(failed > 0))
}

/// A short program with a loop, calls, a library, code that writes beside itself, and a store
/// that can be named.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
static volatile unsigned marked;
/* incl counter(%rip); dec %edi; jnz; ret: the counter is in the code's own page. */
static const unsigned char beside[] = {0xff, 5, 0xfa, 7, 0, 0, 0xff, 0xcf, 0x75, 0xf6, 0xc3};
static int twice(int n) { return n + n; }
int main(void)
{
    void *page = mmap(NULL, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, beside, sizeof beside);
    ((void (*)(int))page)(30);
    int sum = 0;
    for (int i = 0; i < 50; i++) sum += twice(i);
    marked = 0x5eed5eed;
    char text[64];
    memset(text, 'x', sizeof text);
    printf("%d %c\n", sum, text[sum % 64]);
    return 7;
}
"#;

fn record(folder: &Path) -> std::path::PathBuf {
    std::fs::create_dir_all(folder).expect("a folder");
    let source = folder.join("program.c");
    let program = folder.join("program");
    std::fs::write(&source, PROGRAM).expect("writes");
    let compiled = Command::new("gcc")
        .args(["-g", "-O1", "-o"])
        .args([&program, &source])
        .status()
        .expect("gcc is installed (./test installs it)");
    assert!(compiled.success());
    let recording = folder.join("recording");
    let mut options = RecordOptions::new(&recording, &program, &[]);
    options.store = Store::at(folder.join("store"));
    let outcome = engine::record(&options).expect("records");
    assert_eq!(outcome.ending, Ending::Exited(7));
    recording
}

struct Count {
    instructions: u64,
    stop_at: u64,
    seen: Option<engine::Registers>,
}

impl Observer for Count {
    fn grain(&self) -> Grain {
        Grain::Instructions
    }

    fn instruction(&mut self, replayer: &Replayer, _: &iced_x86::Instruction, _: &[Access]) {
        if self.instructions == self.stop_at {
            self.seen = Some(replayer.registers().clone());
        }
        self.instructions += 1;
    }
}

fn running_to_an_instruction(recording: &Recording) {
    // One process, one guest: the other half of the comparison is a fork.
    let total = in_fork(|| engine::count_instructions(recording).expect("counts"));
    for target in [1, 1000, 12_345, total / 2, total - 1] {
        let direct = in_fork(|| {
            let mut replayer = Replayer::new(recording, Profile::COUNTING, &QUIET).expect("opens");
            let reached = replayer.run(Until::Instruction(target)).expect("runs");
            assert_eq!(reached, Finish::Reached);
            assert_eq!(replayer.instructions(), target);
            fingerprint(replayer.registers())
        });
        let stepped = in_fork(|| {
            let mut replayer =
                Replayer::new(recording, Profile::INSTRUCTIONS, &QUIET).expect("opens");
            let mut count = Count { instructions: 0, stop_at: target, seen: None };
            replayer.observe(&mut count).expect("observes");
            fingerprint(&count.seen.expect("reached"))
        });
        assert_eq!(direct, stepped, "at instruction {target} of {total}");
    }
}

fn fingerprint(regs: &engine::Registers) -> u64 {
    regs.gpr.iter().fold(regs.rip, |hash, r| (hash ^ r).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Runs in a forked process and brings the number back.
fn in_fork(work: impl FnOnce() -> u64) -> u64 {
    let mut ends = [0; 2];
    // SAFETY: this process has one thread; the child only works and writes.
    unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        if libc::fork() == 0 {
            let answer = work().to_le_bytes();
            libc::write(ends[1], answer.as_ptr().cast(), 8);
            libc::_exit(0);
        }
        libc::close(ends[1]);
        let mut answer = [0u8; 8];
        let got = libc::read(ends[0], answer.as_mut_ptr().cast(), 8);
        assert_eq!(got, 8, "the forked half failed");
        libc::close(ends[0]);
        u64::from_le_bytes(answer)
    }
}

fn observer_sees_every_instruction(recording: &Recording) {
    let counted = in_fork(|| engine::count_instructions(recording).expect("counts"));
    let observed = in_fork(|| {
        let mut replayer = Replayer::new(recording, Profile::INSTRUCTIONS, &QUIET).expect("opens");
        let mut count = Count { instructions: 0, stop_at: u64::MAX, seen: None };
        replayer.observe(&mut count).expect("observes");
        count.instructions
    });
    assert_eq!(counted, observed);
    assert!(counted > 10_000, "ld.so and libc run too");
}

#[derive(Default)]
struct Stores {
    last: Option<Access>,
    marked: bool,
    branches: u64,
    calls: u64,
}

impl Observer for Stores {
    fn grain(&self) -> Grain {
        Grain::Instructions
    }

    fn instruction(&mut self, replayer: &Replayer, _: &iced_x86::Instruction, now: &[Access]) {
        if let Some(access) = self.last.take() {
            let bytes = replayer.read_memory(access.address, 4).unwrap_or_default();
            self.marked |= bytes == 0x5eed_5eedu32.to_le_bytes();
        }
        self.last = now.iter().find(|a| a.writes && a.size == 4).copied();
    }

    fn branch(&mut self, _: &Replayer, _: &iced_x86::Instruction) {
        self.branches += 1;
    }

    fn system_call(&mut self, _: &Replayer, _: u64) {
        self.calls += 1;
    }
}

fn observer_sees_the_store(recording: &Recording) {
    let mut replayer = Replayer::new(recording, Profile::INSTRUCTIONS, &QUIET).expect("opens");
    let mut stores = Stores::default();
    replayer.observe(&mut stores).expect("observes");
    assert!(stores.marked, "the store to `marked` was seen, with its address");
    assert!(stores.branches > 100);
    let recorded = recording.outcome().expect("finished").counter("syscalls");
    assert_eq!(stores.calls, recorded);
}

fn fork_goes_on_by_itself(recording: &Recording) {
    let mut replayer = Replayer::new(recording, Profile::COUNTING, &QUIET).expect("opens");
    replayer.run(Until::Instruction(20_000)).expect("runs");
    let forked = replayer.fork().expect("forks");
    let finish = replayer.run(Until::End).expect("runs on");
    assert_eq!(finish, Finish::Ended(Ending::Exited(7)));
    if let Forked::Parent { child } = forked {
        let mut status = 0;
        // SAFETY: waits for the child just made.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!(status, 0, "the copy ended well too");
    }
}

fn replay_ends_as_the_run_did(recording: &Recording) {
    let replayed = engine::replay(recording, &QUIET).expect("replays");
    assert!(replayed.complete);
    assert_eq!(replayed.outcome.ending, Ending::Exited(7));
}
