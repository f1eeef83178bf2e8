//! Signals that a run sends to itself, and its alarm.

use super::calls::{error, unserved};
use super::{Sandbox, Served, Stopped};
use crate::guest::task::Thread;
use crate::kernel::process::{Asked, NoWorld};
use crate::kernel::table;
use crate::signal::deliver::{Delivered, deliver, restart_undelivered, signal_of};
use crate::signal::frame::Info;
use crate::signal::only;

/// Signals on their way.
#[derive(Default)]
pub struct Pending {
    /// To one thread, or to whichever takes it first.
    queue: Vec<(Option<Thread>, Info)>,
    alarm: Option<u64>,
    every: u64,
}

impl Pending {
    /// When the alarm rings.
    pub fn alarm(&self) -> Option<u64> {
        self.alarm
    }

    /// Is nothing on its way?
    pub fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.alarm.is_none()
    }

    /// Is there an alarm to look for?
    pub fn is_timed(&self) -> bool {
        self.alarm.is_some()
    }

    /// Time left, and the interval.
    pub fn timer(&self, now: u64) -> (u64, u64) {
        (self.alarm.map_or(0, |at| at.saturating_sub(now)), self.every)
    }
}

const SI_USER: i32 = 0;
const SI_TKILL: i32 = -6;
const SI_KERNEL: i32 = 0x80;

impl Sandbox {
    /// `None` if the call is not one of these.
    pub(super) fn signal_call(&mut self, asked: &Asked) -> Option<Served> {
        let a = &asked.args;
        let pid = i64::from(self.replayer.pid);
        Some(match asked.number as u32 {
            table::kill => {
                let to = a[0] as i32;
                if to == 0 && self.is_child {
                    unserved("kill of a child's parent")
                } else if i64::from(to) == pid || to == 0 {
                    self.send(None, a[1] as i32, SI_USER)
                } else if i64::from(to) == -1 || to < 0 {
                    unserved("kill of other processes")
                } else if a[1] == 0 {
                    unserved("kill with signal 0 of another process")
                } else {
                    unserved("kill of another process")
                }
            }
            table::tkill => self.send_thread(a[0], a[1]),
            table::tgkill if a[0] as i64 == pid => self.send_thread(a[1], a[2]),
            table::tgkill => error(libc::ESRCH),
            table::rt_sigpending => {
                let current = self.replayer.current;
                let mine =
                    self.signals.queue.iter().filter(|(to, _)| to.is_none_or(|t| t == current));
                let set = mine.fold(0, |set, (_, info)| set | only(signal_of(info)));
                let set = set & self.replayer.task().mask;
                self.give(a[0], &set.to_le_bytes(), 0)
            }
            table::pause | table::rt_sigsuspend => Served::Waits(None),
            table::rt_sigtimedwait => self.wait_for_signal(a),
            table::rt_sigqueueinfo | table::rt_tgsigqueueinfo => unserved("sigqueue"),
            _ => return None,
        })
    }

    fn send_thread(&mut self, tid: u64, signal: u64) -> Served {
        let found = self.replayer.tasks.values().find(|t| t.tid as u64 == tid);
        match found.map(|task| task.thread) {
            Some(thread) => self.send(Some(thread), signal as i32, SI_TKILL),
            None => error(libc::ESRCH),
        }
    }

    fn send(&mut self, to: Option<Thread>, signal: i32, code: i32) -> Served {
        match signal {
            0 => return Served::Value(0),
            1..=64 => {}
            _ => return error(libc::EINVAL),
        }
        let pc = self.replayer.registers().rip;
        match signal {
            libc::SIGKILL => return Served::End(Stopped::Killed { signal, pc, address: None }),
            libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU => {
                return unserved("a signal that stops the process");
            }
            _ => {}
        }
        let waits = |(t, info): &(Option<Thread>, Info)| *t == to && signal_of(info) == signal;
        if signal >= 32 || !self.signals.queue.iter().any(waits) {
            let info = self.info(signal, code);
            self.signals.queue.push((to, info));
        }
        Served::Value(0)
    }

    fn info(&self, signal: i32, code: i32) -> Info {
        let mut info: Info = [0; 128];
        info[..4].copy_from_slice(&signal.to_le_bytes());
        info[8..12].copy_from_slice(&code.to_le_bytes());
        if code <= 0 {
            info[16..20].copy_from_slice(&self.replayer.pid.to_le_bytes());
            info[20..24].copy_from_slice(&self.world.ids[0].to_le_bytes());
        }
        info
    }

    /// A signal to the running thread, from what it does.
    pub(super) fn raise_here(&mut self, signal: i32) {
        let info = self.info(signal, SI_USER);
        self.signals.queue.push((Some(self.replayer.current), info));
    }

    fn wait_for_signal(&mut self, a: &[u64; 6]) -> Served {
        let Some(set) = self.replayer.process.machine.memory.read_u64(a[0]) else {
            return error(libc::EFAULT);
        };
        let current = self.replayer.current;
        let found = self.signals.queue.iter().position(|(to, info)| {
            to.is_none_or(|t| t == current) && set & only(signal_of(info)) != 0
        });
        if let Some(n) = found {
            let (_, info) = self.signals.queue.remove(n);
            let signal = signal_of(&info);
            return match a[1] {
                0 => Served::Value(signal.into()),
                at => self.give(at, &info, signal.into()),
            };
        }
        let until = match a[2] {
            0 => None,
            at => match self.read_time(at) {
                Some(0) => return error(libc::EAGAIN),
                Some(ns) => Some(self.world.uptime.saturating_add(ns)),
                None => return error(libc::EFAULT),
            },
        };
        Served::Waits(until)
    }

    /// The first signal that a thread would take now.
    fn next_for(&self, thread: Thread) -> Option<usize> {
        let mask = self.replayer.tasks.get(&thread)?.mask;
        let ignored = |signal| {
            let action = self.replayer.process.actions.get(signal);
            let default = crate::signal::actions::default_of(signal);
            action.handler == 1
                || action.handler == 0
                    && default != crate::signal::actions::DefaultAction::Terminate
        };
        self.signals.queue.iter().position(|(to, info)| {
            let signal = signal_of(info);
            to.is_none_or(|t| t == thread) && mask & only(signal) == 0 && !ignored(signal)
        })
    }

    /// Does a signal wait that the thread would take?
    pub(super) fn has_pending(&self, thread: Thread) -> bool {
        !self.signals.queue.is_empty() && self.next_for(thread).is_some()
    }

    /// Delivers what waits for the running thread.
    pub(super) fn deliver_pending(&mut self) -> Option<Stopped> {
        if self.signals.queue.is_empty() {
            let context = self.replayer.context();
            let task = self.replayer.task();
            if task.interrupted.is_some() || task.saved_mask.is_some() {
                restart_undelivered(context, task, &mut NoWorld);
            }
            return None;
        }
        let current = self.replayer.current;
        while let Some(n) = self.next_for(current) {
            let (_, info) = self.signals.queue.remove(n);
            let context = self.replayer.context();
            let pc = context.regs.rip;
            let r = &mut self.replayer;
            let task = r.tasks.get_mut(&current).expect("the running thread");
            if deliver(&mut r.process, task, context, &info, &mut NoWorld) == Delivered::Deadly {
                return Some(Stopped::Killed { signal: signal_of(&info), pc, address: None });
            }
        }
        let context = self.replayer.context();
        restart_undelivered(context, self.replayer.task(), &mut NoWorld);
        None
    }

    /// Sets the alarm; returns time left and interval of the one before.
    pub(super) fn set_alarm(&mut self, first: u64, every: u64) -> (u64, u64) {
        let before = self.signals.timer(self.world.uptime);
        self.signals.alarm = (first > 0).then(|| self.world.uptime.saturating_add(first));
        self.signals.every = every;
        before
    }

    /// Rings the alarm if it is time.
    pub(super) fn ring(&mut self) {
        let Some(at) = self.signals.alarm.filter(|at| *at <= self.world.uptime) else { return };
        let every = self.signals.every;
        self.signals.alarm = (every > 0).then(|| at.saturating_add(every));
        let info = self.info(libc::SIGALRM, SI_KERNEL);
        self.signals.queue.push((None, info));
    }
}
