//! Lock-step: is translated code, block by block, what the CPU does with the
//! original?
//!
//! A replay forks before its first guest instruction. The child is then the
//! *native* side: the parent traces it and single-steps it through the guest's
//! own, untranslated instructions at the same addresses. After every block the
//! registers of both sides are compared, flags and vector state included, and
//! now and then all of memory.
//!
//! What is not the translator's work is not checked but copied from the replay to
//! the native side: system calls, instructions the engine performs itself
//! (`cpuid`, `rdtsc`, `xsave`, …), signal frames, thread switches. Threads need
//! nothing special: they run one at a time, so one native process stands for all.
//!
//! | file | question |
//! | --- | --- |
//! | `native` | How is the traced process driven: registers, steps, injected calls? |
//! | `walk` | Where is its next stop: the end of a block, a call, a fault? |
//! | `mirror` | How do the engine's changes to guest memory reach it? |
//! | `twins` | What stands behind its shared maps of files? |
//! | `compare` | What differs? |
//! | `probe` | What does one instruction define, and from what? |

mod compare;
mod mirror;
mod native;
pub mod probe;
mod twins;
mod walk;

use crate::Error;
use crate::code::Profile;
use crate::guest::machine::Stop;
use crate::replay::{Finish, Halt, ReplayOptions, Replayer, Until};
use native::Native;
use recording::{Ending, Recording};
use twins::Twins;
use walk::{Goal, Met, Walk};

/// Stops between two comparisons of all memory.
const MEMORY_SPACING: u64 = 200_000;

/// Where both sides are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// After every basic block. Blocks are entered one by one.
    Blocks,
    /// Every few safepoints, running the same linked code that recordings run.
    Safepoints,
}

/// How to check.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Where to compare.
    pub grain: Grain,
    /// Stop after so many instructions.
    pub max_instructions: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { grain: Grain::Blocks, max_instructions: 3_000_000 }
    }
}

/// What was compared, and the first difference.
#[derive(Clone, Debug)]
pub struct Report {
    /// Native instructions executed; a `rep` instruction counts once.
    pub instructions: u64,
    /// Places at which registers were compared.
    pub comparisons: u64,
    /// How the run ended; `None` if the limit was reached first.
    pub ending: Option<Ending>,
    /// The first difference.
    pub difference: Option<Difference>,
}

/// A place at which translated and native code disagree.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Native instructions executed before it.
    pub instruction: u64,
    /// The guest thread.
    pub thread: crate::Thread,
    /// Where both sides last agreed.
    pub from: u64,
    /// What differs, one line each.
    pub what: Vec<String>,
    /// The instructions executed natively since `from`, the last ones.
    pub code: Vec<String>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            out,
            "after {} instructions, {}, since {:#x}:",
            self.instruction, self.thread, self.from
        )?;
        for line in &self.what {
            writeln!(out, "  {line}")?;
        }
        for line in &self.code {
            writeln!(out, "    {line}")?;
        }
        Ok(())
    }
}

/// Checks a recording. The process must have no other threads.
pub fn check(recording: &Recording, options: &Options) -> Result<Report, Error> {
    let profile = match options.grain {
        Grain::Blocks => Profile::BLOCKS,
        Grain::Safepoints => Profile::PLAIN,
    };
    let replay = ReplayOptions { verify: false, silent: true };
    let replayer = Replayer::new(recording, profile, &replay)?;
    let mut native = Native::fork()?;
    mirror::give_protections(&mut native, &replayer.process.machine.memory)?;
    native.load(replayer.registers())?;
    replayer.process.machine.memory.take_changes();
    let mut pair = Pair {
        replayer,
        walk: Walk::new(),
        twins: Twins::default(),
        native,
        options: *options,
        comparisons: 0,
        stride: 1,
        memory_due: MEMORY_SPACING,
    };
    pair.check()
}

/// Both sides.
struct Pair {
    replayer: Replayer,
    native: Native,
    walk: Walk,
    twins: Twins,
    options: Options,
    comparisons: u64,
    stride: i64,
    memory_due: u64,
}

/// How one stretch ended.
enum Stretch {
    Same,
    Different(Vec<String>),
    Over(Finish),
}

impl Pair {
    fn check(&mut self) -> Result<Report, Error> {
        loop {
            let from = self.replayer.registers().rip;
            let thread = self.replayer.thread();
            let (ending, what) = match self.stretch()? {
                Stretch::Same if self.walk.executed >= self.options.max_instructions => {
                    (None, self.memory()?)
                }
                Stretch::Same => continue,
                Stretch::Different(what) => (None, what),
                Stretch::Over(Finish::Ended(ending)) => (Some(ending), self.memory()?),
                Stretch::Over(_) => (Some(Ending::Unknown), self.memory()?),
            };
            let difference = (!what.is_empty()).then(|| Difference {
                instruction: self.walk.executed,
                thread,
                from,
                what,
                code: self.walk.listing(),
            });
            return Ok(Report {
                instructions: self.walk.executed,
                comparisons: self.comparisons,
                ending,
                difference,
            });
        }
    }

    /// From one stop of the replay to the next.
    fn stretch(&mut self) -> Result<Stretch, Error> {
        let stop = match self.run_replay() {
            Ok(Some((goal, stop))) => {
                let what = self.compare(&goal, &stop)?;
                if !what.is_empty() {
                    return Ok(Stretch::Different(what));
                }
                stop
            }
            Ok(None) => {
                self.copy_to_native()?;
                return Ok(Stretch::Same);
            }
            Err(Halt::Finish(finish)) => return Ok(Stretch::Over(finish)),
            Err(Halt::Error(error)) => return Err(error),
        };
        if matches!(stop, Stop::Block | Stop::Safepoint) {
            // What the log has for a safepoint is done before the next stretch.
            if self.walk.executed >= self.memory_due {
                self.memory_due = self.walk.executed + MEMORY_SPACING;
                let what = self.memory()?;
                if !what.is_empty() {
                    return Ok(Stretch::Different(what));
                }
            }
            return Ok(Stretch::Same);
        }
        match self.replayer.after_stop(&stop) {
            Ok(()) => self.copy_to_native()?,
            Err(Halt::Finish(finish)) => return Ok(Stretch::Over(finish)),
            Err(Halt::Error(error)) => return Err(error),
        }
        Ok(Stretch::Same)
    }

    /// Lets the replay go on, and says where the native side should then stop.
    fn run_replay(&mut self) -> Result<Option<(Goal, Stop)>, Halt> {
        let pc = self.replayer.registers().rip;
        let machine = &mut self.replayer.process.machine;
        let mut goal = Goal { block_end: None, safepoints: i64::MAX };
        if self.options.grain == Grain::Blocks {
            goal.block_end = machine.unit_end(pc);
        } else {
            // Now one by one, now many at a time through linked code.
            self.stride = self.stride % 61 + 1;
            goal.safepoints = self.stride;
        }
        let before = self.replayer.safepoints();
        let stop = self.replayer.run_guest(Until::End, goal.safepoints)?;
        if matches!(stop, Some(Stop::Safepoint)) {
            goal.safepoints = (self.replayer.safepoints() - before) as i64;
        }
        Ok(stop.map(|stop| (goal, stop)))
    }

    /// Lets the native side go on to the same place and compares.
    fn compare(&mut self, goal: &Goal, stop: &Stop) -> Result<Vec<String>, Error> {
        let machine = &self.replayer.process.machine;
        let met = self.walk.run(&mut self.native, machine, goal)?;
        self.comparisons += 1;
        let regs = self.replayer.registers();
        if matches!(stop, Stop::Fault(_) | Stop::Safepoint | Stop::Emulate) {
            self.walk.flags_were_settled(machine, regs.rip);
        }
        let mut what = compare::stops(stop, &met, (regs.rip, self.native.rip()?));
        if what.is_empty() {
            let after_call = matches!(met, Met::Syscall);
            let mut native = self.native.registers()?;
            if after_call {
                native.rip += 2;
            }
            what = compare::registers(regs, &native, self.walk.dead_flags());
            what.extend(compare::vectors(regs, &self.native.vectors()?));
        }
        Ok(what)
    }

    /// After the engine acted: memory and registers of the native side follow.
    fn copy_to_native(&mut self) -> Result<(), Error> {
        self.twins.update(&mut self.native, &self.replayer.live.descriptors())?;
        let memory = &self.replayer.process.machine.memory;
        let code = mirror::apply(&mut self.native, memory, &self.twins)?;
        if code {
            self.walk.forget_code();
        }
        self.walk.flags_are_exact();
        self.native.load(self.replayer.registers())
    }

    fn memory(&mut self) -> Result<Vec<String>, Error> {
        mirror::compare(&mut self.native, &self.replayer.process.machine.memory)
    }
}
