//! Process birth, as far as the two processes' own state shows it. The same in
//! recording and replay.

use super::files::Files;
use super::process::{Asked, Process};
use super::table;
use super::timers::Timers;
use crate::context::{Context, reg};
use crate::guest::task::Task;

/// How a process is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Birth {
    flags: i32,
    stack: u64,
    parent_tid: u64,
    child_tid: u64,
    tls: u64,
}

/// What `clone` may be asked for when it makes a process.
const OFFERED: i32 = libc::CLONE_VM
    | libc::CLONE_VFORK
    | libc::CLONE_SETTLS
    | libc::CLONE_PARENT_SETTID
    | libc::CLONE_CHILD_SETTID
    | libc::CLONE_CHILD_CLEARTID
    | libc::SIGCHLD;

impl Birth {
    /// What a `fork`, `vfork` or `clone` asks for; `None` if it is not offered.
    pub fn of(asked: &Asked) -> Option<Birth> {
        let [flags, stack, parent_tid, child_tid, tls, _] = asked.args;
        let none = Birth { flags: libc::SIGCHLD, stack: 0, parent_tid: 0, child_tid: 0, tls: 0 };
        let shares = libc::CLONE_VM | libc::CLONE_VFORK;
        let birth = match asked.number as u32 {
            table::fork => none,
            table::vfork => Birth { flags: shares | libc::SIGCHLD, ..none },
            _ => Birth { flags: flags as i32, stack, parent_tid, child_tid, tls },
        };
        // Memory that both go on using would change behind the other's back.
        let shared = birth.flags & shares == libc::CLONE_VM;
        let signal = birth.flags & 0xff;
        (birth.flags & !OFFERED == 0 && !shared && signal == libc::SIGCHLD).then_some(birth)
    }

    /// Does the parent wait until the child has executed a program or ended, and see
    /// what it wrote until then?
    pub fn parent_waits(&self) -> bool {
        self.flags & libc::CLONE_VFORK != 0
    }

    /// Does what the child writes until then reach the parent?
    pub fn lends_memory(&self) -> bool {
        self.flags & libc::CLONE_VM != 0
    }
}

impl Process {
    /// This process has made another one.
    pub fn has_forked(&mut self, birth: &Birth, pid: i32) {
        if birth.flags & libc::CLONE_PARENT_SETTID != 0 {
            let _ = self.machine.memory.write(birth.parent_tid, &pid.to_le_bytes());
        }
        self.share_descriptors();
    }

    /// This process is the new one, made by the thread `task`.
    pub fn is_forked(&mut self, birth: &Birth, pid: i32, task: &mut Task, context: &mut Context) {
        self.pid = pid;
        self.timers = Timers::default();
        self.share_descriptors();
        task.tid = pid;
        task.robust_list = 0;
        task.clear_tid = 0;
        task.saved_mask = None;
        if birth.stack != 0 {
            context.regs.gpr[reg::RSP] = birth.stack;
        }
        if birth.flags & libc::CLONE_SETTLS != 0 {
            context.regs.fs = birth.tls;
        }
        if birth.flags & libc::CLONE_CHILD_CLEARTID != 0 {
            task.clear_tid = birth.child_tid;
        }
        if birth.flags & libc::CLONE_CHILD_SETTID != 0 {
            let _ = self.machine.memory.write(birth.child_tid, &pid.to_le_bytes());
        }
    }

    /// From now on another process moves through the same files and pipes.
    fn share_descriptors(&mut self) {
        self.pipes.drop_all();
        Files::share_all(&mut self.files);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clone(flags: i32) -> Asked {
        Asked { number: table::clone as u64, args: [flags as u64, 0, 0, 0, 0, 0] }
    }

    #[test]
    fn memory_is_lent_but_never_shared() {
        let spawn = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        assert!(Birth::of(&clone(spawn)).is_some_and(|b| b.parent_waits() && b.lends_memory()));
        assert!(Birth::of(&clone(libc::SIGCHLD)).is_some_and(|b| !b.parent_waits()));
        assert_eq!(Birth::of(&clone(libc::CLONE_VM | libc::SIGCHLD)), None);
        assert_eq!(Birth::of(&clone(libc::CLONE_FILES | libc::SIGCHLD)), None);
        assert_eq!(Birth::of(&clone(libc::CLONE_NEWPID | libc::SIGCHLD)), None);
    }
}
