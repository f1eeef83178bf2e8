//! Stock gdb on recordings, forward and backward, and the plain prompt.

mod branches;
mod gdb;
#[path = "../support/place.rs"]
mod place;
mod prompt;
mod qzdb;
mod slices;

use place::Place;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

impl Place {
    /// Compiles and records a program.
    fn record(&self, name: &str, source: &str, flags: &[&str]) {
        let program = self.compile(name, source, &[&["-g"], flags].concat());
        self.told(&["record", "--", program.to_str().expect("UTF-8")], "");
    }

    /// All that `why` says, to its end. Its output goes to a file, because a server may
    /// live a little longer than its gdb.
    fn told(&self, arguments: &[&str], input: &str) -> String {
        let (out, given) = (self.path("out"), self.path("in"));
        fs::write(&given, input).expect("writes");
        let to = File::create(&out).expect("creates");
        let mut why = self.command(arguments);
        why.stdin(File::open(&given).expect("opens"));
        why.stderr(Stdio::from(to.try_clone().expect("copies"))).stdout(Stdio::from(to));
        let status = why.status().expect("why runs");
        let text = fs::read_to_string(&out).expect("text");
        assert_ne!(status.code(), Some(124), "it took too long:\n{text}");
        text
    }

    /// What gdb says to some commands on the latest recording.
    fn gdb(&self, at: &str, commands: &[&str]) -> String {
        let mut arguments = vec!["debug", "--at", at, "--", "-batch"];
        for command in commands {
            arguments.extend(["-ex", command]);
        }
        self.told(&arguments, "")
    }
}

/// Do the texts come in this order?
fn in_order(text: &str, wanted: &[&str]) {
    let mut rest = text;
    for piece in wanted {
        let Some(at) = rest.find(piece) else { panic!("`{piece}` is missing in:\n{text}") };
        rest = &rest[at + piece.len()..];
    }
}

/// A loop, a library, and a crash at its end.
const SUMS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
volatile int total, other;
__attribute__((noinline)) int twice(int n) { return n + n; }
int main(void)
{
    for (int i = 0; i < 10; i++) {
        other += 3;
        if (i % 2)
            total += twice(i);
        char *p = malloc(100 + i);
        memset(p, i, 100 + i);
        free(p);
    }
    int *nowhere = 0;
    if (total > 5) *nowhere = total;
    return 0;
}
"#;

const THREADS: &str = r#"
#include <pthread.h>
#include <stdio.h>
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
volatile long shared;
__attribute__((noinline)) static void add(long n) { shared += n; }
static void *work(void *argument)
{
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&lock);
        add((long) argument);
        pthread_mutex_unlock(&lock);
    }
    return 0;
}
int main(void)
{
    pthread_t threads[3];
    for (long n = 0; n < 3; n++) pthread_create(&threads[n], 0, work, (void *) (n + 1));
    for (int n = 0; n < 3; n++) pthread_join(threads[n], 0);
    printf("%ld\n", shared);
    return 0;
}
"#;
