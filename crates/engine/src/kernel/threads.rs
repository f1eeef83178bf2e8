//! Thread birth and death, as far as guest memory shows them.

use super::process::{Asked, Process};
use crate::context::{Context, reg};
use crate::guest::task::{Task, Thread};

impl Process {
    /// The state of a thread that `clone` makes.
    pub fn child_task(
        &self,
        parent: &Task,
        context: &Context,
        asked: &Asked,
        thread: Thread,
    ) -> Task {
        let [flags, stack, _, child_tid, tls, _] = asked.args;
        let mut regs = context.regs.clone();
        regs.gpr[reg::RAX] = 0;
        if stack != 0 {
            regs.gpr[reg::RSP] = stack;
        }
        if flags as i32 & libc::CLONE_SETTLS != 0 {
            regs.fs = tls;
        }
        let mut task = Task::new(thread, 0, regs);
        task.mask = parent.mask;
        if flags as i32 & libc::CLONE_CHILD_CLEARTID != 0 {
            task.clear_tid = child_tid;
        }
        task
    }

    /// Writes the thread's number where `clone` was told to, before either goes on.
    pub fn thread_started(&mut self, asked: &Asked, tid: i32) {
        let [flags, _, parent_tid, child_tid, ..] = asked.args;
        let flags = flags as i32;
        for (flag, address) in
            [(libc::CLONE_PARENT_SETTID, parent_tid), (libc::CLONE_CHILD_SETTID, child_tid)]
        {
            if flags & flag != 0 {
                let _ = self.machine.memory.write(address, &tid.to_le_bytes());
            }
        }
    }

    /// What the kernel writes when a thread is gone: the cleared number and the
    /// locks it still held. Returns the addresses whose sleepers wake.
    pub fn thread_ended(&mut self, task: &Task) -> Vec<u64> {
        let mut wake = Vec::new();
        if task.robust_list != 0 {
            self.release_robust(task, &mut wake);
        }
        if task.clear_tid != 0 && self.machine.memory.write(task.clear_tid, &[0; 4]) {
            wake.push(task.clear_tid);
        }
        wake
    }

    /// `struct robust_list_head`: next, futex offset, pending.
    fn release_robust(&mut self, task: &Task, wake: &mut Vec<u64>) {
        let head = task.robust_list;
        let memory = &self.machine.memory;
        let Some(offset) = memory.read_u64(head + 8) else { return };
        let pending = memory.read_u64(head + 16).unwrap_or(0);
        let mut entries = Vec::new();
        let mut entry = memory.read_u64(head);
        while let Some(at) = entry {
            // The lowest bit marks priority inheritance; the kernel's own limit
            // keeps a damaged list from going round for ever.
            if at & !1 == head || entries.len() > 2048 {
                break;
            }
            entries.push(at & !1);
            entry = memory.read_u64(at & !1);
        }
        if pending != 0 && !entries.contains(&(pending & !1)) {
            entries.push(pending & !1);
        }
        for at in entries {
            self.release_lock(at.wrapping_add(offset), task.tid, wake);
        }
    }

    fn release_lock(&mut self, futex: u64, tid: i32, wake: &mut Vec<u64>) {
        const WAITERS: u32 = 0x8000_0000;
        const OWNER_DIED: u32 = 0x4000_0000;
        let Some(word) = self.machine.memory.read(futex, 4) else { return };
        let word = u32::from_le_bytes(word.try_into().expect("four"));
        if word & 0x3fff_ffff != tid as u32 {
            return;
        }
        let new = word & WAITERS | OWNER_DIED;
        if self.machine.memory.write(futex, &new.to_le_bytes()) && word & WAITERS != 0 {
            wake.push(futex);
        }
    }
}
