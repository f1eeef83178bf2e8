//! Guest threads while recording: each has a kernel thread behind it, so that a
//! call that waits stops nobody else.

use super::chaos::Chaos;
use super::engine_calls::After;
use super::session::Runner;
use super::signals::take_back_signals;
use super::turn::Place;
use crate::guest::task::Thread;
use crate::kernel::process::Asked;
use crate::signal::host;
use recording::event::{Effect, When};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// The engine needs little stack of its own.
const ENGINE_STACK: usize = 512 << 10;

impl Runner {
    pub(super) fn clone_call(&mut self, asked: &Asked, state: u32) -> After {
        let flags = asked.args[0] as i32;
        if flags & libc::CLONE_THREAD == 0 {
            self.fork(asked, state);
            return After::Goes;
        }
        let session = self.session();
        let thread = Thread(session.next_thread);
        let mut task = session.process.child_task(&self.task, self.context(), asked, thread);
        let (send, receive) = mpsc::channel();
        let shared = self.shared;
        let place = Arc::new(Place::default());
        let own_place = place.clone();
        // A new thread starts with all signals blocked until it is set up.
        host::set_mask(!0);
        let spawned = std::thread::Builder::new().stack_size(ENGINE_STACK).spawn(move || {
            // SAFETY: no memory is involved.
            let tid = unsafe { libc::gettid() };
            task.tid = tid;
            let ready = host::set_up_thread().is_ok();
            let _ = send.send(ready.then_some(tid));
            if ready {
                run_thread(Runner { shared, task, in_call: false }, &own_place);
            }
        });
        take_back_signals(&session.process.actions);
        let tid = spawned.ok().and_then(|_| receive.recv().ok()).flatten();
        host::set_mask(self.task.mask);
        let Some(tid) = tid else {
            self.finish_call(asked, -(libc::EAGAIN as i64), state, &[]);
            return After::Goes;
        };
        let late = session.chaos.as_mut().map_or(0, Chaos::delay);
        self.shared.turn.reserve(&place, late);
        session.next_thread += 1;
        session.threads += 1;
        session.tids.insert(tid);
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
        session.tids.remove(&self.task.tid);
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

impl Runner {
    /// Another thread executes a program: this one is over, without a trace in the log.
    pub(super) fn end_if_unwanted(&mut self) {
        let only = self.shared.only.load(Ordering::Acquire);
        if only == 0 || only == self.task.tid {
            return;
        }
        let session = self.session();
        session.threads -= 1;
        session.tids.remove(&self.task.tid);
        host::tear_down_thread();
        self.shared.turn.release();
        loop {
            // SAFETY: ends this thread, whose stack nobody else uses. The first thread
            // stays, since it stands for the process, and does nothing any more.
            unsafe {
                if libc::gettid() != libc::getpid() {
                    crate::sys::raw(libc::SYS_exit as u64, [0; 6]);
                }
                libc::pause();
            }
        }
    }

    /// Ends all threads but this one.
    pub(super) fn end_other_threads(&mut self) {
        if self.session().threads == 1 {
            return;
        }
        self.shared.only.store(self.task.tid, Ordering::Release);
        while self.session().threads > 1 {
            let session = self.session();
            for tid in session.tids.iter().filter(|tid| **tid != self.task.tid) {
                // A signal that is never blocked gets it out of a call that waits.
                // SAFETY: our handler queues it and does nothing else.
                unsafe { libc::syscall(libc::SYS_tgkill, session.pid, *tid, libc::SIGBUS) };
            }
            self.shared.turn.release();
            std::thread::sleep(Duration::from_micros(100));
            self.shared.turn.acquire();
        }
        self.shared.only.store(0, Ordering::Release);
    }
}

fn run_thread(mut runner: Runner, place: &Place) {
    place.wait();
    host::set_mask(runner.task.mask);
    runner.run();
}
