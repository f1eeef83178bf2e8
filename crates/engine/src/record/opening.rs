//! `open` and its kin while recording: what was opened, and its contents.

use super::capture::{Opened, inspect};
use super::proc_self::{self, Own};
use super::session::Runner;
use crate::kernel::files::{FileIdText, What};
use crate::kernel::process::Asked;
use crate::kernel::table;
use crate::signal::host;
use recording::FileId;
use recording::event::{Effect, When};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// How a path was opened.
struct How {
    /// One of the guest's own files under `/proc`.
    own: Option<Own>,
    /// Flags of the call.
    flags: i32,
    /// Contents and identity of what the call emptied.
    emptied: Option<(FileId, (u64, u64))>,
}

const EFAULT: i64 = -(libc::EFAULT as i64);

impl Runner {
    pub(super) fn open(&mut self, asked: &Asked, state: u32) {
        let a = &asked.args;
        let (path_at, flags) = match asked.number as u32 {
            table::open => (a[0], a[1] as i32),
            table::creat => (a[0], libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC),
            table::openat => (a[1], a[2] as i32),
            _ => {
                let memory = &self.session().process.machine.memory;
                (a[1], memory.read_u64(a[2]).unwrap_or(0) as i32)
            }
        };
        let Some(path) = self.path(path_at) else {
            return self.finish_call(asked, EFAULT, state, &[]);
        };
        let own = proc_self::own(&path, self.session().pid);
        let close_on_exec = flags & libc::O_CLOEXEC != 0;
        if own == Some(Own::Memory) && flags & libc::O_ACCMODE != libc::O_RDONLY {
            return self.finish_call(asked, -(libc::EACCES as i64), state, &[]);
        }
        if let Some(own) = own.filter(|own| own.is_shown()) {
            let fd = self.open_own(own, &path, close_on_exec);
            return self.opened(asked, fd, What::Other, flags, state, &[]);
        }
        let emptied = if own.is_none() { self.emptied(asked, &path, flags) } else { None };
        // SAFETY: the guest's call with its own path pointer, or ours for `exe`.
        let fd = unsafe {
            if own == Some(Own::Program) {
                let program = self.session().process.program.clone();
                let program = [&program[..], &[0]].concat();
                crate::sys::raw(
                    table::openat as u64,
                    [libc::AT_FDCWD as u64, program.as_ptr() as u64, flags as u64, 0, 0, 0],
                )
            } else if flags & libc::O_NONBLOCK == 0
                && (self.session().threads > 1 || self.session().commons.is_some())
                && kind_of(asked, &path) == Some(libc::S_IFIFO)
            {
                self.pause(When::Here);
                let fd = host::interruptible(asked.number, *a);
                self.shared.turn.acquire();
                self.resume();
                fd
            } else {
                host::interruptible(asked.number, *a)
            }
        };
        if fd < 0 {
            return self.finish_call(asked, fd, state, &[]);
        }
        if own.is_none()
            && let Some((own, path)) = self.found_own(fd as i32)
        {
            // SAFETY: a descriptor the guest has not been told of.
            unsafe { libc::close(fd as i32) };
            let fd = self.open_own(own, &path, close_on_exec);
            return self.opened(asked, fd, What::Other, flags, state, &[]);
        }
        let how = How { own, flags, emptied };
        self.opened_path(asked, fd, &path, how, state);
    }

    fn opened_path(&mut self, asked: &Asked, fd: i64, path: &[u8], how: How, state: u32) {
        let How { own, flags, emptied } = how;
        let session = self.session();
        let info = inspect(fd as i32);
        match info {
            Some(opened) if opened.regular => {
                let file = self.contents(fd as i32, path, &opened, flags);
                let (device, inode) = opened.identity;
                let what = What::Regular {
                    file: file.map(FileIdText),
                    identity: opened.identity,
                    path: path.to_vec(),
                };
                let found = Effect::Found { stat: &opened.stat };
                let contents = file.map(|file| Effect::Opened { file, device, inode });
                let emptied = emptied
                    .filter(|(_, identity)| *identity == opened.identity)
                    .map(|(file, _)| Effect::Emptied { file, device, inode });
                let effects: Vec<Effect> =
                    contents.into_iter().chain(emptied).chain([found]).collect();
                if flags & libc::O_ACCMODE != libc::O_RDONLY {
                    session.show_shared(fd as i32, &opened);
                }
                self.opened(asked, fd, what, flags, state, &effects);
            }
            _ => {
                let what = match (own, path) {
                    (Some(Own::Descriptors), _) => What::OwnDescriptors,
                    (_, b"/dev/stdout" | b"/proc/self/fd/1" | b"/dev/fd/1") => What::Stdout,
                    (_, b"/dev/stderr" | b"/proc/self/fd/2" | b"/dev/fd/2") => What::Stderr,
                    _ => What::Other,
                };
                let found = info.as_ref().map(|opened| Effect::Found { stat: &opened.stat });
                self.opened(asked, fd, what, flags, state, found.as_slice());
            }
        }
    }

    /// Captures what a regular file holds as it is opened. What is only written to
    /// is kept too, for experiments that read it, if it may be read at all.
    fn contents(&self, fd: i32, path: &[u8], opened: &Opened, flags: i32) -> Option<FileId> {
        let session = self.session();
        let of_the_kernel = path.starts_with(b"/proc/") || path.starts_with(b"/sys/");
        let written_only = flags & libc::O_ACCMODE == libc::O_WRONLY;
        if flags & libc::O_PATH != 0 || of_the_kernel || written_only && opened.size == 0 {
            return None;
        }
        match session.capture(fd, path, opened.size) {
            Ok(file) => {
                session.stamps.insert(opened.identity, opened.stamp);
                file
            }
            Err(_) if written_only => None,
            Err(error) => session.give_up(&error),
        }
    }

    /// Captures what an `open` is about to empty: an altered run may come by earlier and
    /// read it. What cannot be read is not kept.
    fn emptied(&self, asked: &Asked, path: &[u8], flags: i32) -> Option<(FileId, (u64, u64))> {
        let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
        if flags & libc::O_TRUNC == 0 || !writes || kind_of(asked, path) != Some(libc::S_IFREG) {
            return None;
        }
        let name = std::ffi::CString::new(path).ok()?;
        let look = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
        // SAFETY: a descriptor of ours, closed at the end of the block.
        let fd = unsafe {
            let fd = libc::openat(relative_to(asked), name.as_ptr(), look);
            if fd < 0 {
                return None;
            }
            OwnedFd::from_raw_fd(fd)
        };
        let opened = inspect(fd.as_raw_fd()).filter(|o| o.regular && o.size > 0)?;
        let file = self.session().capture(fd.as_raw_fd(), path, opened.size).ok()??;
        Some((file, opened.identity))
    }

    fn opened(
        &mut self,
        asked: &Asked,
        fd: i64,
        what: What,
        flags: i32,
        state: u32,
        effects: &[Effect],
    ) {
        let fd = self.within_limit(asked, fd);
        if fd >= 0 {
            let close_on_exec = flags & libc::O_CLOEXEC != 0;
            self.session().process.files.open(fd as i32, what, flags, close_on_exec);
        }
        self.finish_call(asked, fd, state, if fd >= 0 { effects } else { &[] });
    }

    /// One of the guest's own files that was opened by a roundabout path.
    fn found_own(&self, fd: i32) -> Option<(Own, Vec<u8>)> {
        let opened = inspect(fd).filter(|o| o.regular && o.size == 0)?;
        if opened.identity.0 != crate::sys::proc_device() {
            return None;
        }
        let path = crate::sys::path_of(fd)?;
        let own = proc_self::own(&path, self.session().pid).filter(|own| own.is_shown())?;
        Some((own, path))
    }

    /// A memory file with what the guest should find about itself.
    fn open_own(&mut self, own: Own, path: &[u8], close_on_exec: bool) -> i64 {
        let contents = self.session().own_contents(own, path, &self.task);
        // SAFETY: a new memory file, filled and rewound.
        unsafe {
            let flags = if close_on_exec { libc::MFD_CLOEXEC } else { 0 };
            let fd = libc::memfd_create(c"proc".as_ptr(), flags);
            if fd < 0 {
                return -(std::io::Error::last_os_error().raw_os_error().unwrap_or(0) as i64);
            }
            libc::write(fd, contents.as_ptr().cast(), contents.len());
            libc::lseek(fd, 0, libc::SEEK_SET);
            fd as i64
        }
    }
}

/// What kind of file a path names; opening one end of a pipe waits for the other.
fn kind_of(asked: &Asked, path: &[u8]) -> Option<u32> {
    let path = std::ffi::CString::new(path).ok()?;
    // SAFETY: plain fstatat into a zeroed buffer.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        let found = libc::fstatat(relative_to(asked), path.as_ptr(), &mut stat, 0) == 0;
        found.then_some(stat.st_mode & libc::S_IFMT)
    }
}

/// The folder that the path of an `open` starts from.
fn relative_to(asked: &Asked) -> i32 {
    match asked.number as u32 {
        table::openat | table::openat2 => asked.fd(0),
        _ => libc::AT_FDCWD,
    }
}
