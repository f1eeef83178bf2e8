//! Slices the latest instances of 25 distinct loads of a recording.

use slice::{Options, Slicer, Start};
use trace::{Instance, Time, Trace};

/// The latest instances of so many distinct instructions that load.
fn latest_loads(trace: &Trace, count: usize) -> Vec<Instance> {
    let mut seen = std::collections::HashSet::new();
    let mut found = Vec::new();
    for time in (0..trace.records.len()).rev().map(Time) {
        let path = trace.code.path(trace.records.path(time));
        for (index, op) in trace.code.ops(path).iter().enumerate().rev() {
            let loads = trace.code.operands(op).iter().any(|o| o.access().reads);
            if loads && seen.insert(op.instruction) {
                found.push(Instance { time, index: index as u16 });
                if found.len() == count {
                    return found;
                }
            }
        }
    }
    found
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).ok_or("which recording?")?;
    let recording = recording::Recording::open(std::path::Path::new(&folder))?;
    let begin = std::time::Instant::now();
    let trace = Trace::build(&recording, &mut |_| ())?;
    println!(
        "{} instructions, built in {:.3} s",
        trace.records.instructions(),
        begin.elapsed().as_secs_f64()
    );
    let begin = std::time::Instant::now();
    let slicer = Slicer::new(&trace);
    println!("prepared in {:.3} s", begin.elapsed().as_secs_f64());
    for at in latest_loads(&trace, 4) {
        let begin = std::time::Instant::now();
        let slice = slicer.backward(&[Start::Instance(at)], &Options::default());
        println!(
            "{:?}: {} instances of {} instructions, {:.3} s",
            at,
            slice.instances,
            slice.instructions.len(),
            begin.elapsed().as_secs_f64()
        );
    }
    Ok(())
}
