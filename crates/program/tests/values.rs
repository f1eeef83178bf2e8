//! Are variables found where they are, and written as their language does?

mod support;

use support::compile;

const C: &str = r#"
#include <stdio.h>
#include <stdint.h>
#include <stdbool.h>
enum colour { RED, GREEN = 5, BLUE };
enum flags { READ = 1, WRITE = 2, EXEC = 4 };
struct inner { int a; unsigned b : 3; int c : 5; };
struct node { struct inner in; struct node *next; const char *name; union { int u; float f; }; };
typedef struct node node_t;
static int counter = 42;
int table[2][3] = {{1, 2, 3}, {4, 5, 6}};
__thread int per_thread = 77;
int twice(int x) { return 2 * x; }
int work(int n, double ratio, node_t *list)
{
    char text[16] = "hello\n";
    int zeros[100] = {0};
    int few[3] = {7, 8, 9};
    enum colour colour = BLUE;
    enum flags flags = READ | EXEC;
    bool yes = true;
    unsigned char byte = 'A';
    int8_t small = -3;
    uint64_t large = 18446744073709551615u;
    float f = 0.5f;
    long double ld = 2.5L;
    int (*fn)(int) = twice;
    void *nothing = 0;
    node_t local = *list;
    int i = 1;
    static int calls = 3;
    printf("%d %s %d\n", n + calls + few[i], text, zeros[0] + per_thread + (int)ld); /* HERE */
    { int i = 99; printf("%d\n", i); /* BLOCK */ }
    return fn(n) + colour + flags + yes + byte + small + (int)large + (int)f + (nothing != 0) + local.in.a + counter;
}
int main(void)
{
    node_t second = {{10, 7, -16}, 0, "second", {11}};
    node_t first = {{1, 5, 15}, &second, "first", {2}};
    return work(3, 1.5, &first) == 0;
}
"#;

fn check_c(command: &str) {
    let stopped = compile(command, "values.c", C).stop_at("HERE");
    let expected = [
        ("n", "3"),
        ("ratio", "1.5"),
        ("text", "\"hello\\n\""),
        ("zeros", "{0 <repeats 100 times>}"),
        ("few", "{7, 8, 9}"),
        ("few[i]", "8"),
        ("few[i + 1]", "9"),
        ("*few", "7"),
        ("*(few + 2)", "9"),
        ("colour", "BLUE"),
        ("flags", "READ | EXEC"),
        ("yes", "true"),
        ("byte", "65 'A'"),
        ("small", "-3"),
        ("large", "18446744073709551615"),
        ("f", "0.5"),
        ("ld", "2.5"),
        ("nothing", "NULL"),
        ("counter", "42"),
        ("calls", "3"),
        ("table", "{{1, 2, 3}, {4, 5, 6}}"),
        ("table[1][2]", "6"),
        ("per_thread", "77"),
        ("list->in.b", "5"),
        ("list->next->in", "{a = 10, b = 7, c = -16}"),
        ("(*list).next->u", "11"),
        ("local.in.a", "1"),
        ("list->next->next", "NULL"),
        ("missing", "error: there is no variable `missing` here"),
        ("list->nam", "error: `node_t` has no member `nam`; there is name"),
        ("n.x", "error: `.x` does not apply to a value of type `int`"),
    ];
    for (expression, text) in expected {
        assert_eq!(stopped.text(expression), text, "{command}: {expression}");
    }
    assert!(stopped.text("list->name").ends_with(" \"first\""));
    assert!(stopped.text("fn").ends_with(" <twice>"), "{}", stopped.text("fn"));
    assert_eq!(stopped.text("&few[1]"), stopped.text("few + 1"));
}

#[test]
fn values_of_c_compiled_by_gcc_are_written_as_c() {
    check_c("gcc -O0 -g -gdwarf-5");
}

#[test]
fn values_of_c_in_dwarf_4_are_written_as_c() {
    check_c("gcc -O0 -g -gdwarf-4 -no-pie -static");
}

#[test]
fn values_of_c_compiled_by_clang_are_written_as_c() {
    check_c("clang -O0 -g -gdwarf-5");
}
