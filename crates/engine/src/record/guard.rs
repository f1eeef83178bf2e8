//! Keeping the guest away from what is the engine's: its descriptors, their names
//! under `/proc`, and its program file.

use super::proc_self::{self, Own};
use super::session::Runner;
use crate::kernel::files::What;
use crate::kernel::process::Asked;
use crate::kernel::table;
use std::ffi::CString;

const EBADF: i64 = -(libc::EBADF as i64);
const ENOENT: i64 = -(libc::ENOENT as i64);

impl Runner {
    /// The error of a call that means something of the engine's, as if that were
    /// not there.
    pub(super) fn guard(&self, asked: &Asked) -> Option<i64> {
        let number = asked.number as u32;
        for n in table::descriptor_arguments(number) {
            if crate::sys::is_engine_fd(asked.fd(*n)) {
                return Some(EBADF);
            }
        }
        let n = match number {
            table::open | table::creat => 0,
            table::openat | table::openat2 => 1,
            _ => table::path_argument(number)?,
        };
        let path = self.path_under_proc(asked.args[n])?;
        let fd = proc_self::descriptor(&path, self.session().pid)?;
        crate::sys::is_engine_fd(fd).then_some(ENOENT)
    }

    /// Looking at `/proc/self/exe` means the guest's program. The path lives as long
    /// as the second result.
    pub(super) fn redirected(&self, mut asked: Asked) -> (Asked, Option<CString>) {
        let program = table::path_argument(asked.number as u32).and_then(|n| {
            let follows = match asked.number as u32 {
                table::lstat | table::readlink | table::readlinkat | table::lgetxattr => false,
                table::newfstatat | table::utimensat => {
                    asked.args[3] as i32 & libc::AT_SYMLINK_NOFOLLOW == 0
                }
                table::statx => asked.args[2] as i32 & libc::AT_SYMLINK_NOFOLLOW == 0,
                _ => true,
            };
            let path = self.path_under_proc(asked.args[n]).filter(|_| follows)?;
            let own = proc_self::own(&path, self.session().pid);
            let program = self.session().process.program.clone();
            let program = (own == Some(Own::Program)).then(|| CString::new(program).ok())??;
            asked.args[n] = program.as_ptr() as u64;
            Some(program)
        });
        (asked, program)
    }

    /// `F_DUPFD` from beyond the guest's limit on.
    pub(super) fn guard_duplicate(&self, asked: &Asked) -> Option<i64> {
        let duplicates = asked.number as u32 == table::fcntl
            && matches!(asked.args[1] as i32, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC);
        (duplicates && asked.args[2] as u32 as u64 >= self.descriptor_limit())
            .then_some(-(libc::EINVAL as i64))
    }

    /// Two descriptors at once: the guest's limit is asked first, because the
    /// kernel would already have written their numbers.
    pub(super) fn guard_pair(&self, asked: &Asked) -> Option<i64> {
        if !matches!(asked.number as u32, table::pipe | table::pipe2 | table::socketpair) {
            return None;
        }
        let files = &self.session().process.files;
        let second = files.lowest_free(files.lowest_free(0) + 1);
        (second as u64 >= self.descriptor_limit()).then_some(-(libc::EMFILE as i64))
    }

    /// Bytes for standard output must pass through the guest, or a replay could
    /// not show them: programs then fall back to `read` and `write`.
    pub(super) fn guard_output(&self, asked: &Asked) -> Option<i64> {
        let out = match asked.number as u32 {
            table::splice | table::copy_file_range => asked.fd(2),
            table::tee => asked.fd(1),
            _ => return None,
        };
        self.is_output(out).then_some(-(libc::EINVAL as i64))
    }

    /// Is the descriptor the standard output or error we were started with?
    pub(super) fn is_output(&self, fd: i32) -> bool {
        let what = self.session().process.files.get(fd).map(|d| &d.what);
        matches!(what, Some(What::Stdout | What::Stderr))
    }

    /// The path at an address, if it begins with `/proc/`.
    fn path_under_proc(&self, at: u64) -> Option<Vec<u8>> {
        let memory = &self.session().process.machine.memory;
        let head = memory.read(at, 6)?;
        if head != b"/proc/" {
            return None;
        }
        memory.read_string(at, 4096)
    }
}
