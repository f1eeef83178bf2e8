//! Shows what the processor says of one instruction: `probe HEX`.

use engine::lockstep::probe::Probe;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = std::env::args().nth(1).ok_or("which bytes?")?;
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap_or(""), 16);
    let bytes: Vec<u8> = digits.chunks(2).map(byte).collect::<Result<_, _>>()?;
    let begin = std::time::Instant::now();
    match Probe::new()?.observe(&bytes)? {
        Some(observed) => {
            for (place, from) in &observed.from {
                println!("{place:?} <- {from:?}");
            }
            println!("{} states, {:?}", observed.runs, begin.elapsed());
        }
        None => println!("it cannot be executed by itself"),
    }
    Ok(())
}
