//! What was tried to find the fault, in words.

use crate::story::{Critical, Tried};

impl Tried {
    /// How many branches were switched, and how many small changes were tried.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let switched = std::iter::once(switched(self));
        switched.chain(throughout(self)).chain(edited(self)).collect()
    }
}

impl Critical {
    /// What was switched, and what happened then.
    pub(crate) fn sentence(&self) -> String {
        let effect = &self.effect;
        match &self.throughout {
            Some(way) => format!("if {way}, {effect}"),
            None => {
                let was = if self.taken == Some(true) { "jumped" } else { "did not jump" };
                format!("its branch {was}; when it does the other, {effect}")
            }
        }
    }
}

/// How many predicates were switched in all their executions, if any.
fn throughout(tried: &Tried) -> Option<String> {
    let made = tried.throughout;
    (made > 0).then(|| format!("{made} times, a condition went another way in all its executions"))
}

/// How many branches were switched, and what became of the run then.
fn switched(tried: &Tried) -> String {
    let outcomes: Vec<String> =
        tried.outcomes.iter().map(|(word, n)| format!("{n} {}", plainly(word))).collect();
    let which = match (tried.complete, tried.candidates) {
        (true, 1) => "the only branch was switched".to_owned(),
        (_, 1) => "0 of 1 branch was switched".to_owned(),
        (complete, all) => {
            let which = if complete { "all" } else { "the nearest" };
            format!("{which} {} of {all} branches were switched, one at a time", tried.trials)
        }
    };
    match outcomes.is_empty() {
        true => which,
        false => format!("{which}: {}", outcomes.join(", ")),
    }
}

/// How many small changes were tried, if there are any.
fn edited(tried: &Tried) -> Option<String> {
    match tried.possible_edits {
        0 => None,
        1 => Some(format!("{} of 1 small change of the program was tried", tried.edits)),
        all => Some(format!("{} of {all} small changes of the program were tried", tried.edits)),
    }
}

/// What a verdict's word means, in words that need no explanation.
fn plainly(word: &str) -> &str {
    match word {
        "wrong-output" => "wrote something wrong",
        "wrong-file" => "left a wrong file",
        "wrong-exit" => "ended with a wrong status",
        "crashed-again" => "crashed as before",
        "crashed-elsewhere" => "crashed elsewhere",
        "deadlock" => "got stuck",
        "avoided" => "never came to where it crashed",
        "rejoined" => "came back to the recorded run",
        "unserved" => "asked for what is not recorded",
        "needs-child" => "wanted another process",
        "step-limit" => "ran for too long",
        "memory-limit" => "took too much memory",
        "unjudged" => "were not judged",
        "not-reached" => "changed nothing",
        "rejected" => "were rejected by the oracle",
        "lost" => "could not be judged",
        other => other,
    }
}
