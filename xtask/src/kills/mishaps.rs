//! The ways in which a recording is cut short.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};

use super::eventually;
use crate::compat::Random;
use crate::why::Why;

/// What happens.
#[derive(Debug)]
pub enum Mishap {
    /// All processes are killed at once.
    AllKilled { after: Duration },
    /// One process is killed: the one that waits (0), or another of those there are.
    OneKilled { after: Duration, which: usize },
    /// The file system of the recording has so many bytes, beside captured files.
    DiskFull { bytes: u64 },
    /// All are killed, and the ends of all logs are lost or zero, as after a power cut.
    Torn { after: Duration, seed: u64 },
}

/// What is left.
pub struct Cut {
    pub recording: PathBuf,
    /// What the program wrote until then.
    pub shown: Vec<u8>,
    /// Are parts of logs missing that were once written?
    pub torn: bool,
    /// Did others of its processes go on?
    pub others: bool,
}

/// Programs and libraries that are captured take about so many bytes.
const CAPTURED: u64 = 24 << 20;
/// No run takes longer, nor what is left of it.
const LIMIT: Duration = Duration::from_secs(120);

impl Mishap {
    /// Chooses one, at some moment of a recording that takes so long.
    pub fn choose(takes: Duration, log_bytes: u64, random: &mut Random) -> Mishap {
        let part = (random.next() % 1000) as f64 / 1000.0;
        let after = takes.mul_f64(part);
        match random.next() % 10 {
            0..=4 => Mishap::AllKilled { after },
            5 | 6 => Mishap::OneKilled { after, which: random.next() as usize % 4 },
            7 => Mishap::DiskFull { bytes: (log_bytes as f64 * part) as u64 },
            _ => Mishap::Torn { after, seed: random.next() },
        }
    }

    /// Lets it happen to a recording of this program.
    pub fn let_happen(&self, why: &Why, argv: &[OsString], folder: &Path) -> Result<Cut> {
        let place = self.place(folder)?;
        let recording = place.join("rec");
        let shown = folder.join("shown");
        let child = start(&why.record(&recording, argv), &place.join("home"), &shown)?;
        let group = Pid::from_child(&child);
        let ended = self.strike(child);
        let _ = kill_process_group(group, Signal::KILL);
        ended?;
        if let Mishap::Torn { seed, .. } = self {
            tear(&recording, &mut Random(*seed | 1))?;
        }
        let torn = matches!(self, Mishap::Torn { .. });
        let others = matches!(self, Mishap::OneKilled { which, .. } if *which > 0);
        Ok(Cut { recording, shown: fs::read(shown)?, torn, others })
    }

    fn strike(&self, mut child: Child) -> Result<()> {
        let group = Pid::from_child(&child);
        match self {
            Mishap::AllKilled { after } | Mishap::Torn { after, .. } => {
                sleep(*after);
                let _ = kill_process_group(group, Signal::KILL); // it may have ended
                child.wait()?;
            }
            Mishap::OneKilled { after, which } => {
                sleep(*after);
                let all = descendants(group);
                let victim = all[which % all.len()];
                let _ = kill_process(victim, Signal::KILL);
                child.wait()?;
            }
            Mishap::DiskFull { .. } => _ = child.wait()?,
        }
        let gone = || test_kill_process_group(group).is_err();
        ensure!(eventually(LIMIT, gone), "processes are left over");
        Ok(())
    }

    /// The folder in which the recording is made.
    fn place(&self, folder: &Path) -> Result<PathBuf> {
        let place = folder.join("place");
        fs::create_dir_all(&place)?;
        if let Mishap::DiskFull { bytes } = self {
            let size = format!("size={}", CAPTURED + bytes);
            let mut mount = Command::new("mount");
            mount.args(["-t", "tmpfs", "-o", &size, "why"]).arg(&place);
            let mounted = mount.status().context("cannot run mount")?;
            ensure!(mounted.success(), "a small file system cannot be mounted; this needs root");
        }
        Ok(place)
    }

    /// Takes away what `let_happen` left.
    pub fn clean_up(&self, folder: &Path) -> Result<()> {
        if let Mishap::DiskFull { .. } = self {
            Command::new("umount").arg(folder.join("place")).status()?;
        }
        Ok(())
    }
}

fn start(argv: &[OsString], home: &Path, shown: &Path) -> Result<Child> {
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).env("WHY_DIR", home).current_dir("/").process_group(0);
    command.stdin(Stdio::null()).stdout(File::create(shown)?).stderr(Stdio::null());
    command.spawn().context("cannot start why")
}

/// A process and those that it started, directly or not.
fn descendants(first: Pid) -> Vec<Pid> {
    let parent = |pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<i32>().ok()
    };
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut all: Vec<i32> = names.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
    all.sort_unstable();
    let mut found = vec![first];
    for pid in all {
        let ours = parent(pid).and_then(Pid::from_raw).is_some_and(|p| found.contains(&p));
        found.extend(Pid::from_raw(pid).filter(|_| ours));
    }
    found
}

/// Cuts all logs and tails at random lengths, or makes what is behind zero.
fn tear(recording: &Path, random: &mut Random) -> Result<()> {
    let mut folders = vec![recording.to_owned()];
    if let Ok(entries) = fs::read_dir(recording.join("processes")) {
        folders.extend(entries.flatten().map(|entry| entry.path()));
    }
    folders.sort();
    for path in folders.iter().flat_map(|folder| ["log", "tail"].map(|name| folder.join(name))) {
        let Ok(file) = File::options().write(true).open(&path) else { continue };
        let whole = file.metadata()?.len();
        if random.next().is_multiple_of(4) {
            continue;
        }
        let kept = random.next() % (whole + 1);
        file.set_len(kept)?;
        if random.next().is_multiple_of(2) {
            file.set_len(whole)?;
        }
    }
    Ok(())
}
