//! `guests/guests.toml`: what guests there are, how each is built and run.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use regex::Regex;
use serde::Deserialize;

use crate::workspace;

#[derive(Deserialize)]
struct Table {
    guest: Vec<Guest>,
}

/// One guest of the table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guest {
    pub name: String,
    source: Option<String>,
    #[serde(default = "usual_variants")]
    pub variants: Vec<Variant>,
    #[serde(default)]
    pub flags: Vec<String>,
    #[serde(default)]
    pub group: Group,
    #[serde(default = "one_plain_run")]
    pub runs: Vec<Run>,
}

/// How a guest is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Variant {
    O0,
    O2,
    O3,
    #[serde(rename = "static")]
    Static,
    #[serde(rename = "static-pie")]
    StaticPie,
    #[serde(rename = "nopie")]
    NoPie,
    #[serde(rename = "musl")]
    Musl,
    #[serde(rename = "musl-dynamic")]
    MuslDynamic,
    #[serde(rename = "asm")]
    Assembly,
    #[serde(rename = "library")]
    Library,
    #[serde(rename = "script")]
    Script,
}

/// What a guest's runs have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    #[default]
    Native,
    Replay,
    Layout,
    Racy,
    /// Says something only the engine makes true: not checked natively.
    Engine,
    Support,
}

/// One way to run a guest.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Vec<String>,
    pub stdin: Option<String>,
    #[serde(default)]
    pub pieces: bool,
    #[serde(default)]
    pub exit: i32,
}

fn usual_variants() -> Vec<Variant> {
    vec![Variant::O2]
}

fn one_plain_run() -> Vec<Run> {
    vec![Run::default()]
}

/// Reads the table; with a filter, only guests it matches (and those that support others).
pub fn read(filter: Option<&Regex>) -> Result<Vec<Guest>> {
    let path = workspace::guest_sources().join("guests.toml");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let table: Table =
        toml::from_str(&text).with_context(|| format!("cannot understand {}", path.display()))?;
    let wanted = |guest: &Guest| {
        guest.group == Group::Support || filter.is_none_or(|filter| filter.is_match(&guest.name))
    };
    Ok(table.guest.into_iter().filter(wanted).collect())
}

impl Guest {
    /// The file it is built from.
    pub fn source(&self) -> PathBuf {
        let name = self.source.clone().unwrap_or_else(|| format!("{}.c", self.name));
        workspace::guest_sources().join(name)
    }

    /// The name of the program one variant is built into.
    pub fn program(&self, variant: Variant) -> String {
        format!("{}.{}", self.name, variant.name())
    }
}

impl Variant {
    /// As written in the table and in the program's name.
    pub fn name(self) -> &'static str {
        match self {
            Variant::O0 => "O0",
            Variant::O2 => "O2",
            Variant::O3 => "O3",
            Variant::Static => "static",
            Variant::StaticPie => "static-pie",
            Variant::NoPie => "nopie",
            Variant::Musl => "musl",
            Variant::MuslDynamic => "musl-dynamic",
            Variant::Assembly => "asm",
            Variant::Library => "library",
            Variant::Script => "script",
        }
    }
}

impl Run {
    /// A name that tells this run from the guest's others.
    pub fn title(&self, guest: &Guest, variant: Variant) -> String {
        let mut title = guest.program(variant);
        for argument in &self.args {
            let shown: String = argument
                .rsplit('/')
                .next()
                .unwrap_or("")
                .chars()
                .filter(|c| c.is_ascii_graphic())
                .take(24)
                .collect();
            title = format!("{title} {shown}");
        }
        if self.pieces { format!("{title} (pieces)") } else { title }
    }

    /// The command line, with `{out}` and `\xNN` filled in.
    pub fn argv(&self, guest: &Guest, variant: Variant, programs: &Path) -> Vec<OsString> {
        let mut argv = vec![programs.join(guest.program(variant)).into_os_string()];
        let out = programs.to_string_lossy();
        argv.extend(
            self.args
                .iter()
                .map(|argument| OsString::from_vec(with_bytes(&argument.replace("{out}", &out)))),
        );
        argv
    }

    /// Variables added to the usual environment.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        self.env
            .iter()
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name.into(), OsString::from_vec(with_bytes(value))))
            .collect()
    }
}

/// Replaces each `\xNN` by the byte it names.
fn with_bytes(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail
            .strip_prefix(b"x")
            .and_then(|hex| hex.get(..2))
            .and_then(|hex| std::str::from_utf8(hex).ok());
        match digits.filter(|_| first == b'\\').and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_readable_and_every_source_is_there() {
        for guest in read(None).unwrap() {
            assert!(guest.source().exists(), "{} has no source", guest.name);
            assert!(
                !guest.variants.is_empty() && !guest.runs.is_empty(),
                "{} never runs",
                guest.name
            );
        }
    }

    #[test]
    fn bytes_can_be_written_in_hexadecimal() {
        assert_eq!(with_bytes(r"a\xff\x00b\x\xg1"), b"a\xff\x00b\\x\\xg1");
    }
}
