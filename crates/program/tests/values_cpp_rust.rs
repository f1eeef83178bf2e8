//! Are values of C++ and Rust written as those languages write them?

mod support;

use support::compile;

const CPP: &str = r#"
#include <cstdio>
#include <string>
#include <vector>
namespace ns { int level = 4; struct Base { int id; virtual ~Base() {} }; }
enum class Mode : unsigned char { Off, On = 3 };
struct Derived : ns::Base {
    double weight;
    int method(int extra);
};
int Derived::method(int extra)
{
    return extra + id; // METHOD
}
int use(std::string &text, std::vector<int> numbers, Mode mode)
{
    int small = 1;
    int &alias = small;
    int *nothing = nullptr;
    printf("%s %zu %d %d %p\n", text.c_str(), numbers.size(), (int)mode, alias, nothing); // HERE
    return numbers[1];
}
int main()
{
    std::string text = "a text of more than fifteen letters";
    Derived derived;
    derived.id = 8;
    derived.weight = 1.25;
    derived.method(2);
    return use(text, {1, 2, 3}, Mode::On);
}
"#;

#[test]
fn values_of_cpp_are_written_as_cpp() {
    for command in ["g++ -O0 -g", "clang++ -O0 -g -gdwarf-4 -fstandalone-debug"] {
        let built = compile(command, "values.cpp", CPP);
        let stopped = built.stop_at("HERE");
        let expected = [
            ("text", "\"a text of more than fifteen letters\""),
            ("numbers", "{1, 2, 3}"),
            ("numbers[2]", "3"),
            ("mode", "Mode::On"),
            ("alias", "1"),
            ("nothing", "nullptr"),
            ("ns::level", "4"),
            ("level", "4"),
        ];
        for (expression, text) in expected {
            assert_eq!(stopped.text(expression), text, "{command}: {expression}");
        }
        let stopped = built.stop_at("METHOD");
        assert_eq!(stopped.text("id"), "8", "{command}: a member without `this`");
        assert_eq!(stopped.text("this->weight"), "1.25", "{command}");
    }
}

const RUST: &str = r#"
use std::hint::black_box;
struct Point { x: i32, y: f64 }
struct Pair(u8, char);
enum Shape { Empty, Circle(f32), Named { name: &'static str, sides: u64 } }
#[derive(Clone, Copy)]
enum Level { Low = 1, High = 7 }
static LIMIT: u32 = 12;
#[inline(never)]
fn show(point: &Point, items: &[i32], title: &str, owned: String) -> usize {
    let pair = Pair(9, 'z');
    let tuple = (1i8, true);
    let some: Option<i32> = Some(5);
    let none: Option<i32> = None;
    let niche: Option<Box<i32>> = Some(Box::new(3));
    let empty_niche: Option<Box<i32>> = None;
    let shapes = [Shape::Empty, Shape::Circle(0.5), Shape::Named { name: "hex", sides: 6 }];
    let result: Result<u8, String> = Err("bad".to_string());
    let vector = vec![10u16, 20, 30];
    let level = Level::High;
    let array = [0u8; 40];
    let unit = ();
    black_box((&pair, &tuple, &some, &none, &niche, &empty_niche));
    black_box((&shapes, &result, &vector, &level, &array, &unit, &LIMIT));
    items.len() + title.len() + owned.len() + point.x as usize // HERE
}
fn main() {
    let point = Point { x: 3, y: 2.5 };
    println!("{} {}", point.y, show(&point, &[4, 5, 6], "title", "owned".to_string()));
    println!("{}", Level::Low as i32);
}
"#;

#[test]
fn values_of_rust_are_written_as_rust() {
    let stopped = compile("rustc -g", "values.rs", RUST).stop_at("HERE");
    let expected = [
        ("point", "&Point { x: 3, y: 2.5 }"),
        ("*point", "Point { x: 3, y: 2.5 }"),
        ("point.x", "3"),
        ("items", "[4, 5, 6]"),
        ("items[1]", "5"),
        ("title", "\"title\""),
        ("owned", "\"owned\""),
        ("pair", "Pair(9, 'z')"),
        ("pair.0", "9"),
        ("tuple", "(1, true)"),
        ("some", "Some(5)"),
        ("some.0", "5"),
        ("none", "None"),
        ("niche", "Some(3)"),
        ("empty_niche", "None"),
        ("shapes", "[Empty, Circle(0.5), Named { name: \"hex\", sides: 6 }]"),
        ("shapes[2].sides", "6"),
        ("result", "Err(\"bad\")"),
        ("vector", "[10, 20, 30]"),
        ("vector[2]", "30"),
        ("level", "Level::High"),
        ("array", "[0 <repeats 40 times>]"),
        ("unit", "()"),
        ("LIMIT", "12"),
    ];
    for (expression, text) in expected {
        assert_eq!(stopped.text(expression), text, "{expression}");
    }
}
