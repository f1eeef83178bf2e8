//! How large is a stored trace, and what do storing and loading take?

use std::time::Instant;
use trace::Trace;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).ok_or("which recording?")?;
    let recording = recording::Recording::open(std::path::Path::new(&folder))?;
    let begin = Instant::now();
    let trace = Trace::build(&recording, &mut |_| ())?;
    let built = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let bytes = trace.store(&recording)?;
    let stored = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let again = Trace::load(&recording).ok_or("it cannot be loaded")?;
    let loaded = begin.elapsed().as_secs_f64();
    for (n, a) in trace.records.segments().iter().enumerate() {
        let b = &again.records.segments()[n];
        assert!(a.paths == b.paths && a.instructions == b.instructions);
        assert!(trace.records.captured(n)[..] == again.records.captured(n)[..]);
    }
    assert_eq!(trace.records.instructions(), again.records.instructions());
    let n = trace.records.instructions();
    println!(
        "{n} instructions, {} records, {:.2} bits per instruction, built {built:.2} s, stored {stored:.2} s, loaded {loaded:.2} s",
        trace.records.len(),
        bytes as f64 * 8.0 / n as f64
    );
    Ok(())
}
