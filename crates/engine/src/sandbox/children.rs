//! Children of a run that left its log.
//!
//! A child that was begun before, and that shares nothing with its parent by which the
//! altered run could reach it, ends as it did then. For any other the
//! trial ends: what they would do is not known. New ones are the affair of `births.rs`.

use super::calls::error;
use super::world::World;
use super::{Sandbox, Served, Stopped};
use crate::kernel::process::{Asked, Process};
use crate::kernel::table;

/// A child that has not been waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Begun {
    /// Does it share a pipe or a socket with its parent?
    pub(super) connected: bool,
}

impl World {
    /// A child of the recorded run begins, or was waited for.
    pub fn follow_child(&mut self, process: &Process, asked: &Asked, result: i64) {
        let a = &asked.args;
        let pid = result as i32;
        match asked.number as u32 {
            table::clone if a[0] as i32 & libc::CLONE_THREAD != 0 => {}
            // It goes on as the child, which has none.
            table::fork | table::vfork | table::clone if pid == 0 => self.children.clear(),
            table::fork | table::vfork | table::clone if pid > 0 => {
                // What else is shared, a trial cannot use.
                let connected = self.is_connected();
                self.facts.outside.insert(pid, self.outside());
                self.begun.insert(pid);
                self.children.insert(pid, Begun { connected });
            }
            table::wait4 if pid > 0 => {
                self.children.remove(&pid);
                let status = process.machine.memory.read(a[1], 4);
                if let Some(status) = status.filter(|_| a[1] != 0) {
                    self.facts.deaths.insert(pid, status);
                }
            }
            // Who it was stands in memory that need not be there.
            table::waitid => self.children.clear(),
            _ => {}
        }
    }
}

impl Sandbox {
    pub(super) fn wait_for_child(&mut self, asked: &Asked) -> Served {
        let [wanted, status, ..] = asked.args;
        let wanted = wanted as i32;
        let mut meant = self.world.children.iter().filter(|(pid, _)| match wanted {
            -1 => true,
            wanted => wanted == **pid,
        });
        let Some((&pid, begun)) = meant.next() else { return error(libc::ECHILD) };
        // Which of several ends first is the recorded run's affair.
        let others = meant.next().is_some();
        let handled = self.replayer.process.actions.get(libc::SIGCHLD).handler > 1;
        let death = self.world.facts.deaths.get(&pid).cloned();
        let (Some(death), false) = (death, others || handled || begun.connected || wanted < -1)
        else {
            return Served::End(Stopped::NeedsChild);
        };
        self.world.children.remove(&pid);
        if status == 0 { Served::Value(pid.into()) } else { self.give(status, &death, pid.into()) }
    }
}
