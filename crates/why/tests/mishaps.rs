//! What users are told when a run cannot be recorded to its end, when they press ^C, and when
//! there is much to tell.

#[path = "support/place.rs"]
mod place;

use place::{Place, text};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const INTERRUPTED: i32 = 130;

fn assert_fits(shown: &str) {
    for line in shown.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
}

#[test]
fn info_fits_80_columns_and_loses_nothing() {
    let place = Place::new();
    let long = format!("/{}", "a-long-name/".repeat(20));
    let script = format!("/bin/sh -c 'true {long}; (/bin/echo {long}; /bin/true x y z); exit 3'");
    let recorded = place.why(&["record", "-q", "-o", "rec", "/bin/sh", "-c", &script]);
    assert_eq!(recorded.status.code(), Some(3), "{}", text(&recorded.stderr));
    let shown = text(&place.why(&["info", "rec"]).stdout);
    assert_fits(&shown);
    let whole: String = shown.split_whitespace().collect();
    assert!(whole.contains(&long), "{shown}");
    let json = text(&place.why(&["info", "rec", "--json"]).stdout);
    assert!(json.contains(&long));
}

const TRACED: &str = "#include <stdio.h>
#include <sys/ptrace.h>
int main(void) { puts(\"before\"); fflush(stdout); return ptrace(PTRACE_TRACEME, 0, 0, 0); }
";

#[test]
fn a_replay_of_a_refused_run_says_what_was_refused() {
    let place = Place::new();
    place.compile("traced", TRACED, &[]);
    let reason = "the program uses ptrace, which cannot be replayed";
    let recorded = place.why(&["record", "-o", "rec", "./traced"]);
    assert_eq!(recorded.status.code(), Some(125));
    assert!(text(&recorded.stderr).contains(reason), "{}", text(&recorded.stderr));
    let replayed = place.why(&["replay", "rec"]);
    assert_eq!((text(&replayed.stdout).as_str(), replayed.status.code()), ("before\n", Some(125)));
    let said = text(&replayed.stderr);
    assert_eq!(said, format!("why: the recording breaks off here: {reason}\n"));
    let info = text(&place.why(&["info", "rec"]).stdout);
    let one_line = info.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line.contains(&format!("recording stopped, since {reason}")), "{info}");
    let info = place.why(&["info", "rec", "--json"]);
    let info: serde_json::Value = serde_json::from_slice(&info.stdout).expect("JSON");
    assert_eq!(info["stopped"], reason);
}

const TALKS: &str = "#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
  char bytes[4096];
  for (int i = 0; i < 4000; i++) {
    int n = 0; FILE *f = fopen(\"/dev/urandom\", \"r\");
    if (!f) return 1;
    n = fread(bytes, 1, sizeof bytes, f); fclose(f);
    printf(\"%d %d\\n\", i, n);
  }
  return 0;
}
";

#[test]
fn a_replay_of_a_run_that_grew_too_large_says_so() {
    let place = Place::new();
    place.compile("talks", TALKS, &[]);
    let recorded = place.why(&["record", "--max-size", "6M", "-o", "rec", "./talks"]);
    assert_eq!(recorded.status.code(), Some(125), "{}", text(&recorded.stderr));
    let said = text(&place.why(&["replay", "rec"]).stderr);
    assert!(said.contains("breaks off here: the recording reached its limit"), "{said}");
}

/// A file system of a few megabytes, seen by what runs in it alone.
fn on_a_small_disk(place: &Place, script: &str) -> Output {
    let is_root = text(&Command::new("id").arg("-u").output().expect("id").stdout) == "0\n";
    let namespaces = if is_root { "-m" } else { "-rm" };
    let script = format!("set -e; mount -t tmpfs -o size=8m why small; {script}");
    let mut command = Command::new("unshare");
    command.args([namespaces, "sh", "-c", &script]).current_dir(place.folder());
    command.env("WHY", env!("CARGO_BIN_EXE_why")).env("WHY_DIR", place.path("small/home"));
    command.stdin(Stdio::null()).output().expect("unshare runs")
}

#[test]
fn a_replay_of_a_run_that_filled_the_disk_says_so() {
    let place = Place::new();
    place.compile("talks", TALKS, &["-static"]);
    fs::create_dir(place.path("small")).expect("a folder");
    let script = "\"$WHY\" record -o small/rec ./talks > recorded || echo $? > status; \
                  \"$WHY\" replay small/rec > replayed";
    let said = text(&on_a_small_disk(&place, script).stderr);
    let read = |name: &str| fs::read_to_string(place.path(name)).expect(name);
    assert_eq!(read("status"), "125\n", "{said}");
    let (recorded, replayed) = (read("recorded"), read("replayed"));
    assert!(recorded.starts_with(&replayed) && replayed.len() > 100, "{said}");
    let told = said.lines().filter(|line| line.contains("no space is left")).count();
    assert_eq!(told, 2, "{said}");
    assert!(said.contains("the recording breaks off here: no space is left"), "{said}");
}

/// Runs `why` and presses ^C after a while: so late that it is at work, so early that it is
/// not done.
fn interrupted(place: &Place, arguments: &[&str], clean: &dyn Fn()) -> Output {
    for delay in [0.1, 0.3, 0.05, 0.6, 0.02, 1.0, 0.2, 1.5] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_why"));
        command.args(arguments).env("WHY_DIR", place.path("home")).current_dir(place.folder());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("why runs");
        std::thread::sleep(Duration::from_secs_f64(delay));
        let pid = child.id().to_string();
        let _ = Command::new("kill").args(["-INT", &pid]).stderr(Stdio::null()).status();
        let output = child.wait_with_output().expect("ends");
        if output.status.code() == Some(INTERRUPTED) {
            return output;
        }
        assert!(
            matches!(output.status.code(), None | Some(0)),
            "{:?}: {}",
            output.status,
            text(&output.stderr)
        );
        clean();
    }
    panic!("{arguments:?} was never interrupted while at work");
}

fn names(place: &Place) -> BTreeSet<String> {
    folders(place.folder())
}

/// What is in a folder, but for locks; nothing if there is none.
fn folders(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| !name.starts_with('.')).collect()
}

#[test]
fn packing_and_unpacking_end_at_once_and_leave_nothing() {
    let place = Place::new();
    let noise = Command::new("head").args(["-c", "60000000", "/dev/urandom"]).output();
    fs::write(place.path("noise"), noise.expect("head runs").stdout).expect("writes");
    place.why(&["record", "-q", "-o", "rec", "/usr/bin/wc", "-c", "noise"]);
    let before = names(&place);
    let pack = interrupted(&place, &["pack", "rec", "-o", "rec.why"], &|| {
        let _ = fs::remove_file(place.path("rec.why"));
    });
    assert_eq!(text(&pack.stderr), "why: interrupted; nothing was written\n");
    assert_eq!(names(&place), before);

    assert_eq!(place.why(&["pack", "-q", "rec", "-o", "rec.why"]).status.code(), Some(0));
    let before = names(&place);
    let unpack = interrupted(&place, &["unpack", "rec.why", "-o", "new"], &|| {
        let _ = fs::remove_dir_all(place.path("new"));
    });
    assert_eq!(text(&unpack.stderr), "why: interrupted; nothing was written\n");
    assert_eq!(names(&place), before);
    // One that was done before it could be interrupted is taken away again.
    let numbered = || folders(&place.path("home/recordings"));
    let before = numbered();
    let unpack = interrupted(&place, &["unpack", "rec.why"], &|| {
        for name in numbered().difference(&before) {
            place.why(&["remove", "-q", name]);
        }
    });
    assert_eq!(text(&unpack.stderr), "why: interrupted; nothing was written\n");
    assert_eq!(numbered(), before);
    let home = fs::read_dir(place.path("home")).expect("a home").flatten();
    let left: Vec<_> =
        home.filter(|e| e.file_name().to_string_lossy().contains("unpacking")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_replay_ends_at_once_with_all_its_processes() {
    let place = Place::new();
    let busy = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
    place.why(&["record", "-q", "-o", "one", "/bin/sh", "-c", busy]);
    let tree = format!("({busy}) & ({busy}); wait");
    place.why(&["record", "-q", "-o", "tree", "/bin/sh", "-c", &tree]);
    for recording in ["one", "tree"] {
        let path = place.path(recording).display().to_string();
        let replay = interrupted(&place, &["replay", &path], &|| {});
        assert_eq!(text(&replay.stderr), "why: interrupted; the recording is as it was\n");
        let left = || {
            let found = Command::new("pgrep").args(["-f", &format!("replay {path}")]).output();
            text(&found.expect("pgrep runs").stdout)
        };
        // Those that are told to end need a moment.
        let gone = (0..50).any(|_| {
            std::thread::sleep(Duration::from_millis(100));
            left().is_empty()
        });
        assert!(gone, "{}", left());
        assert_eq!(place.why(&["replay", recording]).status.code(), Some(0));
    }
}

/// Runs `why` as somebody who is not root.
fn as_user(place: &Place, arguments: &[&str]) -> Output {
    let open = fs::Permissions::from_mode(0o777);
    fs::set_permissions(place.folder(), open).expect("sets");
    let why = place.path("why");
    if !why.exists() {
        fs::copy(env!("CARGO_BIN_EXE_why"), &why).expect("copies");
    }
    let is_root = text(&Command::new("id").arg("-u").output().expect("id").stdout) == "0\n";
    let mut command = if is_root {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&why);
        command
    } else {
        Command::new(&why)
    };
    command.args(arguments).current_dir(place.folder()).env("WHY_DIR", place.path("home"));
    command.stdin(Stdio::null()).output().expect("why runs")
}

#[test]
fn setuid_programs_are_refused_by_name_to_those_who_would_gain_by_them() {
    let place = Place::new();
    let refused = as_user(&place, &["record", "-o", "rec", "/usr/bin/su", "--version"]);
    assert_eq!(refused.status.code(), Some(126));
    let said = text(&refused.stderr);
    assert!(said.contains("/usr/bin/su") && said.contains("it is setuid or setgid"), "{said}");

    let script = "exec /usr/bin/su --version";
    let tried = as_user(&place, &["record", "-q", "-o", "rec", "/bin/sh", "-c", script]);
    assert_eq!(tried.status.code(), Some(126), "{}", text(&tried.stderr));
    let info = as_user(&place, &["info", "rec"]);
    let info = text(&info.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(info.contains("execve of the setuid /usr/bin/su"), "{info}");
    assert_eq!(as_user(&place, &["replay", "rec"]).status.code(), Some(126));
}
