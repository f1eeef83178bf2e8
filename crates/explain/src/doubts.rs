//! What is not certain, because not all of the run was looked at.

use crate::{Limits, focus};
use position::Run;
use report::grouped;
use whatif::Original;

/// What is missing from the trace.
pub fn of_trace(run: &Run, limits: &Limits, original: &Original) -> Vec<String> {
    let mut doubts = Vec::new();
    let records = &run.trace.records;
    if !run.trace.is_from_start() {
        let traced = grouped(records.instructions() - records.before());
        doubts.push(format!(
            "the run is long: only its last {traced} instructions were looked at, and \
             executions of lines are counted from its end"
        ));
    }
    if !run.trace.ended.complete {
        let doubt = match limits.hung {
            Some(_) if focus::has_reached(run, original.pc) => {
                "only the beginning of the long run was looked at"
            }
            Some(_) => "the part of the run that was looked at ends before the place where it hung",
            None => "the recording breaks off before the run's end",
        };
        doubts.push(doubt.to_owned());
    }
    doubts
}
