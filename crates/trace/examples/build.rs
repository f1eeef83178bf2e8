//! Builds the trace of a recording and says what is in it.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).ok_or("which recording?")?;
    let recording = recording::Recording::open(std::path::Path::new(&folder))?;
    let begin = std::time::Instant::now();
    let trace = trace::Trace::build(&recording, &mut |_| ())?;
    println!(
        "{} instructions, {} records, {} labels, {:.3} s",
        trace.records.instructions(),
        trace.records.len(),
        trace.control.label_count(),
        begin.elapsed().as_secs_f64()
    );
    Ok(())
}
