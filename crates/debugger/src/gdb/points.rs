//! Breakpoints, watchpoints and catchpoints, as gdb sets them.

use super::session::Session;
use engine::{Calls, Watch};
use gdbstub::target::TargetResult;
use gdbstub::target::ext::breakpoints::{
    Breakpoints, HwBreakpoint, HwBreakpointOps, HwWatchpoint, HwWatchpointOps, SwBreakpoint,
    SwBreakpointOps, WatchKind,
};
use gdbstub::target::ext::catch_syscalls::{CatchSyscalls, SyscallNumbers};

type Told<T> = TargetResult<T, Session>;

impl Breakpoints for Session {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_breakpoint(&mut self) -> Option<HwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

impl SwBreakpoint for Session {
    fn add_sw_breakpoint(&mut self, address: u64, _: usize) -> Told<bool> {
        self.desk.wanted.stops.breaks.insert(address);
        Ok(true)
    }

    fn remove_sw_breakpoint(&mut self, address: u64, _: usize) -> Told<bool> {
        Ok(self.desk.wanted.stops.breaks.remove(&address))
    }
}

impl HwBreakpoint for Session {
    fn add_hw_breakpoint(&mut self, address: u64, kind: usize) -> Told<bool> {
        self.add_sw_breakpoint(address, kind)
    }

    fn remove_hw_breakpoint(&mut self, address: u64, kind: usize) -> Told<bool> {
        self.remove_sw_breakpoint(address, kind)
    }
}

fn watch(address: u64, len: u64, kind: WatchKind) -> Watch {
    let (reads, writes) = match kind {
        WatchKind::Write => (false, true),
        WatchKind::Read => (true, false),
        WatchKind::ReadWrite => (true, true),
    };
    Watch { address, len, reads, writes }
}

impl HwWatchpoint for Session {
    fn add_hw_watchpoint(&mut self, address: u64, len: u64, kind: WatchKind) -> Told<bool> {
        self.desk.wanted.stops.watches.insert(watch(address, len, kind));
        Ok(true)
    }

    fn remove_hw_watchpoint(&mut self, address: u64, len: u64, kind: WatchKind) -> Told<bool> {
        Ok(self.desk.wanted.stops.watches.remove(&watch(address, len, kind)))
    }
}

impl CatchSyscalls for Session {
    fn enable_catch_syscalls(&mut self, filter: Option<SyscallNumbers<'_, u64>>) -> Told<()> {
        self.desk.wanted.calls = match filter {
            None => Calls::All,
            Some(numbers) => Calls::These(numbers.collect()),
        };
        Ok(())
    }

    fn disable_catch_syscalls(&mut self) -> Told<()> {
        self.desk.wanted.calls = Calls::None;
        Ok(())
    }
}
