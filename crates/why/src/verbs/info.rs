//! `why info`: what is in a recording.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};

use clap::Args;
use recording::{ByteString, Cpu, Ending, Recording, Usage};
use serde::Serialize;

use crate::which::Which;
use crate::{engine_calls, notice, processes, show};

/// Show what is in a recording.
///
/// Of a run with several processes, all are listed; the rest is about the first one, or
/// that of -p.
#[derive(Args)]
#[command(after_help = "Examples:
  why info
  why info 7 --json
  why info -p 4711
  why info --json | jq .instructions")]
pub struct Info {
    #[command(flatten)]
    which: Which,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// No notices on stderr
    #[arg(short)]
    quiet: bool,
}

/// Columns that the names of facts take.
const NAMES: usize = 22;

impl Info {
    /// Prints what is known of the recording.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<u8> {
        let first = self.which.open()?;
        let recording = match self.which.process {
            Some(pid) => processes::numbered(&first, pid)?.last().clone(),
            None => first,
        };
        let counts = self.counts(&recording);
        let instructions = match &counts {
            Some(counts) => counts.get(&recording.process().log).copied(),
            None => self.instructions(&recording),
        };
        let mut facts = Facts::of(&recording, instructions)?;
        if recording.has_processes() {
            facts.processes = processes::entries(&recording, &counts.unwrap_or_default())?;
        }
        if let (Ending::Killed { .. }, Some(_)) = (facts.outcome, facts.instructions) {
            facts.crash = self.crash(&recording);
        }
        if self.json {
            serde_json::to_writer_pretty(&mut *out, &facts).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            for (name, value) in facts.lines() {
                show::hanging(&format!("{name:<21} "), &value, NAMES, out)?;
            }
            if !facts.processes.is_empty() {
                writeln!(out, "{:<21} {}", "processes", facts.processes.len())?;
            }
            for process in &facts.processes {
                process.write(out)?;
            }
        }
        Ok(0)
    }

    /// Where the program died, which takes two replays.
    fn crash(&self, recording: &Recording) -> Option<Crash> {
        match engine_calls::crash(recording) {
            Ok(crash) => crash.map(Crash::from),
            Err(failure) => {
                if !self.quiet {
                    notice(&format!("the crash cannot be located: {:#}", failure.error));
                }
                None
            }
        }
    }

    /// The number of instructions; counting them is a replay, so the number is kept.
    fn instructions(&self, recording: &Recording) -> Option<u64> {
        // A part of a run was counted when it was cut out.
        let cut = recording.outcome().filter(|_| recording.manifest().region.is_some());
        let counted = cut.map(|outcome| outcome.counter("instructions"));
        if let Some(kept) = counted.or_else(|| processes::kept(recording)) {
            return Some(kept);
        }
        self.say_counting();
        match engine_calls::count_instructions(recording) {
            Ok(count) => {
                processes::keep(recording, count);
                Some(count)
            }
            Err(failure) => self.uncounted(&failure),
        }
    }

    /// The instructions of every process's logs, if there are several.
    fn counts(&self, recording: &Recording) -> Option<BTreeMap<u64, u64>> {
        if !recording.has_processes() {
            return None;
        }
        self.say_counting();
        let first = recording.log(recording::Process::FIRST).ok()?;
        processes::count(&first).map_or_else(|failure| self.uncounted(&failure), Some)
    }

    fn say_counting(&self) {
        if !self.quiet && std::io::stderr().is_terminal() {
            notice("counting instructions…");
        }
    }

    fn uncounted<T>(&self, failure: &engine_calls::Failure) -> Option<T> {
        if !self.quiet {
            notice(&format!("the instructions cannot be counted: {:#}", failure.error));
        }
        None
    }
}

/// What was switched off for a process, or, if it is the first one, for any.
fn switched_off(recording: &Recording) -> recording::Result<BTreeSet<String>> {
    let first = recording.process().log == recording::Process::FIRST;
    let logs = if first && recording.has_processes() { recording.logs()? } else { Vec::new() };
    let outcomes = logs.iter().chain([recording]).filter_map(Recording::outcome);
    Ok(outcomes.flat_map(|outcome| outcome.switched_off.iter().cloned()).collect())
}

/// Where a program died.
#[derive(Serialize)]
struct Crash {
    thread: u32,
    /// The instruction that could not be executed.
    at: Place,
    /// The last instruction that was.
    last: Place,
}

#[derive(Serialize)]
struct Place {
    address: u64,
    file: Option<ByteString>,
    offset: Option<u64>,
}

impl From<engine::Crash> for Crash {
    fn from(crash: engine::Crash) -> Crash {
        Crash { thread: crash.thread.0, at: crash.at.into(), last: crash.last.into() }
    }
}

impl From<engine::Place> for Place {
    fn from(place: engine::Place) -> Place {
        let (file, offset) = place.file.unzip();
        Place { address: place.address, file: file.map(ByteString), offset }
    }
}

impl Place {
    fn line(&self) -> String {
        match (&self.file, self.offset) {
            (Some(file), Some(offset)) => {
                let file = show::command(std::slice::from_ref(file));
                format!("{:#x} ({file} +{offset:#x})", self.address)
            }
            _ => format!("{:#x} (no code there)", self.address),
        }
    }
}

/// What is known of a recording, as `--json` shows it. What is not known is null.
#[derive(Serialize)]
struct Facts {
    recording: ByteString,
    region: Option<recording::Region>,
    command: Vec<ByteString>,
    program: ByteString,
    working_directory: ByteString,
    created: u64,
    why: String,
    format: u32,
    cpu: Cpu,
    outcome: Ending,
    stopped: Option<String>,
    crash: Option<Crash>,
    threads: Option<u64>,
    instructions: Option<u64>,
    system_calls: Option<u64>,
    signals: Option<u64>,
    thread_switches: Option<u64>,
    files_captured: u64,
    files_partly_captured: Vec<ByteString>,
    unsupported_calls: BTreeMap<String, u64>,
    switched_off: BTreeSet<String>,
    size_bytes: u64,
    log_bytes: u64,
    file_bytes: u64,
    shared_bytes: u64,
    bits_per_instruction: Option<f64>,
    process: i32,
    processes: Vec<processes::Entry>,
}

impl Facts {
    fn of(recording: &Recording, instructions: Option<u64>) -> recording::Result<Facts> {
        let manifest = recording.manifest().clone();
        let counted = recording.outcome().cloned();
        let counter = |name: &str| Some(counted.as_ref()?.counter(name));
        let usage: Usage = recording.usage()?;
        Ok(Facts {
            recording: recording.dir().into(),
            command: manifest.command,
            program: manifest.program,
            working_directory: manifest.directory,
            region: manifest.region,
            created: manifest.created,
            why: manifest.why,
            format: manifest.format,
            cpu: manifest.cpu,
            crash: None,
            process: manifest.process.pid,
            processes: Vec::new(),
            threads: counter("threads"),
            instructions,
            system_calls: counter("syscalls"),
            signals: counter("signals"),
            thread_switches: counter("switches"),
            files_captured: usage.files,
            size_bytes: usage.total(),
            log_bytes: usage.log,
            file_bytes: usage.file_bytes,
            shared_bytes: usage.shared_bytes,
            bits_per_instruction: instructions
                .filter(|&count| count > 0)
                .map(|count| usage.log as f64 * 8.0 / count as f64),
            outcome: counted.as_ref().map(|outcome| outcome.ending).unwrap_or_default(),
            stopped: counted.as_ref().and_then(|outcome| outcome.stopped.clone()),
            files_partly_captured: counted
                .as_ref()
                .map(|outcome| outcome.partly_captured.clone())
                .unwrap_or_default(),
            unsupported_calls: counted.map(|outcome| outcome.unsupported).unwrap_or_default(),
            switched_off: switched_off(recording)?,
        })
    }

    /// The same for people: what it is called, and its value.
    fn lines(&self) -> Vec<(&'static str, String)> {
        let number = |count: Option<u64>| match count {
            Some(count) => count.to_string(),
            None => "not known".to_owned(),
        };
        let cpu = match self.cpu {
            Cpu::V3 => "x86-64-v3",
            Cpu::Host => "this machine's own (not portable)",
        };
        let date = show::date(self.created);
        let crash = self.crash.iter().flat_map(|crash| {
            [
                ("died at", format!("{} in thread {}", crash.at.line(), crash.thread)),
                ("last instruction", crash.last.line()),
            ]
        });
        let mut lines = vec![
            ("recording", show::command(std::slice::from_ref(&self.recording))),
            ("recorded", format!("{date} by why {}", self.why)),
            ("command", show::command(&self.command)),
            ("working directory", show::command(std::slice::from_ref(&self.working_directory))),
            ("processor shown", cpu.to_owned()),
            ("outcome", self.ending()),
            ("threads", number(self.threads)),
            ("instructions", number(self.instructions)),
            ("system calls", number(self.system_calls)),
            ("signals", number(self.signals)),
            ("thread switches", number(self.thread_switches)),
            ("unsupported calls", self.unsupported()),
            ("files captured", self.files()),
            ("size on disk", self.size()),
            ("bits per instruction", self.bits()),
        ];
        if !self.switched_off.is_empty() {
            lines.insert(12, ("switched off", show::listed(&self.switched_off)));
        }
        let after_outcome = 6;
        lines.splice(after_outcome..after_outcome, crash);
        let after_command = 3;
        lines.splice(after_command..after_command, self.part());
        lines
    }

    fn ending(&self) -> String {
        let (ending, stopped) = (self.outcome, self.stopped.clone());
        recording::Outcome { ending, stopped, ..Default::default() }.sentence()
    }

    /// Which part of a run it is.
    fn part(&self) -> Option<(&'static str, String)> {
        let region = self.region?;
        let what = if region.slice { "a slice" } else { "all" };
        Some(("part of the run", format!("{what} from its instruction {} on", region.from)))
    }

    fn unsupported(&self) -> String {
        if self.unsupported_calls.is_empty() {
            return "none".to_owned();
        }
        let each = self.unsupported_calls.iter().map(|(name, count)| format!("{name} ({count}×)"));
        each.collect::<Vec<_>>().join(", ")
    }

    fn files(&self) -> String {
        let mut text = self.files_captured.to_string();
        if !self.files_partly_captured.is_empty() {
            text += "; of these too large ones only what was read: ";
            text += &show::command(&self.files_partly_captured);
        }
        text
    }

    fn size(&self) -> String {
        let [all, log, files] = [self.size_bytes, self.log_bytes, self.file_bytes].map(show::size);
        let shared = match self.shared_bytes {
            0 => String::new(),
            bytes => format!(", {} of them shared with other recordings", show::size(bytes)),
        };
        format!("{all} (log {log}, files {files}{shared})")
    }

    fn bits(&self) -> String {
        self.bits_per_instruction.map_or("not known".to_owned(), |bits| format!("{bits:.4}"))
    }
}
