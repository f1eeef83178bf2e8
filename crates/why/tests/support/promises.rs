//! The part of JSON Schema that our schemas use.

use std::path::PathBuf;

use serde_json::{Map, Value};

/// A schema of `docs/json/`.
pub fn schema(name: &str) -> Value {
    let docs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/json");
    let text = std::fs::read(docs.join(format!("{name}.schema.json"))).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// What is wrong with `value`, if anything; knows the part of JSON Schema that our schemas use.
pub fn complaint(schema: &Value, value: &Value) -> Option<String> {
    Checker { root: schema }.check(schema, value).err()
}

struct Checker<'a> {
    root: &'a Value,
}

impl Checker<'_> {
    fn check(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let rules = schema.as_object().expect("a schema is an object");
        for (rule, wanted) in rules {
            let kept = match rule.as_str() {
                "$schema" | "$defs" | "title" | "description" => true,
                "$ref" => return self.check(self.definition(wanted), value),
                "type" => has_type(value, wanted),
                "const" => value == wanted,
                "enum" => wanted.as_array().expect("a list").contains(value),
                "minimum" => value.as_f64().is_none_or(|n| n >= wanted.as_f64().unwrap()),
                "anyOf" => {
                    let choices = wanted.as_array().expect("a list");
                    choices.iter().any(|choice| self.check(choice, value).is_ok())
                }
                "required" => {
                    let keys = wanted.as_array().expect("a list");
                    keys.iter().all(|key| value.get(key.as_str().unwrap()).is_some())
                }
                "items" => {
                    let items = value.as_array().map_or(&[][..], Vec::as_slice);
                    items.iter().try_for_each(|item| self.check(wanted, item))?;
                    true
                }
                "properties" | "additionalProperties" => {
                    let members = value.as_object().into_iter().flatten();
                    members
                        .filter(|(key, _)| named(rules, key) == (rule == "properties"))
                        .try_for_each(|(key, member)| self.member(wanted, rule, key, member))?;
                    true
                }
                other => panic!("this check does not know the rule {other:?}"),
            };
            if !kept {
                return Err(format!("{value} breaks {rule}: {wanted}"));
            }
        }
        Ok(())
    }

    fn member(&self, wanted: &Value, rule: &str, key: &str, value: &Value) -> Result<(), String> {
        match wanted {
            Value::Bool(false) => Err(format!("nobody promised {key:?}")),
            _ if rule == "properties" => self.check(&wanted[key], value),
            _ => self.check(wanted, value),
        }
    }

    fn definition(&self, reference: &Value) -> &Value {
        let path = reference.as_str().and_then(|path| path.strip_prefix('#'));
        path.and_then(|path| self.root.pointer(path)).expect("a definition")
    }
}

/// Whether a schema has a property of that name.
fn named(rules: &Map<String, Value>, key: &str) -> bool {
    rules.get("properties").is_some_and(|properties| properties.get(key).is_some())
}

fn has_type(value: &Value, wanted: &Value) -> bool {
    let is = |name: &Value| match name.as_str().expect("a type is a word") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("there is no type {other:?}"),
    };
    match wanted {
        Value::Array(names) => names.iter().any(is),
        name => is(name),
    }
}
