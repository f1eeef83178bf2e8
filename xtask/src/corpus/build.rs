//! Compiling the faulty and the fixed version of a program at both levels.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::manifest::{Faulty, Level};
use super::patch;

/// Which of the two versions of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    Faulty,
    Fixed,
}

impl Version {
    pub const ALL: [Version; 2] = [Version::Faulty, Version::Fixed];

    /// Its name in paths and messages.
    pub fn name(self) -> &'static str {
        match self {
            Version::Faulty => "faulty",
            Version::Fixed => "fixed",
        }
    }
}

/// Copies the sources of a version below `scratch`, patched if it is the fixed one; the answer is
/// the folder they are in.
pub fn unpack(program: &Faulty, version: Version, scratch: &Path) -> Result<PathBuf> {
    let folder = scratch.join(&program.name).join(version.name());
    fs::create_dir_all(&folder)?;
    let patches = patch::read(program)?;
    for file in program.manifest.sources.iter().chain(&program.manifest.headers) {
        let old = fs::read_to_string(program.folder.join(file))
            .with_context(|| format!("cannot read {}", file.display()))?;
        let new = match (version, patch::of(&patches, file)) {
            (Version::Fixed, Some(patch)) => patch.apply(&old)?,
            _ => old,
        };
        fs::write(folder.join(file), new)?;
    }
    Ok(folder)
}

/// Builds the sources in `folder`; the answer is the program.
pub fn build(program: &Faulty, level: Level, folder: &Path) -> Result<PathBuf> {
    let out = format!("{level:?}");
    let mut words = Vec::new();
    for word in program.manifest.build.command(level).split_whitespace() {
        match word {
            "{out}" => words.push(out.clone()),
            "{sources}" => {
                let sources = program.manifest.sources.iter();
                words.extend(sources.map(|source| source.to_string_lossy().into_owned()));
            }
            word => words.push(word.to_owned()),
        }
    }
    let (compiler, arguments) = words.split_first().context("an empty build command")?;
    let output = Command::new(compiler)
        .args(arguments)
        .current_dir(folder)
        .output()
        .with_context(|| format!("cannot run {compiler}; try `cargo xtask setup`"))?;
    if !output.status.success() {
        bail!("it does not build:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(folder.join(out))
}
