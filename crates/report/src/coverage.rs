//! Which lines of the program ran, and how often?

use position::{At, Run};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::path::PathBuf;
use trace::{PathId, Time};

/// How often lines and functions ran, over one or several runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    files: BTreeMap<PathBuf, Covered>,
}

/// Of one source file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Covered {
    /// Lines with code, and how often each ran.
    lines: BTreeMap<u32, u64>,
    /// Functions that ran: the first line that did, and how often.
    functions: BTreeMap<String, (u32, u64)>,
}

impl Coverage {
    /// Adds what a run did in the program's own files.
    pub fn add(&mut self, run: &Run) {
        let counts = counts(run);
        let mut lines: HashMap<position::PlaceId, u64> = HashMap::new();
        for (id, info) in run.trace.code.instructions() {
            let Some(place) = run.places.at(id).filter(|_| run.is_own(id)) else { continue };
            let Some(count) = counts.get(&id) else { continue };
            let most = lines.entry(place).or_default();
            *most = (*most).max(*count);
            if run.program.is_entry(info.address()) {
                self.entered(run, place, *count);
            }
        }
        for (place, count) in lines {
            let At::Line(file, line) = run.places.get(place).at else { continue };
            let path = run.program.path(file).to_path_buf();
            *self.files.entry(path).or_default().lines.entry(line).or_default() += count;
        }
        self.add_missed(run);
    }

    fn entered(&mut self, run: &Run, place: position::PlaceId, count: u64) {
        let place = run.places.get(place);
        let (At::Line(file, line), Some(function)) = (place.at, &place.function) else { return };
        let path = run.program.path(file).to_path_buf();
        let functions = &mut self.files.entry(path).or_default().functions;
        functions.entry(function.clone()).or_insert((line, 0)).1 += count;
    }

    /// Lines that have code but did not run.
    fn add_missed(&mut self, run: &Run) {
        for (path, covered) in &mut self.files {
            let Some(name) = path.to_str() else { continue };
            let Ok(file) = run.program.source_file(name) else { continue };
            for line in run.program.lines_of(file).into_iter().filter(|line| *line > 0) {
                covered.lines.entry(line).or_insert(0);
            }
        }
    }

    /// In the format of lcov's tracefiles.
    pub fn write_lcov(&self, out: &mut dyn Write) -> io::Result<()> {
        for (path, covered) in &self.files {
            writeln!(out, "TN:\nSF:{}", path.display())?;
            for (function, (line, _)) in &covered.functions {
                writeln!(out, "FN:{line},{function}")?;
            }
            for (function, (_, count)) in &covered.functions {
                writeln!(out, "FNDA:{count},{function}")?;
            }
            let entered = covered.functions.values().filter(|(_, count)| *count > 0).count();
            writeln!(out, "FNF:{}\nFNH:{entered}", covered.functions.len())?;
            for (line, count) in &covered.lines {
                writeln!(out, "DA:{line},{count}")?;
            }
            let hit = covered.lines.values().filter(|count| **count > 0).count();
            writeln!(out, "LF:{}\nLH:{hit}\nend_of_record", covered.lines.len())?;
        }
        Ok(())
    }
}

/// How often each instruction ran.
fn counts(run: &Run) -> HashMap<trace::InstructionId, u64> {
    let trace = &run.trace;
    let mut paths: HashMap<PathId, u64> = HashMap::new();
    for time in (0..trace.records.len()).map(Time) {
        *paths.entry(trace.records.path(time)).or_default() += 1;
    }
    let mut counts = HashMap::new();
    for (path, times) in paths {
        for op in trace.code.ops(trace.code.path(path)) {
            *counts.entry(op.instruction).or_default() += times;
        }
    }
    counts
}
