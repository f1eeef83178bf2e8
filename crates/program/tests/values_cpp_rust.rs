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

const CONTAINERS: &str = r#"
#include <array>
#include <atomic>
#include <cstdio>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stack>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>
struct Point { int x; std::string name; };
int use(const std::vector<int> &numbers, std::string_view view)
{
    std::map<std::string, int> ages{{"ann", 31}, {"bob", 4}, {"cy", 50}, {"di", 6}};
    std::set<int> primes{7, 3, 5, 2};
    std::unordered_map<int, char> letters{{1, 'a'}};
    std::unordered_map<std::string, int> hashed{{"key", 2}};
    std::unordered_map<int, long double> wide{{1, 2.5L}};
    std::map<int, int> no_map;
    std::list<int> chain{1, 2, 3}, no_list;
    std::deque<int> no_line;
    std::u16string other = u"ab";
    struct stack { int c, top; } own{1, 2};
    std::deque<long> line;
    for (long i = 0; i < 70; i++) line.push_back(i);
    for (int i = 0; i < 66; i++) line.pop_front();
    std::stack<int> pile;
    pile.push(4);
    auto owned = std::make_unique<Point>(Point{7, "seven"});
    std::shared_ptr<Point> shared = std::make_shared<Point>(Point{8, "eight"});
    std::unique_ptr<Point> none;
    std::optional<int> some = 5, nothing;
    std::array<int, 3> fixed{1, 2, 3};
    std::atomic<int> counter{9};
    printf("%zu %zu\n", numbers.size(), view.size()); // HERE
    return ages.size() + primes.size() + hashed.size() + wide.size() + no_map.size()
        + no_list.size() + no_line.size() + other.size() + own.top + letters.size() + chain.size() + line.size()
        + pile.size() + owned->x + shared->x + !none + *some + !nothing + fixed[0] + counter;
}
int main()
{
    return use({1, 2, 3}, "view");
}
"#;

#[test]
fn containers_of_cpp_show_what_they_hold() {
    let built = compile("g++ -std=c++17 -O0 -g", "containers.cpp", CONTAINERS);
    let stopped = built.stop_at("HERE");
    let expected = [
        ("numbers", "{1, 2, 3}"),
        ("numbers[1]", "2"),
        ("view", "\"view\""),
        ("ages", "{[\"ann\"] = 31, [\"bob\"] = 4, [\"cy\"] = 50, [\"di\"] = 6}"),
        ("primes", "{2, 3, 5, 7}"),
        ("letters", "{[1] = 97 'a'}"),
        ("hashed", "{[\"key\"] = 2}"),
        ("wide", "{[1] = 2.5}"),
        ("no_map", "{}"),
        ("no_list", "{}"),
        ("no_line", "{}"),
        ("own", "{c = 1, top = 2}"),
        ("chain", "{1, 2, 3}"),
        ("line", "{66, 67, 68, 69}"),
        ("pile", "{4}"),
        ("owned->x", "7"),
        ("owned->name", "\"seven\""),
        ("*shared", "{x = 8, name = \"eight\"}"),
        ("none", "nullptr"),
        ("some", "5"),
        ("*some", "5"),
        ("nothing", "nullopt"),
        ("fixed", "{1, 2, 3}"),
        ("fixed[2]", "3"),
        ("counter", "9"),
    ];
    for (expression, text) in expected {
        assert_eq!(stopped.text(expression), text, "{expression}");
    }
}

const RUST_CONTAINERS: &str = r#"
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
mod own { pub struct Cell { pub value: i32, pub alive: bool } }
struct Node { value: i32, next: Option<Box<Node>> }
#[inline(never)]
fn show(numbers: &Vec<i32>, nested: &Vec<Vec<u8>>, ages: &HashMap<String, u32>) -> usize {
    let seen: HashSet<u16> = HashSet::from([40]);
    let empty: HashMap<u8, u8> = HashMap::new();
    let shared = Rc::new(Node { value: 3, next: None });
    let list = Box::new(Node { value: 1, next: Some(Box::new(Node { value: 2, next: None })) });
    let cell = Cell::new(6);
    let own = own::Cell { value: 1, alive: true };
    let many: HashMap<u64, u64> = (0..40).map(|n| (n, n)).collect();
    let nested_cell = Rc::new(RefCell::new(Node { value: 4, next: None }));
    let arc = Arc::new(5);
    let text: Rc<str> = Rc::from("text");
    black_box((&own.alive, &own.value, &many, &nested_cell, &arc, &text));
    let changed = RefCell::new(vec![8, 9]);
    let counter = AtomicUsize::new(11);
    black_box((&seen, &empty, &shared, &list, &cell, &changed, &counter));
    println!("{} {} {}", numbers.len(), nested.len(), ages.len()); // HERE
    numbers.len() + shared.value as usize + list.next.as_ref().map_or(0, |n| n.value) as usize
}
fn main() {
    let ages = HashMap::from([("ann".to_string(), 31)]);
    show(&vec![1, 2, 3], &vec![vec![4, 5], vec![6]], &ages);
}
"#;

#[test]
fn containers_of_rust_show_what_they_hold() {
    let built = compile("rustc -C debuginfo=2 -C opt-level=0", "containers.rs", RUST_CONTAINERS);
    let stopped = built.stop_at("HERE");
    let expected = [
        ("numbers", "&[1, 2, 3]"),
        ("numbers[1]", "2"),
        ("nested[0]", "[4, 5]"),
        ("nested[0][1]", "5"),
        ("ages", "&{\"ann\": 31}"),
        ("seen", "{40}"),
        ("empty", "{}"),
        ("shared", "Node { value: 3, next: None }"),
        ("shared.value", "3"),
        ("list.next", "Some(Node { value: 2, next: None })"),
        ("cell", "6"),
        ("own", "Cell { value: 1, alive: true }"),
        ("nested_cell.value", "4"),
        ("arc", "5"),
        ("changed", "[8, 9]"),
        ("changed[1]", "9"),
        ("counter", "11"),
    ];
    for (expression, text) in expected {
        assert_eq!(stopped.text(expression), text, "{expression}");
    }
    let many = stopped.text("many");
    assert_eq!(many.matches(": ").count(), 16, "{many}");
    assert!(many.ends_with(", ...}"), "{many}");
    assert!(!stopped.text("text").contains("damaged"), "{}", stopped.text("text"));
}
