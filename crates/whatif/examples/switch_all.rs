//! Switches every n-th instruction number that is a branch, and counts verdicts.
use std::collections::BTreeMap;
use whatif::{Batch, Change, Experiment, Laboratory, Oracle};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().expect("a recording");
    let from: u64 = args.next().map_or(Ok(0), |n| n.parse())?;
    let step: u64 = args.next().map_or(Ok(1), |n| n.parse())?;
    let jobs: usize = args.next().map_or(Ok(1), |n| n.parse())?;
    let recording = recording::Recording::open(std::path::Path::new(&path))?;
    let mut laboratory = Laboratory::open(&recording)?;
    let original = laboratory.original().clone();
    println!("{} instructions, status {:?}", original.instructions, original.status);
    let all = (from..original.instructions).step_by(step as usize);
    let experiments: Vec<Experiment> = all.map(|n| Experiment::one(n, Change::Switch)).collect();
    let oracle = Oracle { stdout: Some(original.outputs[0].clone()), ..Oracle::default() };
    let mut batch = Batch::new(experiments, oracle);
    batch.jobs = jobs;
    batch.limits.steps = original.instructions * 10 + 1_000_000;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let begun = std::time::Instant::now();
    let mut trials = 0;
    laboratory.perform(&batch, &mut |_, outcome| {
        let name = match &outcome.verdict {
            whatif::Verdict::Unserved(what) => format!("unserved {what}"),
            verdict => verdict.word().to_owned(),
        };
        trials += u64::from(outcome.taken.is_some());
        *counts.entry(name).or_default() += 1;
        true
    })?;
    let time = begun.elapsed();
    println!("{counts:#?}");
    println!(
        "{trials} switched of {} in {time:?}: {:?} each",
        batch.experiments.len(),
        time / batch.experiments.len() as u32
    );
    Ok(())
}
