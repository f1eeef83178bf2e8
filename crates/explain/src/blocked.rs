//! What did threads wait for that never came? The word that a sleeping thread changed last,
//! such as a lock's, who changed it before, and what that one did afterwards.

use crate::accesses::{Access, accesses, is_atomic};
use crate::functions::Functions;
use crate::ranking::Ranking;
use position::{PlaceId, Run};
use std::collections::HashMap;
use std::time::Instant;
use trace::{Event, Instance, Time};

/// So many bytes a lock or a condition has at most.
const LOCK: u64 = 48;
/// So many bytes, and fewer, the library keeps of a thread, from where FS points to.
const THREAD: u64 = 4096;
/// So many lines after the last change are named.
const AFTERWARDS: usize = 4;

/// Functions that wake one of all threads that wait for a condition.
const WAKES_ONE: [&str; 2] = ["pthread_cond_signal", "cnd_signal"];

/// A thread that sleeps in a library.
struct Sleeper {
    /// The program's own instance that waits.
    own: Instance,
    /// The word that it changed last before, together with what else may be in its lock.
    word: u64,
    /// Who changed that last, apart from those that sleep.
    last: Option<Instance>,
    /// The same, from another line.
    elsewhere: Option<Instance>,
    /// Who last woke one of those that wait for it: another than this one.
    woke_one: Option<Instance>,
}

/// Accuses the lines that sleeping threads wait in, those that last changed what they wait
/// for, and what those did next. False if there was no time for it.
pub fn accuse(run: &Run, ranking: &mut Ranking, late: Instant) -> bool {
    let Some(mut sleepers) = sleepers(run, late) else { return false };
    let asleep: Vec<Instance> = sleepers.iter().map(|s| s.own).collect();
    let place = |at: Instance| run.places.at(run.trace.instruction(at));
    let mut functions = Functions::new(run);
    let done = accesses(run, run.trace.last_instance(), late, &mut |access| {
        for sleeper in sleepers.iter_mut().filter(|s| access.writes && is_in(&access, s.word)) {
            let own = run.own_instance(access.at).filter(|own| !asleep.contains(own));
            if own.is_some() {
                sleeper.last = own;
            }
            if own.is_some_and(|own| place(own) != place(sleeper.own)) {
                sleeper.elsewhere = own;
            }
            let since = access.at > sleeper.own && own.is_some();
            if since && functions.around(access.at, &WAKES_ONE).is_some() {
                sleeper.woke_one = own;
            }
        }
    });
    if !done {
        return false;
    }
    let name = |at: Instance| place(at).map(|p| run.place_name(p)).unwrap_or_default();
    let mut accuse = |at: Instance, weight: f64, reason: String| {
        if let Some(place) = place(at) {
            ranking.accuse(place, at, weight, reason);
        }
    };
    let share = 1.0 / (sleepers.len() as f64).max(1.0);
    for sleeper in &sleepers {
        let waits = name(sleeper.own);
        accuse(sleeper.own, 0.7 * share, "a thread waits here, for ever".to_owned());
        if let Some(last) = sleeper.last {
            let reason = format!("it was the last to change what {waits} waits for");
            accuse(last, 2.5 * share, reason);
            for (n, after) in afterwards(run, last).into_iter().enumerate() {
                let reason = format!("it ran after {}, and {waits} still waits", name(last));
                accuse(after, 2.5 * share / (1.0 + 0.4 * n as f64), reason);
            }
        }
        if let Some(woke) = sleeper.woke_one {
            let reason = format!("it woke one of those that waited; {waits} still waits");
            accuse(woke, 3.0 * share, reason);
        }
        if let Some(elsewhere) = sleeper.elsewhere.filter(|at| Some(*at) != sleeper.last) {
            let reason = format!("it changed what {waits} waits for");
            accuse(elsewhere, 2.0 * share, reason);
        }
    }
    true
}

fn is_in(access: &Access, word: u64) -> bool {
    access.range.start < word + LOCK && word < access.range.start + access.range.len
}

/// Threads whose last instruction is a system call in a library, and which changed a word
/// in that call that others can see. Who waits for a thread to end waits for what that one
/// waits for. `None` if there was no time to look.
fn sleepers(run: &Run, late: Instant) -> Option<Vec<Sleeper>> {
    let mut last: HashMap<u32, (Time, u64)> = HashMap::new();
    for span in run.trace.spans.spans.iter().filter(|s| s.start < s.end) {
        last.insert(span.thread, (Time(span.end.0 - 1), span.bases.fs));
    }
    let mut asleep: HashMap<u32, (Instance, Option<u64>)> = HashMap::new();
    for (thread, (time, _)) in &last {
        if let Some(own) = waiting(run, *time) {
            asleep.insert(*thread, (own, None));
        }
    }
    let done = accesses(run, run.trace.last_instance(), late, &mut |access| {
        if let Some((own, word)) = asleep.get_mut(&access.thread)
            && access.at > *own
            && access.writes
            && access.reads
            && is_atomic(run, access.instruction)
            // The library also changes what it keeps of a thread that may be cancelled.
            && access.range.start.wrapping_sub(last[&access.thread].1) >= THREAD
        {
            *word = Some(access.range.start);
        }
    });
    let mut sleepers: Vec<Sleeper> = asleep
        .into_values()
        .filter_map(|(own, word)| {
            Some(Sleeper { own, word: word?, last: None, elsewhere: None, woke_one: None })
        })
        .collect();
    sleepers.sort_by_key(|s| s.own);
    done.then_some(sleepers)
}

/// The program's own instance that a thread waits in, unless it is for another thread's end.
fn waiting(run: &Run, last: Time) -> Option<Instance> {
    let path = run.trace.code.path(run.trace.records.path(last));
    let at = Instance { time: last, index: path.len.saturating_sub(1) };
    let id = run.trace.instruction(at);
    let info = run.trace.code.info(id);
    if info.instruction.mnemonic() != iced_x86::Mnemonic::Syscall || run.is_own(id) {
        return None;
    }
    let own = run.own_instance(at)?;
    let mut frame = run.trace.control.frame_of(last);
    let mut address = info.address();
    while !run.program.is_own(address) {
        if run.program.function(address).is_some_and(|f| f.name.contains("join")) {
            return None;
        }
        address = run.address(run.call_of(frame)?);
        // A thread's first activation is its own caller.
        let caller = run.trace.control.frame(frame).caller;
        frame = Some(caller).filter(|caller| *caller != frame)?;
    }
    Some(own)
}

/// Functions of libraries in which a thread waits for another one.
const FOR_EACH_OTHER: [&str; 5] = ["mutex_lock", "mtx_lock", "rwlock", "join", "thrd_join"];

/// How many threads there are, if each of them waits for a lock or for another one's end.
pub fn deadlocked(run: &Run) -> Option<usize> {
    if !run.trace.ended.complete {
        // Not traced to the end: nobody knows.
        return None;
    }
    let mut last: HashMap<u32, Time> = HashMap::new();
    for span in run.trace.spans.spans.iter().filter(|s| s.start < s.end) {
        last.insert(span.thread, Time(span.end.0 - 1));
    }
    let exits = run.trace.spans.calls.iter().filter(
        |site| matches!(&run.trace.events[site.event].1, Event::Call(call) if call.number == EXIT),
    );
    for site in exits {
        last.remove(&site.thread);
    }
    let waits = |time: &Time| waits_for_another(run, *time);
    (!last.is_empty() && last.values().all(waits)).then_some(last.len())
}

/// Is the last that a thread did a system call in one of those functions?
fn waits_for_another(run: &Run, last: Time) -> bool {
    let path = run.trace.code.path(run.trace.records.path(last));
    let at = Instance { time: last, index: path.len.saturating_sub(1) };
    let info = run.trace.code.info(run.trace.instruction(at));
    if info.instruction.mnemonic() != iced_x86::Mnemonic::Syscall {
        return false;
    }
    let mut frame = run.trace.control.frame_of(last);
    let mut address = info.address();
    while !run.program.is_own(address) {
        let named = run.program.function(address);
        if named.is_some_and(|f| FOR_EACH_OTHER.iter().any(|part| f.name.contains(part))) {
            return true;
        }
        let Some(call) = run.call_of(frame) else { return false };
        address = run.address(call);
        let caller = run.trace.control.frame(frame).caller;
        if caller == frame {
            return false;
        }
        frame = caller;
    }
    false
}

const EXIT: u32 = 60;

/// The first lines that the same activation executed after an instance.
fn afterwards(run: &Run, from: Instance) -> Vec<Instance> {
    let frame = run.trace.control.frame_of(from.time);
    let mut lines: Vec<(PlaceId, Instance)> = Vec::new();
    let first = run.places.at(run.trace.instruction(from));
    let end = run.trace.last_instance().time;
    for time in (from.time.0..=end.0).map(Time) {
        if run.trace.control.frame_of(time) != frame {
            continue;
        }
        let path = run.trace.code.path(run.trace.records.path(time));
        for index in 0..path.len {
            let at = Instance { time, index };
            let Some(place) = run.places.at(run.trace.instruction(at)) else { continue };
            let new = Some(place) != first && lines.iter().all(|(known, _)| *known != place);
            if at > from && new {
                lines.push((place, at));
            }
        }
        if lines.len() >= AFTERWARDS {
            break;
        }
    }
    lines.truncate(AFTERWARDS);
    lines.into_iter().map(|(_, at)| at).collect()
}
