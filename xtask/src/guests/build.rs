//! Compiling guests, each variant once, again only when its source is newer.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context, Result, bail};

use super::table::{Guest, Variant};
use crate::{parallel, workspace};

/// Builds every variant of every guest; the answer is the folder they are in.
pub fn build(guests: &[Guest], jobs: usize) -> Result<PathBuf> {
    let programs = workspace::guest_programs();
    fs::create_dir_all(&programs)?;
    let pairs: Vec<(&Guest, Variant)> = guests
        .iter()
        .flat_map(|guest| guest.variants.iter().map(move |variant| (guest, *variant)))
        .collect();
    let failures = Mutex::new(Vec::new());
    let work = |(guest, variant): &(&Guest, Variant)| build_one(guest, *variant, &programs);
    parallel::in_order(jobs, &pairs, work, |(guest, variant), result: Result<()>| {
        if let Err(error) = result {
            let mut failures = failures.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            failures.push(format!("{}: {error:#}", guest.program(*variant)));
        }
    });
    let failures = failures.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    if failures.is_empty() {
        Ok(programs)
    } else {
        bail!("some guests do not build:\n{}", failures.join("\n"))
    }
}

fn build_one(guest: &Guest, variant: Variant, programs: &Path) -> Result<()> {
    let (source, program) = (guest.source(), programs.join(guest.program(variant)));
    if up_to_date(&source, &program) {
        return Ok(());
    }
    if variant == Variant::Script {
        return fill_in_script(&source, &program, programs);
    }
    // Built beside and renamed, so that a program that is running is never written to.
    let fresh = programs.join(format!("{}.new", guest.program(variant)));
    let output = compiler(guest, variant, &source, &fresh)
        .output()
        .context("cannot run the compiler; try `cargo xtask setup`")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    fs::rename(&fresh, &program)?;
    Ok(())
}

fn up_to_date(source: &Path, program: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let table = workspace::guest_sources().join("guests.toml");
    let header = workspace::guest_sources().join("verdict.h");
    let newest_source =
        [changed(source), changed(&table), changed(&header)].into_iter().max().flatten();
    matches!((newest_source, changed(program)), (Some(source), Some(program)) if program > source)
}

fn fill_in_script(source: &Path, program: &Path, programs: &Path) -> Result<()> {
    let text = fs::read_to_string(source)?.replace("{out}", &programs.to_string_lossy());
    fs::write(program, text)?;
    fs::set_permissions(program, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

fn compiler(guest: &Guest, variant: Variant, source: &Path, program: &Path) -> Command {
    let mut command = match source.extension().and_then(|extension| extension.to_str()) {
        Some("rs") => return rust_compiler(variant, source, program),
        Some("cpp") => Command::new("g++"),
        _ if matches!(variant, Variant::Musl | Variant::MuslDynamic) => Command::new("musl-gcc"),
        _ => Command::new("gcc"),
    };
    command.args(["-g", "-Wall", "-Wextra", "-Wno-unused-result"]).args(variant_flags(variant));
    command.arg("-o").arg(program).arg(source).args(&guest.flags);
    command
}

fn variant_flags(variant: Variant) -> &'static [&'static str] {
    match variant {
        Variant::O0 => &["-O0"],
        Variant::O2 | Variant::MuslDynamic => &["-O2"],
        Variant::O3 => &["-O3"],
        Variant::Static | Variant::Musl => &["-O2", "-static"],
        Variant::StaticPie => &["-O2", "-static-pie"],
        Variant::NoPie => &["-O2", "-no-pie", "-fno-pie"],
        Variant::Assembly => &["-nostdlib", "-static"],
        Variant::Library => &["-O2", "-fPIC", "-shared"],
        Variant::Script => &[],
    }
}

/// Debug information is left out of Rust guests: it would be that of all of `std`.
fn rust_compiler(variant: Variant, source: &Path, program: &Path) -> Command {
    let mut command = Command::new("rustc");
    command.args(["--edition", "2024", "-C"]).arg(if variant == Variant::O0 {
        "opt-level=0"
    } else {
        "opt-level=2"
    });
    if variant == Variant::Static {
        command.args(["-C", "target-feature=+crt-static"]);
    }
    command.args(["--target", "x86_64-unknown-linux-gnu", "-o"]).arg(program).arg(source);
    command
}
