//! Did threads get in each other's way? Values that the failure used and that another thread
//! wrote without any order between the two, and values that another thread changed between
//! two looks at them.

use crate::accesses::{Access, Reader, accesses, is_atomic, is_object};
use crate::ordering::{Ordering, Stamp, words};
use crate::ranking::Ranking;
use crate::ways::Ways;
use position::{PlaceId, Run};
use rustc_hash::FxHashMap;
use std::time;
use trace::{Event, Instance};

/// So many lines from the failure values are looked at.
const NEAR: u32 = 4;
/// So many words of memory at most.
const MOST: usize = 4096;
/// So many pairs of accesses are accused.
const PAIRS: usize = 2;

/// Two accesses of one word by different threads, or two of one thread with another's
/// between them.
#[derive(Clone, Copy, Debug)]
struct Pair {
    first: Instance,
    second: Instance,
    /// What came between, of another thread.
    between: Option<Instance>,
    /// How far apart: records, or accesses of the thread.
    gap: u64,
}

/// What is known of one word.
#[derive(Default)]
struct Word {
    /// Lines between the failure and the nearest use.
    groups: u32,
    written: Option<(Instance, Stamp)>,
    /// The last access of each thread, its number, and who else wrote since.
    last: FxHashMap<u32, (Instance, u64, Option<Instance>)>,
    /// The closest pairs.
    unordered: Option<Pair>,
    /// Those that end with a look, and those that end with a change: neither hides the other.
    torn: [Option<Pair>; 2],
}

/// Accuses lines of accesses that race, and of such as should have been one step. False if
/// there was no time to look.
pub fn accuse(run: &Run, ways: &Ways<'_>, ranking: &mut Ranking, late: time::Instant) -> bool {
    let first = run.trace.spans.spans.first().map(|span| span.thread);
    if run.trace.spans.spans.iter().all(|span| Some(span.thread) == first) {
        return true;
    }
    let Some(words) = used(run, ways, late) else { return false };
    let (order, counts) = (Ordering::default(), FxHashMap::default());
    let ids = run.trace.code.instructions().map(|(id, _)| is_atomic(run, id));
    let mut found = Finder { run, order, words, counts, call: 0, atomic: ids.collect() };
    let last = run.trace.last_instance();
    if !accesses(run, last, late, &mut |access| found.see(&access)) {
        return false;
    }
    let pairs = |pick: fn(&Word) -> &[Option<Pair>]| {
        let of = |word| pick(word).iter().flatten().map(|pair| (word.groups, *pair));
        let mut all: Vec<(u32, Pair)> = found.words.values().flat_map(of).collect();
        all.sort_by_key(|(groups, pair)| (*groups, pair.gap, pair.second));
        distinct(run, all.into_iter().map(|(_, pair)| pair))
    };
    for (n, pair) in pairs(|word| std::slice::from_ref(&word.unordered)).into_iter().enumerate() {
        let name = |at| ways.place(run, at).map(|place| run.place_name(place));
        let weight = 1.6 / (1.0 + n as f64);
        for (at, other) in [(pair.first, pair.second), (pair.second, pair.first)] {
            let Some((place, other)) = ways.place(run, at).zip(name(other)) else { continue };
            let reason = format!("nothing orders it and {other}, of another thread");
            ranking.accuse(place, at, weight, reason);
        }
    }
    for (n, pair) in pairs(|word| &word.torn).into_iter().enumerate() {
        let between = pair.between.and_then(|at| ways.place(run, at));
        let Some(between) = between.map(|place| run.place_name(place)) else { continue };
        let weight = 1.6 / (1.0 + n as f64);
        for at in together(run, pair.first, pair.second) {
            let Some(place) = run.places.at(run.trace.instruction(at)) else { continue };
            let reason = format!("another thread changed, at {between}, what it used twice");
            ranking.accuse(place, at, weight, reason);
        }
    }
    true
}

/// Pairs of lines, each once.
fn distinct(run: &Run, pairs: impl Iterator<Item = Pair>) -> Vec<Pair> {
    let line = |at: Instance| run.places.at(run.trace.instruction(at));
    let mut seen: Vec<(Option<PlaceId>, Option<PlaceId>)> = Vec::new();
    let mut kept = Vec::new();
    for pair in pairs {
        let lines = (line(pair.first), line(pair.second));
        if kept.len() < PAIRS && !seen.contains(&lines) {
            seen.push(lines);
            kept.push(pair);
        }
    }
    kept
}

/// The instances of the innermost activation that both belong to: those that they are, or
/// the calls that led to them.
fn together(run: &Run, first: Instance, second: Instance) -> Vec<Instance> {
    let control = &run.trace.control;
    let chain = |at: Instance| {
        let mut all = vec![(control.frame_of(at.time), at)];
        while let Some(call) = control.frame(all[all.len() - 1].0).call {
            all.push((control.frame_of(call.time), call));
        }
        all
    };
    let (first, second) = (chain(first), chain(second));
    let both = first.iter().find_map(|(frame, at)| {
        second.iter().find(|(other, _)| other == frame).map(|(_, other)| vec![*at, *other])
    });
    let mut both = both.unwrap_or_default();
    both.retain(|at| run.is_own(run.trace.instruction(*at)));
    both
}

/// After so many instances it is asked whether it is too late.
const PATIENCE: usize = 1 << 12;

/// Words of objects that the failure used. `None` if there was no time to look.
fn used(run: &Run, ways: &Ways<'_>, late: time::Instant) -> Option<FxHashMap<u64, Word>> {
    let mut used: FxHashMap<u64, Word> = FxHashMap::default();
    let mut reader = Reader::new(run);
    let trees = [&ways.values, &ways.deciding, &ways.data];
    let near = trees.iter().flat_map(|t| t.nodes()).filter(|node| node.groups <= NEAR);
    for (n, node) in near.enumerate() {
        if n % PATIENCE == 0 && late <= time::Instant::now() {
            return None;
        }
        let id = run.trace.instruction(node.at);
        if used.len() >= MOST || !run.is_own(id) || !is_object(run, id) {
            continue;
        }
        for word in reader.loaded(node.at).iter().flat_map(|r| words(r.start, r.len)) {
            let known = used.entry(word).or_insert(Word { groups: node.groups, ..Word::default() });
            known.groups = known.groups.min(node.groups);
        }
    }
    Some(used)
}

/// One walk through all accesses.
struct Finder<'a> {
    run: &'a Run,
    order: Ordering,
    words: FxHashMap<u64, Word>,
    /// Accesses of each thread.
    counts: FxHashMap<u32, u64>,
    /// The next call that was made.
    call: usize,
    /// Instructions that are one step to everybody else.
    atomic: Vec<bool>,
}

impl Finder<'_> {
    fn see(&mut self, access: &Access) {
        self.calls_before(access.at);
        *self.counts.entry(access.thread).or_default() += 1;
        let atomic = self.atomic[access.instruction.0 as usize];
        let shared = words(access.range.start, access.range.len).any(|w| self.order.is_shared(w));
        if atomic || shared {
            for word in words(access.range.start, access.range.len) {
                if access.reads {
                    self.order.acquire(access.thread, word);
                }
                if access.writes {
                    self.order.release(access.thread, word);
                }
            }
        } else if self.run.is_own(access.instruction) {
            for word in words(access.range.start, access.range.len) {
                self.touch(word, access);
            }
        }
    }

    /// The kernel starts threads, and tells of their end.
    fn calls_before(&mut self, at: Instance) {
        let trace = &self.run.trace;
        while let Some(site) = trace.spans.calls.get(self.call).filter(|site| site.at <= at.time) {
            self.call += 1;
            let Event::Call(call) = &trace.events[site.event].1 else { continue };
            if let Some(new) = call.spawned {
                self.order.start(site.thread, new);
            }
            match call.number {
                FUTEX => self.order.acquire(site.thread, call.args[0] / 8),
                EXIT => {
                    for word in call.written.iter().flat_map(|(start, len)| words(*start, *len)) {
                        self.order.release(site.thread, word);
                    }
                }
                _ => {}
            }
        }
    }

    /// A plain access of the program itself.
    fn touch(&mut self, number: u64, access: &Access) {
        let Some(word) = self.words.get_mut(&number) else { return };
        let (thread, at) = (access.thread, access.at);
        if let Some((written, stamp)) = word.written
            && !self.order.has_seen(thread, stamp)
        {
            let gap = u64::from(at.time.0 - written.time.0);
            keep(&mut word.unordered, Pair { first: written, second: at, between: None, gap });
        }
        let count = self.counts.get(&thread).copied().unwrap_or(0);
        if let Some((first, number, Some(between))) = word.last.get(&thread).copied() {
            let (second, between, gap) = (at, Some(between), count - number);
            keep(&mut word.torn[usize::from(access.writes)], Pair { first, second, between, gap });
        }
        word.last.insert(thread, (at, count, None));
        if access.writes {
            for (_, others) in word.last.iter_mut().filter(|(other, _)| **other != thread) {
                others.2 = Some(at);
            }
            word.written = Some((at, self.order.stamp(thread)));
        }
    }
}

/// The closest pair counts: what belongs together is close together.
fn keep(known: &mut Option<Pair>, pair: Pair) {
    if known.is_none_or(|known| pair.gap <= known.gap) {
        *known = Some(pair);
    }
}

const FUTEX: u32 = 202;
const EXIT: u32 = 60;
