//! `--redact-env`: values that neither the program nor its recording shall have.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::Context;

/// What the program sees instead. Always the same, so that not even a length is told.
const PLACEHOLDER: &str = "redacted";

/// Names, or patterns of names, with `*` and `?` as in a shell.
pub fn run_without(patterns: &[String]) -> anyhow::Result<()> {
    let secret: Vec<OsString> = std::env::vars_os()
        .filter(|(name, value)| value != PLACEHOLDER && is_named(name, patterns))
        .map(|(name, _)| name)
        .collect();
    if secret.is_empty() {
        return Ok(());
    }
    // A process cannot take values out of the environment it was started with: others see it
    // in /proc, the recorded program among them. So we start once more.
    let mut words = std::env::args_os();
    let mut again = Command::new("/proc/self/exe");
    again.arg0(words.next().unwrap_or_default()).args(words);
    again.envs(secret.iter().map(|name| (name, PLACEHOLDER)));
    Err(again.exec()).context("cannot start why again without the redacted values")
}

fn is_named(name: &OsStr, patterns: &[String]) -> bool {
    patterns.iter().any(|pattern| fits(pattern.as_bytes(), name.as_bytes()))
}

/// Does the pattern fit the whole text?
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => (0..=text.len()).any(|n| fits(rest, &text[n..])),
        (Some((p, pattern)), Some((t, text))) => (p == t || *p == b'?') && fits(pattern, text),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fits_the_whole_name() {
        for (pattern, name) in [
            ("TOKEN", "TOKEN"),
            ("*_TOKEN", "GITHUB_TOKEN"),
            ("AWS_*", "AWS_SECRET_KEY"),
            ("*KEY*", "AWS_KEY_ID"),
            ("K?Y", "KEY"),
            ("*", "ANY"),
        ] {
            assert!(fits(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
        }
        for (pattern, name) in
            [("TOKEN", "MY_TOKEN"), ("*_TOKEN", "TOKEN"), ("AWS_*", "MY_AWS_X"), ("K?Y", "KY")]
        {
            assert!(!fits(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
        }
    }
}
