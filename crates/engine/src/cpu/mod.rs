//! The CPU the guest sees: the same one on every machine.

pub mod baseline;
pub mod emulate;
pub mod xsave;

use crate::Error;

/// Can this machine run the engine and the baseline at all?
pub fn check_host() -> Result<(), Error> {
    for (there, name) in [
        (std::is_x86_feature_detected!("avx2"), "AVX2"),
        (std::is_x86_feature_detected!("bmi2"), "BMI2"),
        (std::is_x86_feature_detected!("fma"), "FMA"),
        (std::is_x86_feature_detected!("movbe"), "MOVBE"),
        (std::is_x86_feature_detected!("lzcnt"), "LZCNT"),
        (std::is_x86_feature_detected!("f16c"), "F16C"),
    ] {
        if !there {
            return Err(Error::LesserCpu(name.to_owned()));
        }
    }
    // SAFETY: reading the auxiliary vector.
    let hwcap2 = unsafe { libc::getauxval(libc::AT_HWCAP2) };
    if hwcap2 & 2 == 0 {
        return Err(Error::Machine(
            "the kernel does not let programs set the FS base (Linux 5.9 or newer does)".into(),
        ));
    }
    Ok(())
}
