//! Prints the events of a recording, one per line: `cargo run --example dump REC`.

use recording::Recording;
use recording::event::Event;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: dump REC")?;
    let recording = Recording::open(folder.as_ref())?;
    let mut reader = recording.reader()?;
    let mut number = 0u64;
    while let Some(bytes) = reader.next()? {
        match Event::decode(bytes)? {
            Event::Call { number: call, result, state, effects } => {
                let effects = effects.iter().count();
                println!("{number} call {call} = {result:#x} state {state:08x} effects {effects}");
            }
            other => println!("{number} {other:x?}"),
        }
        number += 1;
    }
    Ok(())
}
