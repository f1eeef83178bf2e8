//! Calls on the guest's own state: signals, thread pointers. The same in
//! recording and replay.

use super::process::{Asked, Process, World};
use super::table;
use crate::context::Context;
use crate::guest::task::{AltStack, Task};
use crate::signal::actions::Action;
use crate::signal::{self, frame};
use recording::FileId;

const EINVAL: i64 = -(libc::EINVAL as i64);
const EFAULT: i64 = -(libc::EFAULT as i64);

impl Process {
    /// Performs a call that needs nothing from outside. `None` if it is not one.
    pub fn own_call(
        &mut self,
        task: &mut Task,
        context: &mut Context,
        number: u64,
        args: &[u64; 6],
        world: &mut dyn World,
    ) -> Option<i64> {
        let result = match number as u32 {
            table::munmap => self.unmap(args[0], args[1]),
            table::mprotect => self.protect(args[0], args[1], args[2]),
            table::brk => self.set_brk(args[0]),
            table::mremap => self.remap(args),
            table::madvise => self.advise(args[0], args[1], args[2] as i32),
            table::rt_sigaction => self.signal_action(args, world),
            table::rt_sigprocmask => self.signal_mask(task, args, world),
            table::sigaltstack => self.alternate_stack(task, context, args),
            table::arch_prctl => self.thread_pointer(context, args),
            table::set_tid_address => {
                task.clear_tid = args[0];
                task.tid as i64
            }
            table::set_robust_list => {
                if args[1] == 24 {
                    task.robust_list = args[0];
                    0
                } else {
                    EINVAL
                }
            }
            table::get_robust_list => {
                let ok = self.machine.memory.write(args[1], &task.robust_list.to_le_bytes())
                    && self.machine.memory.write(args[2], &24u64.to_le_bytes());
                if ok { 0 } else { EFAULT }
            }
            _ => return None,
        };
        Some(result)
    }

    fn signal_action(&mut self, args: &[u64; 6], world: &mut dyn World) -> i64 {
        let [signal, new, old, size, ..] = *args;
        let fixed = signal == libc::SIGKILL as u64 || signal == libc::SIGSTOP as u64;
        if !(1..=64).contains(&signal) || size != 8 || fixed && new != 0 {
            return EINVAL;
        }
        let signal = signal as i32;
        let memory = &self.machine.memory;
        let wanted = if new == 0 {
            None
        } else {
            let Some(bytes) = memory.read(new, 32) else { return EFAULT };
            let word = |n: usize| u64::from_le_bytes(bytes[n..n + 8].try_into().expect("eight"));
            Some(Action {
                handler: word(0),
                flags: word(8),
                restorer: word(16),
                mask: word(24) & !signal::UNBLOCKABLE,
            })
        };
        if old != 0 {
            let a = self.actions.get(signal);
            let mut bytes = [0u8; 32];
            for (n, value) in [a.handler, a.flags, a.restorer, a.mask].into_iter().enumerate() {
                bytes[8 * n..8 * n + 8].copy_from_slice(&value.to_le_bytes());
            }
            self.machine.prepare_write(old, 32);
            if !self.machine.memory.write(old, &bytes) {
                return EFAULT;
            }
        }
        if let Some(action) = wanted {
            self.actions.set(signal, action);
            world.action_changed(signal, &self.actions);
        }
        0
    }

    fn signal_mask(&mut self, task: &mut Task, args: &[u64; 6], world: &mut dyn World) -> i64 {
        let [how, new, old, size, ..] = *args;
        if size != 8 {
            return EINVAL;
        }
        let before = task.mask;
        if new != 0 {
            let Some(set) = self.machine.memory.read_u64(new) else { return EFAULT };
            let mask = match how as i32 {
                libc::SIG_BLOCK => before | set,
                libc::SIG_UNBLOCK => before & !set,
                libc::SIG_SETMASK => set,
                _ => return EINVAL,
            };
            task.mask = mask & !signal::UNBLOCKABLE;
            world.mask_changed(task);
        }
        if old != 0 && !self.machine.memory.write(old, &before.to_le_bytes()) {
            return EFAULT;
        }
        0
    }

    fn alternate_stack(&mut self, task: &mut Task, context: &Context, args: &[u64; 6]) -> i64 {
        let sp = context.regs.gpr[crate::context::reg::RSP];
        let on_it = task.altstack.contains(sp);
        let current = task.altstack;
        if args[0] != 0 {
            let Some(bytes) = self.machine.memory.read(args[0], 24) else { return EFAULT };
            let word = |n: usize| u64::from_le_bytes(bytes[n..n + 8].try_into().expect("eight"));
            if on_it {
                return -(libc::EPERM as i64);
            }
            let flags = word(8) as i32;
            let mode = flags & !i32::MIN;
            if mode != 0 && mode != libc::SS_DISABLE && mode != libc::SS_ONSTACK {
                return EINVAL;
            }
            task.altstack = if mode == libc::SS_DISABLE {
                AltStack::default()
            } else if word(16) < 2048 {
                return -(libc::ENOMEM as i64);
            } else {
                AltStack { base: word(0), size: word(16), flags: flags & i32::MIN }
            };
        }
        if args[1] != 0 {
            let mut bytes = [0u8; 24];
            let flags = current.flags | if on_it { libc::SS_ONSTACK } else { 0 };
            bytes[..8].copy_from_slice(&current.base.to_le_bytes());
            bytes[8..12].copy_from_slice(&flags.to_le_bytes());
            bytes[16..24].copy_from_slice(&current.size.to_le_bytes());
            if !self.machine.memory.write(args[1], &bytes) {
                return EFAULT;
            }
        }
        0
    }

    fn thread_pointer(&mut self, context: &mut Context, args: &[u64; 6]) -> i64 {
        const SET_GS: u64 = 0x1001;
        const SET_FS: u64 = 0x1002;
        const GET_FS: u64 = 0x1003;
        const GET_GS: u64 = 0x1004;
        let value = args[1];
        match args[0] {
            SET_FS | SET_GS if value >= 1 << 47 => -(libc::EPERM as i64),
            SET_FS => {
                context.regs.fs = value;
                0
            }
            SET_GS => {
                context.regs.gs = value;
                set_gs(value);
                0
            }
            GET_FS | GET_GS => {
                let now = if args[0] == GET_FS { context.regs.fs } else { gs() };
                if self.machine.memory.write(value, &now.to_le_bytes()) { 0 } else { EFAULT }
            }
            _ => EINVAL,
        }
    }

    /// `rt_sigreturn`. False if the frame is unreadable.
    pub fn signal_return(
        &mut self,
        task: &mut Task,
        context: &mut Context,
        world: &mut dyn World,
    ) -> bool {
        match frame::pop(task, &mut context.regs, &self.machine.memory) {
            Some(mask) => {
                task.mask = mask;
                world.mask_changed(task);
                true
            }
            None => false,
        }
    }

    /// `sigsuspend` and friends: a mask for the time of the call, and the one to
    /// return to once a signal came or the call is over.
    pub fn temporary_mask(&self, task: &mut Task, asked: &Asked) {
        let memory = &self.machine.memory;
        let pointer = match asked.number as u32 {
            table::rt_sigsuspend => asked.args[0],
            table::ppoll => asked.args[3],
            table::epoll_pwait | table::epoll_pwait2 => asked.args[4],
            table::pselect6 => memory.read_u64(asked.args[5]).unwrap_or(0),
            _ => return,
        };
        if let Some(mask) = memory.read_u64(pointer).filter(|_| pointer != 0) {
            task.saved_mask = Some(task.mask);
            task.mask = mask & !signal::UNBLOCKABLE;
        }
    }

    /// Writes memory on behalf of a call, as the log says.
    pub fn write_from_log(&mut self, address: u64, data: &[u8]) -> bool {
        self.machine.prepare_write(address, data.len() as u64);
        self.machine.memory.write(address, data)
    }

    /// The same with bytes of a captured file.
    pub fn copy_from_file(&mut self, address: u64, file: FileId, offset: u64, len: u64) -> bool {
        self.machine.prepare_write(address, len);
        let Ok(bytes) = self.objects.bytes(file) else { return false };
        let Some(part) =
            offset.checked_add(len).and_then(|end| bytes.get(offset as usize..end as usize))
        else {
            return false;
        };
        self.machine.memory.write(address, part)
    }
}

/// The GS base, which the guest may have set without a system call.
pub fn gs() -> u64 {
    let base: u64;
    // SAFETY: reads a register.
    unsafe { std::arch::asm!("rdgsbase {}", out(reg) base, options(nomem, nostack)) };
    base
}

/// Loads the GS base, which translated code uses as it is.
pub fn set_gs(base: u64) {
    // SAFETY: the engine itself never uses GS.
    unsafe { std::arch::asm!("wrgsbase {}", in(reg) base, options(nomem, nostack)) };
}
