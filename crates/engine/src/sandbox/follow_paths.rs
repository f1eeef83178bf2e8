//! Keeps paths and files in step while the replay follows the log.

use super::facts::Captured;
use super::paths::{Path, path_of};
use super::world::{Kind, Name, World};
use crate::kernel::files::What;
use crate::kernel::process::{Asked, Process};
use crate::kernel::table;
use recording::FileId;

impl World {
    /// Calls on paths. True if it was one.
    pub(super) fn follow_path(
        &mut self,
        process: &mut Process,
        asked: &Asked,
        result: i64,
    ) -> bool {
        let number = asked.number as u32;
        let Some(Path { path, follow, of }) = path_of(self, process, asked) else {
            return false;
        };
        if let Some(fd) = of {
            if number == table::newfstatat && result == 0 {
                self.follow_fstat(process, fd, asked.args[2]);
            }
            return true;
        }
        let original = self.facts.is_original(&path);
        match number {
            table::stat | table::lstat | table::newfstatat => {
                let at = if number == table::newfstatat { asked.args[2] } else { asked.args[1] };
                if original {
                    let bytes = process.machine.memory.read(at, 144).unwrap_or_default();
                    let said = if result < 0 { Err(result) } else { Ok(bytes) };
                    self.facts.stats.entry((path, follow)).or_insert(said);
                }
            }
            table::statx if result == 0 && original => {
                let bytes = process.machine.memory.read(asked.args[4], 256).unwrap_or_default();
                self.facts.wide_stats.entry((path, follow)).or_insert(bytes);
            }
            table::statx if original => {
                self.facts.stats.entry((path, follow)).or_insert(Err(result));
            }
            table::access | table::faccessat | table::faccessat2 if original => {
                let mode = if number == table::access { asked.args[1] } else { asked.args[2] };
                self.facts.accesses.entry((path, mode)).or_insert(result);
            }
            table::readlink | table::readlinkat if original => {
                let at = if number == table::readlink { asked.args[1] } else { asked.args[2] };
                let len = result.max(0) as usize;
                let bytes = process.machine.memory.read(at, len).unwrap_or_default();
                let said = if result < 0 { Err(result) } else { Ok(bytes) };
                self.facts.links.entry(path).or_insert(said);
            }
            table::open | table::openat | table::openat2 | table::creat => {
                self.follow_open(process, asked, result, path);
            }
            table::unlink | table::unlinkat | table::rmdir if result == 0 => {
                self.change(path, Name::Gone);
            }
            table::mkdir | table::mkdirat if result == 0 => self.change(path, Name::Folder),
            table::truncate if result == 0 => {
                if let Some(Name::File(node)) = self.names.get(&path).cloned() {
                    self.truncate(process, node, asked.args[1]);
                }
            }
            table::rename | table::renameat | table::renameat2 if result == 0 => {
                if let Some(to) = super::paths::second_path(self, process, asked) {
                    self.move_name(path, to);
                }
            }
            table::symlink | table::symlinkat | table::link | table::linkat if result == 0 => {
                // Rare enough that what is behind them need not be known.
                if let Some(to) = super::paths::second_path(self, process, asked) {
                    self.facts.changed.insert(to);
                }
            }
            table::chdir if result == 0 => self.cwd = path,
            _ => {}
        }
        true
    }

    pub(super) fn follow_open(
        &mut self,
        process: &mut Process,
        asked: &Asked,
        result: i64,
        path: Vec<u8>,
    ) {
        let flags = super::paths::open_flags(process, asked);
        let original = self.facts.is_original(&path);
        if result < 0 {
            if original {
                self.facts.opens.entry(path).or_insert(Err(result));
            }
            return;
        }
        let fd = result as i32;
        let what = process.files.get(fd).map(|d| d.what.clone());
        let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
        let kind = match what {
            Some(What::Regular { file, identity, .. }) => {
                let node = match self.names.get(&path) {
                    Some(Name::File(node)) => *node,
                    _ => self.captured(file.map(|f| f.0), identity),
                };
                if let Some(captured) = self.before_open(flags, file.map(|f| f.0), identity)
                    && original
                {
                    self.facts.opens.entry(path.clone()).or_insert(Ok(captured));
                }
                if flags & libc::O_TRUNC != 0 && writes {
                    self.truncate(process, node, 0);
                }
                self.names.insert(path.clone(), Name::File(node));
                Kind::File(node)
            }
            Some(What::Stdout) => Kind::Stdout,
            Some(What::Stderr) => Kind::Stderr,
            _ => self.other_kind(process, &path, flags),
        };
        if writes {
            self.facts.changed.insert(path);
        }
        self.open_at(fd, kind, flags, flags & libc::O_CLOEXEC != 0);
    }

    /// What a file held before it was opened, unless the call may have made it.
    fn before_open(
        &mut self,
        flags: i32,
        file: Option<FileId>,
        identity: (u64, u64),
    ) -> Option<Captured> {
        if let Some((before, identity)) = self.emptied.take() {
            return Some(Captured { file: Some(before.0), identity });
        }
        let emptied_or_made = flags & libc::O_TRUNC != 0 && flags & libc::O_CREAT != 0;
        (!emptied_or_made).then_some(Captured { file: file.map(|f| f.0), identity })
    }

    /// What a path without captured contents was opened as.
    pub(super) fn other_kind(&mut self, process: &mut Process, path: &[u8], flags: i32) -> Kind {
        match path {
            b"/dev/null" => return Kind::Null,
            b"/dev/zero" => return Kind::Zero,
            b"/dev/urandom" | b"/dev/random" => return Kind::Random,
            _ => {}
        }
        if flags & libc::O_DIRECTORY != 0 {
            return Kind::Folder(path.to_vec());
        }
        let special = [&b"/dev/"[..], b"/proc/", b"/sys/"].iter().any(|p| path.starts_with(p));
        if flags & libc::O_ACCMODE == libc::O_RDONLY || special {
            return Kind::Stream(path.to_vec());
        }
        // A regular file for writing only: its contents are not captured.
        let node = match self.names.get(path) {
            Some(Name::File(node)) => *node,
            _ => {
                let node = self.new_file();
                self.nodes[node].known = flags & (libc::O_TRUNC | libc::O_EXCL) != 0;
                self.names.insert(path.to_vec(), Name::File(node));
                node
            }
        };
        if flags & libc::O_TRUNC != 0 {
            self.truncate(process, node, 0);
        }
        Kind::File(node)
    }

    pub(super) fn follow_listing(&mut self, process: &mut Process, asked: &Asked, result: i64) {
        let fd = asked.fd(0);
        let Some(open) = self.get_mut(fd) else { return };
        let path = match &open.kind {
            Kind::Folder(path) | Kind::Stream(path) => path.clone(),
            _ => return,
        };
        open.kind = Kind::Folder(path.clone());
        let at = open.offset;
        open.offset += result as u64;
        let bytes = process.machine.memory.read(asked.args[1], result as usize).unwrap_or_default();
        if asked.number as u32 == table::getdents64 && self.facts.is_original(&path) {
            let entry = self.facts.listings.entry(path).or_default();
            if entry.0.len() as u64 == at {
                entry.0.extend_from_slice(&bytes);
                entry.1 = result == 0;
            }
        }
    }

    pub(super) fn follow_fstat(&mut self, process: &mut Process, fd: i32, at: u64) {
        let Some(bytes) = process.machine.memory.read(at, 144) else { return };
        match self.get(fd).map(|open| open.kind.clone()) {
            Some(Kind::Stdin) => self.facts.stream_stats[0] = Some(bytes),
            Some(Kind::Stdout) => self.facts.stream_stats[1] = Some(bytes),
            Some(Kind::Stderr) => self.facts.stream_stats[2] = Some(bytes),
            Some(Kind::File(node)) => {
                let identity = super::stat::identity(&bytes);
                let node = &mut self.nodes[node];
                node.identity = identity;
                node.stat = Some(bytes);
            }
            Some(Kind::Stream(path) | Kind::Folder(path)) => {
                if super::stat::is_folder(&bytes) {
                    self.get_mut(fd).expect("seen").kind = Kind::Folder(path.clone());
                }
                self.facts.stats.entry((path, true)).or_insert(Ok(bytes));
            }
            _ => {}
        }
    }

    /// A path is something else from now on.
    pub fn change(&mut self, path: Vec<u8>, name: Name) {
        self.facts.changed.insert(path.clone());
        self.names.insert(path, name);
    }
}
