//! The verbs.

use super::Desk;
use crate::Result;
use position::Position;

impl Desk {
    /// Does what a line says, and answers in words.
    pub fn command(&mut self, line: &str) -> String {
        let line = line.trim();
        let (verb, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match self.verb(verb, rest.trim()) {
            Ok(text) => text,
            Err(error) => format!("{error}\n"),
        }
    }

    fn verb(&mut self, verb: &str, rest: &str) -> Result<String> {
        match verb {
            "goto" => self.go_to(rest),
            _ => Ok(format!("no such verb: {verb}\n")),
        }
    }

    /// Goes to a position.
    pub fn go_to(&mut self, text: &str) -> Result<String> {
        let position = Position::parse(text)?;
        match position {
            Position::Start => self.timeline.go_to(Default::default())?,
            Position::Number(n) => self.timeline.go_to_number(n)?,
            Position::Crash | Position::Exit => self.timeline.go_to_end()?,
            _ => {
                let run = self.run()?;
                let at = position::resolve(run, &position)?.instance();
                let number = run.trace.number(at);
                self.timeline.go_to_number(number)?;
            }
        }
        Ok(String::new())
    }
}
