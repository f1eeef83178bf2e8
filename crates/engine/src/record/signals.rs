//! Signals while recording: what the host is told of the guest's wishes, and what
//! reaches the guest.

use super::session::Runner;
use crate::guest::machine::Fault;
use crate::guest::task::Task;
use crate::hash;
use crate::kernel::process::World;
use crate::signal::actions::Actions;
use crate::signal::deliver::{Delivered, deliver, deliver_fault, restart_undelivered, signal_of};
use crate::signal::{self, host};
use recording::event::When;

/// What the host must know while recording.
pub(super) struct HostWorld;

impl World for HostWorld {
    fn mask_changed(&mut self, task: &Task) {
        host::set_mask(task.mask);
    }

    fn action_changed(&mut self, signal: i32, actions: &Actions) {
        install(signal, actions);
    }
}

/// Makes the host treat a signal as the guest wants it, with us in between where
/// the guest or its death must be told.
pub(super) fn install(signal: i32, actions: &Actions) {
    if signal::SYNCHRONOUS & signal::only(signal) != 0 {
        return;
    }
    let action = actions.get(signal);
    let how = if actions.must_catch(signal) {
        host::Host::Catch
    } else if action.handler == 1 {
        host::Host::Ignore
    } else {
        host::Host::Default
    };
    let keep = libc::SA_NOCLDSTOP | libc::SA_NOCLDWAIT;
    host::install(signal, how, action.flags as i32 & keep);
}

/// The engine's own C library takes two signals for itself when its first thread
/// starts, but they are the guest's.
pub(super) fn take_back_signals(actions: &Actions) {
    for signal in [32, 33] {
        install(signal, actions);
    }
}

impl Runner {
    /// A hardware exception becomes a signal.
    pub(super) fn fault(&mut self, fault: Fault) {
        let session = self.session();
        let context = self.context();
        if deliver_fault(&mut session.process, &mut self.task, context, &fault, &mut HostWorld)
            == Delivered::Deadly
        {
            session.end(fault.signal);
        }
    }

    /// Delivers the signals that wait for this thread.
    pub(super) fn signals(&mut self, mut when: When) {
        while let Some(info) = host::take_pending(self.task.mask) {
            let session = self.session();
            let context = self.context();
            session.counters.signals += 1;
            session.encoder.signal(when, &info, hash::registers(&context.regs));
            session.log();
            let delivered =
                deliver(&mut session.process, &mut self.task, context, &info, &mut HostWorld);
            if delivered == Delivered::Deadly {
                session.end(signal_of(&info));
            }
            when = When::Here;
        }
        self.settle_interrupted_call();
    }

    /// A call was interrupted but nothing was delivered for it: make it again.
    pub(super) fn settle_interrupted_call(&mut self) {
        restart_undelivered(self.context(), &mut self.task, &mut HostWorld);
    }
}
