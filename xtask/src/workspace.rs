//! Where things are: the workspace, its build products, and scratch folders.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The root of the repository: where `cargo xtask` was called, also if the checkout was moved since
/// xtask was built.
pub fn root() -> PathBuf {
    let built = || Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf();
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(built, PathBuf::from);
    manifest.parent().unwrap_or(&manifest).to_path_buf()
}

/// Where builds go, the guests' among them.
pub fn target() -> PathBuf {
    root().join("target")
}

/// Sources of the guests and their table.
pub fn guest_sources() -> PathBuf {
    root().join("guests")
}

/// Built guests.
pub fn guest_programs() -> PathBuf {
    target().join("guests")
}

/// A fresh scratch folder that any user may enter; it vanishes with the returned value.
pub fn scratch(name: &str) -> Result<tempfile::TempDir> {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::Builder::new()
        .prefix(&format!("why-{name}-"))
        .tempdir()
        .context("cannot make a scratch folder")?;
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
    Ok(folder)
}
