//! `execve`: another program in the same process.

use super::launch::Launch;
use super::proc_self::{self, Own};
use super::session::{Runner, load_images};
use super::signals::HostWorld;
use crate::Error;
use crate::guest::start::Start;
use crate::guest::task::Task;
use crate::kernel::files::FileIdText;
use crate::kernel::process::Asked;
use recording::event::Effect;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const EFAULT: i64 = -(libc::EFAULT as i64);

impl Runner {
    pub(super) fn exec(&mut self, asked: &Asked, state: u32) {
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
