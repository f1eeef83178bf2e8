//! Running trials as less than we are: as an ordinary user, under a container's system call filter.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::why::Why;
use crate::workspace;

/// `nobody` and `nogroup` everywhere.
const NOBODY: u32 = 65534;

/// How commands are confined; by default not at all.
#[derive(Debug, Default)]
pub struct Confinement {
    user: Option<u32>,
    launcher: Option<PathBuf>,
}

impl Confinement {
    /// Prepares what was asked for. Being an ordinary user already needs no preparation.
    pub fn new(as_user: bool, seccomp: bool) -> Result<Confinement> {
        let user = (as_user && rustix::process::geteuid().is_root()).then_some(NOBODY);
        let launcher = if seccomp { Some(build_launcher()?) } else { None };
        Ok(Confinement { user, launcher })
    }

    /// Puts `why` and the launcher where the other user can reach them; the checkout may be private.
    pub fn stage(&mut self, why: Why, scratch: &Path) -> Result<Why> {
        if self.user.is_none() {
            return Ok(why);
        }
        let folder = scratch.join("bin");
        fs::create_dir(&folder)?;
        if let Some(launcher) = &mut self.launcher {
            *launcher = stage_file(launcher, &folder)?;
        }
        Ok(Why { binary: stage_file(&why.binary, &folder)? })
    }

    /// The same for the folder of built guests.
    pub fn stage_guests(&self, programs: &Path, scratch: &Path) -> Result<PathBuf> {
        if self.user.is_none() {
            return Ok(programs.to_path_buf());
        }
        let folder = scratch.join("guests");
        super::compare::copy_tree(programs, &folder)?;
        for item in fs::read_dir(&folder)? {
            let path = item?.path();
            if path.extension().is_some_and(|extension| extension == "script") {
                let (there, here) = (programs.to_string_lossy(), folder.to_string_lossy());
                fs::write(&path, fs::read_to_string(&path)?.replace(&*there, &here))?;
            }
        }
        Ok(folder)
    }

    /// The command line that runs `argv` confined.
    pub fn wrap(&self, argv: Vec<OsString>) -> Vec<OsString> {
        let mut wrapped: Vec<OsString> = Vec::new();
        if let Some(user) = self.user {
            wrapped.push("/usr/bin/setpriv".into());
            wrapped
                .extend([format!("--reuid={user}"), format!("--regid={user}")].map(OsString::from));
            wrapped.extend(["--clear-groups", "--no-new-privs", "--"].map(OsString::from));
        }
        wrapped.extend(self.launcher.iter().map(OsString::from));
        wrapped.extend(argv);
        wrapped
    }

    /// Makes the confined user the owner of one path.
    pub fn give(&self, path: &Path) -> Result<()> {
        match self.user {
            Some(user) => chown(path, Some(user), Some(user))
                .with_context(|| format!("cannot give {} away", path.display())),
            None => Ok(()),
        }
    }

    /// Makes the confined user the owner of a folder and all it holds.
    pub fn give_tree(&self, path: &Path) -> Result<()> {
        if self.user.is_none() || path.is_symlink() {
            return Ok(());
        }
        self.give(path)?;
        if path.is_dir() {
            for item in fs::read_dir(path)? {
                self.give_tree(&item?.path())?;
            }
        }
        Ok(())
    }
}

fn stage_file(file: &Path, folder: &Path) -> Result<PathBuf> {
    let staged = folder.join(file.file_name().context("a program needs a name")?);
    fs::copy(file, &staged).with_context(|| format!("cannot copy {}", file.display()))?;
    fs::set_permissions(&staged, fs::Permissions::from_mode(0o755))?;
    Ok(staged)
}

/// Compiles the launcher that installs the filter and becomes the command.
fn build_launcher() -> Result<PathBuf> {
    let source = workspace::root().join("xtask/launchers/container_seccomp.c");
    let launcher = workspace::target().join("container_seccomp");
    let status = Command::new("gcc")
        .args(["-O2", "-static", "-o"])
        .arg(&launcher)
        .arg(&source)
        .status()
        .context("cannot run gcc")?;
    if !status.success() {
        bail!("cannot compile {}", source.display());
    }
    Ok(launcher)
}
