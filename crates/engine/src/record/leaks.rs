//! LeakSanitizer stops its own program with `ptrace`, from a process that shares its
//! memory, to look for leaks. Neither can be recorded; without them it ends the program
//! with an error. So the search is switched off, by the option that it has for that.

use crate::guest::image::Headers;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// What the recording says was switched off.
pub const LEAK_CHECKING: &str = "leak checking";

const VARIABLE: &[u8] = b"LSAN_OPTIONS=";
const OPTION: &[u8] = b"detect_leaks=0";

/// Libraries with LeakSanitizer in them, and how their functions begin that a program
/// has when they are linked into it.
const MARKS: [&[u8]; 5] =
    [b"libasan.so", b"liblsan.so", b"libclang_rt.asan", b"libclang_rt.lsan", b"__lsan_"];

/// Does a program look for leaks when it ends? Only its dynamic strings are read: a
/// compiler is a large file, and a build executes it often.
pub fn has_leak_checker(headers: &Headers, file: &File) -> bool {
    let size = file.metadata().map_or(0, |about| about.len());
    let part = |offset: u64, len: u64| {
        let end = offset.checked_add(len).filter(|end| *end <= size)?;
        let mut bytes = vec![0; (end - offset) as usize];
        file.read_exact_at(&mut bytes, offset).ok().map(|()| bytes)
    };
    let names = headers.dynamic_names(part).unwrap_or_default();
    MARKS.iter().any(|mark| contains(&names, mark))
}

/// Switches it off in the environment of such a program, or of any that loads it first.
/// True if it did.
pub fn switch_off(has_leak_checker: bool, env: &mut Vec<Vec<u8>>) -> bool {
    let preloaded = |entry: &Vec<u8>| {
        entry.starts_with(b"LD_PRELOAD=") && MARKS.iter().any(|mark| contains(entry, mark))
    };
    if !has_leak_checker && !env.iter().any(preloaded) {
        return false;
    }
    match env.iter_mut().find(|entry| entry.starts_with(VARIABLE)) {
        // What comes last counts.
        Some(entry) if entry.ends_with(OPTION) => {}
        Some(entry) => {
            entry.push(b':');
            entry.extend(OPTION);
        }
        None => env.push([VARIABLE, OPTION].concat()),
    }
    true
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(texts: &[&str]) -> Vec<Vec<u8>> {
        texts.iter().map(|text| text.as_bytes().to_vec()).collect()
    }

    #[test]
    fn programs_without_it_keep_their_environment() {
        let mut env = entries(&["A=1", "LD_PRELOAD=libother.so"]);
        assert!(!switch_off(false, &mut env));
        assert_eq!(env, entries(&["A=1", "LD_PRELOAD=libother.so"]));
    }

    #[test]
    fn options_of_the_user_are_kept_and_ours_comes_last_and_once() {
        let mut env = entries(&["LSAN_OPTIONS=detect_leaks=1:verbosity=0"]);
        for _ in 0..2 {
            assert!(switch_off(true, &mut env));
            assert_eq!(env, entries(&["LSAN_OPTIONS=detect_leaks=1:verbosity=0:detect_leaks=0"]));
        }
    }

    #[test]
    fn a_program_that_loads_it_first_has_it_too() {
        let mut env = entries(&["LD_PRELOAD=/usr/lib/libasan.so.8"]);
        assert!(switch_off(false, &mut env));
        assert_eq!(env[1], b"LSAN_OPTIONS=detect_leaks=0");
    }

    #[test]
    fn this_program_has_none() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        let file = File::open("/proc/self/exe").unwrap();
        assert!(!has_leak_checker(&Headers::parse(&bytes).unwrap(), &file));
    }
}
