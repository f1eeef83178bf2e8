//! Files as the recorded program knew them: its binaries, its maps, its auxiliary
//! vector.

use super::session::Session;
use crate::desk::Desk;
use crate::{Error, Timeline};
use gdbstub::common::Pid;
use gdbstub::target::TargetResult;
use gdbstub::target::ext::auxv::Auxv;
use gdbstub::target::ext::exec_file::ExecFile;
use gdbstub::target::ext::host_io::{
    FsKind, HostIo, HostIoClose, HostIoCloseOps, HostIoErrno, HostIoError, HostIoFstat,
    HostIoFstatOps, HostIoOpen, HostIoOpenFlags, HostIoOpenMode, HostIoOpenOps, HostIoPread,
    HostIoPreadOps, HostIoReadlink, HostIoReadlinkOps, HostIoResult, HostIoSetfs, HostIoSetfsOps,
    HostIoStat,
};
use recording::Recording;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What gdb has open, and what never changes.
pub struct Files {
    recording: Recording,
    open: BTreeMap<u32, Vec<u8>>,
    program: Vec<u8>,
    auxv: Vec<u8>,
}

impl Files {
    /// Of a recording.
    pub fn new(desk: &mut Desk) -> crate::Result<Files> {
        let recording = Recording::open(desk.timeline.recording())
            .map_err(|e| Error::Engine(engine::Error::from(e)))?;
        let files = desk.timeline.files()?;
        let program = files.first().map(|(path, _)| path.clone()).unwrap_or_default();
        let auxv = desk.auxv().to_vec();
        Ok(Files { recording, open: BTreeMap::new(), program, auxv })
    }

    fn contents(&self, timeline: &mut Timeline, path: &[u8]) -> Option<Vec<u8>> {
        if let Some(of_process) = path.strip_prefix(b"/proc/") {
            let (_, what) = of_process.split_at(of_process.iter().position(|b| *b == b'/')?);
            return match what {
                b"/maps" | b"/smaps" => Some(maps(timeline).ok()?.into_bytes()),
                b"/cmdline" => Some(self.command()),
                _ => None,
            };
        }
        let files = timeline.files().ok()?;
        let (_, id) = files.iter().find(|(p, _)| p == path)?;
        std::fs::read(self.recording.file(id.parse().ok()?)).ok()
    }

    fn command(&self) -> Vec<u8> {
        let words = &self.recording.manifest().command;
        words.iter().flat_map(|w| w.0.iter().copied().chain([0])).collect()
    }
}

/// What `/proc/PID/maps` would show.
fn maps(timeline: &mut Timeline) -> crate::Result<String> {
    let mut text = String::new();
    for r in timeline.regions()? {
        let bit = |n: usize, c| if r.protection[n] { c } else { '-' };
        let _ = writeln!(
            text,
            "{:08x}-{:08x} {}{}{}{} {:08x} 00:00 0 {:>26}{}",
            r.start,
            r.end,
            bit(0, 'r'),
            bit(1, 'w'),
            bit(2, 'x'),
            if r.shared { 's' } else { 'p' },
            r.offset,
            "",
            String::from_utf8_lossy(&r.name),
        );
    }
    Ok(text)
}

/// A piece of some bytes.
pub fn piece(bytes: &[u8], offset: u64, length: usize, out: &mut [u8]) -> usize {
    let rest = bytes.get(offset as usize..).unwrap_or(&[]);
    let n = rest.len().min(length).min(out.len());
    out[..n].copy_from_slice(&rest[..n]);
    n
}

impl ExecFile for Session {
    fn get_exec_file(
        &self,
        _: Option<Pid>,
        offset: u64,
        length: usize,
        bytes: &mut [u8],
    ) -> TargetResult<usize, Self> {
        Ok(piece(&self.files.program, offset, length, bytes))
    }
}

impl Auxv for Session {
    fn get_auxv(&self, offset: u64, length: usize, bytes: &mut [u8]) -> TargetResult<usize, Self> {
        Ok(piece(&self.files.auxv, offset, length, bytes))
    }
}

impl HostIo for Session {
    fn support_open(&mut self) -> Option<HostIoOpenOps<'_, Self>> {
        Some(self)
    }

    fn support_close(&mut self) -> Option<HostIoCloseOps<'_, Self>> {
        Some(self)
    }

    fn support_pread(&mut self) -> Option<HostIoPreadOps<'_, Self>> {
        Some(self)
    }

    fn support_fstat(&mut self) -> Option<HostIoFstatOps<'_, Self>> {
        Some(self)
    }

    fn support_readlink(&mut self) -> Option<HostIoReadlinkOps<'_, Self>> {
        Some(self)
    }

    fn support_setfs(&mut self) -> Option<HostIoSetfsOps<'_, Self>> {
        Some(self)
    }
}

fn refused<T>(errno: HostIoErrno) -> HostIoResult<T, Session> {
    Err(HostIoError::Errno(errno))
}

impl HostIoOpen for Session {
    fn open(
        &mut self,
        path: &[u8],
        flags: HostIoOpenFlags,
        _: HostIoOpenMode,
    ) -> HostIoResult<u32, Self> {
        let writes = HostIoOpenFlags::O_WRONLY | HostIoOpenFlags::O_RDWR | HostIoOpenFlags::O_CREAT;
        if flags.intersects(writes) {
            return refused(HostIoErrno::EROFS);
        }
        let Some(contents) = self.files.contents(&mut self.desk.timeline, path) else {
            return refused(HostIoErrno::ENOENT);
        };
        let fd = self.files.open.keys().next_back().map_or(3, |n| n + 1);
        self.files.open.insert(fd, contents);
        Ok(fd)
    }
}

impl HostIoClose for Session {
    fn close(&mut self, fd: u32) -> HostIoResult<(), Self> {
        match self.files.open.remove(&fd) {
            Some(_) => Ok(()),
            None => refused(HostIoErrno::EBADF),
        }
    }
}

impl HostIoPread for Session {
    fn pread(
        &mut self,
        fd: u32,
        count: usize,
        offset: u64,
        bytes: &mut [u8],
    ) -> HostIoResult<usize, Self> {
        match self.files.open.get(&fd) {
            Some(contents) => Ok(piece(contents, offset, count, bytes)),
            None => refused(HostIoErrno::EBADF),
        }
    }
}

impl HostIoFstat for Session {
    fn fstat(&mut self, fd: u32) -> HostIoResult<HostIoStat, Self> {
        let Some(contents) = self.files.open.get(&fd) else { return refused(HostIoErrno::EBADF) };
        let size = contents.len() as u64;
        Ok(HostIoStat {
            st_dev: 0,
            st_ino: 0,
            st_mode: HostIoOpenMode::S_IFREG | HostIoOpenMode::S_IRUSR,
            st_nlink: 1,
            st_uid: 0,
            st_gid: 0,
            st_rdev: 0,
            st_size: size,
            st_blksize: 4096,
            st_blocks: size.div_ceil(512),
            st_atime: 0,
            st_mtime: 0,
            st_ctime: 0,
        })
    }
}

impl HostIoReadlink for Session {
    fn readlink(&mut self, path: &[u8], bytes: &mut [u8]) -> HostIoResult<usize, Self> {
        let target = match path {
            p if p.starts_with(b"/proc/") && p.ends_with(b"/exe") => self.files.program.clone(),
            p if p.starts_with(b"/proc/") && p.ends_with(b"/cwd") => {
                self.files.recording.manifest().directory.0.clone()
            }
            _ => return refused(HostIoErrno::ENOENT),
        };
        Ok(piece(&target, 0, target.len(), bytes))
    }
}

impl HostIoSetfs for Session {
    fn setfs(&mut self, _: FsKind) -> HostIoResult<(), Self> {
        Ok(())
    }
}
