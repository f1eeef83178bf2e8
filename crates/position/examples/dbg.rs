//! dbg
use iced_x86::Formatter;
fn main() {
    let rec = recording::Recording::open(std::path::Path::new(&std::env::args().nth(1).unwrap()))
        .unwrap();
    let run = position::Run::open(rec, &mut |_| ()).unwrap();
    let c = position::Criterion::parse(&std::env::args().nth(2).unwrap()).unwrap();
    let m = position::meant(&run, &c).unwrap();
    println!("{m:?}");
    let s = slice::Slicer::new(&run.trace);
    let o = slice::Options { control: false, from: run.beginning().unwrap(), ..Default::default() };
    for (at, id, d) in s.instances(&m.starts, &o).0 {
        let mut t = String::new();
        let i = run.trace.code.info(id);
        iced_x86::IntelFormatter::new().format(&i.instruction, &mut t);
        println!(
            "{d:3} {:?} {:x} {} {t}",
            at,
            i.address(),
            run.program
                .function(i.address())
                .map(|f| format!("{}+{:x}", f.name, f.offset))
                .unwrap_or_default()
        );
    }
}
