//! Recording again and again, until a run fails.

use std::io::{Read, Seek, SeekFrom, Write};

use anyhow::Context;
use recording::Home;
use rustix::fs::{FileType, MemfdFlags, fstat, memfd_create};

use super::Record;
use crate::notice;

/// As a shell has it: 128 and the number of SIGINT.
const INTERRUPTED: u8 = 130;

/// Records up to `most` times and keeps the first run that fails. Returns its status, or 1 if it
/// ended with 0 and failed nevertheless; 0 if none failed.
pub fn until_failure(record: &Record, most: u32, seed: Option<u64>) -> anyhow::Result<u8> {
    let input = Input::of_stdin()?;
    for n in 0..most {
        let seed = seed.map(|seed| seed.wrapping_add(n.into()));
        input.rewind()?;
        let run = record.once(seed, true)?;
        let Some(ending) = run.ending else { return Ok(run.status) };
        if engine::sandbox::is_interrupted() {
            // It may be the one that hangs.
            let dir = run.dir.display();
            notice(&format!(
                "interrupted in run {} of {most}, which is kept: recording {dir}",
                n + 1
            ));
            return Ok(INTERRUPTED);
        }
        if !record.expected.is_met(&run.dir, ending)? {
            if !record.quiet {
                let chaos = seed.map_or(String::new(), |seed| format!(" (chaos seed {seed})"));
                let dir = run.dir.display();
                notice(&format!("run {} of {most} failed{chaos}: recording {dir}", n + 1));
            }
            return Ok(run.status.max(1));
        }
        Home::from_env()?.remove(run.dir.as_os_str())?;
    }
    if !record.quiet {
        notice(&format!("none of {most} runs failed, and none is kept; more runs may tell"));
    }
    Ok(0)
}

/// Standard input, for every run from the same place.
enum Input {
    /// A file, and where it stood.
    From(u64),
    /// Nothing that could be read twice.
    AsItIs,
}

impl Input {
    /// Takes what a pipe has to say, so that each run gets it.
    fn of_stdin() -> anyhow::Result<Input> {
        let stdin = std::io::stdin();
        let kind = fstat(&stdin).map(|stat| FileType::from_raw_mode(stat.st_mode));
        match kind {
            Ok(FileType::RegularFile) => {
                let at = rustix::fs::tell(&stdin).context("cannot find the place in stdin")?;
                Ok(Input::From(at))
            }
            Ok(FileType::Fifo | FileType::Socket) => {
                let mut all = Vec::new();
                stdin.lock().read_to_end(&mut all).context("cannot read stdin")?;
                let file = memfd_create("stdin", MemfdFlags::CLOEXEC)?;
                let mut file = std::fs::File::from(file);
                file.write_all(&all)?;
                file.seek(SeekFrom::Start(0))?;
                rustix::stdio::dup2_stdin(&file)?;
                Ok(Input::From(0))
            }
            _ => Ok(Input::AsItIs),
        }
    }

    fn rewind(&self) -> anyhow::Result<()> {
        if let Input::From(at) = self {
            let to = rustix::fs::SeekFrom::Start(*at);
            rustix::fs::seek(std::io::stdin(), to).context("cannot read stdin again")?;
        }
        Ok(())
    }
}
