//! Calls whose answer does not change within a run: kept while the log is followed,
//! given again afterwards.

use super::calls::{error, unserved};
use super::world::World;
use super::{Sandbox, Served};
use crate::kernel::process::{Asked, Process};
use crate::kernel::table::{self, Out};

impl World {
    /// Answers that stay the same are kept, as the table says what was written.
    pub(super) fn follow_constant(&mut self, process: &mut Process, asked: &Asked, result: i64) {
        let number = asked.number as u32;
        if !is_constant(number) {
            return;
        }
        let written = table::call(asked.number).outs.iter().filter_map(|out| {
            let (arg, len) = match *out {
                Out::Fixed(arg, len) | Out::Always(arg, len) => (arg, len as usize),
                Out::Returned(arg) => (arg, result as usize),
                Out::Each(arg, each) => (arg, result as usize * each as usize),
                _ => return None,
            };
            Some((arg, process.machine.memory.read(asked.args[arg], len)?))
        });
        let written = written.collect();
        self.facts.constants.entry(constant_key(asked)).or_insert((result, written));
    }
}

impl Sandbox {
    /// A call whose answer the recorded run got as well.
    pub(super) fn constant(&mut self, asked: &Asked) -> Served {
        let Some((result, written)) = self.world.facts.constants.get(&constant_key(asked)).cloned()
        else {
            return self.made_up(asked);
        };
        for (arg, bytes) in written {
            let at = asked.args[arg];
            if at != 0 && !self.replayer.process.write_from_log(at, &bytes) {
                return error(libc::EFAULT);
            }
        }
        Served::Value(result)
    }

    /// What the recorded run never asked, where any answer will do.
    pub(super) fn made_up(&mut self, asked: &Asked) -> Served {
        let [uid, euid, gid, egid] = self.world.ids;
        let a = &asked.args;
        let zeros = |n: usize| vec![0u8; n];
        match asked.number as u32 {
            table::getuid => Served::Value(uid.into()),
            table::geteuid => Served::Value(euid.into()),
            table::getgid => Served::Value(gid.into()),
            table::getegid => Served::Value(egid.into()),
            table::getppid => Served::Value(1),
            table::getrusage => self.give(a[1], &zeros(144), 0),
            table::times => {
                let ticks = (self.world.uptime / 10_000_000) as i64;
                if a[0] == 0 { Served::Value(ticks) } else { self.give(a[0], &zeros(32), ticks) }
            }
            table::clock_getres => {
                let one = [0u64.to_le_bytes(), 1u64.to_le_bytes()].concat();
                if a[1] == 0 { Served::Value(0) } else { self.give(a[1], &one, 0) }
            }
            table::sched_getscheduler | table::sched_get_priority_min => Served::Value(0),
            table::sched_get_priority_max => Served::Value(0),
            table::getpriority => Served::Value(20),
            table::sched_getaffinity => {
                let mut mask = zeros((a[1] as usize).min(128));
                if let Some(first) = mask.first_mut() {
                    *first = 1;
                }
                let len = mask.len().min(8);
                self.give(a[2], &mask[..len], len as i64)
            }
            _ => unserved(table::call(asked.number).name),
        }
    }
}

/// Calls whose answer does not change within a run.
pub fn is_constant(number: u32) -> bool {
    use table::*;
    #[allow(non_upper_case_globals)]
    let constant = matches!(
        number,
        uname
            | getuid
            | getgid
            | geteuid
            | getegid
            | getppid
            | getpgrp
            | getpgid
            | getsid
            | getgroups
            | getresuid
            | getresgid
            | sysinfo
            | getrusage
            | times
            | getpriority
            | sched_getaffinity
            | sched_getparam
            | sched_getscheduler
            | sched_get_priority_max
            | sched_get_priority_min
            | clock_getres
            | capget
            | ioprio_get
            | get_mempolicy
    );
    constant
}

/// The arguments that are no pointers to what is written.
pub fn constant_key(asked: &Asked) -> (u32, Vec<u64>) {
    let outs = table::call(asked.number).outs;
    let pointer = |n: usize| {
        outs.iter().any(|out| match *out {
            Out::Fixed(a, _) | Out::Always(a, _) | Out::Returned(a) | Out::Each(a, _) => a == n,
            _ => false,
        })
    };
    let arguments = match asked.number as u32 {
        table::getpgid | table::getsid | table::getpriority | table::clock_getres => 2,
        table::getrusage => 1,
        table::sched_getaffinity => 2,
        _ => 0,
    };
    let key = (0..arguments).filter(|n| !pointer(*n)).map(|n| asked.args[n]).collect();
    (asked.number as u32, key)
}
