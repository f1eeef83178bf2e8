//! What the guest wants done with each signal.

use super::{Set, only};

/// Number of signals, and one more so that they index from 1.
pub const COUNT: usize = 65;

/// The kernel's `struct sigaction`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[repr(C)]
pub struct Action {
    /// `SIG_DFL` (0), `SIG_IGN` (1) or the handler.
    pub handler: u64,
    /// `SA_…`
    pub flags: u64,
    /// Where a handler returns to.
    pub restorer: u64,
    /// Blocked while the handler runs.
    pub mask: Set,
}

/// What happens without a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultAction {
    /// The process dies.
    Terminate,
    /// Nothing.
    Ignore,
    /// The process stops or goes on; the kernel does that to us as well.
    JobControl,
}

/// The default of a signal.
pub fn default_of(signal: i32) -> DefaultAction {
    match signal {
        libc::SIGCHLD | libc::SIGURG | libc::SIGWINCH => DefaultAction::Ignore,
        libc::SIGCONT | libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU => {
            DefaultAction::JobControl
        }
        _ => DefaultAction::Terminate,
    }
}

/// All actions of a process.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "Vec<Action>", into = "Vec<Action>")]
pub struct Actions {
    actions: [Action; COUNT],
}

impl From<Actions> for Vec<Action> {
    fn from(actions: Actions) -> Vec<Action> {
        actions.actions.to_vec()
    }
}

impl TryFrom<Vec<Action>> for Actions {
    type Error = &'static str;

    fn try_from(actions: Vec<Action>) -> Result<Actions, &'static str> {
        let actions = actions.try_into().map_err(|_| "there are 64 signals")?;
        Ok(Actions { actions })
    }
}

/// What is to be done with a signal now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Call the handler.
    Handle(Action),
    /// Nothing.
    Ignore,
    /// Die of it.
    Die,
}

impl Default for Actions {
    fn default() -> Self {
        Actions { actions: [Action::default(); COUNT] }
    }
}

impl Actions {
    /// The action of a signal.
    pub fn get(&self, signal: i32) -> Action {
        self.actions[signal as usize]
    }

    /// Sets it.
    pub fn set(&mut self, signal: i32, action: Action) {
        self.actions[signal as usize] = action;
    }

    /// What to do with a signal; a one-shot handler is reset.
    pub fn dispose(&mut self, signal: i32) -> Disposition {
        let action = self.get(signal);
        match action.handler {
            0 if default_of(signal) == DefaultAction::Terminate => Disposition::Die,
            0 | 1 => Disposition::Ignore,
            _ => {
                if action.flags & libc::SA_RESETHAND as u64 != 0 {
                    self.actions[signal as usize].handler = 0;
                }
                Disposition::Handle(action)
            }
        }
    }

    /// After `execve`: handlers are gone, ignored signals stay ignored. Of them, too, the
    /// kernel forgets flags, mask and restorer.
    pub fn reset_handlers(&mut self) {
        for action in &mut self.actions {
            let ignored = action.handler == 1;
            *action = Action { handler: ignored.into(), ..Action::default() };
        }
    }

    /// Signals with a handler or a deadly default: those the engine must catch.
    pub fn must_catch(&self, signal: i32) -> bool {
        let action = self.get(signal);
        action.handler > 1 || action.handler == 0 && default_of(signal) == DefaultAction::Terminate
    }
}

/// The mask while a handler runs.
pub fn mask_in_handler(old: Set, signal: i32, action: &Action) -> Set {
    let mut mask = old | action.mask;
    if action.flags & libc::SA_NODEFER as u64 == 0 {
        mask |= only(signal);
    }
    mask & !super::UNBLOCKABLE
}
