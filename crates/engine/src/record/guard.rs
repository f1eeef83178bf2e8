//! Keeping the guest away from what is the engine's: its descriptors, their names
//! under `/proc`, and its program file.

use super::proc_self::{self, Own};
use super::session::Runner;
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
