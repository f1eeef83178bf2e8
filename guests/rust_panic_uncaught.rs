//! An uncaught panic ends the process with status 101 and a message on stderr.
fn main() {
    println!("before");
    let empty: Vec<u32> = std::env::args().skip(99).map(|_| 1).collect();
    println!("{}", empty[3]);
}
