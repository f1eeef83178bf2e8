//! What the guest finds about itself under `/proc`.

use super::proc_sizes;
use super::session::Session;
use crate::guest::memory::{Backing, Memory};
use crate::guest::task::Task;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

/// The files whose real contents would show the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// `maps`
    Maps,
    /// `smaps`
    Sizes,
    /// `smaps_rollup`
    SizesTogether,
    /// `cmdline`
    CommandLine,
    /// `environ`
    Environment,
    /// `auxv`
    Auxiliary,
    /// `status`
    Status,
    /// `stat`
    Stat,
    /// `exe`
    Program,
    /// `fd`
    Descriptors,
    /// `mem`
    Memory,
}

impl Own {
    /// Are its contents made by the engine?
    pub fn is_shown(self) -> bool {
        !matches!(self, Own::Program | Own::Descriptors | Own::Memory)
    }
}

/// The part of a path below the process's own folder in `/proc`, by whatever name:
/// `/maps` of `/proc/self/maps`, `/proc/thread-self/maps`, `/proc/12/task/13/maps`.
fn below_own(path: &[u8], pid: i32) -> Option<&[u8]> {
    let rest = path.strip_prefix(b"/proc/")?;
    let number = pid.to_string();
    let rest = [&b"thread-self"[..], b"self", number.as_bytes()]
        .into_iter()
        .find_map(|name| rest.strip_prefix(name).filter(|r| r.starts_with(b"/")))?;
    match rest.strip_prefix(b"/task/") {
        // All threads show the same of what matters here.
        Some(task) => task.iter().position(|b| *b == b'/').map(|n| &task[n..]),
        None => Some(rest),
    }
}

/// Is the path one of the guest's own files?
pub fn own(path: &[u8], pid: i32) -> Option<Own> {
    let rest = below_own(path, pid)?;
    match rest.strip_suffix(b"/").unwrap_or(rest) {
        b"/maps" => Some(Own::Maps),
        b"/smaps" => Some(Own::Sizes),
        b"/smaps_rollup" => Some(Own::SizesTogether),
        b"/cmdline" => Some(Own::CommandLine),
        b"/environ" => Some(Own::Environment),
        b"/auxv" => Some(Own::Auxiliary),
        b"/status" => Some(Own::Status),
        b"/stat" => Some(Own::Stat),
        b"/exe" => Some(Own::Program),
        b"/fd" | b"/fdinfo" => Some(Own::Descriptors),
        b"/mem" => Some(Own::Memory),
        _ => None,
    }
}

/// The descriptor that a path under `/proc` names.
pub fn descriptor(path: &[u8], pid: i32) -> Option<i32> {
    let rest = below_own(path, pid)?;
    let name = rest.strip_prefix(b"/fd/").or_else(|| rest.strip_prefix(b"/fdinfo/"))?;
    std::str::from_utf8(name).ok()?.trim_end_matches('/').parse().ok()
}

impl Session {
    /// The contents of one of those files, where the real ones were found at `path`.
    pub fn own_contents(&self, own: Own, path: &[u8], task: &Task) -> Vec<u8> {
        match own {
            Own::Maps => maps(&self.process.machine.memory),
            Own::Sizes => proc_sizes::smaps(&self.maps_text(), &real(path)),
            Own::SizesTogether => {
                let all = path.strip_suffix(b"_rollup").unwrap_or(path);
                proc_sizes::rollup(&self.maps_text(), &real(all))
            }
            Own::CommandLine => joined(&self.start.argv),
            Own::Environment => joined(&self.start.env),
            Own::Auxiliary => self.process.loaded.auxv.clone(),
            Own::Status => self.status(&real(path), task),
            Own::Stat => self.stat(&real(path)),
            Own::Program | Own::Descriptors | Own::Memory => Vec::new(),
        }
    }

    fn maps_text(&self) -> String {
        String::from_utf8_lossy(&maps(&self.process.machine.memory)).into_owned()
    }

    /// `status`, with the guest's signals and size.
    fn status(&self, real: &str, task: &Task) -> Vec<u8> {
        let set = |wanted: &dyn Fn(u64) -> bool| {
            (1..=64)
                .filter(|n| wanted(self.process.actions.get(*n).handler))
                .fold(0, |set, n| set | crate::signal::only(n))
        };
        let size = self.size() / 1024;
        let mut out = String::new();
        for line in real.lines() {
            let field = line.split(':').next().unwrap_or_default();
            let text = match field {
                "VmPeak" | "VmSize" => format!("{field}:\t{size:8} kB"),
                "SigBlk" => format!("{field}:\t{:016x}", task.mask),
                "SigIgn" => format!("{field}:\t{:016x}", set(&|handler| handler == 1)),
                "SigCgt" => format!("{field}:\t{:016x}", set(&|handler| handler > 1)),
                "Threads" => format!("{field}:\t{}", self.threads),
                _ => line.to_owned(),
            };
            out.push_str(&text);
            out.push('\n');
        }
        out.into_bytes()
    }

    /// `stat`, with the guest's addresses.
    fn stat(&self, real: &str) -> Vec<u8> {
        // Fields are numbered from 1; the second, in brackets, may hold anything.
        let Some((head, tail)) = real.trim_end().rsplit_once(") ") else { return Vec::new() };
        let loaded = &self.process.loaded;
        let fields = tail.split(' ').zip(3u32..).map(|(value, n)| match n {
            20 => self.threads.to_string(),
            23 => self.size().to_string(),
            26 => loaded.code.start.to_string(),
            27 => loaded.code.end.to_string(),
            28 => loaded.stack.to_string(),
            47 => crate::layout::BRK.start.to_string(),
            48 => loaded.arguments.start.to_string(),
            49 => loaded.arguments.end.to_string(),
            50 => loaded.environment.start.to_string(),
            51 => loaded.environment.end.to_string(),
            _ => value.to_owned(),
        });
        format!("{head}) {}\n", fields.collect::<Vec<_>>().join(" ")).into_bytes()
    }

    fn size(&self) -> u64 {
        self.process.machine.memory.regions().map(|(start, region)| region.end - start).sum()
    }
}

/// `maps`: what the guest believes is mapped.
pub fn maps(memory: &Memory) -> Vec<u8> {
    let mut out = Vec::new();
    for (start, region) in memory.regions() {
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

/// What the kernel says there.
fn real(path: &[u8]) -> String {
    let path = OsStr::from_bytes(path);
    let bytes = crate::clerk::run(|| std::fs::read(path)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn joined(strings: &[Vec<u8>]) -> Vec<u8> {
    strings.iter().flat_map(|s| s.iter().copied().chain([0])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_files_are_known_by_every_name() {
        for path in [
            "/proc/self/maps",
            "/proc/12/maps",
            "/proc/thread-self/maps",
            "/proc/self/task/13/maps",
            "/proc/12/task/12/maps",
        ] {
            assert_eq!(own(path.as_bytes(), 12), Some(Own::Maps), "{path}");
        }
        for path in ["/proc/123/maps", "/proc/maps", "/proc/selfish/maps", "/proc/self/task/13"] {
            assert_eq!(own(path.as_bytes(), 12), None, "{path}");
        }
        assert_eq!(descriptor(b"/proc/12/fd/40", 12), Some(40));
        assert_eq!(descriptor(b"/proc/self/fd/", 12), None);
    }
}
