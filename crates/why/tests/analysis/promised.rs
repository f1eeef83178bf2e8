//! What the analysis verbs print with `--json` is what `docs/json/` promises.

use crate::answers::SUM;
use crate::promises::{complaint, schema};
use crate::rows::THREADS;
use crate::support::{Bench, O0};

#[test]
fn every_answer_keeps_its_promise() {
    let bench = Bench::ran("f.c", SUM, O0, &["x"]);
    bench.text(&["slice", "f.c:18", "--save", "kept"]);
    for (name, words) in [
        ("slice", &["slice"][..]),
        ("slice", &["slice", "f.c:7", "--forward"]),
        ("slice", &["slice", "f.c:19", "--relevant"]),
        ("slice", &["chop", "f.c:7#4", "f.c:19"]),
        ("slice", &["slices", "--show", "kept"]),
        ("slices", &["slices"]),
        ("deps", &["deps", "f.c:18#2"]),
        ("deps", &["deps"]),
        ("values", &["values", "f.c:18"]),
        ("path", &["path"]),
        ("last-write", &["last-write", "total", "--before", "f.c:19"]),
        ("trace", &["trace"]),
    ] {
        assert_eq!(complaint(&schema(name), &bench.json(words)), None, "{words:?}");
    }
}

#[test]
fn threads_and_stripped_programs_keep_it_too() {
    let threads = Bench::ran("t.c", THREADS, &["-g", "-O0", "-pthread"], &[]);
    let stripped = Bench::ran("f.c", SUM, &["-O0", "-s"], &[]);
    for bench in [&threads, &stripped] {
        for name in ["slice", "deps", "path", "trace"] {
            assert_eq!(complaint(&schema(name), &bench.json(&[name])), None, "{name}");
        }
    }
}

#[test]
fn what_was_not_promised_is_noticed() {
    let bench = Bench::ran("f.c", SUM, O0, &[]);
    let (schema, mut slice) = (schema("slice"), bench.json(&["slice"]));
    slice["lines"][0]["nobody_promised_this"] = 1.into();
    assert!(complaint(&schema, &slice).is_some());
    slice["lines"][0].as_object_mut().unwrap().remove("nobody_promised_this");
    assert_eq!(complaint(&schema, &slice), None);
    slice["lines"][0].as_object_mut().unwrap().remove("distance");
    assert!(complaint(&schema, &slice).is_some());
}
