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
                && is_fifo(asked, &path)
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
        self.opened_path(asked, fd, &path, own, flags, state);
    }

    fn opened_path(
        &mut self,
        asked: &Asked,
        fd: i64,
        path: &[u8],
        own: Option<Own>,
        flags: i32,
        state: u32,
    ) {
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
                let effects: Vec<Effect> = contents.into_iter().chain([found]).collect();
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

/// Opening one end of a pipe waits for the other.
fn is_fifo(asked: &Asked, path: &[u8]) -> bool {
    let relative_to = match asked.number as u32 {
        table::openat | table::openat2 => asked.fd(0),
        _ => libc::AT_FDCWD,
    };
    let Ok(path) = std::ffi::CString::new(path) else { return false };
    // SAFETY: plain fstatat into a zeroed buffer.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        libc::fstatat(relative_to, path.as_ptr(), &mut stat, 0) == 0
            && stat.st_mode & libc::S_IFMT == libc::S_IFIFO
    }
}
