//! The processes of a run: which one is meant, and how they belong together.

use std::collections::BTreeMap;
use std::io::Write;

use recording::{Born, ByteString, Ending, Recording};
use serde::Serialize;

use crate::{engine_calls, notice, show};

/// Where the number of instructions of a log is kept once it has been counted.
const COUNTED: &str = "instructions";

/// Signals that a program dies of by its own fault.
const CRASHES: [i32; 7] = [
    4,  // SIGILL
    5,  // SIGTRAP
    6,  // SIGABRT
    7,  // SIGBUS
    8,  // SIGFPE
    11, // SIGSEGV
    31, // SIGSYS
];

/// One process: the logs it has, one for each program it executed.
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// Its logs in order.
    pub logs: Vec<Recording>,
    /// Number of the log of its parent, if that was recorded.
    parent: Option<u64>,
}

impl Process {
    /// The log of the program that it was at its end.
    pub fn last(&self) -> &Recording {
        self.logs.last().expect("a process has a log")
    }

    /// How it ended.
    pub fn ending(&self) -> Ending {
        self.last().outcome().map(|outcome| outcome.ending).unwrap_or_default()
    }
}

/// All processes of the run, parents before their children.
pub fn all(first: &Recording) -> recording::Result<Vec<Process>> {
    let mut processes: Vec<Process> = Vec::new();
    for log in first.logs()? {
        match log.process().born {
            Born::Executed { from } => {
                let of = processes.iter_mut().find(|process| process.last().process().log == from);
                if let Some(process) = of {
                    process.logs.push(log);
                    continue;
                }
                processes.push(Process { pid: log.process().pid, parent: None, logs: vec![log] });
            }
            Born::Started => {
                processes.push(Process { pid: log.process().pid, parent: None, logs: vec![log] });
            }
            Born::Forked { from, .. } => {
                let pid = log.process().pid;
                processes.push(Process { pid, parent: Some(from), logs: vec![log] });
            }
        }
    }
    Ok(processes)
}

/// The process with this number; the last one, if the kernel gave it twice.
pub fn numbered(first: &Recording, pid: i32) -> anyhow::Result<Process> {
    let found = all(first)?.into_iter().rfind(|process| process.pid == pid);
    match found {
        Some(process) => Ok(process),
        None => Err(recording::Error::NoProcess(pid).into()),
    }
}

/// The log that a question is about: of the process with this number, else of the first
/// process, unless another one crashed and that one did not.
pub fn choose(first: Recording, pid: Option<i32>, quiet: bool) -> anyhow::Result<Recording> {
    if let Some(pid) = pid {
        return Ok(numbered(&first, pid)?.last().clone());
    }
    let own_fault = |ending: Option<Ending>| matches!(ending, Some(Ending::Killed { signal }) if CRASHES.contains(&signal));
    let ending = |log: &Recording| log.outcome().map(|outcome| outcome.ending);
    let asked_for_one = first.process().log != recording::Process::FIRST;
    if asked_for_one || !first.has_processes() || own_fault(ending(&first)) {
        return Ok(first);
    }
    let Some(failed) = first.logs()?.into_iter().find(|log| own_fault(ending(log))) else {
        return Ok(first);
    };
    if !quiet {
        let command = show::command(&failed.manifest().command);
        let how = failed.outcome().map(|outcome| outcome.ending).unwrap_or_default();
        let pid = failed.process().pid;
        notice(&format!("about process {pid} ({command}), {how}; -p PID chooses another"));
    }
    Ok(failed)
}

/// The last process that failed while none that it started did, if that is not the first one:
/// a shell or `make` only passes on that somebody failed.
pub fn failed_by_itself(first: &Recording) -> recording::Result<Option<Process>> {
    let processes = all(first)?;
    let failed = |process: &Process| match process.ending() {
        Ending::Exited(status) => status != 0,
        Ending::Killed { .. } => true,
        _ => false,
    };
    let passed_on: Vec<u64> =
        processes.iter().filter(|p| failed(p)).filter_map(|p| p.parent).collect();
    let passes_on = |p: &Process| p.logs.iter().any(|log| passed_on.contains(&log.process().log));
    let found = processes.into_iter().skip(1).rfind(|p| failed(p) && !passes_on(p));
    Ok(found)
}

/// What `why info` says of one process.
#[derive(Serialize)]
pub struct Entry {
    pid: i32,
    parent: Option<i32>,
    command: Vec<ByteString>,
    outcome: Ending,
    instructions: Option<u64>,
    #[serde(skip)]
    depth: usize,
}

impl Entry {
    /// For people.
    pub fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let instructions = match self.instructions {
            Some(count) => format!("{count} instructions"),
            None => "instructions not known".to_owned(),
        };
        // Deeper ones stand no further to the right: there must be room for what they are.
        let indent = "  ".repeat(self.depth.min(DEEPEST));
        let command = shortened(show::command(&self.command));
        let text = format!("{command}: {}, {instructions}", self.outcome);
        let begin = format!("  {:<8}{indent}", self.pid);
        show::hanging(&begin, &text, begin.len() + 2, out)
    }
}

/// Generations that are shown by indentation.
const DEEPEST: usize = 12;

/// Command lines of compilers are longer than anybody reads.
fn shortened(command: String) -> String {
    const MOST: usize = 100;
    match command.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &command[..end]),
        None => command,
    }
}

/// All processes as a tree, in the order they began.
pub fn entries(first: &Recording, counts: &BTreeMap<u64, u64>) -> recording::Result<Vec<Entry>> {
    let processes = all(first)?;
    let owner =
        |log: u64| processes.iter().position(|p| p.logs.iter().any(|l| l.process().log == log));
    let parents: Vec<Option<usize>> =
        processes.iter().map(|process| process.parent.and_then(owner)).collect();
    let depth = |mut n: usize| {
        let mut depth = 0;
        while let Some(parent) = parents[n].filter(|parent| *parent < n) {
            (n, depth) = (parent, depth + 1);
        }
        depth
    };
    let entry = |n: usize| {
        let process = &processes[n];
        let counted: Option<Vec<u64>> =
            process.logs.iter().map(|log| counts.get(&log.process().log).copied()).collect();
        Entry {
            pid: process.pid,
            parent: parents[n].map(|parent| processes[parent].pid),
            command: process.last().manifest().command.clone(),
            outcome: process.ending(),
            instructions: counted.map(|all| all.iter().sum()),
            depth: depth(n),
        }
    };
    Ok(family_order(&parents).into_iter().map(entry).collect())
}

/// Each process before its children, those in the order they began.
fn family_order(parents: &[Option<usize>]) -> Vec<usize> {
    let mut children: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for (n, parent) in parents.iter().enumerate() {
        children.entry(parent.filter(|parent| *parent < n)).or_default().push(n);
    }
    let mut order = Vec::new();
    let mut open: Vec<usize> = children.remove(&None).unwrap_or_default();
    open.reverse();
    while let Some(n) = open.pop() {
        order.push(n);
        open.extend(children.remove(&Some(n)).unwrap_or_default().into_iter().rev());
    }
    order
}

/// The instructions of each log. Counting them is a replay, so the numbers are kept.
pub fn count(first: &Recording) -> Result<BTreeMap<u64, u64>, engine_calls::Failure> {
    let logs = first.logs().map_err(engine::Error::from)?;
    let kept: Option<BTreeMap<u64, u64>> =
        logs.iter().map(|log| Some((log.process().log, kept(log)?))).collect();
    if let Some(kept) = kept {
        return Ok(kept);
    }
    let counts = engine_calls::count_all(first)?;
    for log in &logs {
        // One that still runs has more to come.
        if let Some(count) = counts.get(&log.process().log).filter(|_| log.outcome().is_some()) {
            keep(log, *count);
        }
    }
    Ok(counts)
}

/// The number of instructions of a log, if it was kept.
pub fn kept(log: &Recording) -> Option<u64> {
    std::fs::read_to_string(log.derived(COUNTED)).ok()?.trim().parse().ok()
}

/// Keeps it. A recording that cannot be written to is counted again next time.
pub fn keep(log: &Recording, count: u64) {
    let _ = log.keep_derived(COUNTED, count.to_string().as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_stand_behind_their_parents_in_the_order_they_began() {
        let parents = [None, Some(0), Some(0), Some(1), Some(0)];
        assert_eq!(family_order(&parents), [0, 1, 3, 2, 4]);
    }
}
