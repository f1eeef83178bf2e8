//! Traces a recording and counts what is in the trace: `trace RECORDING [CODE]`. CODE is a
//! folder for translations.

use engine::trace::{Event, HEADER, Head, Sink, Units};

#[derive(Default)]
struct Count {
    paths: Vec<(u16, u16)>,
    instructions: u64,
    records: u64,
    captures: u64,
    events: u64,
}

impl Sink for Count {
    fn units(&mut self, units: Units) {
        for (_, unit) in units.iter() {
            let first = unit.first_path() as usize;
            let end = self.paths.len().max(first + unit.paths().len());
            self.paths.resize(end, (0, 0));
            unit.paths().zip(&mut self.paths[first..]).for_each(|(path, known)| *known = path);
        }
    }

    fn records(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            let head = Head::from_bytes(bytes[at..at + HEADER].try_into().expect("four"));
            let (instructions, captures) = self.paths[head.path() as usize];
            self.instructions += u64::from(instructions);
            self.captures += u64::from(captures);
            self.records += 1;
            at += HEADER + 8 * captures as usize;
        }
    }

    fn event(&mut self, _: Event) {
        self.events += 1;
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).ok_or("which recording?")?;
    if let Some(code) = std::env::args_os().nth(2) {
        engine::keep_translations_in(code.into());
    }
    let recording = recording::Recording::open(std::path::Path::new(&folder))?;
    let mut count = Count::default();
    let begin = std::time::Instant::now();
    engine::trace::trace(&recording, &mut count)?;
    println!(
        "{} instructions, {} records of {} paths, {} captures, {} events, {:.3} s",
        count.instructions,
        count.records,
        count.paths.len(),
        count.captures,
        count.events,
        begin.elapsed().as_secs_f64()
    );
    Ok(())
}
