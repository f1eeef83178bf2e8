//! `why record`: run a program and record the run.

mod redact;
mod repeat;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use recording::{Cpu, Ending, Home, Recording, is_recording};

use crate::engine_calls::{self, RecordOptions};
use crate::expected::Expected;
use crate::{hung, notice, show};

/// Run a program and record the run.
///
/// The program keeps its stdin, stdout, stderr and environment. `why record` ends as it did: with
/// its exit status, or 128+N if signal N killed it; with 127 if there is no such program, 126 if it
/// cannot be executed, and 125 if recording failed.
#[derive(Args)]
#[command(
    override_usage = "why record [OPTIONS] [--] PROG [ARGS]...",
    after_help = "Examples:
  why record ./prog input.txt
  why record -o failing-run -- ./tests --filter parser
  why record --chaos --until-failure 200 --timeout 10 ./threaded-test
  why record --redact-env '*_TOKEN,PASSWORD' ./deploy
  generate | why record --max-size 2G sort -n"
)]
pub struct Record {
    /// Put the recording into DIR, a new or empty folder
    ///
    /// Else it gets the next number in `why list`.
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Stop when the recording gets larger, as in 500M or 2G
    #[arg(long, value_name = "SIZE", value_parser = show::parse_size)]
    max_size: Option<u64>,

    /// End the program if it runs longer, as in 30 or 1.5 (seconds)
    ///
    /// All its processes get SIGTERM, and SIGKILL two seconds later.
    #[arg(long, value_name = "TIME", value_parser = show::parse_time)]
    timeout: Option<Duration>,

    /// Vary the order in which threads run, by SEED or a random one
    ///
    /// Faults that depend on the order show more often. The seed is printed. It says how turns are
    /// drawn, not when the machine wakes a thread: the same seed may lead to another run.
    #[arg(long, value_name = "SEED", num_args = 0..=1, require_equals = true,
        default_missing_value = "random", value_parser = parse_seed)]
    chaos: Option<Seed>,

    /// Record up to N times, and keep the first run that fails
    ///
    /// A run fails if it does not do what the oracle options expect; without any, if it does not
    /// end with status 0. With `--chaos`, each run has a seed of its own.
    #[arg(long, value_name = "N")]
    until_failure: Option<u32>,

    #[command(flatten)]
    expected: Expected,

    /// Keep the values of these environment variables out of the recording
    ///
    /// NAME may have `*` and `?` in it, as in '*_TOKEN'. The program runs with `redacted` as their
    /// value, and so do all it starts: it cannot use what its recording shall not hold.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    redact_env: Vec<String>,

    /// The processor that the program sees
    ///
    /// `host` is this machine's own: the recording then replays only where all its features are.
    #[arg(long, value_name = "CPU", default_value = "v3", value_parser = parse_cpu)]
    cpu: Cpu,

    /// Do not name the recording on stderr
    #[arg(short)]
    quiet: bool,

    /// The program, found as a shell would, and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROG")]
    command: Vec<OsString>,
}

impl Record {
    /// Records, and returns the program's own status.
    pub fn run(&self) -> anyhow::Result<u8> {
        redact::run_without(&self.redact_env)?;
        if let Some(path) = self.output.clone().filter(|path| is_recording(path)) {
            return Err(recording::Error::FolderInUse { path }.into());
        }
        // Before the program runs, not after.
        self.expected.check().map_err(|error| anyhow::anyhow!("{error}"))?;
        let seed = self.chaos.map(|seed| seed.number());
        let Some(most) = self.until_failure else {
            let run = self.once(seed, self.quiet)?;
            if run.ending.is_some() {
                self.expected.remember(&Recording::open(&run.dir)?)?;
            }
            return Ok(run.status);
        };
        repeat::until_failure(self, most, seed)
    }

    /// Records one run.
    fn once(&self, seed: Option<u64>, quiet: bool) -> anyhow::Result<Run> {
        let home = Home::from_env()?;
        let numbered = match &self.output {
            Some(_) => None,
            None => Some(home.create_numbered()?),
        };
        let dir = self.output.clone().or(numbered.clone()).unwrap_or_default();
        let (program, args) = self.command.split_first().expect("clap requires a program");
        let begun = Instant::now();
        let result = engine_calls::record(&RecordOptions {
            dir: dir.clone(),
            program: program.clone(),
            args: args.to_vec(),
            cpu: self.cpu,
            timeout: self.timeout,
            max_bytes: self.max_size,
            chaos: seed,
            store: home.store(),
        });
        if let Some(numbered) = numbered.as_ref().filter(|dir| !is_recording(dir)) {
            home.discard(numbered)?;
        }
        if !quiet && is_recording(&dir) {
            let chaos = seed.map_or(String::new(), |seed| format!(", chaos seed {seed}"));
            notice(&format!("{}{chaos}", name_of(&dir, numbered.is_some())));
        }
        if let Some(off) = result.as_ref().ok().filter(|o| !quiet && !o.switched_off.is_empty()) {
            notice(&format!(
                "{} was switched off: it uses ptrace, which cannot be recorded",
                show::listed(&off.switched_off)
            ));
        }
        match result {
            Ok(outcome) => {
                let late = self.timeout.filter(|time| *time <= begun.elapsed());
                let stopped = || engine::sandbox::is_interrupted().then(|| begun.elapsed());
                if let Some(time) = late.or_else(stopped) {
                    hung::remember(&Recording::open(&dir)?, outcome.ending, time);
                }
                Ok(Run { dir, status: outcome.ending.status(), ending: Some(outcome.ending) })
            }
            Err(failure) => {
                notice(&format!("{:#}", failure.error));
                Ok(Run { dir, status: failure.status, ending: None })
            }
        }
    }
}

/// What became of one run.
struct Run {
    dir: PathBuf,
    /// With what `why record` ends.
    status: u8,
    /// How the program ended, if it could be recorded to its end.
    ending: Option<Ending>,
}

/// What a varied schedule is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seed {
    Given(u64),
    Random,
}

impl Seed {
    fn number(self) -> u64 {
        match self {
            Seed::Given(seed) => seed,
            Seed::Random => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                let now = now.map_or(0, |now| now.as_nanos() as u64);
                // Short enough to be typed again.
                (now ^ u64::from(std::process::id()) << 20) % 1_000_000_000
            }
        }
    }
}

fn parse_seed(text: &str) -> Result<Seed, String> {
    match text {
        "random" => Ok(Seed::Random),
        _ => text.parse().map(Seed::Given).map_err(|_| "a seed is a whole number".to_owned()),
    }
}

/// Records into the next numbered folder. Returns the program's status, and the
/// folder if there is a recording.
pub fn numbered(
    command: &[OsString],
    timeout: Option<Duration>,
    quiet: bool,
) -> anyhow::Result<(u8, Option<PathBuf>)> {
    let record = Record {
        output: None,
        max_size: None,
        timeout,
        chaos: None,
        until_failure: None,
        expected: Expected::default(),
        redact_env: Vec::new(),
        cpu: Cpu::V3,
        quiet,
        command: command.to_vec(),
    };
    let run = record.once(None, quiet)?;
    Ok((run.status, is_recording(&run.dir).then_some(run.dir)))
}

/// As the manifest writes it, or without its common beginning.
fn parse_cpu(name: &str) -> Result<Cpu, String> {
    match name {
        "v3" | "x86-64-v3" => Ok(Cpu::V3),
        "host" => Ok(Cpu::Host),
        _ => Err("it is one of v3, host".to_owned()),
    }
}

fn name_of(dir: &std::path::Path, numbered: bool) -> String {
    match dir.file_name() {
        Some(number) if numbered => {
            format!("recording {} ({})", number.display(), dir.display())
        }
        _ => format!("recording {}", dir.display()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        record: Record,
    }

    fn parsed(words: &[&str]) -> Record {
        Only::try_parse_from(["record"].iter().chain(words))
            .unwrap_or_else(|e| panic!("{e}"))
            .record
    }

    #[test]
    fn options_end_where_the_program_begins() {
        let record = parsed(&["-q", "ls", "-q", "--max-size", "-o", "--", "x"]);
        assert_eq!(record.command, ["ls", "-q", "--max-size", "-o", "--", "x"]);
        assert!(record.quiet && record.max_size.is_none() && record.output.is_none());
    }

    #[test]
    fn a_program_may_follow_two_dashes() {
        let record = parsed(&["--max-size", "2G", "-o", "d", "--", "-odd-name", "-o"]);
        assert_eq!(record.command, ["-odd-name", "-o"]);
        assert_eq!(record.max_size, Some(2 << 30));
        assert_eq!(record.output, Some(PathBuf::from("d")));
    }

    #[test]
    fn an_unknown_option_is_no_program() {
        assert!(Only::try_parse_from(["record", "--no-such", "ls"]).is_err());
        assert!(Only::try_parse_from(["record", "-z", "ls"]).is_err());
    }
}
