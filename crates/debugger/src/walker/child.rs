//! The walker's own side.

use super::body::Body;
use super::link;
use super::talk::{Answer, Ask, Look, Registers, Scanned, State};
use engine::{
    Error, Forked, Goal, Instant, Profile, ReplayOptions, Replayer, SliceWalk, Stopped, Stops,
    Survey, Thread, To,
};
use recording::Recording;
use std::os::unix::net::UnixStream;

/// Answers until nobody asks any more.
pub fn serve(socket: UnixStream, recording: recording::Result<Recording>) {
    match recording.map_err(Error::from).and_then(|recording| body(&recording)) {
        Ok(body) => {
            let mut walker = Child { socket, body };
            while walker.answer().is_some() {}
            // The kernel frees the guest's memory faster than we can.
            std::mem::forget(walker.body);
        }
        Err(error) => {
            let _ = link::get::<Ask>(&socket);
            let _ = link::put(&socket, &Answer::Failed(error.to_string()));
        }
    }
}

fn body(recording: &Recording) -> Result<Body, Error> {
    if recording.manifest().region.is_some_and(|region| region.slice) {
        return Ok(Body::Slice(Box::new(SliceWalk::new(recording)?)));
    }
    let silent = ReplayOptions { verify: false, silent: true };
    let mut replayer = Replayer::new(recording, Profile::COUNTING, &silent)?;
    replayer.keep_world(recording)?;
    Ok(Body::History(Box::new(replayer)))
}

struct Child {
    socket: UnixStream,
    body: Body,
}

impl Child {
    /// `None` if it is to end.
    fn answer(&mut self) -> Option<()> {
        let ask: Ask = link::get(&self.socket).ok()?;
        if matches!(ask, Ask::Fork) {
            return self.fork();
        }
        let answer = self.act(ask).unwrap_or_else(|e| Answer::Failed(e.to_string()));
        link::put(&self.socket, &answer).ok()
    }

    fn act(&mut self, ask: Ask) -> Result<Answer, Error> {
        let body = &mut self.body;
        Ok(match ask {
            Ask::Stops(stops) => {
                body.set_stops(&stops)?;
                Answer::Done
            }
            Ask::Advance(goal) => {
                let report = body.advance(&goal)?;
                Answer::Moved(report, body.now())
            }
            Ask::Scan(goal, thread) => Answer::Scanned(Box::new(scan(body, goal, thread)?)),
            Ask::Survey(stops, goal, look) => {
                let socket = &self.socket;
                let unwanted = || link::is_closed(socket);
                Answer::Surveyed(match look {
                    Look::FromAfar => survey(body, &stops, goal, &unwanted)?,
                    Look::Closely => Some(survey_closely(body, &stops, goal, &unwanted)?),
                })
            }
            Ask::Fork => Answer::Done,
            Ask::Alter(change, triggers) => {
                body.alter(&change, triggers)?;
                Answer::Altered(body.now())
            }
            ask => look(body.replayer()?, body.now(), ask),
        })
    }

    fn fork(&mut self) -> Option<()> {
        let forked = UnixStream::pair().ok().map(|pair| (self.body.fork(), pair));
        match forked {
            Some((Ok(Forked::Child), (_, theirs))) => {
                self.socket = theirs;
                Some(())
            }
            Some((Ok(Forked::Parent { .. }), (ours, _))) => {
                link::put(&self.socket, &Answer::Done).ok()?;
                link::put_socket(&self.socket, &ours).ok()
            }
            Some((Err(error), _)) => {
                link::put(&self.socket, &Answer::Failed(error.to_string())).ok()
            }
            None => {
                let text = "there are too many open files for another checkpoint";
                link::put(&self.socket, &Answer::Failed(text.to_owned())).ok()
            }
        }
    }
}

/// What is seen where a replay stands.
fn look(r: &Replayer, now: Instant, ask: Ask) -> Answer {
    match ask {
        Ask::State => Answer::State(State {
            threads: r.threads(),
            pid: r.pid(),
            now,
            auxv: r.auxiliary_vector().to_vec(),
        }),
        Ask::Registers(thread) => {
            let registers = r.registers_of(thread);
            Answer::Registers(registers.map(|r| Box::new(Registers::from(&r))))
        }
        Ask::Memory(address, len) => Answer::Memory(r.peek(address, len as usize)),
        Ask::Regions => Answer::Regions(r.regions()),
        Ask::Files => Answer::Files(r.files()),
        Ask::Fingerprint => Answer::Fingerprint(r.fingerprint()),
        Ask::Stops(_)
        | Ask::Advance(_)
        | Ask::Scan(..)
        | Ask::Survey(..)
        | Ask::Fork
        | Ask::Alter(..) => Answer::Done,
    }
}

/// Goes on to the goal, or for as long as it may, over everything there is to stop
/// for. A run that ends before its goal has found nothing more.
fn scan(r: &mut Body, mut goal: Goal, thread: Option<Thread>) -> Result<Scanned, Error> {
    let end = r.now().instructions.saturating_add(goal.most);
    let limit = match goal.to {
        To::Instant(instant) => Some(instant),
        To::End | To::Number(_) => None,
    };
    let mut last = None;
    let there = loop {
        let report = r.advance(&goal)?;
        match report.stopped {
            Stopped::There | Stopped::Ended(_) | Stopped::LogEnds | Stopped::Stuck(_) => {
                break true;
            }
            Stopped::Paused => break false,
            _ => {}
        }
        if limit.is_none_or(|limit| report.before < limit) {
            last = Some(report);
        }
        goal.here = false;
        goal.most = end.saturating_sub(r.now().instructions);
    };
    let trail = thread.and_then(|thread| r.trail(thread));
    Ok(Scanned { last, now: r.now(), there, trail })
}

/// Instructions between two looks at whether something was touched.
const PIECE: u64 = 1_000_000;
/// Memory that is touched so often is everywhere a suspect: counting costs more than it tells.
const OFTEN: u64 = 10_000;

/// Goes on to the goal at full speed, and notes in which parts watched memory was touched.
/// `None` if that cannot be counted.
fn survey(
    body: &mut Body,
    stops: &Stops,
    mut goal: Goal,
    unwanted: &dyn Fn() -> bool,
) -> Result<Option<Survey>, Error> {
    let Body::History(replayer) = body else { return Ok(None) };
    let mut tally = replayer.count_touches(stops)?;
    if tally.is_none() {
        return Ok(None);
    }
    goal.most = PIECE;
    let mut survey = Survey { last: None, suspects: Vec::new() };
    loop {
        let from = body.now();
        let scanned = scan(body, goal.clone(), None)?;
        let touches = tally.as_mut().and_then(|tally| tally.take());
        if touches != Some(0) {
            survey.suspects.push((from, scanned.now));
        }
        tally = tally.filter(|_| touches.is_some_and(|n| n < OFTEN));
        survey.last = scanned.last.or(survey.last);
        if scanned.there || unwanted() {
            return Ok(Some(survey));
        }
    }
}

/// The same with a look at every access: what is found is exact.
fn survey_closely(
    body: &mut Body,
    stops: &Stops,
    mut goal: Goal,
    unwanted: &dyn Fn() -> bool,
) -> Result<Survey, Error> {
    body.set_stops(stops)?;
    goal.most = PIECE;
    let mut last = None;
    loop {
        let scanned = scan(body, goal.clone(), None)?;
        last = scanned.last.or(last);
        if scanned.there || unwanted() {
            return Ok(Survey { last, suspects: Vec::new() });
        }
    }
}
