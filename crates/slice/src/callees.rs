//! What functions would write that were not called: their own frames, fixed addresses, and
//! anything else as soon as one of them stores through a pointer or asks the kernel.

use crate::depths::Depths;
use crate::unrun::{Place, decode, is_call, on};
use iced_x86::Mnemonic;
use program::effects::effects;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use trace::Trace;

/// How many functions one call may lead to; more may write anything.
const MOST: usize = 64;
/// The same for instructions of one function.
const LONGEST: usize = 4000;

/// What is written besides frames.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Fixed addresses, and how long.
    pub fixed: Vec<(u64, u64)>,
    /// Anything.
    pub anywhere: bool,
}

impl Written {
    fn anything() -> Written {
        Written { fixed: Vec::new(), anywhere: true }
    }
}

/// Of functions, by entry, each found when it is first asked for.
#[derive(Default)]
pub struct Callees {
    /// By themselves, and the functions that they call.
    alone: HashMap<u64, Rc<(Written, Vec<u64>)>>,
    /// With all that they call.
    all: HashMap<u64, Rc<Written>>,
    depths: HashMap<u64, Rc<Depths>>,
}

impl Callees {
    /// How deep the stack is in a function.
    pub fn depths(&mut self, trace: &Trace, entry: u64) -> Rc<Depths> {
        let found = self.depths.entry(entry).or_insert_with(|| Rc::new(Depths::of(trace, entry)));
        found.clone()
    }

    /// What a function would write, and all that it calls. Entry 0 is one that is not known.
    pub fn written(&mut self, trace: &Trace, entry: u64) -> Rc<Written> {
        if let Some(known) = self.all.get(&entry) {
            return known.clone();
        }
        let mut all = Written::default();
        let mut seen = HashSet::from([entry]);
        let mut work = vec![entry];
        while let Some(function) = work.pop() {
            let found = self.alone(trace, function);
            all.fixed.extend(&found.0.fixed);
            work.extend(found.1.iter().filter(|callee| seen.insert(**callee)));
            if found.0.anywhere || seen.len() > MOST {
                all = Written::anything();
                break;
            }
        }
        let all = Rc::new(all);
        self.all.insert(entry, all.clone());
        all
    }

    fn alone(&mut self, trace: &Trace, entry: u64) -> Rc<(Written, Vec<u64>)> {
        if let Some(known) = self.alone.get(&entry) {
            return known.clone();
        }
        let depths = self.depths(trace, entry);
        let found = alone(trace, entry, &depths);
        let found = Rc::new(found.unwrap_or((Written::anything(), Vec::new())));
        self.alone.insert(entry, found.clone());
        found
    }
}

/// `None` if it may write anything.
fn alone(trace: &Trace, entry: u64, depths: &Depths) -> Option<(Written, Vec<u64>)> {
    let (mut fixed, mut calls) = (HashSet::new(), HashSet::new());
    let mut seen = HashSet::new();
    let mut work = vec![entry];
    while let Some(at) = work.pop() {
        if !seen.insert(at) {
            continue;
        }
        let i = decode(trace, at).filter(|i| i.mnemonic() != Mnemonic::Syscall)?;
        if seen.len() > LONGEST {
            return None;
        }
        if is_call(&i) {
            calls.insert(i.near_branch_target());
        }
        for access in effects(&i).accesses.iter().filter(|access| access.writes) {
            match Place::of(access) {
                Place::Fixed(at) => _ = fixed.insert((at, u64::from(access.size))),
                // Its own frame, or what was passed on the stack, which is its own as well.
                Place::Stack(_) => {}
                Place::Frame(_) if depths.at(at)?.frame.is_some() => {}
                Place::Frame(_) | Place::Anywhere => return None,
            }
        }
        work.extend(on(trace, &i)?);
    }
    let written = Written { fixed: fixed.into_iter().collect(), anywhere: false };
    Some((written, calls.into_iter().collect()))
}
