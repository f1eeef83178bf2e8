use debugger::*;
use std::time::Instant as C;
fn main() {
    let rec = std::env::args().nth(1).unwrap();
    let c = C::now();
    let mut t = Timeline::open(std::path::Path::new(&rec)).unwrap();
    println!("open {:?}", c.elapsed());
    let c = C::now();
    t.go_to_end().unwrap();
    println!("end {:?} {:?}, kept {}", c.elapsed(), t.now(), t.kept().len());
    let th = t.state().unwrap().threads[0].thread;
    let mut v = vec![];
    for _ in 0..40 {
        let c = C::now();
        t.step_back(th).unwrap();
        v.push(c.elapsed());
    }
    println!("first {:?} second {:?}", v[0], v[1]);
    v.sort();
    println!("step back median {:?} max {:?}", v[20], v[39]);
    let mut v = vec![];
    for _ in 0..40 {
        let c = C::now();
        t.step(th, 0..0, &Wanted::default()).unwrap();
        v.push(c.elapsed());
    }
    v.sort();
    println!("step median {:?} max {:?}", v[20], v[39]);
    let never = Wanted {
        stops: engine::Stops { breaks: [0x10].into(), ..Default::default() },
        ..Default::default()
    };
    let c = C::now();
    println!("{:?}", t.backward(&never).unwrap());
    println!("back to begin (break) {:?}", c.elapsed());
    let w = engine::Watch { address: 0x1000, len: 8, reads: false, writes: true };
    let watch = Wanted {
        stops: engine::Stops { watches: [w].into(), ..Default::default() },
        ..Default::default()
    };
    let c = C::now();
    println!("{:?}", t.forward(&watch).unwrap());
    println!("forward with watch {:?}", c.elapsed());
    let c = C::now();
    println!("{:?}", t.backward(&watch).unwrap());
    println!("back to begin (watch) {:?} kept {}", c.elapsed(), t.kept().len());
    let r = recording::Recording::open(std::path::Path::new(&rec)).unwrap();
    let c = C::now();
    let _ = engine::count_instructions(&r);
    println!("fresh counting replay {:?}", c.elapsed());
    let c = C::now();
    let _ = engine::replay(&r, &engine::ReplayOptions { verify: false, silent: true });
    println!("fresh plain replay {:?}", c.elapsed());
}
