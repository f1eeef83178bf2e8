//! What the guest finds about itself under `/proc`.

use super::session::Session;
use crate::guest::memory::Backing;
use std::io::Write;

/// The files whose real contents would show the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// `maps`
    Maps,
    /// `cmdline`
    CommandLine,
    /// `environ`
    Environment,
    /// `auxv`
    Auxiliary,
    /// `exe`
    Program,
    /// `fd`
    Descriptors,
    /// `mem`
    Memory,
}

/// Is the path one of the guest's own files?
pub fn own(path: &[u8], pid: u32) -> Option<Own> {
    let rest = path.strip_prefix(b"/proc/")?;
    let rest = rest
        .strip_prefix(b"self/task/")
        .or_else(|| rest.strip_prefix(b"thread-self"))
        .map(|r| r.iter().position(|b| *b == b'/').map_or(r, |n| &r[n..]))
        .or_else(|| rest.strip_prefix(b"self"))
        .or_else(|| rest.strip_prefix(pid.to_string().as_bytes()))?;
    match rest.strip_suffix(b"/").unwrap_or(rest) {
        b"/maps" => Some(Own::Maps),
        b"/cmdline" => Some(Own::CommandLine),
        b"/environ" => Some(Own::Environment),
        b"/auxv" => Some(Own::Auxiliary),
        b"/exe" => Some(Own::Program),
        b"/fd" => Some(Own::Descriptors),
        b"/mem" => Some(Own::Memory),
        _ => None,
    }
}

impl Session {
    /// The contents of one of those files.
    pub fn own_contents(&self, own: Own) -> Vec<u8> {
        match own {
            Own::Maps => self.maps(),
            Own::CommandLine => joined(&self.start.argv),
            Own::Environment => joined(&self.start.env),
            Own::Auxiliary | Own::Program | Own::Descriptors | Own::Memory => Vec::new(),
        }
    }

    fn maps(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (start, region) in self.process.machine.memory.regions() {
            let p = |bit: i32, c: char| if region.prot & bit != 0 { c } else { '-' };
            let (offset, name): (u64, &[u8]) = match &region.backing {
                Backing::Anonymous => (0, b""),
                Backing::Stack => (0, b"[stack]"),
                Backing::Heap => (0, b"[heap]"),
                Backing::File { path, offset } => (*offset, path),
            };
            let inode = if matches!(region.backing, Backing::File { .. }) { 1 } else { 0 };
            let line = format!(
                "{start:08x}-{:08x} {}{}{}{} {offset:08x} 00:{inode:02x} {inode}",
                region.end,
                p(libc::PROT_READ, 'r'),
                p(libc::PROT_WRITE, 'w'),
                p(libc::PROT_EXEC, 'x'),
                if region.shared { 's' } else { 'p' },
            );
            let _ = write!(out, "{line:<73}");
            out.extend_from_slice(name);
            out.push(b'\n');
        }
        out
    }
}

fn joined(strings: &[Vec<u8>]) -> Vec<u8> {
    strings.iter().flat_map(|s| s.iter().copied().chain([0])).collect()
}
