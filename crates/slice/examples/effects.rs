//! Compares what `program::effects` says of every form of instruction in a recording
//! with what the processor does: `effects RECORDING`.
//!
//! Ends with 1 if a dependence was observed that is not modelled, or if one is
//! modelled that was neither observed nor has an excuse.

#[allow(dead_code, reason = "each of its users needs a part")]
#[path = "../tests/reference/mod.rs"]
mod reference;

use engine::lockstep::probe::{CODE, Place, Probe, operands};
use iced_x86::{Decoder, DecoderOptions, Instruction};
use reference::relation::{Gap, excuse, is_open, modelled, name, observe};
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

/// Rounds in which modelled dependences are looked for.
const ROUNDS: u32 = 600;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).ok_or("which recording?")?;
    let recording = recording::Recording::open(std::path::Path::new(&folder))?;
    let trace = trace::Trace::build(&recording, &mut |_| ())?;
    // The probe is a fork.
    trace.settle();
    let mut forms: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for (_, info) in trace.code.instructions() {
        let i = &info.instruction;
        let kinds: Vec<_> = (0..i.op_count()).map(|n| i.op_kind(n)).collect();
        let form = format!("{:?} {kinds:?}", i.code());
        forms.entry(form).or_insert_with(|| info.bytes().to_vec());
    }
    let mut probe = Probe::new()?;
    let (mut wrong, mut skipped) = (0, 0);
    for bytes in forms.values() {
        match compare(&mut probe, bytes) {
            Some(gaps) => wrong += gaps,
            None => skipped += 1,
        }
    }
    println!("{} forms, {wrong} differ, {skipped} cannot be executed by themselves", forms.len());
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How many kinds of differences there are; `None` if the processor cannot be asked.
fn compare(probe: &mut Probe, bytes: &[u8]) -> Option<usize> {
    let i = Decoder::with_ip(64, bytes, CODE, DecoderOptions::NONE).decode();
    let from = modelled(&i, &operands(&i)?)?;
    let observed = observe(probe, bytes, &from, ROUNDS)?;
    let mut gap = Gap::between(&observed.from, &from);
    // A step is one element; how often it repeats is the model's.
    if i.is_string_instruction() && (i.has_rep_prefix() || i.has_repne_prefix()) {
        gap.unmodelled.retain(|(to, _)| !matches!(to, Place::Register(8..16)));
    }
    gap.unmodelled.retain(|(to, _)| !is_open(&i, to));
    gap.unobserved.retain(|(to, from)| excuse(&i, to, from.as_ref()).is_none());
    Some(show(&i, "not modelled", &gap.unmodelled) + show(&i, "not observed", &gap.unobserved))
}

fn show(i: &Instruction, what: &str, list: &BTreeSet<(Place, Option<Place>)>) -> usize {
    if list.is_empty() {
        return 0;
    }
    let pair = |(to, from): &(Place, Option<Place>)| match from {
        Some(from) => format!("{} from {}", name(to), name(from)),
        None => name(to),
    };
    let some: Vec<String> = list.iter().take(6).map(pair).collect();
    println!("{i}: {what} ({}): {}", list.len(), some.join(", "));
    1
}
