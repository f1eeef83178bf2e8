//! How is an expression such as `p->a.b[3]` read?

use super::error::Error;

/// Deeper nesting is refused.
const DEEPEST: usize = 64;

/// An expression over variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expression {
    Number(i64),
    Name(String),
    Dereference(Box<Expression>),
    AddressOf(Box<Expression>),
    /// `a.b`, and `a->b`, which dereferences first.
    Member(Box<Expression>, String),
    Index(Box<Expression>, Box<Expression>),
    Binary(Operator, Box<Expression>, Box<Expression>),
}

/// An operator between two numbers, or a pointer and a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
}

/// Reads a whole expression.
pub(super) fn parse(text: &str) -> Result<Expression, Error> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let expression = parser.sum()?;
    parser.skip_space();
    match parser.rest() {
        "" => Ok(expression),
        _ => Err(parser.expected("an operator or the end")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn sum(&mut self) -> Result<Expression, Error> {
        let mut left = self.product()?;
        loop {
            self.skip_space();
            // `->` is not a minus.
            let operator = match self.rest().as_bytes() {
                [b'+', ..] => Operator::Add,
                [b'-', second, ..] if *second != b'>' => Operator::Subtract,
                _ => return Ok(left),
            };
            self.at += 1;
            left = Expression::Binary(operator, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Expression, Error> {
        let mut left = self.prefix()?;
        while self.take("*") {
            left = Expression::Binary(Operator::Multiply, Box::new(left), Box::new(self.prefix()?));
        }
        Ok(left)
    }

    fn prefix(&mut self) -> Result<Expression, Error> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.expected("a simpler expression"));
        }
        let expression = if self.take("*") {
            Expression::Dereference(Box::new(self.prefix()?))
        } else if self.take("&") {
            Expression::AddressOf(Box::new(self.prefix()?))
        } else if self.take("-") {
            let zero = Box::new(Expression::Number(0));
            Expression::Binary(Operator::Subtract, zero, Box::new(self.prefix()?))
        } else {
            self.postfix()?
        };
        self.depth -= 1;
        Ok(expression)
    }

    fn postfix(&mut self) -> Result<Expression, Error> {
        let mut expression = self.primary()?;
        loop {
            if self.take("[") {
                let index = self.sum()?;
                if !self.take("]") {
                    return Err(self.expected("`]`"));
                }
                expression = Expression::Index(Box::new(expression), Box::new(index));
            } else if self.take("->") {
                let pointer = Expression::Dereference(Box::new(expression));
                expression = Expression::Member(Box::new(pointer), self.member()?);
            } else if self.take(".") {
                expression = Expression::Member(Box::new(expression), self.member()?);
            } else {
                return Ok(expression);
            }
        }
    }

    fn primary(&mut self) -> Result<Expression, Error> {
        if self.take("(") {
            let inner = self.sum()?;
            return match self.take(")") {
                true => Ok(inner),
                false => Err(self.expected("`)`")),
            };
        }
        self.skip_space();
        if self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return self.number();
        }
        let mut name =
            self.word().ok_or_else(|| self.expected("a variable or a number"))?.to_owned();
        while self.rest().starts_with("::") {
            self.at += 2;
            let part = self.word().ok_or_else(|| self.expected("a name"))?;
            name = format!("{name}::{part}");
        }
        Ok(Expression::Name(name))
    }

    /// A member: a name, or the number of a field of a Rust tuple.
    fn member(&mut self) -> Result<String, Error> {
        self.skip_space();
        let name = self.word().map(str::to_owned);
        name.ok_or_else(|| self.expected("the name of a member"))
    }

    fn number(&mut self) -> Result<Expression, Error> {
        let start = self.at;
        let digits = self.word().unwrap_or_default();
        let number = match digits.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).map(|number| number as i64),
            None => digits.parse(),
        };
        number.map(Expression::Number).map_err(|_| {
            self.at = start;
            self.expected("a number")
        })
    }

    fn word(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        self.at += end;
        (end > 0).then(|| &rest[..end])
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn expected(&self, expected: &'static str) -> Error {
        let at = self.text[..self.at].chars().count() + 1;
        Error::Syntax { expression: self.text.to_owned(), at, expected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> Box<Expression> {
        Box::new(Expression::Name(name.to_owned()))
    }

    #[test]
    fn an_arrow_is_a_dereference_and_a_member() {
        let pointed = Expression::Dereference(name("p"));
        let member = Expression::Member(Box::new(pointed), "a".to_owned());
        assert_eq!(parse("p->a"), Ok(member.clone()));
        assert_eq!(parse(" (*p) . a "), Ok(member));
    }

    #[test]
    fn what_is_behind_binds_before_what_is_in_front() {
        let element = Expression::Index(name("a"), name("i"));
        assert_eq!(parse("*a[i]"), Ok(Expression::Dereference(Box::new(element.clone()))));
        assert_eq!(parse("&a[i]"), Ok(Expression::AddressOf(Box::new(element))));
    }

    #[test]
    fn names_may_have_namespaces_and_numbers_may_be_hexadecimal() {
        assert_eq!(parse("ns::x"), Ok(*name("ns::x")));
        assert_eq!(parse("0x10"), Ok(Expression::Number(16)));
        assert_eq!(parse("t.0"), Ok(Expression::Member(name("t"), "0".to_owned())));
    }

    #[test]
    fn a_minus_and_an_arrow_are_told_apart() {
        let expected = Expression::Binary(Operator::Subtract, name("a"), name("b"));
        assert_eq!(parse("a-b"), Ok(expected));
        assert!(matches!(parse("a->b"), Ok(Expression::Member(..))));
    }

    #[test]
    fn a_mistake_is_pointed_at() {
        let error = parse("a[1").unwrap_err();
        assert_eq!(error.to_string(), "`a[1` cannot be read at character 4: expected `]`");
        assert!(parse("").is_err());
        assert!(parse("a b").is_err());
        assert!(parse("12x").is_err());
        assert!(parse(&"(".repeat(100_000)).is_err());
        assert!(parse(&"*".repeat(100_000)).is_err());
    }
}
