//! The CPU the guest sees: the same one on every machine, unless it asked for ours.

pub mod baseline;
pub mod emulate;
pub mod features;
pub mod shown;
pub mod xsave;

use crate::Error;
use shown::Shown;

/// Can this machine run the engine and the baseline at all?
pub fn check_host() -> Result<(), Error> {
    check_features(features::BASELINE.iter().copied())?;
    // SAFETY: reading the auxiliary vector.
    let hwcap2 = unsafe { libc::getauxval(libc::AT_HWCAP2) };
    if hwcap2 & 2 == 0 {
        return Err(Error::Machine(
            "the kernel does not let programs set the FS base (Linux 5.9 or newer does)".into(),
        ));
    }
    Ok(())
}

/// Can this machine replay a run that needs these features, on this CPU?
pub fn check_recorded(features: &[String], cpu: &Shown) -> Result<(), Error> {
    check_host()?;
    check_features(features.iter().map(String::as_str))?;
    if !cpu.layout_is_hosts() {
        let what = "a vector state laid out as on the recorded CPU";
        return Err(Error::LesserCpu(what.to_owned()));
    }
    Ok(())
}

fn check_features<'a>(needed: impl IntoIterator<Item = &'a str>) -> Result<(), Error> {
    let missing = features::missing(needed, &features::host_cpuid);
    if missing.is_empty() { Ok(()) } else { Err(Error::LesserCpu(missing.join(", "))) }
}
