//! `docs/limits.md`: what is not done. The lists in it are the code's own.

use std::collections::BTreeMap;
use std::fmt::Write;

use mishap::Mishap;

use super::cell;

/// The whole page.
pub fn page() -> String {
    let programs = both::<engine::ImageError, engine::NotExecutable>();
    let refused: Vec<String> = engine::refused_calls().map(|name| format!("`{name}`")).collect();
    include_str!("limits.md")
        .replace("{features}", &wrapped(&engine::needed_features().join(", "), "  "))
        .replace("{programs}", &programs)
        .replace("{refusals}", &table(&reasons::<engine::Refusal>()))
        .replace("{refused}", &refused.join(", "))
        .replace("{missing}", &missing())
}

/// Lines of at most 85 characters, the later ones indented.
fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is a first line");
        if last.is_empty() {
            last.push_str(word);
        } else if indent.len() + last.len() + word.len() < 84 {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join(&format!("\n{indent}"))
}

fn reasons<E: Mishap>() -> Vec<(String, &'static str)> {
    E::every().into_iter().map(|(error, advice)| (error.to_string(), advice.cause)).collect()
}

fn both<A: Mishap, B: Mishap>() -> String {
    let mut all = reasons::<A>();
    all.extend(reasons::<B>());
    table(&all)
}

fn table(rows: &[(String, &'static str)]) -> String {
    let mut text = "| what is said | why |\n| --- | --- |\n".to_owned();
    for (said, why) in rows {
        let _ = writeln!(text, "| {} | {} |", cell(said), cell(why));
    }
    text
}

/// Calls that are not offered, by reason.
fn missing() -> String {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, why) in engine::missing_calls() {
        by_reason.entry(why).or_default().push(name);
    }
    let mut text = "| calls | why |\n| --- | --- |\n".to_owned();
    for (why, mut names) in by_reason {
        names.sort_unstable();
        let _ = writeln!(text, "| {} | {} |", names.join(", "), cell(why));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_the_page_are_filled_in() {
        let page = page();
        for word in ["{features}", "{programs}", "{refusals}", "{refused}", "{missing}"] {
            assert!(!page.contains(word), "{word} is left");
        }
        for word in ["AVX2", "setuid", "`ptrace`", "io_uring_setup", "64-bit x86"] {
            assert!(page.contains(word), "no {word}");
        }
    }

    #[test]
    fn every_call_that_is_not_offered_is_on_the_page() {
        let page = page();
        let performed = "not offered: ENOSYS";
        for (_, name, how) in engine::system_calls() {
            assert!(how != performed || page.contains(name), "no {name}");
        }
    }
}
