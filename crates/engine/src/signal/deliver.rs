//! Bringing a signal to the running thread, the same in recording and replay.

use super::actions::{Action, Disposition, mask_in_handler};
use super::frame::{self, Info, Trap};
use crate::context::{Context, reg};
use crate::guest::machine::Fault;
use crate::guest::task::Task;
use crate::kernel::process::{Process, World};

/// What became of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// A handler is about to run, or nothing happens.
    Fine,
    /// The process dies of it.
    Deadly,
}

/// Number of the signal in a `siginfo_t`.
pub fn signal_of(info: &Info) -> i32 {
    i32::from_le_bytes(info[..4].try_into().expect("four bytes"))
}

/// Delivers a signal from outside to the running thread.
pub fn deliver(
    process: &mut Process,
    task: &mut Task,
    context: &mut Context,
    info: &Info,
    world: &mut dyn World,
) -> Delivered {
    let signal = signal_of(info);
    match process.actions.dispose(signal) {
        Disposition::Ignore => Delivered::Fine,
        Disposition::Die => Delivered::Deadly,
        Disposition::Handle(action) => {
            // An interrupted call restarts after the handler, or fails.
            if context.regs.gpr[reg::RAX] as i64 == -512 && task.interrupted.is_some() {
                let number = task.interrupted.take().expect("just seen");
                if action.flags & libc::SA_RESTART as u64 != 0 {
                    context.regs.rip -= 2;
                    context.regs.gpr[reg::RAX] = number;
                } else {
                    context.regs.gpr[reg::RAX] = -(libc::EINTR as i64) as u64;
                }
            }
            enter_handler(process, task, context, &action, info, Trap::default(), world)
        }
    }
}

fn enter_handler(
    process: &mut Process,
    task: &mut Task,
    context: &mut Context,
    action: &Action,
    info: &Info,
    trap: Trap,
    world: &mut dyn World,
) -> Delivered {
    let saved = task.saved_mask.take().unwrap_or(task.mask);
    let memory = &process.machine.memory;
    if frame::push(task, &mut context.regs, memory, action, info, saved, trap).is_err() {
        return Delivered::Deadly;
    }
    task.mask = mask_in_handler(task.mask, signal_of(info), action);
    world.mask_changed(task);
    Delivered::Fine
}

/// Delivers a hardware exception: it cannot be blocked or ignored.
pub fn deliver_fault(
    process: &mut Process,
    task: &mut Task,
    context: &mut Context,
    fault: &Fault,
    world: &mut dyn World,
) -> Delivered {
    let blocked = task.mask & super::only(fault.signal) != 0;
    let Disposition::Handle(action) = process.actions.dispose(fault.signal) else {
        return Delivered::Deadly;
    };
    if blocked {
        return Delivered::Deadly;
    }
    let mut info: Info = [0; 128];
    info[..4].copy_from_slice(&fault.signal.to_le_bytes());
    info[8..12].copy_from_slice(&fault.code.to_le_bytes());
    info[16..24].copy_from_slice(&fault.address.to_le_bytes());
    let cr2 = if fault.trap == 14 { fault.address } else { 0 };
    let trap = Trap { number: fault.trap, error: fault.error, address: cr2 };
    enter_handler(process, task, context, &action, &info, trap, world)
}

/// After signals were looked at: an interrupted call for which no handler was
/// entered is made again, and a temporary mask ends.
pub fn restart_undelivered(context: &mut Context, task: &mut Task, world: &mut dyn World) {
    if let Some(number) = task.interrupted.take() {
        context.regs.rip -= 2;
        context.regs.gpr[reg::RAX] = number;
    }
    if let Some(mask) = task.saved_mask.take() {
        task.mask = mask;
        world.mask_changed(task);
    }
}
