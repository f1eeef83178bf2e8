//! Parts of recordings as recordings of their own.

#[path = "../support/place.rs"]
mod place;
mod regions;
mod slices;

use place::{Place, text};
use std::fs;
use std::process::Output;

impl Place {
    /// Compiles a program, and records it as `whole`.
    fn record(&self, name: &str, source: &str, flags: &[&str]) -> Output {
        let program = self.compile(name, source, &[&["-g", "-O0"], flags].concat());
        self.why(&["record", "-o", "whole", "--", program.to_str().expect("UTF-8")])
    }

    /// What a verb that must succeed says.
    fn said(&self, arguments: &[&str]) -> String {
        let output = self.why(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What the plain prompt answers.
    fn asked(&self, recording: &str, lines: &str) -> String {
        let input = self.path("asked");
        fs::write(&input, lines).expect("writes");
        let mut why = self.command(&["debug", "--plain", recording]);
        let output = why.stdin(fs::File::open(&input).expect("opens")).output();
        text(&output.expect("why runs").stdout)
    }
}

/// Two threads that add in turns, and one that waits in a call when the cut is made.
const THREADS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;
static int ends[2];
static __thread long own;
static void *adds(void *arg)
{
    for (int i = 0; i < 3000; i++) {
        pthread_mutex_lock(&lock);
        total += (long)arg;
        own++;
        pthread_mutex_unlock(&lock);
    }
    printf("own %ld\n", own);
    return arg;
}
static void *waits(void *arg)
{
    char c = 0;
    if (read(ends[0], &c, 1) == 1) printf("got %c\n", c);
    return arg;
}
int main(void)
{
    pthread_t a, b, c;
    if (pipe(ends)) return 1;
    pthread_create(&c, 0, waits, 0);
    pthread_create(&a, 0, adds, (void *)1);
    pthread_create(&b, 0, adds, (void *)3);
    pthread_join(a, 0);
    pthread_join(b, 0);
    if (write(ends[1], "x", 1) != 1) return 2;
    pthread_join(c, 0);
    printf("%ld\n", total);
    return 5;
}
"#;
