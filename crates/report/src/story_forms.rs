//! The story in other forms: Markdown, a page, SARIF.

use crate::story::{Spot, Story};
use crate::style::{Style, grouped};
use serde_json::{Value, json};
use std::io::{self, Write};

/// The page, with a place for the data.
const PAGE: &str = include_str!("story.html");

impl Story {
    /// One page, complete in itself.
    pub fn html(&self) -> String {
        let tried = scripted(&self.tried.sentences());
        let memory: Vec<[&str; 2]> = self.memory.iter().map(|m| m.kind.words()).collect();
        let page = PAGE.replace("/*TRIED*/[]", &tried).replace("/*MEMORY*/[]", &scripted(&memory));
        page.replace("/*DATA*/null", &scripted(self))
    }

    /// For a bug report.
    pub fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "## `{}` failed\n", self.command.replace('`', "'"))?;
        writeln!(out, "{}\n", escaped(&self.failure.sentence))?;
        if let Some(spot) = &self.failure.spot {
            writeln!(out, "At {}\n", spot_line(spot))?;
        }
        if self.path.len() > 1 {
            writeln!(out, "### How it came about\n")?;
            for step in &self.path {
                writeln!(out, "1. {}", spot_line(&step.spot))?;
            }
            writeln!(out)?;
        }
        if !self.memory.is_empty() {
            writeln!(out, "### What was wrong with memory\n")?;
            for misused in &self.memory {
                let [used, call] = misused.kind.words();
                writeln!(
                    out,
                    "- {used}: {}; {call} at {}",
                    spot_line(&misused.spot),
                    spot_line(&misused.call)
                )?;
                for step in misused.path.iter().skip(1) {
                    writeln!(out, "  1. {}", spot_line(&step.spot))?;
                }
            }
            writeln!(out)?;
        }
        if !self.critical.is_empty() || !self.edits.is_empty() {
            writeln!(out, "### What would have helped\n")?;
            for c in &self.critical {
                writeln!(out, "- {}: {}", spot_line(&c.spot), c.sentence())?;
            }
            for e in &self.edits {
                writeln!(out, "- {}: if {} here, {}", spot_line(&e.spot), e.change, e.effect)?;
            }
            writeln!(out)?;
        }
        if self.tried.trials > 0 {
            writeln!(out, "Tried: {}.\n", self.tried.sentences().join("; "))?;
        }
        writeln!(out, "### Where to look\n")?;
        for suspect in &self.suspects {
            writeln!(out, "1. {} — {}", spot_line(&suspect.spot), suspect.reasons.join("; "))?;
        }
        for doubt in &self.doubts {
            writeln!(out, "\nNot certain: {}.", escaped(doubt))?;
        }
        writeln!(out, "\n_{} instructions executed._", grouped(self.instructions))
    }

    /// SARIF 2.1.0: the failure with its path as a code flow, and the places to look.
    pub fn sarif(&self) -> Value {
        let flow: Vec<Value> = self
            .path
            .iter()
            .rev()
            .filter_map(|step| Some(json!({ "location": location(&step.spot)? })))
            .collect();
        let mut result = json!({
            "ruleId": "why/failure",
            "level": "error",
            "message": message(&self.failure.sentence),
            "locations": self.failure.spot.iter().filter_map(location).collect::<Vec<_>>(),
        });
        if !flow.is_empty() {
            result["codeFlows"] = json!([{ "threadFlows": [{ "locations": flow }] }]);
        }
        let suspects = self.suspects.iter().enumerate().filter_map(|(n, s)| {
            let text = format!("place {} to look at: {}", n + 1, s.reasons.join("; "));
            Some(json!({
                "ruleId": "why/suspect",
                "level": "note",
                "rank": (100.0 - 10.0 * n as f64).max(0.0),
                "message": message(&text),
                "locations": [location(&s.spot)?],
            }))
        });
        let misuses = self.memory.iter().filter_map(|misused| {
            let [used, call] = misused.kind.words();
            let related = location(&misused.call).map(|mut related| {
                related["message"] = message(&format!("{call} here"));
                related
            });
            Some(json!({
                "ruleId": "why/memory",
                "level": "error",
                "message": message(used),
                "locations": [location(&misused.spot)?],
                "relatedLocations": related.into_iter().collect::<Vec<_>>(),
            }))
        });
        let results: Vec<Value> = std::iter::once(result).chain(misuses).chain(suspects).collect();
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": {
                    "name": "whydunit",
                    "rules": [
                        { "id": "why/failure", "shortDescription": { "text": "The run failed" } },
                        { "id": "why/memory", "shortDescription": { "text": "A wrong use of the heap" } },
                        { "id": "why/suspect", "shortDescription": { "text": "A place to look at" } },
                    ],
                }},
                "results": results,
            }],
        })
    }
}

/// As a script has it.
fn scripted(data: &impl serde::Serialize) -> String {
    let json = serde_json::to_string(data).unwrap_or_default();
    // Nothing in the data may end the script it stands in.
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028")
}

fn location(spot: &Spot) -> Option<Value> {
    let (file, line) = (spot.file.as_ref()?, spot.line?);
    let uri = match file.strip_prefix('/') {
        Some(_) => format!("file://{}", encoded(file)),
        None => encoded(file),
    };
    Some(json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri },
            "region": { "startLine": line.max(1) },
        },
        "message": message(&spot_text(spot)),
    }))
}

/// A text as a message. Braces stand for arguments there unless they are doubled, and
/// brackets before parentheses are a link.
fn message(text: &str) -> Value {
    let text = text.replace('{', "{{").replace('}', "}}").replace("](", "] (");
    json!({ "text": text })
}

/// A path as part of an address.
fn encoded(path: &str) -> String {
    let mut out = String::new();
    for b in path.bytes() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                out.push(b.into());
            }
            b => out += &format!("%{b:02X}"),
        }
    }
    out
}

fn spot_text(spot: &Spot) -> String {
    let values: Vec<String> =
        spot.values.iter().map(|v| format!("{} = {}", v.name, v.value)).collect();
    let seen = if values.is_empty() { String::new() } else { format!(" ({})", values.join(", ")) };
    format!("{}{seen}", spot.name())
}

fn spot_line(spot: &Spot) -> String {
    let code = spot.code.as_deref().map(|c| Style::cut(&c.replace('`', "'"), 100));
    let code = code.map(|c| format!(" `{c}`")).unwrap_or_default();
    let values: Vec<String> = spot
        .values
        .iter()
        .map(|v| format!("`{} = {}`", v.name.replace('`', "'"), v.value.replace('`', "'")))
        .collect();
    let seen =
        if values.is_empty() { String::new() } else { format!(" with {}", values.join(", ")) };
    format!("**{}**{code}{seen}", spot.name())
}

fn escaped(text: &str) -> String {
    text.replace('<', "&lt;").replace('*', "\\*").replace('_', "\\_")
}
