//! Compares fast slices of a recording with the reference slicer's:
//! `reference RECORDING [CRITERIA [SEED]]`.

#[path = "../tests/reference/mod.rs"]
mod reference;

use reference::{knowledge::Knowledge, run::Run, slicer};
use slice::{Options, Slicer, Start};
use std::collections::BTreeSet;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("which recording?")?;
    let count: usize = arguments.next().map_or(Ok(10), |n| n.parse())?;
    let mut seed: u64 = arguments.next().map_or(Ok(1), |n| n.parse())?;
    let bookkeeping = arguments.next().is_some();
    let recording = recording::Recording::open(Path::new(&folder))?;
    let trace = trace::Trace::build(&recording, &mut |_| ())?;
    let mut knowledge = Knowledge::open(Path::new("/tmp/why-knowledge"));
    let run = Run::walk(&recording, &trace, &mut knowledge);
    knowledge.save();
    println!("{} steps, {} instructions known", run.steps.len(), knowledge.len());
    let fast = Slicer::new(&trace);
    let pairs: Option<&dyn reference::bypass::Pairs> = if bookkeeping { None } else { Some(&fast) };
    let reference = slicer::Reference::new(&trace, &run, pairs);
    let options = Options { bookkeeping, ..Options::default() };
    let mut wrong_parents = 0;
    for n in 0..trace.records.instructions() as usize {
        let at = trace.at_number(n as u64).ok_or("numbered")?;
        let path = trace.records.path(at.time);
        let first = trace.control.first_label(&trace.records, at.time);
        let parent = trace.control.parent(path, at, first).map(|p| trace.number(p) as usize);
        if parent != reference.parent(n) {
            wrong_parents += 1;
            if wrong_parents < 20 {
                let show =
                    |n: Option<usize>| n.map_or("-".to_owned(), |n| describe(&trace, &run, n));
                println!(
                    "parent of {}:\n   fast {}\n   ref  {}",
                    describe(&trace, &run, n),
                    show(parent),
                    show(reference.parent(n))
                );
            }
        }
    }
    println!("{wrong_parents} parents differ");
    for _ in 0..count {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let n = (seed >> 33) as usize % trace.records.instructions() as usize;
        let at = trace.at_number(n as u64).ok_or("numbered")?;
        let instances = fast.instances(&[Start::Instance(at)], &options);
        let quick = slicer::numbers(&trace, &instances);
        let slow = reference.slice(n);
        let double = instances.0.len() - quick.len();
        println!(
            "{}: fast {} slow {} double {double}",
            describe(&trace, &run, n),
            quick.len(),
            slow.len()
        );
        for (what, set) in [("only fast", &quick - &slow), ("only slow", &slow - &quick)] {
            show_some(&trace, &run, what, &set);
        }
    }
    Ok(())
}

fn show_some(trace: &trace::Trace, run: &Run, what: &str, set: &BTreeSet<usize>) {
    if !set.is_empty() {
        println!("  {what}: {}", set.len());
        for n in set.iter().rev().take(4) {
            println!("      {}", describe(trace, run, *n));
        }
    }
}

fn describe(trace: &trace::Trace, run: &Run, n: usize) -> String {
    let step = &run.steps[n];
    let i = &trace.code.info(step.instruction).instruction;
    let image = trace.images.iter().find(|m| (m.mapped.start..m.mapped.end).contains(&i.ip()));
    let path = image.map(|m| String::from_utf8_lossy(&m.mapped.path).into_owned());
    let name = path.unwrap_or_default().rsplit('/').next().unwrap_or("").to_owned();
    format!("@{n} T{} {:#x} {i} ({name})", step.thread, i.ip())
}
