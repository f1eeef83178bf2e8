//! Which variables does a line of source mention?

/// Something in a line that may have a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    /// As the line writes it: `i`, `a[i].x`, `p->next`.
    pub text: String,
    /// Does the line assign to it?
    pub assigned: bool,
}

/// The variables, members and elements that a line of C, C++, Rust or Go
/// mentions, in order, each once. Calls, text in quotes and comments are left out.
pub fn expressions(line: &str) -> Vec<Expression> {
    let bytes = line.as_bytes();
    let mut found: Vec<Expression> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = behind_text(bytes, at),
            b'\'' => at = behind_character(bytes, at),
            b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => break,
            b if is_first(b) => at = chain(line, at, &mut found),
            b if b.is_ascii_digit() => at = behind_word(bytes, at),
            _ => at += 1,
        }
    }
    found
}

fn is_first(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_' || b >= 0x80
}

fn behind_word(bytes: &[u8], at: usize) -> usize {
    let word = |b: &u8| is_first(*b) || b.is_ascii_digit();
    at + bytes[at..].iter().take_while(|b| word(b)).count()
}

fn behind_text(bytes: &[u8], at: usize) -> usize {
    let mut n = at + 1;
    while n < bytes.len() && bytes[n] != b'"' {
        n += if bytes[n] == b'\\' { 2 } else { 1 };
    }
    n + 1
}

/// A character in quotes; in Rust, a lone quote begins a lifetime.
fn behind_character(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at + 1..];
    let len = if rest.first() == Some(&b'\\') { 2 } else { 1 };
    let close = rest.iter().skip(len).take(8).position(|b| *b == b'\'');
    match close {
        Some(n) if n == 0 || rest.first() == Some(&b'\\') => at + 1 + len + n + 1,
        _ => at + 1,
    }
}

/// A name with its members and elements. What is in brackets counts too.
fn chain(line: &str, start: usize, found: &mut Vec<Expression>) -> usize {
    let bytes = line.as_bytes();
    let mut end = behind_word(bytes, start);
    let mut inside = Vec::new();
    loop {
        match &bytes[end..] {
            [b'.', b, ..] if is_first(*b) => end = behind_word(bytes, end + 1),
            [b'-', b'>', b, ..] if is_first(*b) => end = behind_word(bytes, end + 2),
            [b'[', ..] => match behind_bracket(bytes, end) {
                Some(close) => {
                    inside.extend(expressions(&line[end + 1..close - 1]));
                    end = close;
                }
                None => break,
            },
            _ => break,
        }
    }
    let rest = line[end..].trim_start();
    let calls = rest.starts_with('(') || rest.starts_with('!') && !rest.starts_with("!=");
    if calls || rest.starts_with("::") {
        // A method's receiver has a value all the same.
        if let Some(dot) = line[start..end].rfind('.').filter(|_| calls) {
            add(found, &line[start..start + dot], false);
        }
    } else {
        // A declared array is meant as a whole: there is no element of its length.
        let name = behind_word(bytes, start);
        let is_declared = bytes.get(name) == Some(&b'[') && is_declared(&line[..start]);
        let text = &line[start..if is_declared { name } else { end }];
        let before = &line[..start];
        if points(before) && assigns(rest) {
            add(found, &format!("*{text}"), true);
            add(found, text, false);
        } else {
            add(found, text, is_assigned(before, behind_declarator(before, rest)));
        }
    }
    for expression in inside {
        add(found, &expression.text, false);
    }
    end
}

/// Words behind which an expression may stand; behind others, a name is declared.
const WORDS: [&str; 16] = [
    "return",
    "else",
    "case",
    "sizeof",
    "do",
    "throw",
    "in",
    "and",
    "or",
    "not",
    "if",
    "while",
    "match",
    "move",
    "co_return",
    "co_yield",
];

/// Does a type stand before a name?
fn is_declared(before: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let trimmed = before.trim_end();
    let last = trimmed.rsplit(|c: char| !word(c)).next().unwrap_or_default();
    trimmed.len() < before.len() && !last.is_empty() && !WORDS.contains(&last)
}

fn add(found: &mut Vec<Expression>, text: &str, assigned: bool) {
    match found.iter_mut().find(|e| e.text == text) {
        Some(known) => known.assigned |= assigned,
        None => found.push(Expression { text: text.to_owned(), assigned }),
    }
}

fn behind_bracket(bytes: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0;
    for (n, b) in bytes.iter().enumerate().skip(at) {
        match b {
            b'[' => depth += 1,
            b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(n + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Does a statement begin with a star before a name?
fn points(before: &str) -> bool {
    let begun = before.strip_suffix('*').map(str::trim_end);
    begun.is_some_and(|begun| begun.is_empty() || begun.ends_with([';', '{', '}', ')']))
}

/// What follows a name in brackets that a type stands before, as in `int (*f)(int) = g`: behind
/// the brackets, and those that follow.
fn behind_declarator<'a>(before: &str, rest: &'a str) -> &'a str {
    let opened = before.trim_end_matches(['*', '&', ' ']).strip_suffix('(');
    let (Some(_), Some(behind)) =
        (opened.filter(|type_name| is_declared(type_name)), rest.strip_prefix(')'))
    else {
        return rest;
    };
    let behind = behind.trim_start();
    let close = match behind.chars().next() {
        Some('(') => behind.find(')'),
        Some('[') => behind.find(']'),
        _ => return behind,
    };
    close.map_or(rest, |close| behind[close + 1..].trim_start())
}

fn is_assigned(before: &str, rest: &str) -> bool {
    let steps = |s: &str| s.starts_with("++") || s.starts_with("--");
    steps(rest) || before.ends_with("++") || before.ends_with("--") || assigns(rest)
}

/// `=` and its like, as opposed to a comparison.
fn assigns(rest: &str) -> bool {
    let operator = rest.trim_start_matches(['+', '-', '*', '/', '%', '&', '|', '^', ':']);
    let shifted = rest.strip_prefix("<<").or(rest.strip_prefix(">>")).unwrap_or(operator);
    shifted.starts_with('=') && !shifted.starts_with("==") && !shifted.starts_with("=>")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(line: &str) -> Vec<String> {
        let mark = |e: Expression| if e.assigned { format!("{}=", e.text) } else { e.text };
        expressions(line).into_iter().map(mark).collect()
    }

    #[test]
    fn variables_members_and_elements_are_found() {
        assert_eq!(names("sum += a[i + 1].x;"), ["sum=", "a[i + 1].x", "i"]);
        assert_eq!(names("for (i = 0; i < n; i++)"), ["for", "i=", "n"][1..]);
        assert_eq!(names("p->next->value = *q;"), ["p->next->value=", "q"]);
    }

    #[test]
    fn declared_arrays_are_meant_as_a_whole() {
        assert_eq!(names("struct task t[2] = {{add, 1}};")[2..], ["t=", "add"]);
        assert_eq!(names("pthread_t t[4];"), ["pthread_t", "t"]);
        assert_eq!(names("return t[1];"), ["return", "t[1]"]);
        assert_eq!(names("x = t[1];"), ["x=", "t[1]"]);
    }

    #[test]
    fn what_a_pointer_leads_to_is_assigned_and_not_the_pointer() {
        assert_eq!(names("*out = box + 1;"), ["*out=", "out", "box"]);
        assert_eq!(names("if (n) *p = 1;"), ["if", "n", "*p=", "p"][1..]);
        assert_eq!(names("*p++ = 1;"), ["p="]);
        assert_eq!(names("int *p = q;"), ["int", "p=", "q"]);
        assert_eq!(names("a = b *c;"), ["a=", "b", "c"]);
    }

    #[test]
    fn a_name_that_is_declared_in_brackets_is_assigned() {
        assert_eq!(names("int (*g)(int) = f;"), ["g=", "int", "f"]);
        assert_eq!(names("int (*arr)[4] = &tab;"), ["arr=", "tab"]);
        assert_eq!(names("return (*p) == q;"), ["p", "q"]);
    }

    #[test]
    fn text_calls_comments_and_comparisons_are_not() {
        assert_eq!(names(r#"printf("%d x\"y\n", count); // z"#), ["count"]);
        assert_eq!(names("if (c == 'x' && d <= e)"), ["c", "d", "e"]);
        assert_eq!(names("let y = v.len() + 0x1f;"), ["let", "y=", "v"]);
        assert_eq!(names("x <<= 2; y = x >> 1;"), ["x=", "y="]);
    }
}
