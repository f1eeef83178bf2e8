//! The oracle at work while a run goes on.

use crate::oracle::{Oracle, first_wrong};
use crate::verdict::Verdict;
use crate::way::Death;
use engine::sandbox::{Sandbox, Stopped, Stream, Watcher};

/// Looks at output as it comes, and at the end of the run.
pub struct Judge<'a> {
    oracle: &'a Oracle,
    wrong: Option<(Stream, u64)>,
    /// Bytes of each stream that are right.
    checked: [usize; 2],
    /// Has it said that it has failed?
    given_up: bool,
}

impl<'a> Judge<'a> {
    pub fn new(oracle: &'a Oracle) -> Judge<'a> {
        Judge { oracle, wrong: None, checked: [0; 2], given_up: false }
    }

    fn expected(&self, stream: Stream) -> Option<&'a [u8]> {
        match stream {
            Stream::Out => self.oracle.stdout.as_deref(),
            Stream::Err => self.oracle.stderr.as_deref(),
        }
    }

    /// The judgement, once the run has stopped. `point` says whether the crash point
    /// was passed, if there is one.
    pub fn verdict(
        &self,
        sandbox: &mut Sandbox,
        stopped: &Stopped,
        death: Death,
        passed: Option<bool>,
    ) -> Verdict {
        match stopped {
            Stopped::Unserved(what) => return Verdict::Unserved(what.clone()),
            Stopped::NeedsChild => return Verdict::NeedsChild,
            Stopped::StepLimit => return Verdict::StepLimit,
            Stopped::MemoryLimit => return Verdict::MemoryLimit,
            Stopped::Deadlock => return Verdict::Deadlock,
            Stopped::Rejoined => return Verdict::Rejoined,
            Stopped::At(_) | Stopped::Exited(_) | Stopped::Killed { .. } | Stopped::Enough => {}
        }
        if self.given_up {
            return Verdict::CrashedAgain;
        }
        if let Some((stream, unit)) = self.wrong {
            return Verdict::WrongOutput { stream, unit };
        }
        if let Stopped::Killed { signal, pc, .. } = *stopped {
            if death == Death::ThePoint {
                return Verdict::CrashedAgain;
            }
            // Death may be what is expected: status as a shell gives it.
            if self.oracle.no_crash || self.oracle.exit != Some(128 + signal) {
                let passed_point = passed == Some(true);
                let same_place = death == Death::SamePlace;
                return Verdict::CrashedElsewhere { signal, pc, passed_point, same_place };
            }
        }
        self.at_end(sandbox, stopped, passed)
    }

    fn at_end(&self, sandbox: &mut Sandbox, stopped: &Stopped, passed: Option<bool>) -> Verdict {
        for stream in [Stream::Out, Stream::Err] {
            let Some(expected) = self.expected(stream) else { continue };
            let output = sandbox.output(stream);
            if let Some(unit) = first_wrong(output, expected, true, self.oracle.unit) {
                return Verdict::WrongOutput { stream, unit };
            }
        }
        for (path, expected) in &self.oracle.files {
            let wrong = match sandbox.file(path) {
                None => Some(None),
                Some(bytes) => first_wrong(&bytes, expected, true, self.oracle.unit).map(Some),
            };
            if let Some(unit) = wrong {
                return Verdict::WrongFile { path: path.clone(), unit };
            }
        }
        if let (Some(wanted), Stopped::Exited(status)) = (self.oracle.exit, stopped)
            && wanted != *status
        {
            return Verdict::WrongExit(*status);
        }
        if passed == Some(false) {
            return Verdict::Avoided;
        }
        if self.oracle.asks { Verdict::Unjudged } else { Verdict::Passed }
    }
}

impl Watcher for Judge<'_> {
    fn output(&mut self, stream: Stream, so_far: &[u8]) -> bool {
        if let (Stream::Err, Some(line)) = (stream, &self.oracle.given_up)
            && so_far.windows(line.len()).any(|part| part == line)
        {
            self.given_up = true;
            return false;
        }
        let Some(expected) = self.expected(stream) else { return true };
        let checked = &mut self.checked[stream as usize];
        let from = (*checked).min(expected.len());
        let same = so_far[from..].iter().zip(&expected[from..]).take_while(|(a, b)| a == b).count();
        if from + same == so_far.len() {
            *checked = so_far.len();
            return true;
        }
        let unit = first_wrong(so_far, expected, false, self.oracle.unit);
        self.wrong = unit.map(|unit| (stream, unit));
        false
    }
}
