//! spans: merges opening hours, and tells when nothing is open.
//!
//!     spans 9:00-12:30 12:00-14:00 16:00-18:00

use std::fmt;
use std::process::ExitCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Minute(u32);

impl fmt::Display for Minute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:02}", self.0 / 60, self.0 % 60)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    from: Minute,
    to: Minute,
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.from, self.to)
    }
}

fn minute(text: &str) -> Option<Minute> {
    let (hours, minutes) = text.split_once(':')?;
    let (hours, minutes): (u32, u32) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours <= 24 && minutes < 60).then_some(Minute(hours * 60 + minutes))
}

fn span(text: &str) -> Option<Span> {
    let (from, to) = text.split_once('-')?;
    let span = Span { from: minute(from)?, to: minute(to)? };
    (span.from < span.to).then_some(span)
}

/// Overlapping and touching spans become one.
fn merge(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort();
    let mut merged: Vec<Span> = Vec::new();
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.from <= last.to => {
                last.to = span.to;
            }
            _ => merged.push(span),
        }
    }
    merged
}

fn gaps(merged: &[Span], day: Span) -> Vec<Span> {
    let mut gaps = Vec::new();
    let mut from = day.from;
    for span in merged {
        if span.from > from {
            gaps.push(Span { from, to: span.from });
        }
        from = from.max(span.to);
    }
    if from < day.to {
        gaps.push(Span { from, to: day.to });
    }
    gaps
}

fn list(word: &str, spans: &[Span]) {
    let all: Vec<String> = spans.iter().map(Span::to_string).collect();
    let all = if all.is_empty() { "never".to_owned() } else { all.join(", ") };
    println!("{word}: {all}");
}

fn main() -> ExitCode {
    let mut spans = Vec::new();
    for word in std::env::args().skip(1) {
        match span(&word) {
            Some(span) => spans.push(span),
            None => {
                println!("{word} is no span of time");
                return ExitCode::from(2);
            }
        }
    }
    let merged = merge(spans);
    let open: u32 = merged.iter().map(|s| s.to.0 - s.from.0).sum();
    list("open", &merged);
    list("closed", &gaps(&merged, Span { from: Minute(0), to: Minute(24 * 60) }));
    println!("{} hours {} minutes", open / 60, open % 60);
    ExitCode::SUCCESS
}
