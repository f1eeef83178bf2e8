//! Alterations as people write them: `switch POS`, `set POS LVALUE=VALUE`,
//! `skip POS [=VALUE]`.

use std::fmt;

/// Which executions are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The one that the position names.
    One,
    /// Every one.
    All,
    /// The first one after the alteration before it.
    Next,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `switch`
    Switch,
    /// `set`: what, and to which value.
    Set(String, String),
    /// `skip`, and what a call returns instead.
    Skip(Option<String>),
}

/// One alteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// What is to be done.
    pub verb: Verb,
    /// The position, without a selector that is not a number.
    pub position: String,
    /// Which executions.
    pub selector: Selector,
    /// Which branch of the line, from 1.
    pub part: Option<u32>,
}

/// Why words are no alteration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; write `switch POS`, `set POS LVALUE=VALUE` or `skip POS [=VALUE]`")]
pub struct Misread(String);

mishap::mishaps! { Misread {
    Misread(_) = Misread("`turn` is no alteration".into()) =>
        "The words behind `why what-if` are no alterations.",
        "Write each as shown, with quotes around what has spaces in it.";
} }

impl Words {
    /// Reads a list of alterations: word by word, or each in quotes.
    pub fn parse(words: &[String]) -> Result<Vec<Words>, Misread> {
        let mut rest = words.iter().flat_map(|word| unquoted(word)).peekable();
        let mut all = Vec::new();
        while let Some(verb) = rest.next() {
            let said = || Misread(format!("`{verb}` needs a position"));
            let verb_known = matches!(verb, "switch" | "set" | "skip");
            if !verb_known {
                return Err(Misread(format!("`{verb}` is no alteration")));
            }
            let written = rest.next().ok_or_else(said)?;
            let (position, selector, part) = split(written);
            let verb = match verb {
                "switch" => Verb::Switch,
                "set" => {
                    let text = rest.next();
                    let (left, right) =
                        text.and_then(|text| text.split_once('=')).ok_or_else(|| {
                            let words = ["set", written].into_iter().chain(text);
                            let words = words.collect::<Vec<_>>().join(" ");
                            Misread(format!(
                                "`{words}` does not say what is set to which value, and where"
                            ))
                        })?;
                    Verb::Set(left.trim().to_owned(), right.trim().to_owned())
                }
                _ => {
                    let value = rest.next_if(|word| word.starts_with('='));
                    Verb::Skip(value.map(|word| word[1..].to_owned()))
                }
            };
            all.push(Words { verb, position, selector, part });
        }
        Ok(all)
    }
}

/// The words of an alteration that was written as one. A value may have spaces in it.
fn unquoted(text: &str) -> Vec<&str> {
    let parts = |most| text.trim().splitn(most, char::is_whitespace).filter(|w| !w.is_empty());
    match text.split_whitespace().next() {
        Some("set") => parts(3).collect(),
        Some("switch" | "skip") => parts(usize::MAX).collect(),
        _ => vec![text],
    }
}

/// Takes a selector that is no number, and the part, off a position.
fn split(text: &str) -> (String, Selector, Option<u32>) {
    let Some((before, after)) = text.rsplit_once('#') else {
        return (text.to_owned(), Selector::One, None);
    };
    let (which, part) = match after.split_once('.') {
        Some((which, part)) => (which, part.parse().ok()),
        None => (after, None),
    };
    match which {
        "all" => (before.to_owned(), Selector::All, part),
        "next" => (before.to_owned(), Selector::Next, part),
        _ => (format!("{before}#{which}"), Selector::One, part),
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let selector = match self.selector {
            Selector::One => "",
            Selector::All => "#all",
            Selector::Next => "#next",
        };
        let part = self.part.map(|part| format!(".{part}")).unwrap_or_default();
        let position = format!("{}{selector}{part}", self.position);
        match &self.verb {
            Verb::Switch => write!(f, "switch {position}"),
            Verb::Set(what, value) => write!(f, "set {position} {what}={value}"),
            Verb::Skip(None) => write!(f, "skip {position}"),
            Verb::Skip(Some(value)) => write!(f, "skip {position} ={value}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<Words>, Misread> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        Words::parse(&words)
    }

    #[test]
    fn alterations_are_read_and_written_again() {
        for text in [
            "switch f.c:15#4",
            "switch f.c:15#all",
            "switch f.c:15#next",
            "switch f.c:15#4.2",
            "set f.c:9#2 x=3",
            "skip f.c:9#-1",
            "skip f#3 =0",
        ] {
            let words = parse(text).unwrap();
            assert_eq!(words.len(), 1, "{text}");
            assert_eq!(words[0].to_string(), text);
        }
        assert_eq!(parse("switch a.c:1#1 skip a.c:2#2 set a.c:3 p->x=0").unwrap().len(), 3);
    }

    #[test]
    fn an_alteration_in_quotes_is_the_same() {
        let quoted = ["switch f.c:15#4", "set f.c:9#2 s=\"a b\"", "skip f#3 =0"];
        let words = Words::parse(&quoted.map(str::to_owned)).unwrap();
        let written: Vec<String> = words.iter().map(ToString::to_string).collect();
        assert_eq!(written, quoted);
    }

    #[test]
    fn what_is_no_alteration_is_refused() {
        for text in ["flip f.c:1", "switch", "set f.c:1", "set f.c:1 x"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
