//! dbg
use iced_x86::Formatter;
fn main() {
    let rec = recording::Recording::open(std::path::Path::new(&std::env::args().nth(1).unwrap()))
        .unwrap();
    let run = position::Run::open(rec, &mut |_| ()).unwrap();
    let a: u32 = std::env::args().nth(2).unwrap().parse().unwrap();
    let b: u32 = std::env::args().nth(3).unwrap().parse().unwrap();
    for (t, e) in &run.trace.events {
        if t.0 >= a && t.0 <= b {
            println!("{t:?} {e:x?}");
        }
    }
    for t in a..=b {
        let time = trace::Time(t);
        let p = run.trace.code.path(run.trace.records.path(time));
        println!(
            "record {t} frame {:?} captured {:x?}",
            run.trace.control.frame_of(time),
            run.trace.captured(time)
        );
        for index in 0..p.len {
            let at = trace::Instance { time, index };
            let i = run.trace.code.info(run.trace.instruction(at));
            let mut t = String::new();
            iced_x86::IntelFormatter::new().format(&i.instruction, &mut t);
            println!(
                "  {:x} {t}   stored {:x?} loaded {:x?} parent {:?}",
                i.address(),
                run.trace.stored(at),
                run.trace.loaded(at),
                run.trace.parent(at)
            );
        }
    }
}
#[allow(dead_code)]
fn _x() {}
