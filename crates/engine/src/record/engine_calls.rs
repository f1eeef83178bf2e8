//! System calls the engine performs itself while recording.

use super::capture::inspect;
use super::launch::Launch;
use super::proc_self::{self, Own};
use super::session::{HostWorld, Runner, load_images};
use crate::Error;
use crate::guest::start::Start;
use crate::guest::task::Task;
use crate::kernel::files::{FileIdText, What};
use crate::kernel::memory::{Map, Source};
use crate::kernel::process::Asked;
use crate::kernel::table::{self, Call};
use crate::signal::host;
use recording::event::{Effect, When};
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

const EFAULT: i64 = -(libc::EFAULT as i64);
const EBADF: i64 = -(libc::EBADF as i64);
const ENOSYS: i64 = -(libc::ENOSYS as i64);
const EINVAL: i64 = -(libc::EINVAL as i64);

/// What comes after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The thread goes on.
    Goes,
    /// The thread is over.
    ThreadEnded,
}

impl Runner {
    /// Performs a call of the table's `Engine` rows.
    pub(super) fn engine_call(&mut self, call: &Call, asked: &Asked, state: u32) -> After {
        let session = self.session();
        let context = self.context();
        let own = session.process.own_call(
            &mut self.task,
            context,
            asked.number,
            &asked.args,
            &mut HostWorld,
        );
        if let Some(result) = own {
            self.finish_call(asked, result, state, &[]);
            return After::Goes;
        }
        match call.number {
            table::mmap => self.mmap(asked, state),
            table::open | table::openat | table::openat2 | table::creat => {
                self.open(asked, state);
            }
            table::close | table::dup | table::dup2 | table::dup3 | table::close_range => {
                self.descriptor_call(asked, state);
            }
            table::chdir | table::fchdir => self.change_directory(asked, state),
            table::readlink | table::readlinkat => self.read_link(call, asked, state),
            table::getdents | table::getdents64 => self.list(call, asked, state),
            table::getrlimit | table::setrlimit | table::prlimit64 => self.limits(asked, state),
            table::prctl => self.prctl(asked, state),
            table::personality => self.finish_call(asked, 0, state, &[]),
            table::sendfile => self.send_file(asked, state),
            table::rt_sigreturn => self.signal_return(asked, state),
            table::clone => return self.clone_call(asked, state),
            table::fork | table::vfork => self.fork(asked, state),
            table::execve => self.exec(asked, state),
            table::exit => return self.thread_exit(asked, state),
            table::exit_group => {
                self.finish_call(asked, 0, state, &[]);
                self.session().end((asked.args[0] as i32 & 0xff) << 8);
            }
            _ => unreachable!("{} is in the table", call.name),
        }
        After::Goes
    }

    fn signal_return(&mut self, asked: &Asked, state: u32) {
        self.finish_call(asked, 0, state, &[]);
        let session = self.session();
        let context = self.context();
        if !session.process.signal_return(&mut self.task, context, &mut HostWorld) {
            session.end(libc::SIGSEGV);
        }
    }

    fn mmap(&mut self, asked: &Asked, state: u32) {
        let session = self.session();
        let map = Map::of(&asked.args);
        if map.is_anonymous() {
            let result = session.process.map(&map, Source::Nothing);
            return self.finish_call(asked, result, state, &[]);
        }
        let captured = match session.process.captured_source(&map) {
            Ok(captured) => captured,
            Err(error) => return self.finish_call(asked, error, state, &[]),
        };
        session.process.files.set_path(map.fd, crate::sys::path_of(map.fd));
        let regular = inspect(map.fd).filter(|o| o.regular);
        let unchanged = regular.is_some_and(|opened| {
            session.stamps.get(&opened.identity) == Some(&opened.stamp)
                && !(map.is_shared() && session.process.files.is_written(opened.identity))
        });
        match (captured, regular) {
            (Some(id), _) if unchanged => {
                let result = session.process.map(&map, Source::Captured(id));
                self.finish_call(asked, result, state, &[]);
            }
            (_, Some(opened)) => {
                // A live file: the kernel maps it; the log has its contents now.
                let file = match session.capture_whole(map.fd) {
                    Ok(file) => file,
                    Err(error) => session.give_up(&error),
                };
                let source = if map.is_shared() {
                    session.live.insert(opened.identity);
                    Source::Live(map.fd, opened.identity)
                } else {
                    Source::Captured(FileIdText(file))
                };
                let result = session.process.map(&map, source);
                let (device, inode) = opened.identity;
                self.finish_call(asked, result, state, &[Effect::Opened { file, device, inode }]);
            }
            (_, None) => self.map_device(asked, &map, state),
        }
    }

    /// `/dev/zero` is anonymous memory; other devices have contents of their own
    /// that no log can hold.
    fn map_device(&mut self, asked: &Asked, map: &Map, state: u32) {
        let session = self.session();
        // SAFETY: plain fstat.
        let zero = unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            libc::fstat(map.fd, &mut stat) == 0 && stat.st_rdev == libc::makedev(1, 5)
        };
        let result =
            if zero { session.process.map(map, Source::Nothing) } else { -(libc::ENODEV as i64) };
        self.finish_call(asked, result, state, &[]);
    }

    fn path(&self, address: u64) -> Option<Vec<u8>> {
        self.session().process.machine.memory.read_string(address, 4096)
    }

    fn open(&mut self, asked: &Asked, state: u32) {
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
                && self.session().threads > 1
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
        let readable = flags & libc::O_ACCMODE != libc::O_WRONLY && flags & libc::O_PATH == 0;
        match info {
            Some(opened) if opened.regular => {
                let file =
                    if readable && !path.starts_with(b"/proc/") && !path.starts_with(b"/sys/") {
                        match session.capture(fd as i32, path, opened.size) {
                            Ok(file) => {
                                session.stamps.insert(opened.identity, opened.stamp);
                                file
                            }
                            Err(error) => session.give_up(&error),
                        }
                    } else {
                        None
                    };
                let (device, inode) = opened.identity;
                let what = What::Regular {
                    file: file.map(FileIdText),
                    identity: opened.identity,
                    path: path.to_vec(),
                };
                let effect = match file {
                    Some(file) => Effect::Opened { file, device, inode },
                    None => Effect::Found { device, inode, mode: opened.mode },
                };
                if flags & libc::O_ACCMODE != libc::O_RDONLY {
                    session.show_shared(fd as i32, &opened);
                }
                self.opened(asked, fd, what, flags, state, &[effect]);
            }
            _ => {
                let what = match (own, path) {
                    (Some(Own::Descriptors), _) => What::OwnDescriptors,
                    (_, b"/dev/stdout" | b"/proc/self/fd/1" | b"/dev/fd/1") => What::Stdout,
                    (_, b"/dev/stderr" | b"/proc/self/fd/2" | b"/dev/fd/2") => What::Stderr,
                    _ => What::Other,
                };
                let found = info.map(|opened| {
                    let (device, inode) = opened.identity;
                    Effect::Found { device, inode, mode: opened.mode }
                });
                self.opened(asked, fd, what, flags, state, found.as_slice());
            }
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

    fn descriptor_call(&mut self, asked: &Asked, state: u32) {
        let a = &asked.args;
        let engine = |fd: u64| crate::sys::is_engine_fd(fd as i32);
        let number = asked.number as u32;
        let touches = match number {
            table::close | table::dup => engine(a[0]),
            table::dup2 | table::dup3 => {
                engine(a[0]) || engine(a[1]) || a[1] as u32 as u64 >= self.descriptor_limit()
            }
            _ => false,
        };
        let result = if touches {
            EBADF
        } else if number == table::close_range {
            self.close_range(a[0], a[1], a[2])
        } else {
            // SAFETY: descriptors of the guest only.
            let result = unsafe { crate::sys::raw(asked.number, *a) };
            self.within_limit(asked, result)
        };
        self.finish_call(asked, result, state, &[]);
    }

    fn change_directory(&mut self, asked: &Asked, state: u32) {
        let engine = asked.number as u32 == table::fchdir && crate::sys::is_engine_fd(asked.fd(0));
        // SAFETY: the guest's call, not on a descriptor of ours.
        let result =
            if engine { EBADF } else { unsafe { crate::sys::raw(asked.number, asked.args) } };
        let path = std::env::current_dir().ok().map(|p| p.into_os_string().into_vec());
        let effect = path.as_ref().filter(|_| result == 0).map(|p| Effect::Output { data: p });
        self.finish_call(asked, result, state, effect.as_slice());
        if result == 0 {
            self.session().process.cwd = path;
        }
    }

    /// The guest's own limit on descriptors, which the host does not know.
    pub(super) fn descriptor_limit(&self) -> u64 {
        let limits = &self.session().process.limits;
        limits.get(&libc::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| *soft)
    }

    /// Takes back a descriptor that the guest's limit does not allow.
    pub(super) fn within_limit(&self, asked: &Asked, result: i64) -> i64 {
        if result < 0 || !gives_descriptor(asked) || (result as u64) < self.descriptor_limit() {
            return result;
        }
        // SAFETY: a descriptor the guest has not been told of.
        unsafe { libc::close(result as i32) };
        -(libc::EMFILE as i64)
    }

    fn close_range(&self, first: u64, last: u64, flags: u64) -> i64 {
        if first > last {
            return EINVAL;
        }
        for range in crate::sys::around_engine_fds(first as u32, last.min(u32::MAX as u64) as u32) {
            // SAFETY: a range without the engine's descriptors.
            let result = unsafe {
                crate::sys::raw(
                    table::close_range as u64,
                    [range.0 as u64, range.1 as u64, flags, 0, 0, 0],
                )
            };
            if result < 0 {
                return result;
            }
        }
        0
    }

    fn read_link(&mut self, call: &Call, asked: &Asked, state: u32) {
        let a = &asked.args;
        let (path_at, buffer, size) =
            if call.number == table::readlink { (a[0], a[1], a[2]) } else { (a[1], a[2], a[3]) };
        let pid = self.session().pid;
        let own = self.path(path_at).and_then(|p| proc_self::own(&p, pid));
        let session = self.session();
        let result = if own == Some(Own::Program) {
            let program = session.process.program.clone();
            let n = program.len().min(size as usize);
            if session.process.write_from_log(buffer, &program[..n]) { n as i64 } else { EFAULT }
        } else {
            session.process.machine.prepare_write(buffer, size.min(4096));
            // SAFETY: the guest's call.
            unsafe { crate::sys::raw(asked.number, *a) }
        };
        let data = session.process.machine.memory.read(buffer, result.max(0) as usize);
        let data = data.unwrap_or_default();
        self.finish_call(asked, result, state, &[Effect::Write { address: buffer, data: &data }]);
    }

    /// Directory entries; the engine's descriptors are left out of `/proc/self/fd`.
    fn list(&mut self, call: &Call, asked: &Asked, state: u32) {
        let a = &asked.args;
        let session = self.session();
        session.process.machine.prepare_write(a[1], a[2].min(1 << 20));
        let own =
            session.process.files.get(asked.fd(0)).is_some_and(|d| d.what == What::OwnDescriptors);
        if own && call.number == table::getdents64 {
            return self.list_own(asked, state);
        }
        // SAFETY: the guest's call.
        let result = unsafe { crate::sys::raw(asked.number, *a) };
        let data =
            session.process.machine.memory.read(a[1], result.max(0) as usize).unwrap_or_default();
        self.finish_call(asked, result, state, &[Effect::Write { address: a[1], data: &data }]);
    }

    fn list_own(&mut self, asked: &Asked, state: u32) {
        let [fd, at, len, ..] = asked.args;
        let mut buffer = vec![0u8; len.min(1 << 20) as usize];
        // SAFETY: fills our own buffer.
        let result = unsafe {
            let args = [fd, buffer.as_mut_ptr() as u64, buffer.len() as u64, 0, 0, 0];
            crate::sys::raw(asked.number, args)
        };
        if result < 0 {
            return self.finish_call(asked, result, state, &[]);
        }
        let data = without_engine_entries(&buffer[..result as usize]);
        if !self.session().process.write_from_log(at, &data) {
            return self.finish_call(asked, EFAULT, state, &[]);
        }
        let effect = Effect::Write { address: at, data: &data };
        self.finish_call(asked, data.len() as i64, state, &[effect]);
    }

    fn limits(&mut self, asked: &Asked, state: u32) {
        let a = &asked.args;
        let session = self.session();
        let (pid, resource, new, old) = match asked.number as u32 {
            table::getrlimit => (0, a[0] as u32, 0, a[1]),
            table::setrlimit => (0, a[0] as u32, a[1], 0),
            _ => (a[0], a[1] as u32, a[2], a[3]),
        };
        // SAFETY: no memory is involved.
        let mine = pid == 0 || pid == unsafe { libc::getpid() } as u64;
        if !mine || !session.process.limits.contains_key(&resource) {
            // SAFETY: the guest's call.
            let result = unsafe { crate::sys::raw(asked.number, *a) };
            let data = if old != 0 && result == 0 {
                session.process.machine.memory.read(old, 16).unwrap_or_default()
            } else {
                Vec::new()
            };
            let effect = Effect::Write { address: old, data: &data };
            return self.finish_call(asked, result, state, &[effect]);
        }
        let may_raise = crate::sys::may_raise_limits();
        let result = session.process.kept_limit(resource, new, old, may_raise);
        self.finish_call(asked, result, state, &[]);
    }

    fn prctl(&mut self, asked: &Asked, state: u32) {
        let a = &asked.args;
        let session = self.session();
        let out = match a[0] as i32 {
            libc::PR_GET_NAME => 16,
            libc::PR_GET_PDEATHSIG | libc::PR_GET_TSC | libc::PR_GET_CHILD_SUBREAPER => 4,
            libc::PR_SET_NAME
            | libc::PR_SET_PDEATHSIG
            | libc::PR_SET_DUMPABLE
            | libc::PR_GET_DUMPABLE
            | libc::PR_SET_KEEPCAPS
            | libc::PR_GET_KEEPCAPS
            | libc::PR_SET_TIMERSLACK
            | libc::PR_GET_TIMERSLACK
            | libc::PR_CAPBSET_READ
            | libc::PR_SET_CHILD_SUBREAPER
            | libc::PR_SET_THP_DISABLE
            | libc::PR_GET_THP_DISABLE
            | libc::PR_CAP_AMBIENT
            | libc::PR_SET_NO_NEW_PRIVS
            | libc::PR_GET_NO_NEW_PRIVS => 0,
            // Naming maps is cosmetic; the rest would reach into the engine.
            _ => return self.finish_call(asked, EINVAL, state, &[]),
        };
        // SAFETY: an option that only touches the process's own attributes.
        let result = unsafe { crate::sys::raw(asked.number, *a) };
        let len = if result >= 0 { out } else { 0 };
        let data = session.process.machine.memory.read(a[1], len).unwrap_or_default();
        self.finish_call(asked, result, state, &[Effect::Write { address: a[1], data: &data }]);
    }

    /// `sendfile`, with the bytes in the log: they never pass through the guest.
    fn send_file(&mut self, asked: &Asked, state: u32) {
        let [out, input, offset_at, count, ..] = asked.args;
        let session = self.session();
        let mut buffer = vec![0u8; count.min(1 << 17) as usize];
        let memory = &session.process.machine.memory;
        let offset = if offset_at == 0 { None } else { memory.read_u64(offset_at) };
        let (number, position) = match offset {
            Some(offset) => (table::pread64, offset),
            None => (table::read, 0),
        };
        let shared = session.threads > 1;
        if shared {
            self.pause(When::Here);
        }
        // SAFETY: reads into and writes from our own buffer.
        let result = unsafe {
            let args = [input, buffer.as_mut_ptr() as u64, buffer.len() as u64, position, 0, 0];
            let got = host::interruptible(number as u64, args);
            if got <= 0 {
                got
            } else {
                buffer.truncate(got as usize);
                let args = [out, buffer.as_ptr() as u64, got as u64, 0, 0, 0];
                let sent = host::interruptible(table::write as u64, args);
                if offset.is_none() && sent < got {
                    // What could not be sent is not taken.
                    libc::lseek(input as i32, sent.max(0) - got, libc::SEEK_CUR);
                }
                sent
            }
        };
        if shared {
            self.shared.turn.acquire();
            self.resume();
        }
        buffer.truncate(result.max(0) as usize);
        let mut effects = vec![Effect::Output { data: &buffer }];
        let after = (position + result.max(0) as u64).to_le_bytes();
        if offset.is_some() && result > 0 {
            let _ = session.process.machine.memory.write(offset_at, &after);
            effects.push(Effect::Write { address: offset_at, data: &after });
        }
        let result = if result == -512 { -(libc::EINTR as i64) } else { result };
        self.finish_call(asked, result, state, &effects);
    }

    fn fork(&mut self, asked: &Asked, state: u32) {
        self.session().note_unsupported(&table::call(asked.number));
        self.finish_call(asked, ENOSYS, state, &[]);
    }

    fn exec(&mut self, asked: &Asked, state: u32) {
        let a = &asked.args;
        let (Some(path), Some(argv), Some(env)) =
            (self.path(a[0]), self.strings(a[1]), self.strings(a[2]))
        else {
            return self.finish_call(asked, EFAULT, state, &[]);
        };
        if self.session().threads > 1 {
            let error = Error::Refused("execve while several threads run".to_owned());
            self.session().give_up(&error);
        }
        let pid = self.session().pid;
        let path = match proc_self::own(&path, pid) {
            Some(Own::Program) => self.session().process.program.clone(),
            _ => path,
        };
        let launch = match Launch::of(Path::new(OsStr::from_bytes(&path)), argv) {
            Ok(launch) => launch,
            Err(Error::NotFound(_)) => {
                return self.finish_call(asked, -(libc::ENOENT as i64), state, &[]);
            }
            Err(Error::Image { .. }) => {
                return self.finish_call(asked, -(libc::ENOEXEC as i64), state, &[]);
            }
            Err(_) => return self.finish_call(asked, -(libc::EACCES as i64), state, &[]),
        };
        self.exec_launch(asked, state, launch, env);
    }

    fn exec_launch(&mut self, asked: &Asked, state: u32, launch: Launch, env: Vec<Vec<u8>>) {
        let session = self.session();
        let start = Start {
            path: launch.exec_path.clone(),
            argv: launch.argv.clone(),
            env,
            random: crate::sys::random(),
            ids: crate::sys::ids(),
            stack: session.stack_size(),
        };
        let captured = (|| -> Result<_, Error> {
            use std::os::fd::AsRawFd;
            let program = session.capture_whole(launch.file.as_raw_fd())?;
            let interpreter = match &launch.interpreter {
                Some((path, file)) => Some((
                    FileIdText(session.capture_whole(file.as_raw_fd())?),
                    path.as_os_str().as_bytes().to_vec(),
                )),
                None => None,
            };
            Ok((program, interpreter))
        })();
        let (program, interpreter) = match captured {
            Ok(captured) => captured,
            Err(error) => session.give_up(&error),
        };
        let image = NewImage {
            start: start.clone(),
            program: FileIdText(program),
            program_path: launch.path.as_os_str().as_bytes().to_vec(),
            interpreter,
        };
        let text = serde_json::to_vec(&image).expect("plain data");
        self.finish_call(asked, 0, state, &[Effect::Output { data: &text }]);
        let context = self.context();
        if let Err(error) = become_image(&mut session.process, &mut self.task, context, &image) {
            session.give_up(&error);
        }
        for signal in 1..=64 {
            if crate::signal::UNBLOCKABLE & crate::signal::only(signal) == 0 {
                use crate::kernel::process::World;
                HostWorld.action_changed(signal, &session.process.actions);
            }
        }
        for fd in session.process.files.close_for_exec() {
            // SAFETY: a descriptor of the guest.
            unsafe { libc::close(fd) };
        }
        crate::sys::set_name(launch.path.file_name().unwrap_or_default().as_bytes());
        session.start = start;
    }

    fn strings(&self, at: u64) -> Option<Vec<Vec<u8>>> {
        let memory = &self.session().process.machine.memory;
        read_strings(memory, at)
    }
}

/// Does the call return a new descriptor?
fn gives_descriptor(asked: &Asked) -> bool {
    let number = asked.number as u32;
    let duplicates = matches!(asked.args[1] as i32, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC);
    table::gives_descriptor(number) || number == table::fcntl && duplicates
}

/// A NULL-terminated array of strings.
pub fn read_strings(memory: &crate::guest::memory::Memory, at: u64) -> Option<Vec<Vec<u8>>> {
    let mut out = Vec::new();
    if at == 0 {
        return Some(out);
    }
    loop {
        match memory.read_u64(at + 8 * out.len() as u64)? {
            0 => return Some(out),
            p => out.push(memory.read_string(p, 1 << 17)?),
        }
    }
}

/// What `execve` puts in the place of a process.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct NewImage {
    /// Arguments and the like.
    pub start: Start,
    /// The program's contents.
    pub program: FileIdText,
    /// Its path.
    pub program_path: Vec<u8>,
    /// Its interpreter.
    pub interpreter: Option<(FileIdText, Vec<u8>)>,
}

/// Replaces the guest's memory and registers by a new image.
pub fn become_image(
    process: &mut crate::kernel::Process,
    task: &mut Task,
    context: &mut crate::context::Context,
    image: &NewImage,
) -> Result<(), Error> {
    process.machine.memory.clear();
    process.machine.cache.reset();
    process.actions.reset_handlers();
    process.program = image.program_path.clone();
    let interpreter = image.interpreter.as_ref().map(|(id, path)| (id.0, path.as_slice()));
    context.regs =
        load_images(process, &image.start, (image.program.0, &image.program_path), interpreter)?;
    crate::kernel::calls::set_gs(0);
    task.altstack = Default::default();
    task.clear_tid = 0;
    task.robust_list = 0;
    Ok(())
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

/// Directory entries without those that name the engine's descriptors.
fn without_engine_entries(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = data;
    while rest.len() >= 19 {
        let len = u16::from_le_bytes([rest[16], rest[17]]) as usize;
        let Some(entry) = rest.get(..len.max(19)) else { break };
        let name = entry[19..].split(|b| *b == 0).next().unwrap_or_default();
        let fd = std::str::from_utf8(name).ok().and_then(|s| s.parse::<i32>().ok());
        if !fd.is_some_and(crate::sys::is_engine_fd) {
            out.extend_from_slice(entry);
        }
        rest = &rest[len.max(19)..];
    }
    out
}
