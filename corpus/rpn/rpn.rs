//! rpn: turns expressions into reverse Polish notation, and computes them.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token {
    Number(i64),
    Operator(char),
    Open,
    Close,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Number(n) => write!(f, "{n}"),
            Token::Operator(c) => write!(f, "{c}"),
            Token::Open => write!(f, "("),
            Token::Close => write!(f, ")"),
        }
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut all = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(&c) = chars.peek() {
        match c {
            ' ' => {
                chars.next();
            }
            '0'..='9' => {
                let mut n = 0i64;
                while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
                    n = n * 10 + i64::from(digit);
                    chars.next();
                }
                all.push(Token::Number(n));
            }
            '+' | '-' | '*' | '/' | '^' => {
                all.push(Token::Operator(c));
                chars.next();
            }
            '(' => {
                all.push(Token::Open);
                chars.next();
            }
            ')' => {
                all.push(Token::Close);
                chars.next();
            }
            other => return Err(format!("unexpected '{other}'")),
        }
    }
    Ok(all)
}

fn strength(operator: char) -> u32 {
    match operator {
        '+' | '-' => 1,
        '*' | '/' => 2,
        _ => 3,
    }
}

fn is_right(operator: char) -> bool {
    operator == '^'
}

/// Does an operator on the stack come before the next one?
fn goes_first(on_stack: char, next: char) -> bool {
    let (a, b) = (strength(on_stack), strength(next));
    a > b || a == b && is_right(next)
}

fn postfix(tokens: &[Token]) -> Result<Vec<Token>, String> {
    let mut out = Vec::new();
    let mut stack: Vec<Token> = Vec::new();
    for token in tokens {
        match *token {
            Token::Number(_) => out.push(*token),
            Token::Operator(next) => {
                while let Some(Token::Operator(top)) = stack.last() {
                    if !goes_first(*top, next) {
                        break;
                    }
                    out.extend(stack.pop());
                }
                stack.push(*token);
            }
            Token::Open => stack.push(Token::Open),
            Token::Close => loop {
                match stack.pop() {
                    Some(Token::Open) => break,
                    Some(other) => out.push(other),
                    None => return Err("')' without '('".to_owned()),
                }
            },
        }
    }
    while let Some(token) = stack.pop() {
        if token == Token::Open {
            return Err("'(' without ')'".to_owned());
        }
        out.push(token);
    }
    Ok(out)
}

fn compute(postfix: &[Token]) -> Result<i64, String> {
    let mut stack: Vec<i64> = Vec::new();
    for token in postfix {
        match token {
            Token::Number(n) => stack.push(*n),
            Token::Operator(operator) => {
                let b = stack.pop().ok_or("something is missing")?;
                let a = stack.pop().ok_or("something is missing")?;
                stack.push(match operator {
                    '+' => a.wrapping_add(b),
                    '-' => a.wrapping_sub(b),
                    '*' => a.wrapping_mul(b),
                    '/' => a.checked_div(b).ok_or("division by zero")?,
                    _ => a.wrapping_pow(u32::try_from(b).map_err(|_| "a negative power")?),
                });
            }
            _ => return Err("a parenthesis is left".to_owned()),
        }
    }
    match stack[..] {
        [one] => Ok(one),
        _ => Err("something is left".to_owned()),
    }
}

fn main() {
    let mut wrong = false;
    for text in std::env::args().skip(1) {
        let postfixed = tokens(&text).and_then(|t| postfix(&t));
        match postfixed.and_then(|p| Ok((compute(&p)?, p))) {
            Ok((value, p)) => {
                let words: Vec<String> = p.iter().map(Token::to_string).collect();
                println!("{} = {value}", words.join(" "));
            }
            Err(error) => {
                wrong = true;
                println!("{error}");
            }
        }
    }
    std::process::exit(i32::from(wrong));
}
