//! What a walk passes by in long runs: every slice is the same whether records are passed by or
//! looked at one by one, in the first walk and in those that find digests ready, with what was
//! captured in memory and packed (F-002-08, F-002-09).

#[allow(dead_code, reason = "each of its users needs a part")]
mod support;

use slice::{Options, Slice, Slicer, Start};
use std::path::Path;
use std::process::ExitCode;
use support::{Guest, Language};
use trace::{Image, Instance, SEGMENT, Time, Trace};

/// Values that are set early are used late, from memory of every kind; most of the run has nothing
/// to do with them.
const SOURCE: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int table[512];
static __thread int own;

static char *odd;

/* A few times in a long while something is written that is read in the end. */
static void seldom(int what)
{
    switch (what) {
    case 1: {
        void *to = odd + 8;
        long count = 100;
        __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(what) : "memory");
        break;
    }
    case 2:
        /* Into two lines. */
        *(long *)(odd + 60 * 64 - 4) = what;
        break;
    case 3:
        /* Two words of a line, the later one first. */
        *(volatile long *)(odd + 20 * 64 + 48) = what;
        *(volatile long *)(odd + 20 * 64 + 8) = what;
        break;
    case 4:
        odd[30 * 64] = own;
        break;
    }
}

static int deeper(int n, int *sum)
{
    int local[8];
    for (int i = 0; i < 8; i++)
        local[i] = n + i;
    *sum += local[n & 7];
    return n == 0 ? local[3] : deeper(n - 1, sum) + local[n & 3];
}

static int noise(int rounds, char *heap)
{
    int sum = 0;
    for (int i = 0; i < rounds; i++) {
        sum += deeper(i & 7, &sum);
        for (int k = 0; k < 20; k++)
            heap[(i + 9 * k) & 255] = i;
        own += heap[i & 127];
    }
    return sum;
}

static void *other(void *heap)
{
    own = 5;
    table[7] += noise(4000, heap);
    return (void *)(long)own;
}

int main(void)
{
    char *heap = calloc(1, 4096), *kept = calloc(1, 4096), *theirs = calloc(1, 4096);
    odd = aligned_alloc(64, 4096);
    memset(odd, 1, 4096);
    int first = getchar(), second = getchar();
    own = second;
    for (int i = 0; i < 512; i++)
        table[i] = first + i;
    kept[100] = second;
    int sum = noise(5000, heap);
    for (int what = 1; what <= 4; what++) {
        seldom(what + (first == second));
        sum += noise(5000, heap);
    }
    pthread_t thread;
    pthread_create(&thread, 0, other, theirs);
    sum += noise(4000, heap);
    table[9] += kept[100];
    pthread_join(thread, 0);
    sum += noise(5000, heap);
    volatile long sink = sum;
    sink += *(volatile char *)(odd + 50);
    sink += *(volatile char *)(odd + 60 * 64 + 1);
    sink += *(volatile char *)(odd + 60 * 64 - 3);
    sink += *(volatile char *)(odd + 20 * 64 + 48);
    sink += *(volatile char *)(odd + 20 * 64 + 8);
    sink += *(volatile char *)(odd + 30 * 64);
    sink += *(volatile int *)&table[9] + *(volatile int *)&table[7] + *(volatile int *)&own;
    _exit(sink & 1);
}
"#;

/// Loads all over the run, and all of the last records of the program's own code.
fn criteria(trace: &Trace) -> Vec<Instance> {
    let path = |time: Time| trace.code.path(trace.records.path(time));
    let loads = |time: Time| {
        let reads = |op| trace.code.operands(op).iter().any(|o| o.access().reads);
        let ops = (0..).zip(trace.code.ops(path(time))).filter(move |(_, op)| reads(op));
        ops.map(move |(index, _)| Instance { time, index })
    };
    let is_own = |i: &&Image| i.mapped.executable && i.mapped.path.ends_with(b"/guest");
    let mapped = &trace.images.iter().find(is_own).expect("a program").mapped;
    let code = mapped.start..mapped.end;
    let len = trace.records.len();
    let own = |time: &Time| code.contains(&trace.code.start(path(*time)));
    let last = (0..len).rev().map(Time).filter(own).take(6);
    let near = |from: u32| (0..=from).rev().map(Time).find_map(|time| loads(time).last());
    let spread = (1..=4).filter_map(|n| near((u64::from(len) * n / 5) as u32));
    spread.chain(last.flat_map(loads)).collect()
}

fn slice(slicer: &Slicer, at: Instance, skipping: bool) -> Slice {
    slicer.backward(&[Start::Instance(at)], &Options { skipping, ..Options::default() })
}

fn assert_same(one: &Slice, other: &Slice, at: Instance, what: &str) {
    assert_eq!(one.instances, other.instances, "{what}: instances, from {at:?}");
    assert_eq!(one.instructions, other.instructions, "{what}: instructions, from {at:?}");
    assert_eq!(one.origins.memory, other.origins.memory, "{what}: memory, from {at:?}");
}

fn look(_: &str, dir: &Path) {
    let recording = recording::Recording::open(&dir.join("recording")).expect("a recording");
    // All that is captured in memory; most of it packed.
    for limit in [u64::MAX, 1 << 20] {
        let trace = Trace::build_within(&recording, limit, &mut |_| ()).expect("a trace");
        let segments = trace.records.segments().len();
        assert!(trace.records.len() as usize > 8 * SEGMENT, "{segments} segments are too few");
        let slicer = Slicer::new(&trace);
        let all = criteria(&trace);
        assert!(all.len() > 12, "{} criteria are too few", all.len());
        let mut reasons = 0;
        for at in &all {
            let plodding = slice(&slicer, *at, false);
            assert_same(&slice(&Slicer::new(&trace), *at, true), &plodding, *at, "a first walk");
            assert_same(&slice(&slicer, *at, true), &plodding, *at, "a later walk");
            assert_same(&slice(&slicer, *at, true), &plodding, *at, "one more");
            reasons = reasons.max(plodding.instances);
        }
        assert!(reasons > 100, "the slices have nothing in them");
    }
}

fn main() -> ExitCode {
    let guest = Guest { source: SOURCE.into(), language: Language::C, input: b"ab" };
    support::main(&[("what_is_passed_by_is_of_no_interest", &guest)], look)
}
