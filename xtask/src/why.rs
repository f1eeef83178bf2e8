//! The `why` under test: building it, and the command lines that record and replay.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace;

/// A `why` binary.
#[derive(Debug, Clone)]
pub struct Why {
    pub binary: PathBuf,
}

/// What `why info --json` says of a recording, as far as we use it.
#[derive(Debug, serde::Deserialize)]
pub struct Info {
    pub instructions: u64,
    #[serde(default)]
    pub log_bytes: Option<u64>,
}

impl Why {
    /// The one given, else the workspace's own, freshly built.
    pub fn given_or_built(given: Option<&Path>) -> Result<Why> {
        match given {
            Some(path) => Ok(Why {
                binary: path.canonicalize().with_context(|| format!("no {}", path.display()))?,
            }),
            None => Why::build(),
        }
    }

    fn build() -> Result<Why> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .args(["build", "--quiet", "--release", "--package", "why"])
            .current_dir(workspace::root())
            .status()
            .context("cannot run cargo")?;
        if !status.success() {
            bail!("cargo build --release --package why failed");
        }
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(workspace::target, PathBuf::from);
        Ok(Why { binary: target.join("x86_64-unknown-linux-gnu/release/why") })
    }

    /// `why record -q -o RECORDING -- PROGRAM…`
    pub fn record(&self, recording: &Path, program: &[OsString]) -> Vec<OsString> {
        self.record_with(&[], recording, program)
    }

    /// `why record OPTIONS… -q -o RECORDING -- PROGRAM…`
    pub fn record_with(
        &self,
        options: &[OsString],
        recording: &Path,
        program: &[OsString],
    ) -> Vec<OsString> {
        let mut argv: Vec<OsString> = vec![self.binary.clone().into(), "record".into()];
        argv.extend_from_slice(options);
        argv.extend(["-q".into(), "-o".into(), recording.into(), "--".into()]);
        argv.extend_from_slice(program);
        argv
    }

    /// `why replay RECORDING --verify -q`
    pub fn replay_verified(&self, recording: &Path) -> Vec<OsString> {
        vec![
            self.binary.clone().into(),
            "replay".into(),
            recording.into(),
            "--verify".into(),
            "-q".into(),
        ]
    }

    /// `why replay RECORDING -q`
    pub fn replay(&self, recording: &Path) -> Vec<OsString> {
        vec![self.binary.clone().into(), "replay".into(), recording.into(), "-q".into()]
    }

    /// `why info RECORDING --json`, read.
    pub fn info(&self, recording: &Path) -> Result<Info> {
        let output =
            Command::new(&self.binary).arg("info").arg(recording).arg("--json").output()?;
        serde_json::from_slice(&output.stdout).context("cannot read what `why info --json` printed")
    }
}
