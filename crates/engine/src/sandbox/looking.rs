//! Looking at what a descriptor is open on: `fstat`, entries of folders, terminals.

use super::calls::{error, unserved};
use super::files::text;
use super::world::Kind;
use super::{Sandbox, Served, stat};
use crate::kernel::process::Asked;
use crate::kernel::table;

impl Sandbox {
    pub(super) fn fstat(&mut self, fd: i32, at: u64) -> Served {
        match self.stat_of(fd) {
            Ok(bytes) => self.give(at, &bytes, 0),
            Err(served) => served,
        }
    }

    /// `struct stat` of a descriptor.
    pub(super) fn stat_of(&mut self, fd: i32) -> Result<Vec<u8>, Served> {
        let Some(open) = self.world.get(fd) else { return Err(error(libc::EBADF)) };
        let ids = (self.world.ids[1], self.world.ids[3]);
        let seconds = self.world.clock / 1_000_000_000;
        let made = |mode| stat::made(mode, 0, (2, 7), ids, seconds);
        let stream = |n: usize| match &self.world.facts.stream_stats[n] {
            Some(bytes) => bytes.clone(),
            // Never asked: as if it were a pipe, which is what a test would give.
            None => made(libc::S_IFIFO | 0o600),
        };
        Ok(match open.kind.clone() {
            Kind::Stdin => stream(0),
            Kind::Stdout => stream(1),
            Kind::Stderr => stream(2),
            Kind::File(node) => return Ok(self.node_stat(node)),
            Kind::Pipe { .. } => made(libc::S_IFIFO | 0o600),
            Kind::Null | Kind::Zero | Kind::Random => made(libc::S_IFCHR | 0o666),
            Kind::Folder(path) | Kind::Stream(path) => {
                match self.world.facts.stats.get(&(path.clone(), true)) {
                    Some(Ok(bytes)) => bytes.clone(),
                    _ => return Err(unserved(format!("fstat of {}", text(&path)))),
                }
            }
            Kind::Event { .. } | Kind::Epoll(_) => made(0o600),
            Kind::Foreign(what) => return Err(unserved(format!("fstat of {what}"))),
        })
    }

    /// `struct stat` of a file.
    pub(super) fn node_stat(&mut self, node: usize) -> Vec<u8> {
        let size = self.world.size(&mut self.replayer.process, node);
        let n = &self.world.nodes[node];
        let ids = (self.world.ids[1], self.world.ids[3]);
        match &n.stat {
            Some(bytes) if n.bytes.is_none() => bytes.clone(),
            Some(bytes) => stat::with_size(bytes.clone(), size),
            None => {
                let seconds = self.world.clock / 1_000_000_000;
                stat::made(libc::S_IFREG | 0o644, size, n.identity, ids, seconds)
            }
        }
    }

    /// A folder's entries, as they were then.
    pub(super) fn list(&mut self, asked: &Asked) -> Served {
        let fd = asked.fd(0);
        let Some(open) = self.world.get(fd) else { return error(libc::EBADF) };
        let (path, at) = match &open.kind {
            Kind::Folder(path) | Kind::Stream(path) => (path.clone(), open.offset as usize),
            _ => return error(libc::ENOTDIR),
        };
        if asked.number as u32 != table::getdents64 || self.folder_changed(&path) {
            return unserved(format!("the entries of {}", text(&path)));
        }
        let Some((all, true)) = self.world.facts.listings.get(&path) else {
            return unserved(format!("the entries of {}", text(&path)));
        };
        let rest = all.get(at..).unwrap_or_default();
        let mut len = 0;
        while let Some(entry) = rest.get(len..).filter(|e| e.len() >= 19) {
            let size = usize::from(u16::from_le_bytes([entry[16], entry[17]]));
            if size == 0 || len + size > asked.args[2] as usize {
                break;
            }
            len += size;
        }
        if len == 0 && !rest.is_empty() {
            return error(libc::EINVAL);
        }
        let bytes = rest[..len].to_vec();
        self.world.get_mut(fd).expect("seen").offset += len as u64;
        self.give(asked.args[1], &bytes, len as i64)
    }

    pub(super) fn folder_changed(&self, folder: &[u8]) -> bool {
        self.world.facts.changed.iter().any(|path| {
            path.rsplitn(2, |b| *b == b'/').nth(1) == Some(folder)
                && !matches!(self.world.names.get(path), Some(super::world::Name::File(n))
                    if self.world.nodes[*n].base.is_some())
        })
    }

    pub(super) fn io_control(&mut self, asked: &Asked) -> Served {
        let a = &asked.args;
        let Some(open) = self.world.get(asked.fd(0)) else { return error(libc::EBADF) };
        const TCGETS: u64 = 0x5401;
        const FIONREAD: u64 = 0x541b;
        let n = match &open.kind {
            Kind::Stdin => 0,
            Kind::Stdout => 1,
            Kind::Stderr => 2,
            Kind::Pipe { from: Some(pipe), .. } if a[1] == FIONREAD => {
                let held = self.world.pipes[*pipe].bytes.len() as u32;
                return self.give(a[2], &held.to_le_bytes(), 0);
            }
            Kind::Foreign(_) => return unserved(format!("ioctl {:#x}", a[1])),
            _ => return error(libc::ENOTTY),
        };
        match self.world.facts.stream_ioctls[n].get(&a[1]).cloned() {
            Some((result, _)) if result < 0 => Served::Value(result),
            Some((result, bytes)) if a[1] == TCGETS => self.give(a[2], &bytes[..36], result),
            Some((result, bytes)) if a[1] == 0x5413 => self.give(a[2], &bytes[..8], result),
            _ => {
                // The recorded run did not ask; a terminal would be a regular guess
                // only if `stat` said so.
                let stat = self.world.facts.stream_stats[n].as_deref();
                if stat.is_some_and(stat::is_device) {
                    return unserved(format!("ioctl {:#x} on a terminal", a[1]));
                }
                error(libc::ENOTTY)
            }
        }
    }
}
