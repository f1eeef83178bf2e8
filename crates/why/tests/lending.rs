//! A process whose parent waits uses its parent's translations: `vfork` and `posix_spawn`. What
//! it does with them must not show.

#[path = "support/place.rs"]
mod place;

use place::{Place, text};

const HEAD: &str = "#define _GNU_SOURCE
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static int ends(pid_t child) { int status; waitpid(child, &status, 0); return status; }
";

fn same_again(name: &str, source: &str, shown: &str) {
    let place = Place::new();
    place.compile(name, &format!("{HEAD}{source}"), &["-O1", "-w"]);
    for again in 0..2 {
        let (folder, program) = (format!("rec{again}"), format!("./{name}"));
        let recorded = place.why(&["record", "-q", "-o", &folder, &program]);
        assert_eq!(text(&recorded.stdout), shown, "{}", text(&recorded.stderr));
        assert_eq!(recorded.status.code(), Some(0));
        let replayed = place.why(&["replay", "--verify", &folder]);
        assert_eq!(text(&replayed.stdout), shown, "{}", text(&replayed.stderr));
        assert_eq!(replayed.status.code(), Some(0), "{}", text(&replayed.stderr));
    }
}

#[test]
fn a_parent_goes_on_after_a_child_that_was_killed_while_it_waited() {
    let source = "int main(void) {
  int ends_of[2]; pipe(ends_of);
  pid_t killer = fork();
  if (killer == 0) {
    pid_t victim; read(ends_of[0], &victim, sizeof victim); usleep(100000);
    kill(victim, SIGKILL); _exit(0);
  }
  pid_t child = vfork();
  if (child == 0) { pid_t me = getpid(); write(ends_of[1], &me, sizeof me); for (;;) ; }
  printf(\"killed by %d\\n\", WTERMSIG(ends(child)));
  ends(killer);
  for (int n = 0; n < 3; n++) {
    pid_t next; char *words[] = {\"true\", NULL};
    posix_spawn(&next, \"/bin/true\", NULL, NULL, words, environ);
    printf(\"true %d\\n\", ends(next));
  }
  return 0;
}
";
    same_again("killed", source, "killed by 9\ntrue 0\ntrue 0\ntrue 0\n");
}

/// In the child the same address holds other code than in its parent.
#[test]
fn code_that_a_child_puts_in_place_of_its_parents_is_not_the_parents() {
    let source = "typedef int function(void);
static char one[] = {0xb8, 1, 0, 0, 0, 0xc3}, two[] = {0xb8, 2, 0, 0, 0, 0xc3};
static void put(void *at, char *code) {
  mprotect(at, 4096, PROT_READ | PROT_WRITE); memcpy(at, code, 6);
  mprotect(at, 4096, PROT_READ | PROT_EXEC);
}
int main(void) {
  char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char *other = page + 4096; function *first = (function *)page, *second = (function *)other;
  put(page, one); put(other, one);
  int sum = first();
  pid_t child = fork();
  if (child == 0) {
    pid_t inner = vfork();
    if (inner == 0) {
      void *new = mmap(other, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      put(new, two);
      _exit(10 * first() + second());
    }
    int status = WEXITSTATUS(ends(inner));
    _exit(status);
  }
  printf(\"%d\\n\", WEXITSTATUS(ends(child)));
  printf(\"%d %d\\n\", sum, first());
  return 0;
}
";
    same_again("other_code", source, "12\n1 1\n");
}

#[test]
fn children_that_execute_nothing_or_what_is_not_there_leave_their_parents_as_they_were() {
    let source = "int main(void) {
  int before = 5; volatile int lent = 1;
  for (int n = 0; n < 20; n++) {
    pid_t child = vfork();
    if (child == 0) {
      if (n % 3 == 0) { lent++; _exit(n); }
      if (n % 3 == 1) { execl(\"/no/such/file\", \"x\", NULL); _exit(99); }
      execl(\"/bin/sh\", \"sh\", \"-c\", \"exit 7\", NULL); _exit(98);
    }
    printf(\"%d \", WEXITSTATUS(ends(child)));
  }
  printf(\"%d %d\\n\", before, lent);
  return 0;
}
";
    let shown = "0 99 7 3 99 7 6 99 7 9 99 7 12 99 7 15 99 7 18 99 5 8\n";
    same_again("mixed", source, shown);
}
