//! What a recording was made of: all that is known before the program's first instruction.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::SystemTime;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::process::Process;

/// The format that this build writes for whole runs.
pub const FORMAT: u32 = 2;

/// The format of regions and slices, and the latest that this build reads.
pub const REGION_FORMAT: u32 = 4;

/// The contents of `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The format of the whole recording.
    pub format: u32,
    /// The version of `why` that made it.
    pub why: String,
    /// When it was made, in seconds since 1970-01-01 UTC.
    pub created: u64,
    /// The command line, the program's name first.
    pub command: Vec<ByteString>,
    /// The program's file, found in PATH and made absolute.
    pub program: ByteString,
    /// The working directory.
    pub directory: ByteString,
    /// The environment, each `NAME=value`.
    pub environment: Vec<ByteString>,
    /// The processor that the program saw.
    pub cpu: Cpu,
    /// The features that a processor needs to replay this.
    pub cpu_features: Vec<String>,
    /// The size of a memory page.
    pub page_size: u32,
    /// What the engine alone knows of the start: it defines and reads this.
    #[serde(default)]
    pub start: serde_json::Value,
    /// Which process of the run this is the log of, and how it came to be.
    #[serde(default)]
    pub process: Process,
    /// Which part of a run this is, if it is not the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<Region>,
}

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// Instructions of the run that come before it.
    pub from: u64,
    /// Are only the instructions of a slice in it?
    #[serde(default)]
    pub slice: bool,
}

impl Manifest {
    /// A manifest for a run of `command` that starts now; the rest is empty, to be filled in.
    pub fn new(command: Vec<ByteString>) -> Manifest {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Manifest {
            format: FORMAT,
            why: env!("CARGO_PKG_VERSION").to_owned(),
            created: now.as_secs(),
            program: command.first().cloned().unwrap_or_default(),
            command,
            directory: ByteString::default(),
            environment: Vec::new(),
            cpu: Cpu::V3,
            cpu_features: Vec::new(),
            page_size: 4096,
            start: serde_json::Value::Null,
            process: Process::default(),
            region: None,
        }
    }
}

/// The processor that CPUID shows to the recorded program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cpu {
    /// The common baseline, so that the recording replays on any machine of that level.
    #[default]
    #[serde(rename = "x86-64-v3")]
    V3,
    /// The recording machine's own: replays only where all its features are.
    #[serde(rename = "host")]
    Host,
}

/// Bytes as the system has them: names, arguments and paths need not be UTF-8.
///
/// In JSON it is a string if it is UTF-8, else `{"hex": "…"}`; nothing is lost.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteString(pub Vec<u8>);

impl ByteString {
    /// The bytes as the standard library's kind of string.
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }

    /// The bytes as a path.
    pub fn as_path(&self) -> &Path {
        Path::new(self.as_os_str())
    }
}

impl From<OsString> for ByteString {
    fn from(text: OsString) -> ByteString {
        ByteString(text.into_vec())
    }
}

impl<T: AsRef<OsStr> + ?Sized> From<&T> for ByteString {
    fn from(text: &T) -> ByteString {
        ByteString(text.as_ref().as_bytes().to_vec())
    }
}

impl fmt::Display for ByteString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        String::from_utf8_lossy(&self.0).fmt(f)
    }
}

impl fmt::Debug for ByteString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_os_str().fmt(f)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written<'a> {
    Text(std::borrow::Cow<'a, str>),
    Bytes {
        hex: String,
    },
    /// Only read: older recordings have some bytes so.
    Numbers(Vec<u8>),
}

impl Serialize for ByteString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => Written::Text(text.into()),
            Err(_) => Written::Bytes { hex: to_hex(&self.0) },
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ByteString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ByteString, D::Error> {
        match Written::deserialize(deserializer)? {
            Written::Text(text) => Ok(ByteString(text.into_owned().into_bytes())),
            Written::Numbers(bytes) => Ok(ByteString(bytes)),
            Written::Bytes { hex } => from_hex(&hex)
                .map(ByteString)
                .ok_or_else(|| D::Error::custom("not an even number of hexadecimal digits")),
        }
    }
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(bytes: &[u8], json: &str) {
        let string = ByteString(bytes.to_vec());
        assert_eq!(serde_json::to_string(&string).unwrap(), json);
        assert_eq!(serde_json::from_str::<ByteString>(json).unwrap(), string);
    }

    #[test]
    fn a_byte_string_survives_json() {
        there_and_back(b"plain", r#""plain""#);
        there_and_back("größer\n".as_bytes(), r#""größer\n""#);
        there_and_back(b"\xff\x00z", r#"{"hex":"ff007a"}"#);
    }

    #[test]
    fn bytes_written_as_numbers_are_read() {
        assert_eq!(serde_json::from_str::<ByteString>("[97,98]").unwrap().0, b"ab");
    }

    #[test]
    fn wrong_hexadecimal_is_refused() {
        for json in [r#"{"hex":"f"}"#, r#"{"hex":"zz"}"#, r#"{"hex":"éé"}"#, "7", "{}"] {
            assert!(serde_json::from_str::<ByteString>(json).is_err(), "{json}");
        }
    }
}
