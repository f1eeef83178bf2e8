//! Which edits make the run succeed?

use crate::edits::Edit;
use crate::failure::{Error, Failure};
use crate::search::{Judge, Options, Progress};
use whatif::{Batch, Change, Crash, Experiment, Laboratory, Verdict};

/// What became of an edited program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// Its place in the list of edits.
    pub edit: usize,
    /// How it ended.
    pub verdict: Verdict,
}

/// The first batch is small, so that what is most likely is known first; each batch
/// costs one walk through the run.
const FIRST_BATCH: usize = 128;
const LARGEST_BATCH: usize = 1024;

/// Tries edits in their order, as long as `progress` says so. What was found out is in
/// `results`, also if it broke off.
pub fn try_edits(
    edits: &[Edit],
    failure: &Failure,
    judge: &Judge<'_>,
    options: &Options,
    laboratory: &mut Laboratory,
    results: &mut Vec<Edited>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<(), Error> {
    let oracle = failure.known_by(judge.oracle.clone());
    let crash = failure.crash_in_trials(&oracle);
    let total = edits.len().min(options.trials);
    let (mut from, mut size, mut going) = (0, FIRST_BATCH, true);
    let mut found = 0;
    while from < total && going && !options.is_late() {
        let to = (from + size).min(total);
        let experiments = edits[from..to].iter().map(|edit| experiment(edit, crash)).collect();
        let mut batch = Batch::new(experiments, oracle.clone());
        batch.crash = crash.map(|crash| crash.point.clone());
        batch.limits = options.limits;
        batch.jobs = options.jobs;
        batch.until = options.until;
        // Whoever is asked wants to see all that was written.
        batch.keep_outputs = oracle.asks;
        batch.rejoins = !oracle.asks;
        laboratory.perform(&batch, &mut |n, mut outcome| {
            judge.judge(&mut outcome);
            found += usize::from(outcome.verdict == Verdict::Passed);
            results.push(Edited { edit: from + n, verdict: outcome.verdict });
            going &= progress(Progress { done: results.len(), total, found });
            going
        })?;
        (from, size) = (to, (size * 2).min(LARGEST_BATCH));
    }
    results.sort_by_key(|result| result.edit);
    Ok(())
}

/// The program is another one from the first execution of the edited instruction on:
/// before that, it makes no difference.
fn experiment(edit: &Edit, crash: Option<&Crash>) -> Experiment {
    let patches = edit.patches.iter().cloned();
    let mut changes = patches.map(|(address, bytes)| Change::Code { address, bytes });
    let first = changes.next().expect("an edit changes something");
    let mut experiment = Experiment::one(edit.number, first);
    experiment.changes.extend(changes);
    experiment.way = crash.map(|c| c.way(edit.number)).unwrap_or_default();
    experiment
}
