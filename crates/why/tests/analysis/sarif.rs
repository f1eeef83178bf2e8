//! `why explain --sarif`: what the standard demands of SARIF 2.1.0.

use serde_json::Value;

use crate::promises::complaint;
use crate::support::Bench;

/// Fails in a file whose name an address must not have as it is; its text has what means
/// something else in a message.
const BRACES: &str = r#"#include <assert.h>
struct pair { int a, b; };
static int take(const char *text, struct pair *pair) {
    assert(text[pair->a] != '{' && "{0} [see](1)");
    return pair->b;
}
int main(int argc, char **argv) {
    struct pair pair = { argc - 1, 2 };
    return take("{}", &pair) + argv[0][0];
}
"#;

fn sarif() -> Value {
    let bench = Bench::new("a b%c.c", BRACES);
    bench.compile(&["-g", "-O0"]);
    assert_eq!(bench.record(&[], ""), 134);
    let text = bench.ask(&["explain", "-q", "--sarif", "-o", "story.sarif"]);
    assert_eq!(text.status, 0, "{}", text.err);
    serde_json::from_slice(&std::fs::read(bench.path("story.sarif")).unwrap()).expect("JSON")
}

/// All values of a key, however deep.
fn all<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(name, member)| {
            if name == key {
                found.push(member);
            }
            all(member, key, found);
        }),
        Value::Array(items) => items.iter().for_each(|item| all(item, key, found)),
        _ => {}
    }
}

fn texts(value: &Value, key: &str) -> Vec<String> {
    let mut found = Vec::new();
    all(value, key, &mut found);
    found.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect()
}

#[test]
fn every_object_has_what_the_standard_requires_and_nothing_it_does_not_know() {
    let schema = include_str!("../support/sarif.schema.json");
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    let sarif = sarif();
    assert_eq!(complaint(&schema, &sarif), None);
    let results = sarif["runs"][0]["results"].as_array().expect("results");
    assert!(results.len() > 1, "{results:?}");
    assert!(results.iter().all(|r| !r["locations"].as_array().unwrap().is_empty()), "{results:?}");
    let flows = &results[0]["codeFlows"][0]["threadFlows"][0]["locations"];
    assert!(!flows.as_array().expect("steps").is_empty());
    let ranks = results.iter().filter_map(|r| r["rank"].as_f64());
    assert!(ranks.clone().count() > 0 && ranks.clone().all(|n| n <= 100.0));
}

#[test]
fn every_result_names_a_rule_that_the_tool_describes() {
    let sarif = sarif();
    let rules = texts(&sarif["runs"][0]["tool"]["driver"]["rules"], "id");
    let named = texts(&sarif["runs"][0]["results"], "ruleId");
    assert!(!named.is_empty() && named.iter().all(|id| rules.contains(id)), "{named:?} {rules:?}");
}

#[test]
fn messages_have_no_arguments_and_no_links_by_chance() {
    let texts = texts(&sarif(), "text");
    assert!(texts.iter().any(|t| t.contains("{{0}}")), "{texts:#?}");
    for text in texts {
        let left = text.replace("{{", "").replace("}}", "");
        assert!(!left.contains(['{', '}']) && !text.contains("]("), "{text}");
    }
}

#[test]
fn addresses_of_files_have_no_forbidden_characters() {
    let uris = texts(&sarif(), "uri");
    assert!(uris.iter().any(|uri| uri.ends_with("/a%20b%25c.c")), "{uris:?}");
    assert!(uris.iter().all(|uri| uri.starts_with("file:///") && !uri.contains(' ')), "{uris:?}");
}
