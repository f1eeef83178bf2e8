//! Whose turn is it? Threads in turn, those that wait asked again each round, and
//! time that passes when all of them wait.

use super::{Sandbox, Served, Stopped};
use crate::guest::task::Thread;
use crate::kernel::process::{Asked, NoWorld};
use crate::kernel::table;
use crate::record::session::set_result;
use crate::signal::deliver::restart_undelivered;

/// A thread in a call that is not over.
pub struct Waiting {
    pub asked: Asked,
    /// At the latest then.
    pub deadline: Option<u64>,
    /// Waits for a futex: its address and bits.
    pub futex: Option<(u64, u32)>,
    /// Somebody woke it.
    pub woken: bool,
    /// Not asked in the sandbox yet.
    pub fresh: bool,
}

impl Waiting {
    /// A call that was begun under the log and is made again.
    pub fn again(asked: Asked) -> Waiting {
        Waiting { asked, deadline: None, futex: None, woken: false, fresh: true }
    }
}

impl Sandbox {
    /// Before guest code may run: signals are delivered, and the running thread is
    /// one that does not wait.
    pub(super) fn settle(&mut self) -> Option<Stopped> {
        let current = self.replayer.current;
        if self.waiting.contains_key(&current) || !self.replayer.tasks.contains_key(&current) {
            return self.schedule();
        }
        if std::mem::take(&mut self.yielded) && self.replayer.tasks.len() > 1 {
            return self.schedule();
        }
        self.ring();
        self.deliver_pending()
    }

    /// The slice is used up.
    pub(super) fn next_turn(&mut self) -> Option<Stopped> {
        self.world.tick(10_000);
        let next = self.after(self.replayer.current);
        self.switch_to(next);
        None
    }

    /// The thread behind another, round and round.
    fn after(&self, thread: Thread) -> Thread {
        let tasks = &self.replayer.tasks;
        let next = tasks.range((std::ops::Bound::Excluded(thread), std::ops::Bound::Unbounded));
        *next.map(|(t, _)| t).next().or(tasks.keys().next()).expect("a thread is left")
    }

    fn switch_to(&mut self, to: Thread) {
        self.turn = 0;
        let r = &mut self.replayer;
        if r.current == to {
            return;
        }
        let context = r.context();
        context.regs.gs = crate::kernel::calls::gs();
        if let Some(task) = r.tasks.get_mut(&r.current) {
            *task.regs = context.regs.clone();
        }
        let next = r.tasks.get(&to).expect("it exists");
        context.regs.clone_from(&next.regs);
        crate::kernel::calls::set_gs(next.regs.gs);
        r.current = to;
    }

    /// Finds a thread that can go on.
    fn schedule(&mut self) -> Option<Stopped> {
        loop {
            let mut thread = self.after(self.replayer.current);
            for _ in 0..self.replayer.tasks.len() {
                match self.try_thread(thread) {
                    Ok(true) => return None,
                    Ok(false) => thread = self.after(thread),
                    Err(stopped) => return Some(stopped),
                }
            }
            if !self.pass_time() {
                return Some(Stopped::Deadlock);
            }
        }
    }

    /// Makes it the running thread if it can run.
    fn try_thread(&mut self, thread: Thread) -> Result<bool, Stopped> {
        let Some(waiting) = self.waiting.get(&thread) else {
            self.switch_to(thread);
            return Ok(true);
        };
        let expired = waiting.deadline.is_some_and(|d| d <= self.world.uptime);
        let interrupted = self.has_pending(thread);
        let asleep = waiting.futex.is_some() && !waiting.woken;
        if asleep && !expired && !interrupted {
            return Ok(false);
        }
        self.switch_to(thread);
        let waiting = self.waiting.remove(&thread).expect("just seen");
        let asked = waiting.asked;
        if waiting.futex.is_some() && waiting.woken {
            self.finish(&asked, 0);
            return Ok(true);
        }
        if !interrupted || asked.number as u32 == table::rt_sigtimedwait {
            match self.serve_again(&waiting, expired) {
                Served::Value(value) => {
                    self.finish(&asked, value);
                    return Ok(true);
                }
                Served::Nothing => return Ok(true),
                Served::End(stopped) => return Err(stopped),
                Served::Waits(deadline) => {
                    let deadline = if waiting.fresh { deadline } else { waiting.deadline };
                    let entry = self.waiting.entry(thread).or_insert(Waiting::again(asked));
                    entry.deadline = deadline;
                    entry.fresh = false;
                    return Ok(false);
                }
            }
        }
        let restarts = table::call(asked.number).restarts;
        let timed_futex = asked.number as u32 == table::futex && asked.args[3] != 0;
        let eintr = -i64::from(libc::EINTR);
        let value = if restarts && !timed_futex { -512 } else { eintr };
        let context = self.replayer.context();
        set_result(context, self.replayer.task(), &asked, value);
        match self.deliver_pending() {
            Some(stopped) => Err(stopped),
            None => Ok(true),
        }
    }

    fn serve_again(&mut self, waiting: &Waiting, expired: bool) -> Served {
        let number = waiting.asked.number as u32;
        if expired {
            let timed_out = match number {
                table::futex => -i64::from(libc::ETIMEDOUT),
                table::rt_sigtimedwait => -i64::from(libc::EAGAIN),
                _ => 0,
            };
            // Something may have become ready at the same instant.
            self.expired = true;
            let served = self.serve(&waiting.asked);
            self.expired = false;
            return match served {
                Served::Waits(_) => {
                    self.waiting.remove(&self.replayer.current);
                    Served::Value(timed_out)
                }
                other => other,
            };
        }
        self.serve(&waiting.asked)
    }

    /// The call of the running thread returns.
    pub(super) fn finish(&mut self, asked: &Asked, value: i64) {
        let context = self.replayer.context();
        let task = self.replayer.task();
        set_result(context, task, asked, value);
        // A temporary mask ends with the call, unless a signal that it let through
        // is delivered first.
        if !self.has_pending(self.replayer.current) {
            restart_undelivered(context, self.replayer.task(), &mut NoWorld);
        }
    }

    /// Nothing can go on: time passes until something can.
    fn pass_time(&mut self) -> bool {
        let waits = self.waiting.values().filter_map(|w| w.deadline);
        let next = waits.chain(self.signals.alarm()).filter(|t| *t > self.world.uptime).min();
        match next {
            Some(then) => {
                self.world.tick(then - self.world.uptime);
                self.ring();
                true
            }
            None => false,
        }
    }
}
