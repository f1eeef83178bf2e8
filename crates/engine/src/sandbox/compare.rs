//! Where does the path of an altered run leave the recorded one?
//!
//! Two forks go on from the same instant, one by the log and one altered. Each tells
//! the address of every basic block it comes to; the first that differs is the
//! answer.

use super::walker::{Child, Walker, fork, pipe};
use super::{Limits, Sandbox, Stopped, wall};
use crate::Error;
use crate::guest::machine::Stop;
use crate::replay::{Replayer, Until};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::fd::AsRawFd;

/// No more blocks than this are compared.
const MOST: u64 = 4_000_000;

/// One side: blocks as they come.
struct Side {
    child: Child,
    blocks: BufReader<File>,
}

impl Side {
    /// Instructions executed, and the address that comes next.
    fn next(&mut self) -> Option<(u64, u64)> {
        let mut bytes = [0; 16];
        self.blocks.read_exact(&mut bytes).ok()?;
        let word = |n: usize| u64::from_le_bytes(bytes[n..n + 8].try_into().expect("eight"));
        Some((word(0), word(8)))
    }
}

impl Walker {
    /// The number of the instruction behind which an altered run goes elsewhere than
    /// the recorded one. `None` if it does not, or if the run has several threads,
    /// whose turns would differ anyway, or if it is too far away.
    pub fn first_difference(
        &mut self,
        limits: Limits,
        alter: impl FnOnce(&mut Sandbox) -> bool,
    ) -> Result<Option<u64>, Error> {
        if self.replayer().tasks.len() > 1 {
            return Ok(None);
        }
        let mut recorded = self.side(follow)?;
        let mut altered = self.side(|mut replayer, out| {
            if wall::raise().is_ok() && replayer.process.machine.begin_trial().is_ok() {
                replayer.process.machine.show_blocks();
                let from = replayer.instructions();
                let mut sandbox = Sandbox::leave(replayer, limits);
                if alter(&mut sandbox) {
                    run_on(&mut sandbox, from, out);
                }
                std::mem::forget(sandbox);
            }
        })?;
        let mut found = None;
        for _ in 0..MOST {
            match (recorded.next(), altered.next()) {
                (Some(a), Some(b)) if a == b => {}
                (None, None) => break,
                (a, b) => {
                    let at = a.into_iter().chain(b).map(|(n, _)| n).min();
                    found = at.map(|n| n.saturating_sub(1));
                    break;
                }
            }
        }
        recorded.child.kill();
        altered.child.kill();
        Ok(found)
    }

    fn side(&mut self, run: impl FnOnce(Replayer, &mut BufWriter<File>)) -> Result<Side, Error> {
        let (read, write) = pipe().map_err(Error::io("cannot make a pipe"))?;
        let read_fd = read.as_raw_fd();
        let mut write = Some(write);
        let replayer = &raw mut *self.replayer();
        let child = fork(|| {
            // SAFETY: the parent's end.
            unsafe { libc::close(read_fd) };
            let mut out =
                BufWriter::with_capacity(1 << 16, File::from(write.take().expect("once")));
            // SAFETY: in the child nobody else uses it, and the child ends without
            // dropping the original.
            let replayer = unsafe { std::ptr::read(replayer) };
            run(replayer, &mut out);
            let _ = out.flush();
        })?;
        drop(write);
        Ok(Side { child, blocks: BufReader::with_capacity(1 << 16, File::from(read)) })
    }
}

/// Goes on by the log.
fn follow(mut replayer: Replayer, out: &mut BufWriter<File>) {
    replayer.process.machine.show_blocks();
    while let Ok(stop) = replayer.run_guest(Until::End, i64::MAX / 2) {
        let Some(stop) = stop else { continue };
        if matches!(stop, Stop::Block | Stop::Safepoint) {
            let (number, pc) = (replayer.instructions(), replayer.registers().rip);
            if tell(out, number, pc).is_err() {
                break;
            }
        }
        if replayer.after_stop(&stop).is_err() {
            break;
        }
    }
    std::mem::forget(replayer);
}

/// Goes on altered.
fn run_on(sandbox: &mut Sandbox, from: u64, out: &mut BufWriter<File>) {
    while let Stopped::At(pc) = sandbox.run(&mut ()) {
        if tell(out, from + sandbox.steps(), pc).is_err() {
            return;
        }
    }
}

fn tell(out: &mut BufWriter<File>, number: u64, pc: u64) -> std::io::Result<()> {
    out.write_all(&number.to_le_bytes())?;
    out.write_all(&pc.to_le_bytes())
}
