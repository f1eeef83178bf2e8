//! Slices that are kept.

use crate::answers::SUM;
use crate::support::{Bench, O0, lines_of};

/// F-001-05, F-001-41: kept slices are listed, load in another process, and can be
/// removed.
#[test]
fn a_kept_slice_is_listed_shown_and_removed() {
    let bench = Bench::ran("f.c", SUM, O0, &[]);
    assert_eq!(bench.text(&["slices"]), "");
    let slice = bench.json(&["slice", "f.c:18", "--save", "first"]);
    bench.text(&["slice", "f.c:7", "--forward", "--save", "second"]);
    let list = bench.json(&["slices"]);
    let names: Vec<&str> =
        list.as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["first", "second"]);
    assert_eq!((&list[1]["kind"], &list[1]["criterion"]), (&"forward".into(), &"f.c:7".into()));
    assert!(bench.text(&["slices"]).starts_with("first            f.c:18 "));
    let again = bench.json(&["slices", "--show", "first"]);
    assert_eq!(again, slice);
    assert_eq!(lines_of(&again), [6, 7, 8, 12, 14, 15, 16, 17, 18]);
    assert_eq!(bench.text(&["slices", "--show", "first"]), bench.text(&["slice", "f.c:18"]));
    bench.text(&["slices", "--remove", "first"]);
    assert_eq!(bench.json(&["slices"]).as_array().unwrap().len(), 1);
    assert!(bench.refusal(&["slices", "--show", "first"], 2).contains("no slice called first"));
    assert!(bench.refusal(&["slices", "--remove", "first"], 2).contains("no slice called first"));
    assert!(bench.refusal(&["slice", "exit", "--save", "a/b"], 2).contains("name"));
}
