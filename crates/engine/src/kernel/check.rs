//! Is what the log says possible, given the state that the calls before it left?
//!
//! Every check holds for any kernel and any timing, so a failed one means that the
//! replay or the log is wrong.

use super::files::What;
use super::pipes::{Overlap, PipeId};
use super::process::{Asked, Process};
use super::table;
use crate::guest::task::Task;

/// Flags that do not change which bytes are received.
const PLAIN: i32 = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_WAITALL;

const EAGAIN: i64 = -(libc::EAGAIN as i64);
const EBADF: i64 = -(libc::EBADF as i64);

/// A call that a thread is still in while another finishes one.
pub type Others<'a> = &'a [Asked];

impl Process {
    /// Checks the result of a call before [`Process::observe`] takes it over. The
    /// error says what is wrong.
    pub fn check(
        &self,
        task: &Task,
        asked: &Asked,
        result: i64,
        others: Others,
    ) -> Result<(), String> {
        self.check_identity(task, asked, result)?;
        self.check_length(asked, result)?;
        self.check_descriptor(asked, result)?;
        self.check_new_descriptor(asked, result, others)?;
        self.check_offset(asked, result)
    }

    fn check_identity(&self, task: &Task, asked: &Asked, result: i64) -> Result<(), String> {
        let known = match asked.number as u32 {
            table::getpid => Some(self.pid as i64),
            table::gettid => Some(task.tid as i64),
            table::umask => Some(self.umask as i64),
            table::getuid => self.ids.map(|ids| ids[0] as i64),
            table::geteuid => self.ids.map(|ids| ids[1] as i64),
            table::getgid => self.ids.map(|ids| ids[2] as i64),
            table::getegid => self.ids.map(|ids| ids[3] as i64),
            table::alarm if self.timers.is_fresh(libc::ITIMER_REAL) => Some(0),
            _ => None,
        };
        match known {
            Some(known) if known != result => {
                Err(format!("{} gave {result}, not {known}", table::call(asked.number).name))
            }
            _ => Ok(()),
        }
    }

    /// No call moves more than it was asked to.
    fn check_length(&self, asked: &Asked, result: i64) -> Result<(), String> {
        let most = match asked.number as u32 {
            table::read | table::write | table::pread64 | table::pwrite64 => asked.args[2],
            table::sendfile => asked.args[3],
            table::copy_file_range | table::splice => asked.args[4],
            table::tee => asked.args[2],
            _ => return Ok(()),
        };
        if result > 0 && result as u64 > most {
            let name = table::call(asked.number).name;
            return Err(format!("{name} moved {result} bytes of {most}"));
        }
        Ok(())
    }

    /// A descriptor that is open is not unknown to the kernel.
    fn check_descriptor(&self, asked: &Asked, result: i64) -> Result<(), String> {
        let number = asked.number as u32;
        let reads = matches!(number, table::read | table::readv | table::pread64);
        let writes = matches!(number, table::write | table::writev | table::pwrite64);
        let plain = matches!(number, table::close | table::dup | table::fstat | table::lseek);
        let Some(d) = self.files.get(asked.fd(0)).filter(|d| !d.path_only) else { return Ok(()) };
        // How an inherited one was opened is not known.
        let own = matches!(d.what, What::Regular { .. } | What::Memory | What::Pipe { .. });
        let usable = plain || own && (reads && d.readable || writes && d.writable);
        if usable && result == EBADF {
            let name = table::call(asked.number).name;
            return Err(format!("{name} says descriptor {} is not open", asked.fd(0)));
        }
        let fd_flags = i64::from(self.files.is_close_on_exec(asked.fd(0)));
        if number == table::fcntl
            && asked.args[1] as i32 == libc::F_GETFD
            && result >= 0
            && result != fd_flags
        {
            return Err(format!("descriptor {} has flags {result}", asked.fd(0)));
        }
        Ok(())
    }

    /// The kernel gives the lowest free descriptor. Where another thread is inside
    /// a call, it may hold one that the log has not told of yet.
    fn check_new_descriptor(
        &self,
        asked: &Asked,
        result: i64,
        others: Others,
    ) -> Result<(), String> {
        let number = asked.number as u32;
        let duplicate = number == table::fcntl
            && matches!(asked.args[1] as i32, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC);
        if result < 0 || !(table::gives_descriptor(number) || duplicate) {
            return Ok(());
        }
        if self.files.get(result as i32).is_some() {
            return Err(format!("a call gave descriptor {result}, which is in use"));
        }
        let from = if duplicate { asked.args[2] as i32 } else { 0 };
        let lowest = self.files.lowest_free(from);
        // The engine's own descriptors were in the way from some number on.
        let known = others.is_empty() && lowest < self.first_hidden_descriptor;
        if known && result as i32 != lowest {
            return Err(format!("a call gave descriptor {result}, not the free {lowest}"));
        }
        Ok(())
    }

    fn check_offset(&self, asked: &Asked, result: i64) -> Result<(), String> {
        if asked.number as u32 != table::lseek || result < 0 {
            return Ok(());
        }
        let Some(d) = self.files.get(asked.fd(0)) else { return Ok(()) };
        if !matches!(d.what, What::Regular { .. } | What::Memory) {
            return Ok(());
        }
        let wanted = match asked.args[2] as i32 {
            libc::SEEK_SET => Some(asked.args[1]),
            libc::SEEK_CUR => d.offset.map(|offset| offset.wrapping_add(asked.args[1])),
            _ => None,
        };
        match wanted {
            Some(wanted) if wanted != result as u64 => {
                Err(format!("lseek gave {result}, but the offset is {wanted}"))
            }
            _ => Ok(()),
        }
    }

    /// Follows what a call moved through a pipe. `sent` is what the thread gave to
    /// the kernel, if that was before now.
    pub fn follow_pipes(
        &mut self,
        asked: &Asked,
        result: i64,
        sent: Option<Vec<u8>>,
        others: Others,
    ) -> Result<(), String> {
        let number = asked.number as u32;
        self.drop_if_closed_under_way(asked, others);
        let Some(What::Pipe { reads, writes }) = self.files.get(asked.fd(0)).map(|d| &d.what)
        else {
            return self.follow_copies(asked, result);
        };
        let (reads, writes) = (*reads, *writes);
        let same = match (moves(number), reads, writes) {
            (Some(Way::In), Some(pipe), _) => {
                let overlap = self.overlap(pipe, others);
                let flags = if number == table::recvfrom { asked.args[3] as i32 } else { 0 };
                let peeks = flags & libc::MSG_PEEK != 0;
                if flags & !(libc::MSG_PEEK | PLAIN) != 0 {
                    self.pipes.forget(pipe);
                    return Ok(());
                }
                if result == EAGAIN && overlap == Overlap::default() {
                    self.pipes.is_empty_now(pipe);
                    return Ok(());
                }
                if peeks || result <= 0 {
                    return Ok(());
                }
                let Some(bytes) = self.moved(asked, result as u64) else { return Ok(()) };
                self.pipes.take(pipe, &bytes, overlap)
            }
            (Some(Way::Out), _, Some(pipe)) if result > 0 => {
                let overlap = self.overlap(pipe, others);
                let bytes = match sent {
                    Some(mut bytes) => {
                        bytes.truncate(result as usize);
                        bytes
                    }
                    None => self.moved(asked, result as u64).unwrap_or_default(),
                };
                self.pipes.put(pipe, &bytes, overlap)
            }
            _ => return self.follow_copies(asked, result),
        };
        if same { Ok(()) } else { Err("a pipe gave other bytes than were put in".to_owned()) }
    }

    /// A descriptor that is closed while another thread's call is on it no longer
    /// tells which pipe that call is about.
    fn drop_if_closed_under_way(&mut self, asked: &Asked, others: Others) {
        let closes = |fd: i32| match asked.number as u32 {
            table::close => fd == asked.fd(0),
            table::dup2 | table::dup3 => fd == asked.fd(1),
            table::close_range => (asked.args[0]..=asked.args[1]).contains(&(fd as u64)),
            _ => false,
        };
        if others.iter().any(|other| closes(other.fd(0))) {
            self.pipes.drop_all();
        }
    }

    /// Calls that move bytes between descriptors past the guest, and messages.
    fn follow_copies(&mut self, asked: &Asked, result: i64) -> Result<(), String> {
        let touched = match asked.number as u32 {
            table::splice => [asked.fd(0), asked.fd(2)],
            table::tee | table::sendfile => [asked.fd(0), asked.fd(1)],
            table::sendmsg
            | table::recvmsg
            | table::sendmmsg
            | table::recvmmsg
            | table::shutdown => [asked.fd(0); 2],
            _ => return Ok(()),
        };
        if result < 0 {
            return Ok(());
        }
        if asked.number as u32 == table::sendmsg {
            self.drop_passed(asked.args[1]);
        }
        for fd in touched {
            if let Some(What::Pipe { reads, writes }) = self.files.get(fd).map(|d| d.what.clone()) {
                for pipe in reads.into_iter().chain(writes) {
                    self.pipes.forget(pipe);
                }
            }
        }
        Ok(())
    }

    /// A pipe whose end was sent away may be used through another descriptor.
    fn drop_passed(&mut self, header: u64) {
        for fd in self.passed_descriptors(header) {
            if let Some(What::Pipe { reads, writes }) = self.files.get(fd).map(|d| d.what.clone()) {
                for pipe in reads.into_iter().chain(writes) {
                    self.pipes.drop(pipe);
                }
            }
        }
    }

    /// Which other calls on the pipe are on their way?
    fn overlap(&self, pipe: PipeId, others: Others) -> Overlap {
        let mut overlap = Overlap::default();
        for other in others {
            let fds = [other.fd(0), other.fd(1), other.fd(2)];
            let number = other.number as u32;
            let many = matches!(number, table::splice | table::tee | table::sendfile);
            for fd in &fds[..if many { 3 } else { 1 }] {
                if let Some(What::Pipe { reads, writes }) = self.files.get(*fd).map(|d| &d.what) {
                    let way = moves(number);
                    overlap.reads |= *reads == Some(pipe) && way != Some(Way::Out);
                    overlap.writes |= *writes == Some(pipe) && way != Some(Way::In);
                }
            }
        }
        overlap
    }

    /// What a call is about to send into a pipe, if it is one.
    pub fn outgoing(&self, asked: &Asked) -> Option<Vec<u8>> {
        let d = self.files.get(asked.fd(0))?;
        if !matches!(d.what, What::Pipe { .. }) || moves(asked.number as u32) != Some(Way::Out) {
            return None;
        }
        self.moved(asked, u64::MAX)
    }

    /// The first `len` bytes of a call's buffer or vector.
    fn moved(&self, asked: &Asked, len: u64) -> Option<Vec<u8>> {
        let a = &asked.args;
        let memory = &self.machine.memory;
        if !matches!(asked.number as u32, table::readv | table::writev) {
            return memory.read(a[1], a[2].min(len) as usize);
        }
        let mut bytes = Vec::new();
        for n in 0..a[2].min(1024) {
            let (base, part) =
                (memory.read_u64(a[1] + 16 * n)?, memory.read_u64(a[1] + 16 * n + 8)?);
            let part = part.min(len - bytes.len() as u64);
            bytes.extend(memory.read(base, part as usize)?);
        }
        Some(bytes)
    }
}

/// Where bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    In,
    Out,
}

fn moves(number: u32) -> Option<Way> {
    match number {
        table::read | table::readv | table::recvfrom => Some(Way::In),
        table::write | table::writev | table::sendto => Some(Way::Out),
        _ => None,
    }
}
