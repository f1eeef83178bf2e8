//! What needs a library: threads, exceptions, long jumps, bound symbols.

use crate::Case;
use crate::support::{Guest, Language};

fn case(
    name: &'static str,
    language: Language,
    source: &str,
    inside: &'static [&'static str],
    outside: &'static [&'static str],
) -> Case {
    let guest = Guest { source: source.to_owned(), language, input: b"" };
    Case { name, guest, criterion: "criterion", inside, outside, from: None, large: true }
}

/// F-002-57, F-001-34 to 37
pub fn cases() -> Vec<Case> {
    vec![
        case(
            "a_value_comes_from_the_thread_that_wrote_it",
            Language::C,
            THREADS,
            &["writer", "chosen"],
            &["bystander"],
        ),
        case(
            "longjmp_leads_back_to_why_it_was_called",
            Language::C,
            LONGJMP,
            &["decides", "jumps"],
            &["bystander"],
        ),
        case(
            "a_catch_depends_on_why_it_was_thrown",
            Language::Cpp,
            EXCEPTION,
            &["_Z7decidesi", "_Z6throwsi"],
            &["_Z9bystanderv"],
        ),
        case(
            "binding_a_symbol_is_left_out",
            Language::C,
            BINDING,
            &["made"],
            &["bystander", "ld-linux behind main"],
        ),
        case(
            "what_a_bound_symbol_left_in_the_table_is_left_out",
            Language::C,
            BOUND_BEFORE,
            &["made"],
            &["ld-linux behind main"],
        ),
        case("a_long_run_is_sliced_segment_by_segment", Language::C, LONG, &["made"], &["other"]),
        case(
            "what_lies_many_quiet_segments_back_is_found",
            Language::C,
            QUIET,
            &["made", "again"],
            &["other"],
        ),
    ]
}

const THREADS: &str = r#"
#include <pthread.h>
#include <stdio.h>
static volatile int shared, other;
int chosen(void) { return 42; }
void *writer(void *p) { shared = chosen(); return p; }
void *bystander(void *p) { other = 7; return p; }
int criterion(int x) { return x + 1; }
int main(void)
{
    pthread_t a, b;
    pthread_create(&b, 0, bystander, 0);
    pthread_join(b, 0);
    pthread_create(&a, 0, writer, 0);
    while (!shared) ;
    int got = shared;
    pthread_join(a, 0);
    return criterion(got) == 0;
}
"#;

const LONGJMP: &str = r#"
#include <setjmp.h>
static jmp_buf there;
volatile int input = 5, count;
int decides(int x) { return x > 3; }
void jumps(int x) { if (decides(x)) longjmp(there, 1); }
void bystander(void) { count++; }
int criterion(int x) { return x + 1; }
int main(void)
{
    bystander();
    if (setjmp(there)) return criterion(2) == 0;
    jumps(input);
    return 1;
}
"#;

const EXCEPTION: &str = r#"
volatile int input = 5, count;
int decides(int x) { return x > 3; }
void throws(int x) { if (decides(x)) throw 1; }
void bystander() { count++; }
extern "C" int criterion(int x) { return x + 1; }
int main()
{
    bystander();
    try {
        throws(input);
    } catch (int) {
        return criterion(2) == 0;
    }
    return 1;
}
"#;

/// The argument passes through the code that binds `htonl` when it is first called.
const BINDING: &str = r#"
unsigned htonl(unsigned);
volatile int count, input = 3;
int made(void) { return input * 2; }
void bystander(void) { count++; }
int criterion(int x) { return x + 1; }
int main(void)
{
    bystander();
    return criterion(htonl(made())) == 0;
}
"#;

const BOUND_BEFORE: &str = r#"
unsigned htonl(unsigned);
volatile int count, input = 3;
int made(void) { return input * 2; }
int criterion(int x) { return x + 1; }
int main(void)
{
    count = htonl(7);
    return criterion(htonl(made())) == 0;
}
"#;

const QUIET: &str = r#"
volatile unsigned noise = 1, kept;
void made(void) { kept = 7; }
void again(void) { kept += 2; }
void other(unsigned i) { noise *= i | 1; }
void quiet(void) { for (unsigned i = 0; i < 100000; i++) other(i); }
int criterion(unsigned x) { return x + 1; }
int main(void)
{
    made();
    quiet();
    again();
    quiet();
    return criterion(kept) == 0;
}
"#;

const LONG: &str = r#"
volatile unsigned input = 3, sum, product = 1;
unsigned made(unsigned i) { return input + i; }
void other(unsigned i) { product *= i | 1; }
int criterion(unsigned x) { return x + 1; }
int main(void)
{
    for (unsigned i = 0; i < 30000; i++) {
        sum += made(i);
        other(i);
    }
    return criterion(sum) == 0;
}
"#;
