//! Calls that need little or no state.

use super::calls::{error, unserved};
use super::{Sandbox, Served};
use crate::kernel::process::Asked;
use crate::kernel::table;

impl Sandbox {
    /// Calls that need no state.
    pub(super) fn simple(&mut self, asked: &Asked) -> Served {
        let a = &asked.args;
        match asked.number as u32 {
            table::sched_yield => {
                self.yielded = true;
                Served::Value(0)
            }
            table::membarrier
            | table::mlock
            | table::munlock
            | table::mlockall
            | table::munlockall
            | table::mlock2
            | table::msync
            | table::sync
            | table::syncfs
            | table::fsync
            | table::fdatasync
            | table::fadvise64
            | table::readahead
            | table::sync_file_range
            | table::flock
            | table::setpriority
            | table::ioprio_set
            | table::sched_setaffinity
            | table::sched_setparam
            | table::sched_setscheduler
            | table::mbind
            | table::set_mempolicy => Served::Value(0),
            table::getrandom => {
                let len = a[1].min(1 << 20) as usize;
                let bytes: Vec<u8> = (0..len.div_ceil(8))
                    .flat_map(|_| self.world.next_random().to_le_bytes())
                    .collect();
                self.give(a[0], &bytes[..len], len as i64)
            }
            table::getcwd => {
                let path = [&self.world.cwd[..], &[0]].concat();
                if (a[1] as usize) < path.len() {
                    return error(libc::ERANGE);
                }
                self.give(a[0], &path, path.len() as i64)
            }
            table::umask => {
                let old = std::mem::replace(&mut self.world.umask, a[0] & 0o777);
                Served::Value(old as i64)
            }
            table::getcpu => {
                for at in [a[0], a[1]].into_iter().filter(|at| *at != 0) {
                    if !self.replayer.process.write_from_log(at, &[0; 4]) {
                        return error(libc::EFAULT);
                    }
                }
                Served::Value(0)
            }
            table::prctl => self.process_control(asked),
            table::personality => Served::Value(0),
            _ => unserved(table::call(asked.number).name),
        }
    }

    pub(super) fn process_control(&mut self, asked: &Asked) -> Served {
        let a = &asked.args;
        match a[0] as i32 {
            libc::PR_SET_NAME => Served::Value(0),
            libc::PR_GET_NAME => {
                let mut name = [0u8; 16];
                let program = &self.replayer.process.program;
                let last = program.rsplit(|b| *b == b'/').next().unwrap_or_default();
                let n = last.len().min(15);
                name[..n].copy_from_slice(&last[..n]);
                self.give(a[1], &name, 0)
            }
            libc::PR_SET_NO_NEW_PRIVS | libc::PR_SET_DUMPABLE | libc::PR_SET_PDEATHSIG => {
                Served::Value(0)
            }
            libc::PR_GET_DUMPABLE => Served::Value(1),
            _ => error(libc::EINVAL),
        }
    }

    pub(super) fn limit(&mut self, asked: &Asked) -> Served {
        let a = &asked.args;
        let (resource, new, old) = match asked.number as u32 {
            table::getrlimit => (a[0] as u32, 0, a[1]),
            table::setrlimit => (a[0] as u32, a[1], 0),
            _ if a[0] == 0 || a[0] == self.replayer.pid as u64 => (a[1] as u32, a[2], a[3]),
            _ => return error(libc::ESRCH),
        };
        let process = &mut self.replayer.process;
        process.limits.entry(resource).or_insert((!0, !0));
        let may_raise = process.ids.is_some_and(|ids| ids[1] == 0);
        Served::Value(process.kept_limit(resource, new, old, may_raise))
    }
}
