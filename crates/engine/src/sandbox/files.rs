//! Calls on descriptors: reading, writing, positions, duplicates.

use super::calls::{error, unserved};
use super::follow::gather;
use super::world::Kind;
use super::{Sandbox, Served, stat};
use crate::kernel::process::Asked;
use crate::kernel::table;

impl Sandbox {
    /// `None` if the call is not one of these.
    pub(super) fn file_call(&mut self, asked: &Asked) -> Option<Served> {
        let a = &asked.args;
        let fd = asked.fd(0);
        Some(match asked.number as u32 {
            table::read | table::readv => self.read(asked, None),
            table::pread64 | table::preadv => self.read(asked, Some(a[3])),
            table::preadv2 => self.read(asked, (a[3] as i64 != -1).then_some(a[3])),
            table::write | table::writev => self.write(asked, None),
            table::pwrite64 | table::pwritev => self.write(asked, Some(a[3])),
            table::pwritev2 => self.write(asked, (a[3] as i64 != -1).then_some(a[3])),
            table::sendfile => self.send_file(asked),
            table::copy_file_range => error(libc::EXDEV),
            table::lseek => self.seek(asked),
            table::ftruncate => self.truncate(asked),
            table::fallocate => self.allocate(asked),
            table::close => self.close(fd),
            table::close_range => self.close_range(a),
            table::dup => self.duplicate(fd, None, 0, false),
            table::dup2 if a[0] == a[1] => self.check(fd).unwrap_or(Served::Value(fd.into())),
            table::dup2 => self.duplicate(fd, Some(asked.fd(1)), 0, false),
            table::dup3 if a[0] == a[1] => error(libc::EINVAL),
            table::dup3 => {
                self.duplicate(fd, Some(asked.fd(1)), 0, a[2] as i32 & libc::O_CLOEXEC != 0)
            }
            table::fcntl => self.control(asked),
            table::fstat => self.fstat(fd, a[1]),
            table::fchdir => match self.world.get(fd).map(|open| open.kind.clone()) {
                Some(Kind::Folder(path)) => {
                    self.world.cwd = path;
                    Served::Value(0)
                }
                Some(_) => error(libc::ENOTDIR),
                None => error(libc::EBADF),
            },
            table::fchmod | table::fchown => self.check(fd).unwrap_or(Served::Value(0)),
            table::getdents | table::getdents64 => self.list(asked),
            table::ioctl => self.io_control(asked),
            table::memfd_create => {
                let node = self.world.new_file();
                let fd = self.world.open_new(Kind::File(node), libc::O_RDWR, a[1] & 1 != 0);
                self.note_descriptor(fd, b"/memfd:", libc::O_RDWR);
                Served::Value(fd.into())
            }
            _ => return None,
        })
    }

    /// An error if the descriptor is not open.
    pub(super) fn check(&self, fd: i32) -> Option<Served> {
        self.world.get(fd).is_none().then_some(error(libc::EBADF))
    }

    /// How many bytes a reading call has room for.
    pub(super) fn room(&self, asked: &Asked) -> u64 {
        let a = &asked.args;
        match asked.number as u32 {
            table::read | table::pread64 | table::write | table::pwrite64 => a[2],
            _ => {
                let memory = &self.replayer.process.machine.memory;
                let len = |n| memory.read_u64(a[1] + 16 * n + 8).unwrap_or(0);
                (0..a[2].min(1024)).map(len).fold(0, u64::saturating_add)
            }
        }
    }

    /// Puts bytes where a reading call wants them.
    pub(super) fn scatter(&mut self, asked: &Asked, bytes: &[u8]) -> Served {
        let a = &asked.args;
        if matches!(asked.number as u32, table::read | table::pread64) {
            return self.give(a[1], bytes, bytes.len() as i64);
        }
        let mut rest = bytes;
        for n in 0..a[2].min(1024) {
            let memory = &self.replayer.process.machine.memory;
            let (Some(base), Some(len)) =
                (memory.read_u64(a[1] + 16 * n), memory.read_u64(a[1] + 16 * n + 8))
            else {
                return error(libc::EFAULT);
            };
            let (now, later) = rest.split_at(rest.len().min(len as usize));
            if !now.is_empty() && !self.replayer.process.write_from_log(base, now) {
                return error(libc::EFAULT);
            }
            rest = later;
        }
        Served::Value(bytes.len() as i64)
    }

    fn read(&mut self, asked: &Asked, at: Option<u64>) -> Served {
        let fd = asked.fd(0);
        let Some(open) = self.world.get(fd) else { return error(libc::EBADF) };
        if open.flags & libc::O_ACCMODE == libc::O_WRONLY {
            return error(libc::EBADF);
        }
        let (kind, offset, flags) = (open.kind.clone(), open.offset, open.flags);
        let room = self.room(asked).min(1 << 30) as usize;
        let from = at.unwrap_or(offset);
        let process = &mut self.replayer.process;
        let bytes = match kind {
            Kind::File(node) => {
                if !self.world.nodes[node].known {
                    return unserved("read of a file whose contents were not captured");
                }
                self.world.read_node(process, node, from, room)
            }
            Kind::Stdin => match self.stdin(room) {
                Ok(bytes) => bytes,
                Err(served) => return served,
            },
            Kind::Pipe { from: Some(pipe), .. } => return self.read_pipe(asked, pipe, room, flags),
            Kind::Event { .. } => return self.read_event(asked, fd, flags),
            Kind::Zero => vec![0; room],
            Kind::Null => Vec::new(),
            Kind::Random => (0..room).map(|_| self.world.next_random() as u8).collect(),
            Kind::Stream(path) => match self.world.facts.streams.get(&path) {
                Some((bytes, ends)) => {
                    let left = bytes.get(from as usize..).unwrap_or_default();
                    if left.is_empty() && !ends {
                        return unserved(format!("read of {}", text(&path)));
                    }
                    left[..left.len().min(room)].to_vec()
                }
                None => return unserved(format!("read of {}", text(&path))),
            },
            Kind::Folder(_) => return error(libc::EISDIR),
            Kind::Epoll(_) | Kind::Pipe { .. } => return error(libc::EBADF),
            Kind::Stdout | Kind::Stderr => return unserved("read of standard output"),
            Kind::Foreign(what) => return unserved(format!("read of {what}")),
        };
        let served = self.scatter(asked, &bytes);
        if at.is_none() && matches!(served, Served::Value(n) if n >= 0) {
            self.world.get_mut(fd).expect("seen").offset += bytes.len() as u64;
            if self.world.get(fd).expect("seen").kind == Kind::Stdin {
                self.world.stdin_at += bytes.len();
            }
        }
        served
    }

    /// Standard input goes on as recorded.
    fn stdin(&mut self, room: usize) -> Result<Vec<u8>, Served> {
        let all = &self.world.facts.stdin;
        let left = all.get(self.world.stdin_at..).unwrap_or_default();
        if left.is_empty() && room > 0 && !self.world.facts.stdin_is_over() {
            return Err(unserved("read of standard input behind what was recorded"));
        }
        Ok(left[..left.len().min(room)].to_vec())
    }

    fn write(&mut self, asked: &Asked, at: Option<u64>) -> Served {
        let fd = asked.fd(0);
        let Some(open) = self.world.get(fd) else { return error(libc::EBADF) };
        let (kind, flags) = (open.kind.clone(), open.flags);
        if flags & libc::O_ACCMODE == libc::O_RDONLY
            && !matches!(kind, Kind::Pipe { .. } | Kind::Event { .. })
        {
            return error(libc::EBADF);
        }
        let len = self.room(asked).min(1 << 30);
        let bytes = gather(&self.replayer.process, asked, len);
        if bytes.len() as u64 != len {
            return error(libc::EFAULT);
        }
        match kind {
            Kind::Foreign(what) => return unserved(format!("write to {what}")),
            Kind::Stream(path) => return unserved(format!("write to {}", text(&path))),
            Kind::Stdin => return unserved("write to standard input"),
            Kind::Folder(_) | Kind::Epoll(_) => return error(libc::EBADF),
            Kind::Pipe { to: Some(pipe), .. } => return self.write_pipe(fd, pipe, &bytes, flags),
            Kind::Pipe { to: None, .. } => return error(libc::EBADF),
            Kind::Event { .. } if bytes.len() != 8 => return error(libc::EINVAL),
            Kind::File(node) => {
                let size = self.world.size(&mut self.replayer.process, node);
                if size + len > self.limits.memory {
                    return Served::End(super::Stopped::MemoryLimit);
                }
            }
            _ => {
                let held: usize = self.world.outputs.iter().map(Vec::len).sum();
                if held as u64 + len > self.limits.memory {
                    return Served::End(super::Stopped::MemoryLimit);
                }
            }
        }
        self.world.put(&mut self.replayer.process, fd, at, &bytes);
        Served::Value(len as i64)
    }

    fn send_file(&mut self, asked: &Asked) -> Served {
        let a = &asked.args;
        let Some(Kind::File(node)) = self.world.get(asked.fd(1)).map(|open| open.kind.clone())
        else {
            return unserved("sendfile");
        };
        if self.world.get(asked.fd(0)).is_none_or(|open| {
            !matches!(open.kind, Kind::File(_) | Kind::Stdout | Kind::Stderr | Kind::Null)
        }) {
            return unserved("sendfile");
        }
        let memory = &self.replayer.process.machine.memory;
        let offset = if a[2] == 0 { None } else { memory.read_u64(a[2]) };
        let from = offset.unwrap_or(self.world.get(asked.fd(1)).expect("seen").offset);
        let process = &mut self.replayer.process;
        let bytes = self.world.read_node(process, node, from, a[3].min(1 << 17) as usize);
        self.world.put(process, asked.fd(0), None, &bytes);
        let after = from + bytes.len() as u64;
        match offset {
            Some(_) => self.give(a[2], &after.to_le_bytes(), bytes.len() as i64),
            None => {
                self.world.get_mut(asked.fd(1)).expect("seen").offset = after;
                Served::Value(bytes.len() as i64)
            }
        }
    }

    fn seek(&mut self, asked: &Asked) -> Served {
        let (fd, by) = (asked.fd(0), asked.args[1] as i64);
        let Some(open) = self.world.get(fd) else { return error(libc::EBADF) };
        let (kind, offset) = (open.kind.clone(), open.offset as i64);
        let end = match &kind {
            Kind::File(node) => self.world.size(&mut self.replayer.process, *node) as i64,
            // Whether a stream can be sought is known if the recorded run tried.
            Kind::Stdin | Kind::Stdout | Kind::Stderr => {
                let n = [Kind::Stdin, Kind::Stdout, Kind::Stderr].iter().position(|k| *k == kind);
                let stat = self.world.facts.stream_stats[n.expect("one of them")].as_deref();
                if !stat.is_some_and(stat::is_regular) {
                    return error(libc::ESPIPE);
                }
                if kind != Kind::Stdin {
                    return unserved("lseek on standard output");
                }
                self.world.facts.stdin.len() as i64
            }
            Kind::Folder(_) | Kind::Stream(_) | Kind::Zero | Kind::Null => 0,
            _ => return error(libc::ESPIPE),
        };
        let to = match asked.args[2] as i32 {
            libc::SEEK_SET => by,
            libc::SEEK_CUR => offset + by,
            libc::SEEK_END => end + by,
            libc::SEEK_DATA if by < end => by,
            libc::SEEK_HOLE if by < end => end,
            libc::SEEK_DATA | libc::SEEK_HOLE => return error(libc::ENXIO),
            _ => return error(libc::EINVAL),
        };
        if to < 0 {
            return error(libc::EINVAL);
        }
        if kind == Kind::Stdin {
            self.world.stdin_at = to as usize;
        }
        self.world.get_mut(fd).expect("seen").offset = to as u64;
        Served::Value(to)
    }

    fn truncate(&mut self, asked: &Asked) -> Served {
        match self.world.get(asked.fd(0)) {
            None => error(libc::EBADF),
            Some(open) if !matches!(open.kind, Kind::File(_)) => error(libc::EINVAL),
            Some(open) if open.flags & libc::O_ACCMODE == libc::O_RDONLY => error(libc::EINVAL),
            Some(_) if asked.args[1] > self.limits.memory => {
                Served::End(super::Stopped::MemoryLimit)
            }
            Some(_) => {
                let process = &mut self.replayer.process;
                self.world.truncate_open(process, asked.fd(0), asked.args[1]);
                Served::Value(0)
            }
        }
    }

    fn allocate(&mut self, asked: &Asked) -> Served {
        let a = &asked.args;
        let Some(Kind::File(node)) = self.world.get(asked.fd(0)).map(|open| open.kind.clone())
        else {
            return error(libc::EBADF);
        };
        let end = a[2].saturating_add(a[3]);
        if end > self.limits.memory {
            return Served::End(super::Stopped::MemoryLimit);
        }
        if a[1] != 0 {
            return error(libc::EOPNOTSUPP);
        }
        let process = &mut self.replayer.process;
        if self.world.size(process, node) < end {
            self.world.truncate(process, node, end);
        }
        Served::Value(0)
    }
}

/// A path for people.
pub(super) fn text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
