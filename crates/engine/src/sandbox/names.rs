//! Calls on paths: opening, looking, changing.
//!
//! A path that neither the recording knows nor the run made ends the trial: whether
//! such a file exists cannot be told.

use super::calls::{error, unserved};
use super::files::text;
use super::paths::{Path, open_flags, path_of, second_path};
use super::world::{Kind, Name};
use super::{Sandbox, Served, stat};
use crate::kernel::process::Asked;
use crate::kernel::table;
use crate::record::proc_self::{Own, maps, own};

/// The catalogue of messages of a locale that has none.
fn is_untranslated(path: &[u8]) -> bool {
    let part = |name: &[u8]| path.windows(name.len()).any(|w| w == name);
    path.ends_with(b".mo") && (part(b"/C.UTF-8/") || part(b"/C.utf8/") || part(b"/C/"))
}

impl Sandbox {
    /// `None` if the call is not one of these.
    pub(super) fn name_call(&mut self, asked: &Asked) -> Option<Served> {
        let number = asked.number as u32;
        let Some(path) = path_of(&self.world, &self.replayer.process, asked) else {
            return self.names_a_path(number).then_some(error(libc::EFAULT));
        };
        let a = &asked.args;
        Some(match number {
            table::open | table::openat | table::openat2 | table::creat => self.open(asked, path),
            table::stat | table::lstat => self.stat(path, a[1], false),
            table::newfstatat => self.stat(path, a[2], false),
            table::statx => self.stat(path, a[4], true),
            table::access => self.access(path, a[1]),
            table::faccessat | table::faccessat2 => self.access(path, a[2]),
            table::readlink => self.read_link(path, a[1], a[2]),
            table::readlinkat => self.read_link(path, a[2], a[3]),
            table::unlink => self.unlink(path, false),
            table::unlinkat => self.unlink(path, a[2] as i32 & libc::AT_REMOVEDIR != 0),
            table::rmdir => self.unlink(path, true),
            table::mkdir | table::mkdirat => self.make_folder(path),
            table::rename | table::renameat | table::renameat2 => self.rename(asked, path),
            table::symlink | table::symlinkat => self.make_link(asked),
            table::chdir => self.change_folder(path),
            table::truncate => match self.look_up(&path.path, true) {
                Some((_, Name::File(node))) if a[1] <= self.limits.memory => {
                    self.world.truncate(&mut self.replayer.process, node, a[1]);
                    Served::Value(0)
                }
                found => self.absent(found, &path.path, "truncate"),
            },
            table::chmod
            | table::fchmodat
            | table::chown
            | table::lchown
            | table::fchownat
            | table::utime
            | table::utimes
            | table::utimensat
            | table::futimesat => match self.look_up(&path.path, path.follow) {
                Some((_, Name::Gone)) => error(libc::ENOENT),
                Some(_) => Served::Value(0),
                None => self.unknown(&path.path, "chmod"),
            },
            table::getxattr | table::lgetxattr => error(libc::ENODATA),
            table::listxattr | table::llistxattr => Served::Value(0),
            _ => self.unknown(&path.path, table::call(asked.number).name),
        })
    }

    fn names_a_path(&self, number: u32) -> bool {
        matches!(
            number,
            table::open
                | table::openat
                | table::openat2
                | table::creat
                | table::stat
                | table::lstat
                | table::newfstatat
                | table::statx
                | table::access
                | table::faccessat
                | table::faccessat2
                | table::readlink
                | table::readlinkat
                | table::unlink
                | table::unlinkat
                | table::rmdir
                | table::mkdir
                | table::mkdirat
                | table::rename
                | table::renameat
                | table::renameat2
                | table::chdir
                | table::truncate
                | table::chmod
                | table::fchmodat
        )
    }

    fn unknown(&self, path: &[u8], call: &str) -> Served {
        unserved(format!("{call} of {}, which the recorded run did not use", text(path)))
    }

    fn absent(&self, found: Option<(Vec<u8>, Name)>, path: &[u8], call: &str) -> Served {
        match found {
            Some((_, Name::Gone)) => error(libc::ENOENT),
            Some((_, Name::Folder)) => error(libc::EISDIR),
            _ => self.unknown(path, call),
        }
    }

    fn open(&mut self, asked: &Asked, path: Path) -> Served {
        let flags = open_flags(&self.replayer.process, asked);
        let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
        let (creates, alone) = (flags & libc::O_CREAT != 0, flags & libc::O_EXCL != 0);
        let cloexec = flags & libc::O_CLOEXEC != 0;
        let device = match &path.path[..] {
            b"/dev/null" => Some(Kind::Null),
            b"/dev/zero" => Some(Kind::Zero),
            b"/dev/urandom" | b"/dev/random" => Some(Kind::Random),
            b"/dev/stdin" | b"/dev/fd/0" | b"/proc/self/fd/0" => Some(Kind::Stdin),
            b"/dev/stdout" | b"/dev/fd/1" | b"/proc/self/fd/1" => Some(Kind::Stdout),
            b"/dev/stderr" | b"/dev/fd/2" | b"/proc/self/fd/2" => Some(Kind::Stderr),
            path if own(path, self.replayer.pid) == Some(Own::Maps) => Some(self.own_maps()),
            _ => None,
        };
        let (path, kind) = match device {
            Some(kind) => (path.path, kind),
            None => match self.look_up(&path.path, true) {
                Some((path, Name::File(node))) => {
                    if creates && alone {
                        return error(libc::EEXIST);
                    }
                    if flags & libc::O_DIRECTORY != 0 {
                        return error(libc::ENOTDIR);
                    }
                    if flags & libc::O_TRUNC != 0 && writes {
                        self.world.truncate(&mut self.replayer.process, node, 0);
                    } else if !self.world.nodes[node].known {
                        return unserved(format!("open of {}: not captured", text(&path)));
                    }
                    if writes {
                        self.world.facts.changed.insert(path.clone());
                    }
                    self.world.names.insert(path.clone(), Name::File(node));
                    (path, Kind::File(node))
                }
                Some((path, Name::Gone)) if creates => self.create(path),
                Some((_, Name::Gone)) => return error(libc::ENOENT),
                Some((_, Name::Folder)) if writes => return error(libc::EISDIR),
                Some((path, Name::Folder)) => (path.clone(), Kind::Folder(path)),
                Some((_, Name::Link(_))) => return error(libc::ELOOP),
                None => match self.open_unknown(path.path, flags) {
                    Ok(opened) => opened,
                    Err(served) => return served,
                },
            },
        };
        let fd = self.world.open_new(kind, flags, cloexec);
        self.note_descriptor(fd, &path, flags);
        Served::Value(fd.into())
    }

    /// What is mapped now, as a file.
    fn own_maps(&mut self) -> Kind {
        let node = self.world.new_file();
        let text = maps(&self.replayer.process.machine.memory);
        self.world.nodes[node].bytes = Some(text);
        Kind::File(node)
    }

    fn create(&mut self, path: Vec<u8>) -> (Vec<u8>, Kind) {
        let node = self.world.new_file();
        self.world.change(path.clone(), Name::File(node));
        (path, Kind::File(node))
    }

    /// A path the recording does not know by itself.
    fn open_unknown(&mut self, path: Vec<u8>, flags: i32) -> Result<(Vec<u8>, Kind), Served> {
        if let Some(Err(errno)) = self.world.facts.opens.get(&path)
            && self.world.facts.is_original(&path)
            && flags & libc::O_CREAT == 0
        {
            return Err(Served::Value(*errno));
        }
        if self.world.facts.streams.contains_key(&path) {
            return Ok((path.clone(), Kind::Stream(path)));
        }
        // A new file whatever was there: it does not matter. Temporary names are
        // new by their making.
        let replaces = flags & libc::O_CREAT != 0
            && flags & (libc::O_TRUNC | libc::O_EXCL) != 0
            && flags & libc::O_ACCMODE != libc::O_RDONLY;
        let special = [&b"/dev/"[..], b"/proc/", b"/sys/"].iter().any(|p| path.starts_with(p));
        if replaces && !special {
            return Ok(self.create(path));
        }
        if is_untranslated(&path) {
            return Err(error(libc::ENOENT));
        }
        Err(self.unknown(&path, "open"))
    }

    fn stat(&mut self, path: Path, at: u64, wide: bool) -> Served {
        let bytes = match path.of {
            Some(fd) => self.stat_of(fd),
            None => self.stat_path(&path, wide),
        };
        match bytes {
            Ok(bytes) if wide && bytes.len() == 144 => self.give(at, &stat::wide(&bytes), 0),
            Ok(bytes) if !wide && bytes.len() == 256 => unserved("stat after statx"),
            Ok(bytes) => self.give(at, &bytes, 0),
            Err(served) => served,
        }
    }

    fn stat_path(&mut self, path: &Path, wide: bool) -> Result<Vec<u8>, Served> {
        let key = (path.path.clone(), path.follow);
        if self.world.facts.is_original(&path.path) {
            if let Some(bytes) = self.world.facts.wide_stats.get(&key).filter(|_| wide) {
                return Ok(bytes.clone());
            }
            match self.world.facts.stats.get(&key) {
                Some(Ok(bytes)) => return Ok(bytes.clone()),
                Some(Err(errno)) => return Err(Served::Value(*errno)),
                None => {}
            }
        }
        let ids = (self.world.ids[1], self.world.ids[3]);
        let seconds = self.world.clock / 1_000_000_000;
        match self.look_up(&path.path, path.follow) {
            Some((_, Name::File(node))) if self.world.nodes[node].known => Ok(self.node_stat(node)),
            Some((_, Name::Gone)) => Err(error(libc::ENOENT)),
            Some((_, Name::Folder)) => {
                Ok(stat::made(libc::S_IFDIR | 0o755, 4096, (1, 2), ids, seconds))
            }
            Some((_, Name::Link(target))) => {
                let size = target.len() as u64;
                Ok(stat::made(libc::S_IFLNK | 0o777, size, (1, 3), ids, seconds))
            }
            _ => Err(self.unknown(&path.path, "stat")),
        }
    }

    fn access(&mut self, path: Path, mode: u64) -> Served {
        if self.world.facts.is_original(&path.path)
            && let Some(result) = self.world.facts.accesses.get(&(path.path.clone(), mode))
        {
            return Served::Value(*result);
        }
        match self.look_up(&path.path, true) {
            Some((_, Name::Gone)) => error(libc::ENOENT),
            Some(_) => Served::Value(0),
            None => self.unknown(&path.path, "access"),
        }
    }

    fn read_link(&mut self, path: Path, at: u64, room: u64) -> Served {
        let target = match self.look_up(&path.path, false) {
            Some((_, Name::Link(target))) => target,
            Some((_, Name::Gone)) => return error(libc::ENOENT),
            Some(_) => return error(libc::EINVAL),
            None => match self.world.facts.links.get(&path.path) {
                Some(Ok(target)) => target.clone(),
                Some(Err(errno)) => return Served::Value(*errno),
                None if path.path == b"/proc/self/exe" => self.replayer.process.program.clone(),
                None => return self.unknown(&path.path, "readlink"),
            },
        };
        let len = target.len().min(room as usize);
        self.give(at, &target[..len], len as i64)
    }

    fn unlink(&mut self, path: Path, folder: bool) -> Served {
        match self.look_up(&path.path, false) {
            Some((_, Name::Gone)) => error(libc::ENOENT),
            Some((_, Name::Folder)) if !folder => error(libc::EISDIR),
            Some((_, Name::File(_) | Name::Link(_))) if folder => error(libc::ENOTDIR),
            Some((_, Name::Folder)) if !self.is_made(&path.path) => {
                self.unknown(&path.path, "rmdir")
            }
            Some(_) => {
                self.world.change(path.path, Name::Gone);
                Served::Value(0)
            }
            None => self.unknown(&path.path, "unlink"),
        }
    }

    /// Did the run make it, with nothing left inside?
    fn is_made(&self, path: &[u8]) -> bool {
        let inside = [path, b"/"].concat();
        self.world.names.get(path) == Some(&Name::Folder)
            && !self
                .world
                .names
                .iter()
                .any(|(p, name)| p.starts_with(&inside) && *name != Name::Gone)
    }

    fn make_folder(&mut self, path: Path) -> Served {
        match self.look_up(&path.path, false) {
            Some((_, Name::Gone)) => {
                self.world.change(path.path, Name::Folder);
                Served::Value(0)
            }
            Some(_) => error(libc::EEXIST),
            None => self.unknown(&path.path, "mkdir"),
        }
    }

    fn rename(&mut self, asked: &Asked, path: Path) -> Served {
        let Some(to) = second_path(&self.world, &self.replayer.process, asked) else {
            return error(libc::EFAULT);
        };
        if asked.number as u32 == table::renameat2 && asked.args[4] != 0 {
            return unserved("renameat2 with flags");
        }
        match self.look_up(&path.path, false) {
            Some((_, Name::Gone)) => error(libc::ENOENT),
            Some((_, Name::File(_) | Name::Link(_))) => {
                self.world.move_name(path.path, to);
                Served::Value(0)
            }
            Some((_, Name::Folder)) => unserved("rename of a folder"),
            None => self.unknown(&path.path, "rename"),
        }
    }

    fn make_link(&mut self, asked: &Asked) -> Served {
        let Some(to) = second_path(&self.world, &self.replayer.process, asked) else {
            return error(libc::EFAULT);
        };
        let memory = &self.replayer.process.machine.memory;
        let Some(target) = memory.read_string(asked.args[0], 4096) else {
            return error(libc::EFAULT);
        };
        match self.look_up(&to, false) {
            Some((_, Name::Gone)) => {
                self.world.change(to, Name::Link(target));
                Served::Value(0)
            }
            Some(_) => error(libc::EEXIST),
            None => self.unknown(&to, "symlink"),
        }
    }

    fn change_folder(&mut self, path: Path) -> Served {
        match self.look_up(&path.path, true) {
            Some((path, Name::Folder)) => {
                self.world.cwd = path;
                Served::Value(0)
            }
            Some((_, Name::Gone)) => error(libc::ENOENT),
            Some(_) => error(libc::ENOTDIR),
            None => self.unknown(&path.path, "chdir"),
        }
    }
}
