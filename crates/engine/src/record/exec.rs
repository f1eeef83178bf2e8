//! `execve`: another program in the same process.

use super::beginning::{Beginning, Inheritance, load_images};
use super::launch::Launch;
use super::leaks;
use super::proc_self::{self, Own};
use super::session::{Counters, Runner, Session};
use super::signals::HostWorld;
use crate::guest::start::Start;
use crate::guest::task::{Task, Thread};
use crate::kernel::files::{FileIdText, HandedOn};
use crate::kernel::pipes::Pipes;
use crate::kernel::process::Asked;
use crate::kernel::table;
use crate::{Error, NotExecutable};
use recording::event::Effect;
use recording::{Born, ByteString, Manifest, Process as Whose, SpareTail};
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

const EFAULT: i64 = -(libc::EFAULT as i64);

impl Runner {
    pub(super) fn exec(&mut self, asked: &Asked, state: u32) {
        let (path_at, a) = match asked.number as u32 {
            table::execveat => (asked.args[1], &asked.args[2..]),
            _ => (asked.args[0], &asked.args[1..]),
        };
        let (Some(path), Some(argv), Some(env)) =
            (self.path(path_at), self.strings(a[0]), self.strings(a[1]))
        else {
            return self.finish_call(asked, EFAULT, state, &[]);
        };
        let path = match asked.number as u32 {
            table::execveat => path_from(asked.fd(0), path, asked.args[4] as i32),
            _ => Ok(path),
        };
        let pid = self.session().pid;
        let launch = path.and_then(|path| {
            let path = match proc_self::own(&path, pid) {
                Some(Own::Program) => self.session().process.program.clone(),
                _ => path,
            };
            let path = Path::new(OsStr::from_bytes(&path));
            Launch::of(path, argv).map_err(|error| {
                if let Error::NotExecutable { path, why: NotExecutable::SetId } = &error {
                    self.session().note_set_id(path);
                }
                errno_of(path, &error)
            })
        });
        match launch {
            Ok(launch) => self.exec_launch(asked, state, launch, env),
            Err(errno) => self.finish_call(asked, -(errno as i64), state, &[]),
        }
    }

    fn exec_launch(&mut self, asked: &Asked, state: u32, launch: Launch, env: Vec<Vec<u8>>) {
        self.end_other_threads();
        let session = self.session();
        session.leave_commons();
        let mut env = env;
        let leaks_off = leaks::switch_off(launch.has_leak_checker, &mut env);
        let start = Start {
            path: launch.exec_path.clone(),
            argv: launch.argv.clone(),
            env,
            random: crate::sys::random(),
            ids: crate::sys::ids(),
            stack: session.stack_size(),
        };
        let (program, interpreter) = match session.capture_launch(&launch) {
            Ok(captured) => captured,
            Err(error) => session.give_up(&error),
        };
        let image = NewImage {
            start: start.clone(),
            program,
            program_path: launch.path.as_os_str().as_bytes().to_vec(),
            interpreter,
        };
        if session.number == Whose::FIRST {
            let text = serde_json::to_vec(&image).expect("plain data");
            self.finish_call(asked, 0, state, &[Effect::Output { data: &text }]);
        } else {
            self.begin_image_log(asked, state, &image);
        }
        if leaks_off {
            session.note_switched_off(leaks::LEAK_CHECKING);
        }
        let context = self.context();
        if let Err(error) = become_image(&mut session.process, &mut self.task, context, &image) {
            session.give_up(&error);
        }
        session.process.machine.stock_for(image.program.0);
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

    /// The new program gets a log of its own, which begins as if it had been started
    /// here. All but the first process do so: what comes before, a part of a shell say,
    /// is not what anybody asks about.
    fn begin_image_log(&mut self, asked: &Asked, state: u32, image: &NewImage) {
        let session = self.session();
        let log = session.tree.new_log();
        self.finish_call(asked, 0, state, &[Effect::Executed { log }]);
        let spare = session.finish_log_for_next();
        session.give_back_memory();
        let handed_on = session.process.files.handed_on();
        for fd in session.process.files.close_for_exec() {
            // SAFETY: a descriptor of the guest.
            unsafe { libc::close(fd) };
        }
        let beginning = session.beginning_of(image, &self.task, handed_on);
        if let Err(error) = session.begin_image(log, &beginning, spare) {
            session.give_up(&error);
        }
        self.task.thread = Thread(1);
        self.task.safepoints = 0;
        self.task.saved_mask = None;
        session.current = self.task.thread;
        session.next_thread = 2;
    }

    fn strings(&self, at: u64) -> Option<Vec<Vec<u8>>> {
        let memory = &self.session().process.machine.memory;
        read_strings(memory, at)
    }
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
    #[serde(with = "crate::as_text::one")]
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
    process.machine.restock();
    process.machine.memory.clear();
    process.machine.cache.begin_anew().map_err(Error::io("cannot map the code cache"))?;
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

impl Session {
    fn capture_launch(&mut self, launch: &Launch) -> Result<Captured, Error> {
        use std::os::fd::AsRawFd;
        let program = FileIdText(self.capture_whole(launch.file.as_raw_fd())?);
        let interpreter = match &launch.interpreter {
            Some((path, file)) => Some((
                FileIdText(self.capture_whole(file.as_raw_fd())?),
                path.as_os_str().as_bytes().to_vec(),
            )),
            None => None,
        };
        Ok((program, interpreter))
    }

    fn beginning_of(&self, image: &NewImage, task: &Task, handed_on: Vec<HandedOn>) -> Beginning {
        let process = &self.process;
        let ignored = (1..=64).filter(|signal| process.actions.get(*signal).handler == 1);
        let here = || std::env::current_dir().unwrap_or_default().into_os_string().into_vec();
        Beginning {
            start: image.start.clone(),
            program: image.program,
            program_path: image.program_path.clone(),
            interpreter: image.interpreter.clone(),
            descriptors: Vec::new(),
            ignored: ignored.fold(0, |set, signal| set | crate::signal::only(signal)),
            mask: task.mask,
            pid: self.pid,
            umask: process.umask,
            cwd: process.cwd.clone().unwrap_or_else(here),
            around: super::begin::around(),
            limits: process.limits.iter().map(|(r, (soft, hard))| (*r, *soft, *hard)).collect(),
            cpu: crate::cpu::shown::shown().clone(),
            dense: crate::code::dense::is_dense(),
            handed_on: Some(Inheritance {
                descriptors: handed_on,
                first_hidden_descriptor: process.first_hidden_descriptor,
                timers: process.timers.interval.keys().copied().collect(),
                tid: task.tid,
            }),
        }
    }

    /// The log of a program that is about to execute its first instruction, and the
    /// state that a replay finds in it.
    fn begin_image(
        &mut self,
        log: u64,
        beginning: &Beginning,
        spare: Option<SpareTail>,
    ) -> Result<(), Error> {
        let mut manifest = Manifest::new(Session::command(&beginning.start.argv));
        manifest.program = ByteString(beginning.program_path.clone());
        manifest.directory = ByteString(beginning.cwd.clone());
        manifest.environment = beginning.start.env.iter().map(|e| ByteString(e.clone())).collect();
        manifest.cpu = self.manifest.cpu;
        manifest.cpu_features = self.manifest.cpu_features.clone();
        manifest.start = serde_json::to_value(beginning).expect("plain data");
        manifest.process = Whose { log, pid: self.pid, born: Born::Executed { from: self.number } };
        self.process.files = beginning.files();
        self.process.pipes = Pipes::default();
        self.process.timers = beginning.timers();
        self.process.cwd = Some(beginning.cwd.clone());
        self.process.ids = Some(beginning.start.ids);
        self.live.clear();
        self.counters = Counters::default();
        self.partly_captured.clear();
        self.unsupported.clear();
        self.switched_off.clear();
        self.open_log(manifest, spare)
    }
}

/// Contents of a program and of its interpreter, and that one's path.
type Captured = (FileIdText, Option<(FileIdText, Vec<u8>)>);

/// The path that `execveat` means.
fn path_from(fd: i32, path: Vec<u8>, flags: i32) -> Result<Vec<u8>, i32> {
    if path.is_empty() && flags & libc::AT_EMPTY_PATH == 0 {
        return Err(libc::ENOENT);
    }
    if path.starts_with(b"/") || fd == libc::AT_FDCWD {
        return Ok(path);
    }
    let mut folder = format!("/proc/self/fd/{fd}").into_bytes();
    if !path.is_empty() {
        folder.push(b'/');
        folder.extend(path);
    }
    Ok(folder)
}

/// What `execve` says of a file that cannot be executed.
fn errno_of(path: &Path, error: &Error) -> i32 {
    match error {
        Error::Image { .. } => return libc::ENOEXEC,
        Error::NotFound(missing) if missing != path => return libc::ENOENT,
        _ => {}
    }
    match std::fs::metadata(path) {
        Err(error) => error.raw_os_error().unwrap_or(libc::ENOENT),
        Ok(_) => libc::EACCES,
    }
}
