//! Children of altered runs: whose outcome is known, and whose is not.

use crate::lab::Lab;
use crate::rows::verdict;

// A child that was begun before the change and that the run cannot reach ends as it did then;
// a new one that writes something ends the trial.
#[test]
fn a_child_that_is_not_touched_keeps_its_outcome() {
    let source = r#"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int pid = fork();
    if (pid == 0)
        _exit(3);
    int x = 1, status = 0;
    if (argc > 1)
        x = 2;
    waitpid(pid, &status, 0);
    if (argc > 2)
        fork();
    printf("%d %d\n", x, WEXITSTATUS(status));
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    assert_eq!(verdict(&lab, &["switch", "prog.c:10", "--expect-text", "2 3\\n"]), "passed");
    assert_eq!(verdict(&lab, &["switch", "prog.c:13"]), "needs-child");
}

/// Begins a child, by whatever `BEGIN` says, after a branch that may be switched.
const LATER: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int x = 1, status = 0;
    const char *command = "exit 3";
    if (argc > 1)
        x = 2;
    if (argc > 2)
        command = "exit 4";
    if (argc > 3)
        creat("new", 0644);
    if (argc > 4)
        setenv("WHO", "me", 1);
#ifdef SPAWNED
    status = system(command);
#else
    int pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)0);
        _exit(127);
    }
    waitpid(pid, &status, 0);
#endif
    printf("%d %d\n", x, WEXITSTATUS(status));
    return 0;
}
"#;

// The child is begun after the change: it executes the same program with the same arguments,
// environment and files, so it ends as it did then.
#[test]
fn a_new_child_with_the_same_image_and_inputs_keeps_its_outcome() {
    for how in ["-DFORKED", "-DSPAWNED"] {
        let lab = Lab::new(LATER, &["-O0", how]);
        lab.record(&[], "");
        let x = format!("prog.c:{}", lab.line("argc > 1"));
        assert_eq!(verdict(&lab, &["switch", &x, "--expect-text", "2 3\n"]), "passed", "{how}");
        let all = lab.json(&["critical", "--all", "--expect-text", "2 3\n"]);
        let found = all["critical"].as_array().unwrap();
        assert!(found.iter().any(|c| c["position"].as_str().unwrap().starts_with(&x)), "{how}");
    }
}

// Another command, another file, another environment: nobody knows what the child would do.
#[test]
fn a_new_child_with_other_inputs_is_needed() {
    for how in ["-DFORKED", "-DSPAWNED"] {
        let lab = Lab::new(LATER, &["-O0", how]);
        lab.record(&[], "");
        for branch in ["argc > 2", "argc > 3", "argc > 4"] {
            let position = format!("prog.c:{}", lab.line(branch));
            assert_eq!(verdict(&lab, &["switch", &position]), "needs-child", "{how} {branch}");
        }
        assert!(!lab.path("new").exists());
    }
}

// A child that ends by itself needs no recorded one: what it does is tried out.
#[test]
fn a_new_child_that_only_ends_is_tried_out() {
    let source = r#"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int x = 1, status = 0;
    if (argc > 1)
        x = 2;
    int pid = fork();
    if (pid == 0)
        _exit(x + 3);
    waitpid(pid, &status, 0);
    printf("%d %d\n", x, WEXITSTATUS(status));
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    assert_eq!(verdict(&lab, &["switch", "prog.c:7", "--expect-text", "2 5\n"]), "passed");
}

/// Begins a child after a branch that may be switched; `DOES` says what that does, `BEFORE`
/// and `AFTER` what its parent does.
const NOTICED: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile sig_atomic_t heard;
static void hear(int signal) { heard = signal; }
int main(int argc, char **argv) {
    int x = 1, status = 0, value = 0;
    (void)hear;
    BEFORE;
    if (argc > 1)
        x = 2;
    int pid = fork();
    if (pid == 0) {
        DOES;
        _exit(3);
    }
    waitpid(pid, &status, 0);
    AFTER;
    printf("%d %d\n", x, value);
    return 0;
}
"#;

// A child's end is not all that its parent may notice of it: then nobody knows what would have
// come of it.
#[test]
fn a_new_child_that_could_be_noticed_otherwise_is_needed() {
    let noticed = [
        (
            "by shared memory",
            "int *p = mmap(0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0)",
            "*p = 42",
            "value = *p",
        ),
        (
            "by where a file stands that the child closed",
            "char b[4]; int f = open(\"prog.c\", O_RDONLY)",
            "read(f, b, 4); close(f)",
            "value = lseek(f, 0, SEEK_CUR)",
        ),
        ("by a signal", "signal(SIGCHLD, hear)", "", "value = heard"),
        (
            "by what its group is sent",
            "setpgid(0, 0); signal(SIGUSR1, hear)",
            "kill(0, SIGUSR1)",
            "value = heard",
        ),
    ];
    for (how, before, does, after) in noticed {
        let define = |name: &str, code: &str| format!("-D{name}={code}");
        let flags = [define("BEFORE", before), define("DOES", does), define("AFTER", after)];
        let flags: Vec<&str> = std::iter::once("-O0").chain(flags.iter().map(|f| &**f)).collect();
        let lab = Lab::new(NOTICED, &flags);
        lab.record(&[], "");
        let position = format!("prog.c:{}", lab.line("argc > 1"));
        assert_eq!(verdict(&lab, &["switch", &position]), "needs-child", "{how}");
    }
}

// The recorded run's children keep their numbers: a new one has another.
#[test]
fn a_new_child_is_not_taken_for_a_recorded_one() {
    let source = r#"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int x = 1, first = 0, second = 0;
    int a = fork();
    if (a == 0)
        _exit(3);
    if (argc > 1)
        x = 2;
    int b = fork();
    if (b == 0)
        _exit(5);
    waitpid(a, &first, 0);
    waitpid(b, &second, 0);
    printf("%d %d %d\n", x, WEXITSTATUS(first), WEXITSTATUS(second));
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    let said = verdict(&lab, &["switch", "prog.c:10", "--expect-text", "2 3 5\n"]);
    assert_eq!(said, "passed");
}

// What an earlier child would have done is not known here; a later one may ask for it.
#[test]
fn a_new_child_behind_one_that_is_missing_is_needed() {
    let source = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
int main(int argc, char **argv) {
    if (argc == 1)
        system("mkdir made");
    int status = system("test -d made");
    printf("%d\n", WEXITSTATUS(status));
    return 0;
}
"#;
    let lab = Lab::new(source, &["-O0"]);
    lab.record(&[], "");
    assert_eq!(verdict(&lab, &["switch", "prog.c:6"]), "needs-child");
}
