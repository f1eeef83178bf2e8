//! Compares what `program::effects` says of every instruction of a recording with
//! what the processor does: `effects RECORDING`.

#[path = "../tests/reference/mod.rs"]
mod reference;

use engine::lockstep::probe::{CODE, Probe, operands};
use iced_x86::{Decoder, DecoderOptions};
use reference::relation::{Gap, modelled, name, observe};
use std::collections::BTreeMap;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).ok_or("which recording?")?;
    let recording = recording::Recording::open(std::path::Path::new(&folder))?;
    let trace = trace::Trace::build(&recording, &mut |_| ())?;
    let mut probe = Probe::new()?;
    let mut forms: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for (_, info) in trace.code.instructions() {
        let key = format!(
            "{:?} {:?}",
            info.instruction.code(),
            (0..info.instruction.op_count())
                .map(|n| info.instruction.op_kind(n))
                .collect::<Vec<_>>()
        );
        forms.entry(key).or_insert_with(|| info.bytes().to_vec());
    }
    println!("{} forms of {}", forms.len(), trace.code.instructions().count());
    for bytes in forms.values() {
        let i = Decoder::with_ip(64, bytes, CODE, DecoderOptions::NONE).decode();
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        let Some(from) = operands(&i).and_then(|o| modelled(&i, &o)) else {
            println!("{i} {hex}: no operands");
            continue;
        };
        let Some(observed) = observe(&mut probe, bytes, &from, 400) else {
            println!("{i} {hex}: not run");
            continue;
        };
        let gap = Gap::between(&observed.from, &from);
        for (what, list) in [("UNMODELLED", &gap.unmodelled), ("unobserved", &gap.unobserved)] {
            if !list.is_empty() {
                let list: Vec<String> = list
                    .iter()
                    .map(|(to, from)| {
                        format!("{}<-{}", name(to), from.as_ref().map_or("defined".into(), name))
                    })
                    .collect();
                let text = list.join(" ");
                println!("{i} {hex}: {what} {} {}", list.len(), &text[..text.len().min(160)]);
            }
        }
    }
    Ok(())
}
