//! How a recorded run ended, and what was counted on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::manifest::ByteString;

/// What is known once the run is over: the contents of `outcome.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// How the run ended.
    pub ending: Ending,
    /// What was counted, by name: `threads`, `syscalls`, `signals`, `switches`, …
    #[serde(default)]
    pub counters: BTreeMap<String, u64>,
    /// System calls that were answered with ENOSYS, and how often.
    #[serde(default)]
    pub unsupported: BTreeMap<String, u64>,
    /// What was switched off for the program, since it cannot be recorded.
    #[serde(default)]
    pub switched_off: BTreeSet<String>,
    /// Files too large to be kept whole: only what was read of them is in the log.
    #[serde(default)]
    pub partly_captured: Vec<ByteString>,
    /// Why recording stopped before the program ended, if it was the recorder's own doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

impl Outcome {
    /// An outcome with nothing counted yet.
    pub fn new(ending: Ending) -> Outcome {
        Outcome { ending, ..Outcome::default() }
    }

    /// An outcome of a run that could not be recorded to its end, for this reason.
    pub fn stopped(why: &str) -> Outcome {
        Outcome { stopped: Some(why.to_owned()), ..Outcome::default() }
    }

    /// How the run ended, in a few words.
    pub fn sentence(&self) -> String {
        match &self.stopped {
            Some(why) if self.ending == Ending::Unknown => {
                format!("unknown: recording stopped, since {why}")
            }
            _ => self.ending.to_string(),
        }
    }

    /// The counter of that name, 0 if nothing was counted.
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The program ended with this exit status.
    Exited(i32),
    /// A signal killed the program.
    Killed {
        /// Its number.
        signal: i32,
    },
    /// The process put another program in its place, which has a log of its own.
    Executed,
    /// The run went on, but only a part of it is in the recording.
    Cut,
    /// The recorder died before the program ended.
    #[default]
    Unknown,
}

impl Ending {
    /// The status a shell reports: the program's own, or 128+N if signal N killed it.
    ///
    /// An unknown ending is our own failure: 125.
    pub fn status(self) -> u8 {
        match self {
            Ending::Exited(status) => status as u8,
            Ending::Killed { signal } => 128u8.wrapping_add(signal as u8),
            Ending::Cut => 0,
            Ending::Executed | Ending::Unknown => 125,
        }
    }
}

impl Ending {
    /// The ending in a word or two, for a table.
    pub fn brief(self) -> String {
        match self {
            Ending::Exited(status) => format!("exit {status}"),
            Ending::Killed { signal } => {
                signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
            }
            Ending::Executed => "exec".to_owned(),
            Ending::Cut => "cut".to_owned(),
            Ending::Unknown => "unknown".to_owned(),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Exited(status) => write!(f, "exited with status {status}"),
            Ending::Killed { signal } => match signal_name(*signal) {
                Some(name) => write!(f, "killed by signal {signal} ({name})"),
                None => write!(f, "killed by signal {signal}"),
            },
            Ending::Executed => f.write_str("became another program"),
            Ending::Cut => f.write_str("went on; only a part of it is here"),
            Ending::Unknown => {
                f.write_str("unknown: the recorder was stopped before the program ended")
            }
        }
    }
}

/// The name of a classic signal on x86-64 Linux.
fn signal_name(signal: i32) -> Option<&'static str> {
    const NAMES: [&str; 31] = [
        "SIGHUP",
        "SIGINT",
        "SIGQUIT",
        "SIGILL",
        "SIGTRAP",
        "SIGABRT",
        "SIGBUS",
        "SIGFPE",
        "SIGKILL",
        "SIGUSR1",
        "SIGSEGV",
        "SIGUSR2",
        "SIGPIPE",
        "SIGALRM",
        "SIGTERM",
        "SIGSTKFLT",
        "SIGCHLD",
        "SIGCONT",
        "SIGSTOP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGXCPU",
        "SIGXFSZ",
        "SIGVTALRM",
        "SIGPROF",
        "SIGWINCH",
        "SIGIO",
        "SIGPWR",
        "SIGSYS",
    ];
    NAMES.get(usize::try_from(signal).ok()?.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_read_well() {
        assert_eq!(Ending::Exited(3).to_string(), "exited with status 3");
        assert_eq!(Ending::Killed { signal: 11 }.to_string(), "killed by signal 11 (SIGSEGV)");
        assert_eq!(Ending::Killed { signal: 31 }.to_string(), "killed by signal 31 (SIGSYS)");
        assert_eq!(Ending::Killed { signal: 40 }.to_string(), "killed by signal 40");
        assert_eq!(Ending::Killed { signal: -1 }.to_string(), "killed by signal -1");
    }

    #[test]
    fn endings_fit_a_table() {
        assert_eq!(Ending::Exited(3).brief(), "exit 3");
        assert_eq!(Ending::Killed { signal: 6 }.brief(), "SIGABRT");
        assert_eq!(Ending::Killed { signal: 64 }.brief(), "signal 64");
    }

    #[test]
    fn a_signal_gives_the_status_that_shells_report() {
        assert_eq!(Ending::Killed { signal: 11 }.status(), 139);
        assert_eq!(Ending::Exited(42).status(), 42);
    }

    #[test]
    fn an_outcome_is_plain_json() {
        let json = serde_json::to_string(&Ending::Killed { signal: 6 }).unwrap();
        assert_eq!(json, r#"{"killed":{"signal":6}}"#);
        assert_eq!(serde_json::to_string(&Ending::Exited(0)).unwrap(), r#"{"exited":0}"#);
        assert_eq!(serde_json::to_string(&Ending::Unknown).unwrap(), r#""unknown""#);
    }
}
