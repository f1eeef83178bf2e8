//! System calls the engine performs itself while recording.

use super::capture::inspect;
use super::proc_self::{self, Own};
use super::session::Runner;
use super::signals::HostWorld;
use crate::kernel::files::{FileIdText, What};
use crate::kernel::memory::{Map, Source};
use crate::kernel::process::Asked;
use crate::kernel::table::{self, Call};
use crate::signal::host;
use recording::event::{Effect, When};
use std::os::unix::ffi::OsStringExt;

const EFAULT: i64 = -(libc::EFAULT as i64);
const EBADF: i64 = -(libc::EBADF as i64);
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
            table::execve | table::execveat => self.exec(asked, state),
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
        if let Some(opened) = &regular {
            session.refuse_outsiders(&map, opened);
        }
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
                if map.is_shared() {
                    session.join_commons();
                }
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

    pub(super) fn path(&self, address: u64) -> Option<Vec<u8>> {
        self.session().process.machine.memory.read_string(address, 4096)
    }

    fn descriptor_call(&mut self, asked: &Asked, state: u32) {
        let a = &asked.args;
        let number = asked.number as u32;
        let too_high = matches!(number, table::dup2 | table::dup3)
            && a[1] as u32 as u64 >= self.descriptor_limit();
        let result = if too_high {
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
        // SAFETY: the guest's call, not on a descriptor of ours.
        let result = unsafe { crate::sys::raw(asked.number, asked.args) };
        let path = std::env::current_dir().ok().map(|p| p.into_os_string().into_vec());
        let effect = path.as_ref().filter(|_| result == 0).map(|p| Effect::Output { data: p });
        self.finish_call(asked, result, state, effect.as_slice());
        if result == 0 {
            self.session().process.cwd = path;
        }
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

    fn prctl(&mut self, asked: &Asked, state: u32) {
        let a = &asked.args;
        let session = self.session();
        // What is to happen when the parent dies is asked of each thread.
        // SAFETY: only asks for a number.
        let is_first = unsafe { libc::gettid() } == session.pid;
        let out = match a[0] as i32 {
            libc::PR_GET_NAME => 16,
            libc::PR_GET_PDEATHSIG if session.ends_with_recorder && is_first => {
                // That is between the recorder and the kernel.
                let none = 0i32.to_ne_bytes();
                let written = session.process.write_from_log(a[1], &none);
                let (result, len) = if written { (0, none.len()) } else { (EFAULT, 0) };
                let effect = Effect::Write { address: a[1], data: &none[..len] };
                return self.finish_call(asked, result, state, &[effect]);
            }
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
        if a[0] as i32 == libc::PR_SET_PDEATHSIG && result >= 0 && is_first {
            session.ends_with_recorder = false;
        }
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
        let shared = session.threads > 1 || session.commons.is_some();
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
