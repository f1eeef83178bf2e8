//! What is not certain, because not all of the run was looked at.

use crate::{Limits, focus};
use position::Run;
use program::debug::DebugStatus;
use report::grouped;
use whatif::Original;

/// What is missing from the trace.
pub fn of_trace(run: &Run, limits: &Limits, original: &Original) -> Vec<String> {
    let mut doubts = Vec::new();
    doubts.extend(interpreted(run));
    doubts.extend(without_lines(run));
    let records = &run.trace.records;
    let complete = run.trace.ended.complete;
    let early = records.instructions() < original.instructions && limits.hung.is_none();
    if !run.trace.is_from_start() || early {
        let traced = grouped(records.instructions() - records.before());
        let which = if complete { "its last" } else { "those before the failure showed, the last" };
        doubts.push(format!(
            "the run is long: only {which} {traced} instructions were looked at, and executions \
             of lines are counted from there"
        ));
    }
    if !complete && !early {
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

/// Programs that run programs of another language, by their names without a version.
const INTERPRETERS: [&str; 21] = [
    "python", "pypy", "perl", "ruby", "node", "nodejs", "lua", "luajit", "bash", "sh", "dash",
    "zsh", "busybox", "java", "php", "tclsh", "guile", "R", "awk", "mawk", "gawk",
];

/// A program that runs a script: whoever wrote that will not find it in the story.
fn interpreted(run: &Run) -> Option<String> {
    let image = run.program.images().first()?.path().file_name()?.to_string_lossy().into_owned();
    let name = image.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    // Who has its lines can tell what it is.
    let is_known = run.program.debug_status(0) != DebugStatus::Missing;
    (INTERPRETERS.contains(&name) && !is_known).then(|| {
        format!("{image} is an interpreter: this is about its own code, not about the script")
    })
}

/// A program that nothing is known of but its instructions.
fn without_lines(run: &Run) -> Option<String> {
    let (DebugStatus::Missing, Some(image)) =
        (run.program.debug_status(0), run.program.images().first())
    else {
        return None;
    };
    let name = image.path().file_name()?.to_string_lossy().into_owned();
    Some(format!(
        "{name} has no debug information (compile with -g, or install its -dbgsym package), so \
         places are instructions"
    ))
}
