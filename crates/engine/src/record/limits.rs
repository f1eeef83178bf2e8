//! The guest's resource limits, where they are not the recorder's.

use super::session::Runner;
use crate::kernel::process::Asked;
use crate::kernel::table;
use recording::event::Effect;

impl Runner {
    pub(super) fn limits(&mut self, asked: &Asked, state: u32) {
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

    /// The guest's limit on the size of files holds for its own writes only.
    pub(super) fn limit_file_size(&self, asked: &Asked) -> Option<FileSizeLimit> {
        let writes = matches!(
            asked.number as u32,
            table::write
                | table::writev
                | table::pwrite64
                | table::pwritev
                | table::pwritev2
                | table::truncate
                | table::ftruncate
                | table::fallocate
                | table::copy_file_range
                | table::splice
        );
        if !writes {
            return None;
        }
        let (soft, _) = *self.session().process.limits.get(&libc::RLIMIT_FSIZE)?;
        (soft != libc::RLIM_INFINITY).then(|| FileSizeLimit::new(soft))
    }
}

/// Does the call return a new descriptor?
fn gives_descriptor(asked: &Asked) -> bool {
    let number = asked.number as u32;
    let duplicates = matches!(asked.args[1] as i32, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC);
    table::gives_descriptor(number) || number == table::fcntl && duplicates
}

/// The real limit on the size of files is the guest's while this lives.
pub(super) struct FileSizeLimit {
    ours: (u64, u64),
}

impl FileSizeLimit {
    fn new(soft: u64) -> FileSizeLimit {
        let ours = crate::sys::limit(libc::RLIMIT_FSIZE);
        let _ = crate::sys::set_limit(libc::RLIMIT_FSIZE, (soft.min(ours.1), ours.1));
        FileSizeLimit { ours }
    }
}

impl Drop for FileSizeLimit {
    fn drop(&mut self) {
        let _ = crate::sys::set_limit(libc::RLIMIT_FSIZE, self.ours);
    }
}
