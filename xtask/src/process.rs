//! Running one process to its end: fixed environment, given input, captured output, a time limit.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// What to run and under which circumstances.
#[derive(Debug, Clone)]
pub struct Program {
    pub argv: Vec<OsString>,
    pub folder: PathBuf,
    pub environment: Vec<(OsString, OsString)>,
    pub stdin: Stdin,
    pub limit: Duration,
    /// Whether the output is wanted; otherwise it goes to /dev/null.
    pub captured: bool,
}

/// Where standard input comes from.
#[derive(Debug, Clone)]
pub enum Stdin {
    Empty,
    /// A regular file, as with `< file`.
    File(PathBuf),
    /// A pipe whose writer sends a few bytes at a time and pauses in between.
    Pieces(Vec<u8>),
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Exited(i32),
    Killed(i32),
    TimedOut,
}

impl Status {
    /// The number a shell would show: 128+N for signal N.
    pub fn as_shell(self) -> Option<i32> {
        match self {
            Status::Exited(code) => Some(code),
            Status::Killed(signal) => Some(128 + signal),
            Status::TimedOut => None,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Exited(code) => write!(out, "status {code}"),
            Status::Killed(signal) => write!(out, "killed by signal {signal}"),
            Status::TimedOut => write!(out, "timed out"),
        }
    }
}

/// What a process left behind.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub status: Status,
    pub elapsed: Duration,
}

impl Program {
    /// A program with the environment every trial shares.
    pub fn new(argv: Vec<OsString>, folder: PathBuf) -> Program {
        Program {
            argv,
            folder,
            environment: shared_environment(),
            stdin: Stdin::Empty,
            limit: Duration::from_secs(120),
            captured: true,
        }
    }

    /// Adds or replaces one environment variable.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        let name = name.into();
        self.environment.retain(|(known, _)| *known != name);
        self.environment.push((name, value.into()));
    }

    /// Runs it to its end or its time limit.
    pub fn run(&self) -> Result<Outcome> {
        let mut command = self.command()?;
        let start = Instant::now();
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {}", self.argv[0].to_string_lossy()))?;
        let writer = self.feed(&mut child);
        let stdout = collect(child.stdout.take());
        let stderr = collect(child.stderr.take());
        let (status, elapsed) = wait(child, start, self.limit)?;
        let outcome = Outcome { stdout: joined(stdout), stderr: joined(stderr), status, elapsed };
        drop(writer);
        Ok(outcome)
    }

    fn command(&self) -> Result<Command> {
        let output = || {
            if self.captured { Stdio::piped() } else { Stdio::null() }
        };
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]).current_dir(&self.folder).env_clear();
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdout(output()).stderr(output()).process_group(0);
        command.stdin(match &self.stdin {
            Stdin::Empty => Stdio::null(),
            Stdin::File(path) => {
                File::open(path).with_context(|| format!("cannot open {}", path.display()))?.into()
            }
            Stdin::Pieces(_) => Stdio::piped(),
        });
        Ok(command)
    }

    fn feed(&self, child: &mut Child) -> Option<thread::JoinHandle<()>> {
        let Stdin::Pieces(bytes) = &self.stdin else {
            return None;
        };
        let (bytes, mut pipe) = (bytes.clone(), child.stdin.take()?);
        Some(thread::spawn(move || {
            for piece in bytes.chunks(5) {
                thread::sleep(Duration::from_millis(3));
                if pipe.write_all(piece).is_err() {
                    break; // the reader has gone; its own status tells why
                }
            }
        }))
    }
}

fn shared_environment() -> Vec<(OsString, OsString)> {
    let pairs = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", "/nonexistent"),
        ("LANG", "C.UTF-8"),
        ("TZ", "UTC"),
        ("TERM", "dumb"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("PYTHONHASHSEED", "0"),
        ("PERL_HASH_SEED", "0"),
    ];
    pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

type Collector = Option<thread::JoinHandle<Vec<u8>>>;

fn collect(pipe: Option<impl Read + Send + 'static>) -> Collector {
    let mut pipe = pipe?;
    Some(thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is still worth comparing.
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    }))
}

fn joined(collector: Collector) -> Vec<u8> {
    collector.and_then(|thread| thread.join().ok()).unwrap_or_default()
}

/// Waits for the child; a second thread kills its process group when the limit is reached.
fn wait(mut child: Child, start: Instant, limit: Duration) -> Result<(Status, Duration)> {
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
    let pid = Pid::from_child(&child);
    let (finished, wait_for_end) = mpsc::channel::<()>();
    let guard = thread::spawn(move || {
        let timed_out = wait_for_end.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout);
        if timed_out {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        timed_out
    });
    // Without reaping it, so that its id stays its own until the guard has let go.
    while let Err(rustix::io::Errno::INTR) =
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
    {}
    let elapsed = start.elapsed();
    drop(finished);
    let timed_out = guard.join().unwrap_or(false);
    // Anything it left running in its group would keep our pipes open.
    let _ = kill_process_group(pid, Signal::KILL);
    let status = child.wait().context("cannot wait for the process")?;
    Ok((if timed_out { Status::TimedOut } else { status.into() }, elapsed))
}

impl From<ExitStatus> for Status {
    fn from(status: ExitStatus) -> Status {
        match (status.code(), status.signal()) {
            (Some(code), _) => Status::Exited(code),
            (None, signal) => Status::Killed(signal.unwrap_or(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        let argv = ["/bin/sh", "-c", script].map(OsString::from).to_vec();
        Program::new(argv, PathBuf::from("/"))
    }

    #[test]
    fn output_and_status_are_captured() {
        let outcome = shell("echo out; echo err >&2; exit 3").run().unwrap();
        assert_eq!(
            (outcome.stdout.as_slice(), outcome.stderr.as_slice()),
            (&b"out\n"[..], &b"err\n"[..])
        );
        assert_eq!(outcome.status, Status::Exited(3));
    }

    #[test]
    fn a_fatal_signal_shows_as_128_plus_its_number() {
        assert_eq!(shell("kill -TERM $$").run().unwrap().status.as_shell(), Some(143));
    }

    #[test]
    fn a_program_over_its_limit_is_killed_with_its_children() {
        let mut program = shell("sleep 100 & sleep 100");
        program.limit = Duration::from_millis(100);
        let start = Instant::now();
        assert_eq!(program.run().unwrap().status, Status::TimedOut);
        assert!(start.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn input_in_pieces_arrives_whole() {
        let mut program = shell("cat");
        program.stdin = Stdin::Pieces(b"0123456789abcdef".to_vec());
        assert_eq!(program.run().unwrap().stdout, b"0123456789abcdef");
    }
}
