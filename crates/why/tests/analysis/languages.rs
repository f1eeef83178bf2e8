//! C++ and Rust, at their own words.

use crate::support::{Bench, lines_of};

const CPP: &str = r#"#include <cstdio>
#include <string>
#include <vector>

namespace store {
struct Item { std::string name; int price; };

int total(const std::vector<Item> &items) {
    int sum = 0;
    for (const Item &item : items)
        sum += item.price;
    return sum;
}
}

int main() {
    std::vector<store::Item> items;
    items.push_back({"pen", 3});
    items.push_back({"ink", 4});
    int unrelated = 9;
    std::printf("%d\n", store::total(items));
    return unrelated - 9;
}
"#;

#[test]
fn functions_of_cpp_have_their_names() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        for level in ["-O0", "-O2"] {
            let bench = Bench::ran("v.cpp", CPP, &[version, level], &[]);
            let slice = bench.json(&["slice"]);
            let lines = lines_of(&slice);
            assert!(lines.contains(&21) && !lines.contains(&20), "{version} {level}: {lines:?}");
            if level == "-O0" {
                assert!(lines.contains(&11) && lines.contains(&18), "{version}: {lines:?}");
                let names: Vec<&str> = slice["lines"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter_map(|l| l["function"].as_str())
                    .collect();
                assert!(names.iter().any(|n| n.starts_with("store::total")), "{names:?}");
                let value = bench.json(&["values", "v.cpp:11", "sum"]);
                assert_eq!(value["shown"][1]["values"][0]["value"], "7");
            }
        }
    }
}

const RUST: &str = r#"struct Item {
    name: &'static str,
    price: u32,
}

fn total(items: &[Item]) -> u32 {
    let mut sum = 0;
    for item in items {
        sum += item.price;
    }
    sum
}

fn main() {
    let items = [Item { name: "pen", price: 3 }, Item { name: "ink", price: 4 }];
    let unrelated = items[0].name.len();
    println!("{}", total(&items));
    std::process::exit(unrelated as i32 - 3);
}
"#;

#[test]
fn a_rust_program_is_sliced_and_its_values_shown() {
    for version in ["4", "5"] {
        let bench = Bench::new("v.rs", RUST);
        bench.compile(&["-g", "-C", &format!("dwarf-version={version}")]);
        assert_eq!(bench.record(&[], ""), 0);
        let lines = bench.lines(&["slice", "v.rs:9"]);
        assert!(lines.contains(&9) && lines.contains(&15), "{lines:?}");
        assert!(!lines.contains(&16), "{lines:?}");
        let value = bench.json(&["values", "v.rs:9", "sum"]);
        let last = value["shown"].as_array().unwrap().last().unwrap();
        assert_eq!(last["values"][0]["value"], "7");
        let entry = bench.json(&["slice", "v::total#1"]);
        assert_eq!(entry["lines"][0]["function"], "v::total");
    }
}

const CLOSURES: &str = r#"use std::collections::HashMap;
fn ready(deps: &[String], idx: &HashMap<String, usize>, done: &[bool]) -> bool {
    deps.iter().all(|d| {
        let k = *idx.get(d).unwrap();
        done[k]
    })
}
fn twice<T: Clone + Into<u64>>(x: &T) -> u64 {
    let y: u64 = x.clone().into();
    y * 2
}
fn main() {
    let names = ["a", "b", "c"].map(String::from);
    let idx: HashMap<String, usize> = names.iter().cloned().zip(0..).collect();
    println!("{}", ready(&names, &idx, &[true, true, true]));
    println!("{}", twice(&1u8) + twice(&2u16) + twice(&3u8));
}
"#;

/// Every position that is shown can be given back, and means the same: what is inlined from a
/// library belongs to its line, and copies of a generic function are counted together.
#[test]
fn positions_mean_the_same_when_they_are_given_back() {
    let bench = Bench::new("closures.rs", CLOSURES);
    bench.compile(&["-g"]);
    bench.record(&[], "");
    for line in ["closures.rs:4", "closures.rs:9"] {
        let values = bench.json(&["values", line]);
        let seen = values["shown"].as_array().unwrap().iter();
        let seen: Vec<&str> = seen.map(|s| s["position"].as_str().unwrap()).collect();
        assert_eq!(seen.len(), 3, "{seen:?}");
        for position in seen {
            assert_eq!(bench.json(&["deps", position])["position"], position);
        }
    }
}
