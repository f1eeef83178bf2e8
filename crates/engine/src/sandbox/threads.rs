//! Threads that a run begins and ends after it left its log.

use super::calls::error;
use super::{Sandbox, Served, Stopped};
use crate::guest::task::Thread;
use crate::kernel::process::Asked;

impl Sandbox {
    pub(super) fn thread_over(&mut self, status: u64) -> Served {
        let r = &mut self.replayer;
        if r.tasks.len() == 1 {
            return Served::End(Stopped::Exited(status as i32 & 0xff));
        }
        let task = r.tasks.remove(&r.current).expect("the running thread");
        let wake = r.process.thread_ended(&task);
        for address in wake {
            self.wake(address, 1, !0);
        }
        Served::Nothing
    }

    pub(super) fn clone_thread(&mut self, asked: &Asked) -> Served {
        let flags = asked.args[0] as i32;
        let thread = libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND;
        if flags & thread != thread {
            return self.new_child(asked);
        }
        if self.replayer.tasks.len() >= 512 {
            return error(libc::EAGAIN);
        }
        let tid = self.next_tid;
        self.next_tid += 1;
        let r = &mut self.replayer;
        let highest = r.tasks.keys().next_back().map_or(0, |t| t.0);
        self.highest = self.highest.max(highest) + 1;
        let number = Thread(self.highest);
        let parent = r.tasks.get(&r.current).expect("the running thread");
        let mut task = r.process.child_task(parent, r.context(), asked, number);
        task.tid = tid;
        task.regs.gs = crate::kernel::calls::gs();
        r.process.thread_started(asked, tid);
        r.tasks.insert(number, task);
        Served::Value(tid.into())
    }
}
