//! System calls in replay: the engine's own are performed again and compared, the
//! others' effects are taken from the log.

use super::replayer::{Halt, Replayer};
use crate::Error;
use crate::guest::task::Thread;
use crate::kernel::files::{FileIdText, What};
use crate::kernel::forks::Birth;
use crate::kernel::memory::{Map, Source};
use crate::kernel::process::{Asked, NoWorld};
use crate::kernel::table::{self, How};
use crate::record::endings::{Kills, kills};
use crate::record::exec::{NewImage, become_image};
use crate::record::session::set_result;
use crate::sandbox::Written;
use recording::event::{Effect, Effects, Event};
use recording::{Ending, FileId};

/// What the effects of a call say besides memory.
#[derive(Default)]
pub(super) struct Said<'a> {
    opened: Option<(FileId, (u64, u64))>,
    emptied: Option<(FileId, (u64, u64))>,
    found: Option<&'a [u8; 144]>,
    copied: Option<(FileId, u64)>,
    spawned: Option<Thread>,
    output: Option<&'a [u8]>,
    forked: Option<i32>,
    executed: Option<u64>,
    order: Option<u64>,
}

impl Replayer {
    /// Finishes the call as the log says.
    pub(super) fn perform(&mut self, asked: &Asked, state: u32) -> Result<(), Halt> {
        match self.log.peek()? {
            None => return Err(Halt::Finish(super::Finish::LogEnds)),
            Some(Event::Call { number, state: then, .. }) => {
                let call = table::call(asked.number);
                if u64::from(number) != asked.number & 0xffff_ffff {
                    let was = table::call(number.into()).name;
                    let what = format!("the program calls {}, then it called {was}", call.name);
                    return Err(self.diverged(what).into());
                }
                if then != state {
                    let what = format!("registers differ at a call of {}", call.name);
                    return Err(self.diverged(what).into());
                }
            }
            Some(_) => {
                let name = table::call(asked.number).name;
                return Err(self.diverged(format!("an unexpected call of {name}")).into());
            }
        }
        if let Some(log) = self.made_process()?
            && self.follow_child(asked, state, log)?
        {
            return Ok(());
        }
        let bytes = self.log.take();
        let done = match Event::decode(&bytes) {
            Ok(Event::Call { result, effects, .. }) => self.apply(asked, result, effects),
            _ => unreachable!("just decoded"),
        };
        self.log.done(bytes)?;
        match done? {
            Then::Goes if self.was_killed_by(asked)? => self.end(libc::SIGKILL),
            Then::Goes => self.signals_here(),
            Then::Executed => Err(Halt::Finish(super::Finish::Ended(Ending::Executed))),
            Then::Ended(status) => self.end(status),
            Then::Dies(signal) => self.end(signal),
            Then::ThreadOver => self.switch(),
        }
    }

    /// The log of the process that the call at hand made, seen from the parent.
    fn made_process(&self) -> Result<Option<u64>, Halt> {
        if self.following.is_none() {
            return Ok(None);
        }
        let Some(Event::Call { result: 1.., effects, .. }) = self.log.peek()? else {
            return Ok(None);
        };
        Ok(effects.iter().find_map(|effect| match effect {
            Ok(Effect::Forked { log, .. }) => Some(log),
            _ => None,
        }))
    }

    /// Did the call kill its own process, among others?
    fn was_killed_by(&self, asked: &Asked) -> Result<bool, Halt> {
        let kills = asked.number as u32 == table::kill && asked.args[1] == libc::SIGKILL as u64;
        Ok(kills && matches!(self.log.peek()?, Some(Event::End { status: libc::SIGKILL, .. })))
    }

    fn apply(&mut self, asked: &Asked, result: i64, effects: Effects) -> Result<Then, Halt> {
        let before = self.before_call(asked);
        let said = self.apply_effects(effects)?;
        let spawned = said.spawned.map(|thread| thread.0);
        self.show_output(asked, result, &said);
        let call = table::call(asked.number);
        let context = self.context();
        if call.how == How::Engine {
            let task = self.tasks.get_mut(&self.current).expect("the running thread");
            let own = self.process.own_call(task, context, asked.number, &asked.args, &mut NoWorld);
            let own = own.or_else(|| self.own_map(asked, result, &said));
            let own = own.or_else(|| self.own_limit(asked, result));
            if let Some(own) = own.filter(|own| *own != result) {
                let what = format!("{} gives {own:#x}, then it gave {result:#x}", call.name);
                return Err(self.diverged(what).into());
            }
        }
        set_result(context, self.task(), asked, result);
        self.follow_kernel(asked, result, said.copied)?;
        let then = self.special(asked, result, &said)?;
        if let Some(world) = &mut self.world {
            world.emptied = said.emptied;
            let before = [world.outputs[0].len(), world.outputs[1].len()];
            world.follow(&mut self.process, asked, result);
            if let Some(written) = &mut self.written {
                let now = world.outputs.iter().map(Vec::len).enumerate();
                let more = now.filter(|(n, len)| *len > before[*n]);
                let number = self.executed;
                written.extend(more.map(|(stream, end)| Written { stream, end, number }));
            }
        }
        self.after_call(asked, result, before, spawned);
        Ok(then)
    }

    fn apply_effects<'a>(&mut self, effects: Effects<'a>) -> Result<Said<'a>, Halt> {
        let mut said = Said::default();
        for effect in effects.iter() {
            let effect = effect.map_err(|_| self.damaged())?;
            let done = match effect {
                Effect::Write { address, data } => {
                    data.is_empty() || self.process.write_from_log(address, data)
                }
                Effect::Copy { address, file, offset, len } => {
                    said.copied.get_or_insert((file, offset));
                    self.process.copy_from_file(address, file, offset, len)
                }
                Effect::Opened { file, device, inode } => {
                    said.opened = Some((file, (device, inode)));
                    true
                }
                Effect::Emptied { file, device, inode } => {
                    said.emptied = Some((file, (device, inode)));
                    true
                }
                Effect::Found { stat } => {
                    said.found = Some(stat);
                    true
                }
                Effect::Changed { device, inode, size, offset, data } => {
                    self.change_shared((device, inode), size, offset, data)?;
                    true
                }
                Effect::Spawned { thread } => {
                    said.spawned = Some(Thread(thread));
                    true
                }
                Effect::Output { data } => {
                    said.output = Some(data);
                    true
                }
                Effect::Forked { pid, .. } => {
                    said.forked = Some(pid as i32);
                    true
                }
                Effect::Executed { log } => {
                    said.executed = Some(log);
                    true
                }
                Effect::Order { number } => {
                    said.order = Some(number);
                    true
                }
                // Only between stretches of a slice.
                Effect::Mapped { .. } | Effect::Between { .. } => false,
            };
            if !done {
                return Err(self.diverged("memory that a call wrote is not there").into());
            }
        }
        Ok(said)
    }

    fn damaged(&self) -> Error {
        Error::Recording(recording::Error::Damaged {
            what: "an event of the log is malformed".to_owned(),
            at: self.log.number(),
        })
    }

    fn own_map(&mut self, asked: &Asked, result: i64, said: &Said) -> Option<i64> {
        // What the kernel refused then is not tried again.
        if asked.number as u32 != table::mmap || (-4095..0).contains(&result) {
            return None;
        }
        let map = Map::of(&asked.args);
        if map.is_anonymous() {
            return Some(self.process.map(&map, Source::Nothing));
        }
        let captured = match self.process.captured_source(&map) {
            Ok(captured) => captured,
            Err(error) => return Some(error),
        };
        let source = match (said.opened, captured) {
            (Some((file, identity)), _) if map.is_shared() => {
                let contents = self.process.objects.bytes(file).ok()?;
                Source::Live(self.live.set(identity, contents).ok()?, identity)
            }
            (Some((file, _)), _) => Source::Captured(FileIdText(file)),
            (None, Some(id)) => Source::Captured(id),
            (None, None) => {
                let device_is_zero = asked.args[4] as i32 >= 0;
                return device_is_zero.then(|| self.process.map(&map, Source::Nothing));
            }
        };
        Some(self.process.map(&map, source))
    }

    fn own_limit(&mut self, asked: &Asked, result: i64) -> Option<i64> {
        let a = &asked.args;
        let (resource, new, old) = match asked.number as u32 {
            table::getrlimit => (a[0] as u32, 0, a[1]),
            table::setrlimit => (a[0] as u32, a[1], 0),
            table::prlimit64 if a[0] == 0 || a[0] == self.pid as u64 => (a[1] as u32, a[2], a[3]),
            _ => return None,
        };
        let kept = self.process.limits.contains_key(&resource);
        // Whether it had the right to is in the log.
        kept.then(|| self.process.kept_limit(resource, new, old, result == 0))
    }

    /// Writes to standard output and error are made again.
    fn show_output(&self, asked: &Asked, result: i64, said: &Said) {
        if result <= 0 || self.options.silent || self.log.number() < self.shown_from {
            return;
        }
        let to = match self.process.files.get(asked.fd(0)).map(|d| &d.what) {
            Some(What::Stdout) => 1,
            Some(What::Stderr) => 2,
            _ => return,
        };
        let memory = &self.process.machine.memory;
        let put = |fd: i32, bytes: &[u8]| match &self.following {
            Some(following) => following.output(fd, said.order, bytes),
            None => put(fd, bytes),
        };
        match asked.number as u32 {
            table::write if said.output.is_some() => put(to, said.output.unwrap_or_default()),
            table::write | table::pwrite64 => {
                put(to, &memory.read(asked.args[1], result as usize).unwrap_or_default());
            }
            table::writev | table::pwritev | table::pwritev2 => {
                let mut left = result as u64;
                let mut all = Vec::new();
                for n in 0..asked.args[2].min(1024) {
                    let at = asked.args[1] + 16 * n;
                    let base = memory.read_u64(at).unwrap_or(0);
                    let len = memory.read_u64(at + 8).unwrap_or(0).min(left);
                    all.extend(memory.read(base, len as usize).unwrap_or_default());
                    left -= len;
                }
                put(to, &all);
            }
            table::sendfile => put(to, said.output.unwrap_or_default()),
            table::sendto => {
                put(to, &memory.read(asked.args[1], result as usize).unwrap_or_default());
            }
            _ => {}
        }
    }

    /// Calls that do more than return.
    fn special(&mut self, asked: &Asked, result: i64, said: &Said) -> Result<Then, Halt> {
        let a = &asked.args;
        let context = self.context();
        match asked.number as u32 {
            table::exit_group => return Ok(Then::Ended((a[0] as i32 & 0xff) << 8)),
            table::exit => return Ok(self.thread_over(a[0])),
            table::kill | table::tkill | table::tgkill => {
                let task = self.tasks.get(&self.current).expect("the running thread");
                if kills(asked, self.pid, task.tid) == Kills::Self_ {
                    return Ok(Then::Dies(libc::SIGKILL));
                }
            }
            table::rt_sigreturn => {
                let task = self.tasks.get_mut(&self.current).expect("the running thread");
                if !self.process.signal_return(task, context, &mut NoWorld) {
                    return Ok(Then::Dies(libc::SIGSEGV));
                }
            }
            table::fork | table::vfork | table::clone if said.forked.is_some() => {
                self.forked(asked, result, said.forked.unwrap_or_default())?;
            }
            table::clone => {
                if let Some(thread) = said.spawned {
                    let parent = self.tasks.get(&self.current).expect("the running thread");
                    let mut task = self.process.child_task(parent, context, asked, thread);
                    task.tid = result as i32;
                    self.process.thread_started(asked, result as i32);
                    self.tasks.insert(thread, task);
                }
            }
            table::execve | table::execveat if said.executed.is_some() => {
                self.next_log = said.executed;
                return Ok(Then::Executed);
            }
            table::execve | table::execveat if result == 0 => {
                self.keep_only_current();
                let image: NewImage = serde_json::from_slice(said.output.unwrap_or_default())
                    .map_err(|_| self.damaged())?;
                let task = self.tasks.get_mut(&self.current).expect("the running thread");
                let stocked = self.process.machine.cache.is_stocked();
                become_image(&mut self.process, task, context, &image)?;
                if stocked {
                    self.process.machine.stock_for(image.program.0);
                }
                let program = (image.program, image.program_path.clone());
                self.images = std::iter::once(program)
                    .chain(image.interpreter.clone())
                    .map(|(file, path)| (path, file.0.to_string()))
                    .collect();
                self.process.files.close_for_exec();
            }
            table::open | table::openat | table::openat2 | table::creat => {
                self.note_open(asked, result, said);
            }
            table::chdir | table::fchdir => {
                self.process.cwd = said.output.map(<[u8]>::to_vec);
            }
            _ => {}
        }
        Ok(Then::Goes)
    }

    /// A call made a process: this one has, or is it.
    fn forked(&mut self, asked: &Asked, result: i64, pid: i32) -> Result<(), Halt> {
        let Some(birth) = Birth::of(asked) else { return Err(self.damaged().into()) };
        if result > 0 {
            self.process.has_forked(&birth, pid);
            return Ok(());
        }
        self.keep_only_current();
        self.inherited = self.executed;
        self.pid = pid;
        let context = self.context();
        let task = self.tasks.get_mut(&self.current).expect("the running thread");
        self.process.is_forked(&birth, pid, task, context);
        Ok(())
    }

    fn keep_only_current(&mut self) {
        let current = self.current;
        self.tasks.retain(|thread, _| *thread == current);
        self.in_call.clear();
    }

    fn thread_over(&mut self, status: u64) -> Then {
        if self.tasks.len() == 1 {
            return Then::Ended((status as i32 & 0xff) << 8);
        }
        let task = self.tasks.remove(&self.current).expect("the running thread");
        self.process.thread_ended(&task);
        Then::ThreadOver
    }

    fn note_open(&mut self, asked: &Asked, result: i64, said: &Said) {
        if result < 0 {
            return;
        }
        let a = &asked.args;
        let memory = &self.process.machine.memory;
        let (path_at, flags) = match asked.number as u32 {
            table::open => (a[0], a[1] as i32),
            table::creat => (a[0], libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC),
            table::openat => (a[1], a[2] as i32),
            _ => (a[1], memory.read_u64(a[2]).unwrap_or(0) as i32),
        };
        let path = memory.read_string(path_at, 4096).unwrap_or_default();
        if let Some((file, _)) = said.opened {
            self.moving.opened.insert(path.clone(), file.to_string());
        }
        let what = match (said.opened, &path[..]) {
            (Some((file, identity)), _) => {
                What::Regular { file: Some(FileIdText(file)), identity, path }
            }
            (None, _) if said.found.is_some_and(|stat| kind(stat) == libc::S_IFREG) => {
                let identity = said.found.map(identity).expect("just seen");
                What::Regular { file: None, identity, path }
            }
            (None, b"/dev/stdout" | b"/proc/self/fd/1" | b"/dev/fd/1") => What::Stdout,
            (None, b"/dev/stderr" | b"/proc/self/fd/2" | b"/dev/fd/2") => What::Stderr,
            _ => What::Other,
        };
        if said.found.is_some_and(|stat| kind(stat) == libc::S_IFIFO) {
            // It may be one of ours, by its name under /proc.
            self.process.pipes.drop_all();
        }
        let close_on_exec = flags & libc::O_CLOEXEC != 0;
        self.process.files.open(result as i32, what, flags, close_on_exec);
        if let Some(d) = self.process.files.get_mut(result as i32) {
            d.stat = said.found.copied();
        }
    }
}

/// Device and inode in a `struct stat`.
fn identity(stat: &[u8; 144]) -> (u64, u64) {
    let word = |n: usize| u64::from_le_bytes(stat[n..n + 8].try_into().expect("eight"));
    (word(0), word(8))
}

/// What kind of file a `struct stat` is of.
fn kind(stat: &[u8; 144]) -> u32 {
    u32::from_le_bytes(stat[24..28].try_into().expect("four")) & libc::S_IFMT
}

/// How the run goes on after a call.
enum Then {
    Goes,
    /// Another log goes on.
    Executed,
    Ended(i32),
    Dies(i32),
    ThreadOver,
}

/// Writes everything, as far as somebody reads it.
pub(super) fn put(fd: i32, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: writes our own bytes.
        let n = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
        if n < 0 && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted {
            continue;
        }
        if n <= 0 {
            return;
        }
        bytes = &bytes[n as usize..];
    }
}
