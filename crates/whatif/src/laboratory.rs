//! Many experiments: one process walks the run once and forks at each.

use crate::Error;
use crate::changes::apply;
use crate::experiment::{Change, CrashPoint, Experiment};
use crate::link::{self, Answer, Order};
use crate::oracle::Oracle;
use crate::trial::{Setting, perform};
use crate::verdict::{Outcome, Verdict};
use engine::sandbox::{Child, Limits, Original, Root, Trial, Walker, helper};
use recording::Recording;
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// Makes experiments with one recorded run.
pub struct Laboratory {
    socket: UnixStream,
    helper: Child,
    original: Original,
}

/// Experiments to make together.
#[derive(Clone, Debug)]
pub struct Batch {
    /// They are known by their place in this list.
    pub experiments: Vec<Experiment>,
    /// Who judges.
    pub oracle: Oracle,
    /// Where the run crashed.
    pub crash: Option<CrashPoint>,
    /// How far each may go.
    pub limits: Limits,
    /// How many at a time.
    pub jobs: usize,
    /// Is all that was written wanted?
    pub keep_outputs: bool,
    /// Is only the first one, in the order of the list, that passes wanted?
    pub first_only: bool,
    /// Is the exact number of instructions wanted, and the limit to be exact? It makes
    /// trials several times as slow.
    pub exact: bool,
    /// Is a run that comes back to the recorded one of no more interest? That one is
    /// known to fail.
    pub rejoins: bool,
    /// What is not known then is not wanted any more; nothing is said of it.
    pub until: Option<Instant>,
}

impl Batch {
    /// With limits that fit a small run, one at a time.
    pub fn new(experiments: Vec<Experiment>, oracle: Oracle) -> Batch {
        Batch {
            experiments,
            oracle,
            crash: None,
            limits: Limits { steps: 100_000_000, memory: 1 << 30 },
            jobs: 1,
            keep_outputs: false,
            first_only: false,
            exact: false,
            rejoins: false,
            until: None,
        }
    }
}

impl Laboratory {
    /// Forks the process that makes experiments and lets it rehearse the run. The
    /// calling process must have one thread, and should still be small.
    pub fn open(recording: &Recording) -> Result<Laboratory, Error> {
        let (mut socket, helper) = helper(|socket| serve(recording, socket))?;
        match link::get(&mut socket)? {
            Answer::Ready(Ok(original)) => Ok(Laboratory { socket, helper, original }),
            Answer::Ready(Err(text)) => Err(Error::Refused(text)),
            _ => Err(Error::Refused("it said something unexpected".to_owned())),
        }
    }

    /// What the run came to without any change.
    pub fn original(&self) -> &Original {
        &self.original
    }

    /// Makes experiments. `seen` is told each outcome, in no particular order, and
    /// says whether to go on.
    pub fn perform(
        &mut self,
        batch: &Batch,
        seen: &mut dyn FnMut(usize, Outcome) -> bool,
    ) -> Result<(), Error> {
        let mut numbered: Vec<(u32, Experiment)> =
            batch.experiments.iter().cloned().enumerate().map(|(n, e)| (n as u32, e)).collect();
        numbered.sort_by_key(|(n, e)| (e.at, *n));
        let order = Order {
            experiments: numbered,
            oracle: batch.oracle.clone(),
            crash: batch.crash.clone(),
            limits: batch.limits,
            jobs: batch.jobs.max(1),
            keep_outputs: batch.keep_outputs,
            first_only: batch.first_only,
            exact: batch.exact,
            rejoins: batch.rejoins,
            difference: false,
            time: batch.until.map(|until| until.saturating_duration_since(Instant::now())),
        };
        self.send(&order)?;
        let mut going = true;
        loop {
            match link::get(&mut self.socket)? {
                Answer::Outcome(n, outcome) => {
                    if !seen(n as usize, outcome) && going {
                        going = false;
                        // The walker looks at its end of the socket between trials.
                        std::io::Write::write_all(&mut self.socket, &[link::STOP])?;
                    }
                }
                Answer::Done(Ok(())) => return Ok(()),
                Answer::Done(Err(text)) => return Err(Error::Refused(text)),
                Answer::Ready(_) | Answer::Difference(_) => {}
            }
        }
    }

    fn send(&mut self, order: &Order) -> Result<(), Error> {
        std::io::Write::write_all(&mut self.socket, &[link::ORDER])?;
        Ok(link::put(&mut self.socket, order)?)
    }

    /// The number of the instruction behind which the path of an experiment leaves
    /// the recorded one. `None` if it does not, or if that is not known: of runs with
    /// several threads, and of changes that come later.
    pub fn first_difference(
        &mut self,
        experiment: &Experiment,
        limits: Limits,
    ) -> Result<Option<u64>, Error> {
        // A branch that is switched, and code that is left out, differ at once.
        let only_sets = experiment.changes.iter().all(|c| matches!(c, Change::Set { .. }));
        if !only_sets {
            return Ok(Some(experiment.at));
        }
        if !experiment.triggers.is_empty() {
            return Ok(None);
        }
        let order = Order {
            experiments: vec![(0, experiment.clone())],
            oracle: Oracle::default(),
            crash: None,
            limits,
            jobs: 1,
            keep_outputs: false,
            first_only: false,
            exact: true,
            rejoins: false,
            difference: true,
            time: None,
        };
        self.send(&order)?;
        let mut found = None;
        loop {
            match link::get(&mut self.socket)? {
                Answer::Difference(difference) => found = difference,
                Answer::Done(Ok(())) => return Ok(found),
                Answer::Done(Err(text)) => return Err(Error::Refused(text)),
                _ => {}
            }
        }
    }
}

impl Drop for Laboratory {
    fn drop(&mut self) {
        self.helper.kill();
    }
}

/// The process that makes experiments.
fn serve(recording: &Recording, mut socket: UnixStream) {
    let mut root = match Root::new(recording) {
        Ok(root) => root,
        Err(error) => {
            let _ = link::put(&mut socket, &Answer::Ready(Err(error.to_string())));
            return;
        }
    };
    let ready = Answer::Ready(Ok(root.original().clone()));
    if link::put(&mut socket, &ready).is_err() {
        return;
    }
    while let Ok(order) = link::order(&mut socket) {
        let Ok(ours) = socket.try_clone() else { return };
        let done = root.walk(|walker| {
            let mut batch = Running::new(&order, walker, ours);
            let done = batch.run().map_err(|error| error.to_string());
            let _ = link::put(&mut batch.socket, &Answer::Done(done));
        });
        match done.map(Child::ends_well) {
            Ok(true) => {}
            Ok(false) => {
                // It may have died in the middle of a word, so that nobody would
                // understand the next one: this is the last.
                let died = "the process that made experiments was killed".to_owned();
                let _ = link::put(&mut socket, &Answer::Done(Err(died)));
                return;
            }
            Err(error) => {
                let _ = link::put(&mut socket, &Answer::Done(Err(error.to_string())));
            }
        }
    }
}

/// A batch being performed by a walker.
struct Running<'a> {
    order: &'a Order,
    walker: Walker,
    socket: UnixStream,
    trials: Vec<Trial>,
    numbers: Vec<u32>,
    /// The first that passed so far.
    best: u32,
    stopped: bool,
    until: Option<Instant>,
}

impl<'a> Running<'a> {
    fn new(order: &'a Order, mut walker: Walker, socket: UnixStream) -> Running<'a> {
        if order.exact {
            walker.count_trials();
        }
        if let Some(crash) = &order.crash {
            let calls = crash.calls.iter().map(|step| step.pc);
            walker.expect_stops(&calls.chain([crash.pc]).collect::<Vec<_>>());
        }
        let (trials, numbers) = (Vec::new(), Vec::new());
        let until = order.time.map(|time| Instant::now() + time);
        Running { order, walker, socket, trials, numbers, best: u32::MAX, stopped: false, until }
    }

    fn run(&mut self) -> Result<(), engine::Error> {
        if self.order.difference {
            return self.compare();
        }
        for (number, experiment) in &self.order.experiments {
            if self.stopped {
                break;
            }
            if self.order.first_only && *number > self.best {
                continue;
            }
            match self.walker.to_within(experiment.at, self.until)? {
                Some(true) => {}
                Some(false) => {
                    self.report(*number, Outcome::of(Verdict::NotReached));
                    continue;
                }
                None => break,
            }
            while self.trials.len() >= self.order.jobs {
                self.wait();
            }
            if self.stopped {
                break;
            }
            let setting = Setting {
                oracle: &self.order.oracle,
                crash: self.order.crash.as_ref(),
                keep_outputs: self.order.keep_outputs,
                rejoins: self.order.rejoins,
            };
            let trial = self.walker.trial(self.order.limits, |sandbox| {
                let outcome = perform(sandbox, experiment, &setting);
                postcard::to_allocvec(&outcome).unwrap_or_default()
            })?;
            self.trials.push(trial);
            self.numbers.push(*number);
        }
        while !self.trials.is_empty() {
            self.wait();
        }
        Ok(())
    }

    /// Looks where the first experiment's path differs.
    fn compare(&mut self) -> Result<(), engine::Error> {
        let Some((_, experiment)) = self.order.experiments.first() else { return Ok(()) };
        let mut found = None;
        if self.walker.to(experiment.at)? {
            found = self.walker.first_difference(self.order.limits, |sandbox| {
                experiment.changes.iter().all(|change| apply(sandbox, change).is_ok())
            })?;
        }
        // Whoever is not there any more does not want to know.
        let _ = link::put(&mut self.socket, &Answer::Difference(found));
        Ok(())
    }

    /// Waits for a trial, or gives all of them up when the time is over.
    fn wait(&mut self) {
        let Some((n, said)) = self.walker.wait(&mut self.trials, self.until) else {
            self.trials.drain(..).for_each(Trial::give_up);
            self.stopped = true;
            return;
        };
        let number = self.numbers.remove(n);
        let outcome = said.and_then(|bytes| postcard::from_bytes(&bytes).ok());
        self.report(number, outcome.unwrap_or_else(|| Outcome::of(Verdict::Lost)));
    }

    fn report(&mut self, number: u32, outcome: Outcome) {
        if outcome.verdict == Verdict::Passed {
            self.best = self.best.min(number);
        }
        if link::put(&mut self.socket, &Answer::Outcome(number, outcome)).is_err()
            || self.is_told_to_stop()
        {
            self.stopped = true;
        }
    }

    /// Did the other side say that it has seen enough?
    fn is_told_to_stop(&mut self) -> bool {
        use std::io::Read;
        if self.socket.set_nonblocking(true).is_err() {
            return true;
        }
        let told = matches!(self.socket.read(&mut [0]), Ok(0 | 1));
        let _ = self.socket.set_nonblocking(false);
        told
    }
}
