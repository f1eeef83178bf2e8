//! The virtual kernel in a replay: kept in step with the log, and the log checked
//! against it.

use super::replayer::{Halt, Replayer};
use crate::Error;
use crate::kernel::files::What;
use crate::kernel::process::Asked;
use crate::kernel::table;
use recording::FileId;

impl Replayer {
    /// The program's working directory; `None` if it is not known.
    pub fn directory(&self) -> Option<&[u8]> {
        self.process.cwd.as_deref()
    }

    /// Bytes that wait in the pipe or stream socket behind a descriptor; `None` if
    /// it is no such thing, or they are not known.
    pub fn unread(&self, fd: i32) -> Option<Vec<u8>> {
        match self.process.files.get(fd)?.what {
            What::Pipe { reads: Some(pipe), .. } => {
                self.process.pipes.contents(pipe).map(|bytes| bytes.iter().copied().collect())
            }
            _ => None,
        }
    }

    /// Takes over what a call did, if that is possible at all.
    pub(super) fn follow_kernel(
        &mut self,
        asked: &Asked,
        result: i64,
        copied: Option<(FileId, u64)>,
    ) -> Result<(), Halt> {
        let others: Vec<Asked> = self.in_call.values().map(|(asked, _)| *asked).collect();
        let sent = self.task().sending.take();
        let task = self.tasks.get(&self.current).expect("the running thread");
        let checked = self
            .process
            .check(task, asked, result, &others)
            .and_then(|()| self.check_copy(asked, result, copied))
            .and_then(|()| self.process.follow_pipes(asked, result, sent, &others));
        if let Err(what) = checked {
            return Err(self.diverged(what).into());
        }
        self.process.observe(asked, result);
        Ok(())
    }

    /// A read that the log has as a part of a captured file came from where the
    /// descriptor stands.
    fn check_copy(
        &self,
        asked: &Asked,
        result: i64,
        copied: Option<(FileId, u64)>,
    ) -> Result<(), String> {
        let Some((file, offset)) = copied else { return Ok(()) };
        match self.process.read_source(asked, result) {
            Some(source) if source == (file, offset) => Ok(()),
            _ => Err(format!("{} was not at offset {offset}", table::call(asked.number).name)),
        }
    }

    /// A call changed a file that is mapped shared.
    pub(super) fn change_shared(
        &mut self,
        identity: (u64, u64),
        size: u64,
        offset: u64,
        data: &[u8],
    ) -> Result<(), Halt> {
        if self.live.files().all(|(file, _)| file != identity) {
            // The first change of a file that is mapped brings all of it.
            let fd = self.live.set(identity, data).map_err(failed())?;
            return self.make_live(identity, fd);
        }
        self.live.change(identity, size, offset, data);
        Ok(())
    }

    fn make_live(&mut self, identity: (u64, u64), fd: i32) -> Result<(), Halt> {
        self.process
            .make_live(identity, fd)
            .map_err(|errno| failed()(std::io::Error::from_raw_os_error(errno)).into())
    }

    /// After a fork: shared maps show this process's own copies of their files.
    pub(super) fn adopt_live(&mut self, copies: super::live::Live) -> Result<(), Error> {
        for (identity, fd) in copies.files() {
            let made = self.process.make_live(identity, fd);
            made.map_err(|errno| failed()(std::io::Error::from_raw_os_error(errno)))?;
        }
        std::mem::replace(&mut self.live, copies).close();
        Ok(())
    }
}

fn failed() -> impl FnOnce(std::io::Error) -> Error {
    Error::io("cannot keep a file that is mapped shared")
}
