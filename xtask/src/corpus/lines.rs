//! Do the lines that a manifest names exist, and does the fix change them?

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::manifest::{Fault, Faulty, Place};
use super::patch::{self, FilePatch, Touch};

/// What is wrong with the lines of a manifest; empty if nothing is.
pub fn complaints(program: &Faulty) -> Result<Vec<String>> {
    let patches = patch::read(program)?;
    let manifest = &program.manifest;
    let mut complaints = Vec::new();
    let faults = manifest.faults.iter().flat_map(|fault| fault.lines.iter().chain(&fault.also));
    for place in faults.chain(manifest.chain.iter().flat_map(|chain| &chain.lines)) {
        if !exists(&program.folder, place)? {
            complaints.push(format!("there is no line {place}"));
        }
    }
    for fault in &manifest.faults {
        complaints.extend(untouched(fault, &patches));
    }
    complaints.extend(undeclared(&manifest.faults, &patches));
    Ok(complaints)
}

/// Whether the file has that line and it is not empty.
fn exists(folder: &Path, place: &Place) -> Result<bool> {
    let path = folder.join(&place.file);
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.lines().nth(place.line - 1).is_some())
}

/// Faulty lines must go in the fix; next to marked neighbours something must come.
fn untouched(fault: &Fault, patches: &[FilePatch]) -> Option<String> {
    let untouched = fault.lines.iter().find(|place| {
        let touches = patch::of(patches, &place.file).map(FilePatch::touches).unwrap_or_default();
        !touches.iter().any(|touch| touch_fits(*touch, fault, place.line))
    })?;
    Some(format!("the fix does not touch {untouched}"))
}

/// Every hunk of the fix must belong to a fault, or the manifest does not tell all.
fn undeclared(faults: &[Fault], patches: &[FilePatch]) -> Vec<String> {
    let mut complaints = Vec::new();
    for patch in patches {
        for hunk in &patch.hunks {
            let declared = hunk.touches().iter().any(|touch| {
                faults.iter().any(|fault| {
                    let own = |place: &&Place| place.file == patch.file;
                    let near = |line| touch_fits(*touch, fault, line) || touch.adds_next_to(line);
                    fault.lines.iter().filter(own).any(|p| touch_fits(*touch, fault, p.line))
                        || fault.also.iter().filter(own).any(|p| near(p.line))
                })
            });
            if !declared {
                let file = patch.file.display();
                complaints.push(format!("no fault explains the hunk at {file}:{}", hunk.start));
            }
        }
    }
    complaints
}

fn touch_fits(touch: Touch, fault: &Fault, line: usize) -> bool {
    if fault.missing { touch.adds_next_to(line) } else { touch.removes(line) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(lines: &[&str], missing: bool) -> Fault {
        let lines = lines.iter().map(|line| line.parse().unwrap()).collect();
        Fault { kind: "omission".into(), lines, missing, also: Vec::new(), note: String::new() }
    }

    fn added_after_two() -> Vec<FilePatch> {
        patch::parse("--- a/n.c\n+++ b/n.c\n@@ -2,2 +2,3 @@\n two\n+new\n three\n").unwrap()
    }

    #[test]
    fn neighbours_of_missing_code_must_be_where_the_fix_adds() {
        let patches = added_after_two();
        assert_eq!(untouched(&fault(&["n.c:2", "n.c:3"], true), &patches), None);
        assert!(untouched(&fault(&["n.c:4"], true), &patches).is_some());
    }

    #[test]
    fn a_faulty_line_must_itself_change() {
        assert!(untouched(&fault(&["n.c:2"], false), &added_after_two()).is_some());
    }

    #[test]
    fn a_hunk_without_a_fault_is_reported() {
        let patches = added_after_two();
        assert!(undeclared(&[fault(&["n.c:2"], true)], &patches).is_empty());
        assert_eq!(undeclared(&[fault(&["n.c:9"], true)], &patches).len(), 1);
    }
}
