//! Guest threads while recording: each has a kernel thread behind it, so that a
//! call that waits stops nobody else.

use super::engine_calls::After;
use super::session::Runner;
use super::signals::take_back_signals;
use crate::guest::task::Thread;
use crate::kernel::process::Asked;
use crate::signal::host;
use recording::event::{Effect, When};
use std::sync::mpsc;

/// The engine needs little stack of its own.
const ENGINE_STACK: usize = 512 << 10;

impl Runner {
    pub(super) fn clone_call(&mut self, asked: &Asked, state: u32) -> After {
        let flags = asked.args[0] as i32;
        if flags & libc::CLONE_THREAD == 0 {
            self.session().note_unsupported(&crate::kernel::table::call(asked.number));
            self.finish_call(asked, -(libc::ENOSYS as i64), state, &[]);
            return After::Goes;
        }
        let session = self.session();
        let thread = Thread(session.next_thread);
        let mut task = session.process.child_task(&self.task, self.context(), asked, thread);
        let (send, receive) = mpsc::channel();
        let shared = self.shared;
        // A new thread starts with all signals blocked until it is set up.
        host::set_mask(!0);
        let spawned = std::thread::Builder::new().stack_size(ENGINE_STACK).spawn(move || {
            // SAFETY: no memory is involved.
            let tid = unsafe { libc::gettid() };
            task.tid = tid;
            let ready = host::set_up_thread().is_ok();
            let _ = send.send(ready.then_some(tid));
            if ready {
                run_thread(Runner { shared, task });
            }
        });
        take_back_signals(&session.process.actions);
        let tid = spawned.ok().and_then(|_| receive.recv().ok()).flatten();
        host::set_mask(self.task.mask);
        let Some(tid) = tid else {
            self.finish_call(asked, -(libc::EAGAIN as i64), state, &[]);
            return After::Goes;
        };
        session.next_thread += 1;
        session.threads += 1;
        session.process.thread_started(asked, tid);
        self.finish_call(asked, tid as i64, state, &[Effect::Spawned { thread: thread.0 }]);
        After::Goes
    }

    pub(super) fn thread_exit(&mut self, asked: &Asked, state: u32) -> After {
        self.finish_call(asked, 0, state, &[]);
        let session = self.session();
        let last = session.threads == 1;
        if last {
            session.end((asked.args[0] as i32 & 0xff) << 8);
        }
        session.threads -= 1;
        for address in session.process.thread_ended(&self.task) {
            // SAFETY: waking sleepers on a guest address reads nothing.
            unsafe {
                let args = [address, libc::FUTEX_WAKE as u64, i32::MAX as u64, 0, 0, 0];
                crate::sys::raw(libc::SYS_futex as u64, args);
            }
        }
        host::tear_down_thread();
        self.pause(When::Here);
        After::ThreadEnded
    }
}

fn run_thread(mut runner: Runner) {
    runner.shared.turn.acquire();
    host::set_mask(runner.task.mask);
    runner.run();
}
