//! script: compiles a small language to bytecode and runs it.
//!
//! usage: script [--dump] FILE
//!
//!     fn gcd(a, b) { while b != 0 { let t = a % b; a = b; b = t; } return a; }
//!     let i = 1;
//!     while i < 5 { if i == 3 { i = i + 1; continue; } print gcd(i, 12); i = i + 1; }
//!
//! Values are whole numbers. `print` takes several values; blocks have their own names; there are
//! break, continue, and, or, not.

use std::collections::HashMap;
use std::fmt;

// ---- tokens ----

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(i64),
    Name(String),
    Symbol(&'static str),
    End,
}

const SYMBOLS: [&str; 20] = [
    "==", "!=", "<=", ">=", "{", "}", "(", ")", ";", ",", "=", "<", ">", "+", "-", "*", "/", "%",
    "[", "]",
];

fn tokenize(text: &str) -> Result<Vec<(Token, usize)>, Failure> {
    let mut tokens = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut rest = line.split('#').next().unwrap_or("").trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if first.is_ascii_digit() {
                let length = prefix(rest, |c| c.is_ascii_digit());
                let number = rest[..length].parse().map_err(|_| failure(index + 1, "number too long"))?;
                tokens.push((Token::Number(number), index + 1));
                length
            } else if first.is_ascii_alphabetic() {
                let length = prefix(rest, |c| c.is_ascii_alphanumeric() || c == '_');
                tokens.push((Token::Name(rest[..length].to_string()), index + 1));
                length
            } else if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
                tokens.push((Token::Symbol(symbol), index + 1));
                symbol.len()
            } else {
                return Err(failure(index + 1, "unexpected character"));
            };
            rest = rest[length..].trim_start();
        }
    }
    tokens.push((Token::End, text.lines().count()));
    Ok(tokens)
}

fn prefix(text: &str, accepted: impl Fn(char) -> bool) -> usize {
    text.find(|c| !accepted(c)).unwrap_or(text.len())
}

#[derive(Debug)]
struct Failure {
    line: usize,
    message: String,
}

fn failure(line: usize, message: impl Into<String>) -> Failure {
    Failure { line, message: message.into() }
}

// ---- bytecode ----

#[derive(Debug, Clone, Copy, PartialEq)]
enum Op {
    Constant(i64),
    Load(usize),
    Store(usize),
    LoadGlobal(usize),
    StoreGlobal(usize),
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    Different,
    Less,
    LessEqual,
    Negate,
    Not,
    Pop,
    Jump(usize),
    JumpIfZero(usize),
    /// Like JumpIfZero, but leaves the value; JumpKeepNonZero likewise.
    JumpKeepZero(usize),
    JumpKeepNonZero(usize),
    Call(usize, usize),
    Return,
    Print(usize),
    Halt,
}

impl fmt::Display for Op {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self:?}")
    }
}

#[derive(Debug, Clone)]
struct Function {
    name: String,
    arity: usize,
    entry: usize,
    slots: usize,
}

#[derive(Debug, Default)]
struct Program {
    code: Vec<Op>,
    lines: Vec<usize>,
    functions: Vec<Function>,
    globals: usize,
}

// ---- compiler ----

#[derive(Debug, Clone, Copy)]
enum Place {
    Local(usize),
    Global(usize),
}

#[derive(Default)]
struct Loop {
    start: usize,
    breaks: Vec<usize>,
}

struct Compiler {
    tokens: Vec<(Token, usize)>,
    position: usize,
    program: Program,
    known: HashMap<String, usize>,
    scopes: Vec<HashMap<String, Place>>,
    loops: Vec<Loop>,
    inside_function: bool,
    next_slot: usize,
    most_slots: usize,
}

impl Compiler {
    fn compile(tokens: Vec<(Token, usize)>) -> Result<Program, Failure> {
        let mut compiler = Compiler {
            tokens,
            position: 0,
            program: Program::default(),
            known: HashMap::new(),
            scopes: vec![HashMap::new()],
            loops: Vec::new(),
            inside_function: false,
            next_slot: 0,
            most_slots: 0,
        };
        while compiler.peek() != &Token::End {
            if compiler.take_name("fn") {
                compiler.function()?;
            } else {
                compiler.statement()?;
            }
        }
        compiler.emit(Op::Halt);
        Ok(compiler.program)
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.position].0
    }

    fn line(&self) -> usize {
        self.tokens[self.position].1
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T, Failure> {
        Err(failure(self.line(), message))
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(s) if *s == symbol);
        self.position += usize::from(found);
        found
    }

    fn take_name(&mut self, name: &str) -> bool {
        let found = matches!(self.peek(), Token::Name(n) if n == name);
        self.position += usize::from(found);
        found
    }

    fn need(&mut self, symbol: &str) -> Result<(), Failure> {
        if self.take(symbol) { Ok(()) } else { self.fail(format!("expected {symbol}")) }
    }

    fn name(&mut self) -> Result<String, Failure> {
        match self.peek().clone() {
            Token::Name(name) => {
                self.position += 1;
                Ok(name)
            }
            _ => self.fail("expected a name"),
        }
    }

    fn emit(&mut self, op: Op) -> usize {
        self.program.code.push(op);
        self.program.lines.push(self.line());
        self.program.code.len() - 1
    }

    fn here(&self) -> usize {
        self.program.code.len()
    }

    fn patch(&mut self, at: usize) {
        let target = self.here();
        self.program.code[at] = match self.program.code[at] {
            Op::Jump(_) => Op::Jump(target),
            Op::JumpIfZero(_) => Op::JumpIfZero(target),
            Op::JumpKeepZero(_) => Op::JumpKeepZero(target),
            Op::JumpKeepNonZero(_) => Op::JumpKeepNonZero(target),
            other => other,
        };
    }

    // -- names --

    fn declare(&mut self, name: String) -> Place {
        let place = if self.inside_function {
            let slot = self.next_slot;
            self.next_slot += 1;
            self.most_slots = self.most_slots.max(self.next_slot);
            Place::Local(slot)
        } else {
            self.program.globals += 1;
            Place::Global(self.program.globals - 1)
        };
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, place);
        }
        place
    }

    fn look_up(&self, name: &str) -> Option<Place> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name).copied())
    }

    fn load(&mut self, place: Place) {
        match place {
            Place::Local(slot) => self.emit(Op::Load(slot)),
            Place::Global(slot) => self.emit(Op::LoadGlobal(slot)),
        };
    }

    fn store(&mut self, place: Place) {
        match place {
            Place::Local(slot) => self.emit(Op::Store(slot)),
            Place::Global(slot) => self.emit(Op::StoreGlobal(slot)),
        };
    }

    // -- functions and statements --

    fn function(&mut self) -> Result<(), Failure> {
        if self.inside_function || self.scopes.len() > 1 {
            return self.fail("a function inside a block");
        }
        let name = self.name()?;
        self.need("(")?;
        let over = self.emit(Op::Jump(0));
        self.inside_function = true;
        self.next_slot = 0;
        self.most_slots = 0;
        self.scopes.push(HashMap::new());
        let mut arity = 0;
        while !self.take(")") {
            if arity > 0 {
                self.need(",")?;
            }
            let parameter = self.name()?;
            self.declare(parameter);
            arity += 1;
        }
        let index = self.program.functions.len();
        self.known.insert(name.clone(), index);
        let entry = self.here();
        self.program.functions.push(Function { name, arity, entry, slots: 0 });
        let outer = std::mem::take(&mut self.loops);
        self.block()?;
        self.loops = outer;
        self.emit(Op::Constant(0));
        self.emit(Op::Return);
        self.program.functions[index].slots = self.most_slots;
        self.scopes.pop();
        self.inside_function = false;
        self.patch(over);
        Ok(())
    }

    fn block(&mut self) -> Result<(), Failure> {
        self.need("{")?;
        self.scopes.push(HashMap::new());
        let slots = self.next_slot;
        while !self.take("}") {
            if self.peek() == &Token::End {
                return self.fail("expected }");
            }
            self.statement()?;
        }
        self.next_slot = slots;
        self.scopes.pop();
        Ok(())
    }

    fn statement(&mut self) -> Result<(), Failure> {
        if self.take_name("let") {
            let name = self.name()?;
            self.need("=")?;
            self.expression()?;
            let place = self.declare(name);
            self.store(place);
            self.need(";")
        } else if self.take_name("print") {
            let mut count = 1;
            self.expression()?;
            while self.take(",") {
                self.expression()?;
                count += 1;
            }
            self.emit(Op::Print(count));
            self.need(";")
        } else if self.take_name("if") {
            self.if_statement()
        } else if self.take_name("while") {
            self.while_statement()
        } else if self.take_name("break") {
            let jump = self.emit(Op::Jump(0));
            match self.loops.last_mut() {
                Some(current) => current.breaks.push(jump),
                None => return self.fail("break outside a loop"),
            }
            self.need(";")
        } else if self.take_name("continue") {
            let Some(start) = self.loops.last().map(|current| current.start) else {
                return self.fail("continue outside a loop");
            };
            self.emit(Op::Jump(start));
            self.need(";")
        } else if self.take_name("return") {
            if !self.inside_function {
                return self.fail("return outside a function");
            }
            self.expression()?;
            self.emit(Op::Return);
            self.need(";")
        } else if self.peek() == &Token::Symbol("{") {
            self.block()
        } else {
            self.assignment_or_call()
        }
    }

    fn assignment_or_call(&mut self) -> Result<(), Failure> {
        let start = self.position;
        let name = self.name()?;
        if self.take("=") {
            let Some(place) = self.look_up(&name) else {
                return self.fail(format!("unknown name {name}"));
            };
            self.expression()?;
            self.store(place);
        } else {
            self.position = start;
            self.expression()?;
            self.emit(Op::Pop);
        }
        self.need(";")
    }

    fn if_statement(&mut self) -> Result<(), Failure> {
        self.expression()?;
        let to_else = self.emit(Op::JumpIfZero(0));
        self.block()?;
        if self.take_name("else") {
            let to_end = self.emit(Op::Jump(0));
            self.patch(to_else);
            if self.take_name("if") {
                self.if_statement()?;
            } else {
                self.block()?;
            }
            self.patch(to_end);
        } else {
            self.patch(to_else);
        }
        Ok(())
    }

    fn while_statement(&mut self) -> Result<(), Failure> {
        let start = self.here();
        self.loops.push(Loop { start, breaks: Vec::new() });
        self.expression()?;
        let out = self.emit(Op::JumpIfZero(0));
        self.block()?;
        self.emit(Op::Jump(start));
        self.patch(out);
        if let Some(finished) = self.loops.pop() {
            for jump in finished.breaks {
                self.patch(jump);
            }
        }
        Ok(())
    }

    // -- expressions --

    fn expression(&mut self) -> Result<(), Failure> {
        self.conjunction()?;
        while self.take_name("or") {
            let short = self.emit(Op::JumpKeepNonZero(0));
            self.emit(Op::Pop);
            self.conjunction()?;
            self.patch(short);
        }
        Ok(())
    }

    fn conjunction(&mut self) -> Result<(), Failure> {
        self.comparison()?;
        while self.take_name("and") {
            let short = self.emit(Op::JumpKeepZero(0));
            self.emit(Op::Pop);
            self.comparison()?;
            self.patch(short);
        }
        Ok(())
    }

    fn comparison(&mut self) -> Result<(), Failure> {
        if self.take_name("not") {
            self.comparison()?;
            self.emit(Op::Not);
            return Ok(());
        }
        self.sum()?;
        let (op, negated) = match self.peek() {
            Token::Symbol("==") => (Op::Equal, false),
            Token::Symbol("!=") => (Op::Different, false),
            Token::Symbol("<") => (Op::Less, false),
            Token::Symbol("<=") => (Op::LessEqual, false),
            Token::Symbol(">") => (Op::LessEqual, true),
            Token::Symbol(">=") => (Op::LessEqual, true),
            _ => return Ok(()),
        };
        self.position += 1;
        self.sum()?;
        self.emit(op);
        if negated {
            self.emit(Op::Not);
        }
        Ok(())
    }

    fn sum(&mut self) -> Result<(), Failure> {
        self.product()?;
        loop {
            let op = match self.peek() {
                Token::Symbol("+") => Op::Add,
                Token::Symbol("-") => Op::Subtract,
                _ => return Ok(()),
            };
            self.position += 1;
            self.product()?;
            self.emit(op);
        }
    }

    fn product(&mut self) -> Result<(), Failure> {
        self.unary()?;
        loop {
            let op = match self.peek() {
                Token::Symbol("*") => Op::Multiply,
                Token::Symbol("/") => Op::Divide,
                Token::Symbol("%") => Op::Remainder,
                _ => return Ok(()),
            };
            self.position += 1;
            self.unary()?;
            self.emit(op);
        }
    }

    fn unary(&mut self) -> Result<(), Failure> {
        if self.take("-") {
            self.unary()?;
            self.emit(Op::Negate);
            return Ok(());
        }
        self.primary()
    }

    fn primary(&mut self) -> Result<(), Failure> {
        match self.peek().clone() {
            Token::Number(number) => {
                self.position += 1;
                self.emit(Op::Constant(number));
                Ok(())
            }
            Token::Symbol("(") => {
                self.position += 1;
                self.expression()?;
                self.need(")")
            }
            Token::Name(name) => {
                self.position += 1;
                if self.take("(") {
                    return self.call(&name);
                }
                match self.look_up(&name) {
                    Some(place) => {
                        self.load(place);
                        Ok(())
                    }
                    None => self.fail(format!("unknown name {name}")),
                }
            }
            _ => self.fail("expected a value"),
        }
    }

    fn call(&mut self, name: &str) -> Result<(), Failure> {
        let mut count = 0;
        while !self.take(")") {
            if count > 0 {
                self.need(",")?;
            }
            self.expression()?;
            count += 1;
        }
        let Some(index) = self.known.get(name).copied() else {
            return self.fail(format!("unknown function {name}"));
        };
        if self.program.functions[index].arity != count {
            return self.fail(format!("{name} takes {} values", self.program.functions[index].arity));
        }
        self.emit(Op::Call(index, count));
        Ok(())
    }
}

// ---- machine ----

struct Frame {
    back: usize,
    base: usize,
}

struct Machine<'a> {
    program: &'a Program,
    stack: Vec<i64>,
    globals: Vec<i64>,
    frames: Vec<Frame>,
    counter: usize,
    steps: u64,
}

const MOST_STEPS: u64 = 2_000_000;

impl Machine<'_> {
    fn run(program: &Program) -> Result<(), Failure> {
        let globals = vec![0; program.globals];
        let mut machine =
            Machine { program, stack: Vec::new(), globals, frames: Vec::new(), counter: 0, steps: 0 };
        while program.code[machine.counter] != Op::Halt {
            let line = program.lines[machine.counter];
            machine.steps += 1;
            if machine.steps > MOST_STEPS {
                return Err(failure(line, "too many steps"));
            }
            machine.step().map_err(|message| failure(line, message))?;
        }
        Ok(())
    }

    fn pop(&mut self) -> i64 {
        self.stack.pop().unwrap_or_default()
    }

    fn binary(&mut self, op: impl Fn(i64, i64) -> Option<i64>) -> Result<(), String> {
        let (b, a) = (self.pop(), self.pop());
        self.stack.push(op(a, b).ok_or("arithmetic overflow or division by zero")?);
        Ok(())
    }

    fn base(&self) -> usize {
        self.frames.last().map_or(0, |frame| frame.base)
    }

    fn step(&mut self) -> Result<(), String> {
        let op = self.program.code[self.counter];
        self.counter += 1;
        match op {
            Op::Constant(value) => self.stack.push(value),
            Op::Load(slot) => self.stack.push(self.stack[self.base() + slot]),
            Op::Store(slot) => {
                let value = self.pop();
                let index = self.base() + slot;
                self.stack[index] = value;
            }
            Op::LoadGlobal(slot) => self.stack.push(self.globals[slot]),
            Op::StoreGlobal(slot) => self.globals[slot] = self.pop(),
            Op::Add => self.binary(i64::checked_add)?,
            Op::Subtract => self.binary(i64::checked_sub)?,
            Op::Multiply => self.binary(i64::checked_mul)?,
            Op::Divide => self.binary(i64::checked_div)?,
            Op::Remainder => self.binary(i64::checked_rem)?,
            Op::Equal => self.binary(|a, b| Some(i64::from(a == b)))?,
            Op::Different => self.binary(|a, b| Some(i64::from(a != b)))?,
            Op::Less => self.binary(|a, b| Some(i64::from(a < b)))?,
            Op::LessEqual => self.binary(|a, b| Some(i64::from(a <= b)))?,
            Op::Negate => {
                let value = self.pop();
                self.stack.push(value.checked_neg().ok_or("arithmetic overflow")?);
            }
            Op::Not => {
                let value = self.pop();
                self.stack.push(i64::from(value == 0));
            }
            Op::Pop => {
                self.pop();
            }
            Op::Jump(target) => self.counter = target,
            Op::JumpIfZero(target) => {
                if self.pop() == 0 {
                    self.counter = target;
                }
            }
            Op::JumpKeepZero(target) => {
                if self.stack.last() == Some(&0) {
                    self.counter = target;
                }
            }
            Op::JumpKeepNonZero(target) => {
                if self.stack.last() != Some(&0) {
                    self.counter = target;
                }
            }
            Op::Call(index, count) => self.call(index, count)?,
            Op::Return => {
                let value = self.pop();
                if let Some(frame) = self.frames.pop() {
                    self.stack.truncate(frame.base);
                    self.counter = frame.back;
                }
                self.stack.push(value);
            }
            Op::Print(count) => {
                let values = self.stack.split_off(self.stack.len() - count);
                let texts: Vec<String> = values.iter().map(i64::to_string).collect();
                println!("{}", texts.join(" "));
            }
            Op::Halt => {}
        }
        Ok(())
    }

    fn call(&mut self, index: usize, count: usize) -> Result<(), String> {
        let function = &self.program.functions[index];
        if self.frames.len() == 200 {
            return Err(format!("too many calls of {}", function.name));
        }
        let base = self.stack.len() - count;
        self.stack.resize(base + function.slots.max(count), 0);
        self.frames.push(Frame { back: self.counter, base });
        self.counter = function.entry;
        Ok(())
    }
}

fn dump(program: &Program) {
    for (index, op) in program.code.iter().enumerate() {
        if let Some(function) = program.functions.iter().find(|f| f.entry == index) {
            println!("{} ({} slots):", function.name, function.slots);
        }
        println!("{index:4} {op}");
    }
}

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let dumping = arguments.first().is_some_and(|first| first == "--dump");
    if dumping {
        arguments.remove(0);
    }
    let Some(text) = arguments.first().and_then(|path| std::fs::read_to_string(path).ok()) else {
        eprintln!("usage: script [--dump] FILE");
        std::process::exit(2);
    };
    let result = tokenize(&text).and_then(Compiler::compile).and_then(|program| {
        if dumping {
            dump(&program);
            return Ok(());
        }
        Machine::run(&program)
    });
    if let Err(failure) = result {
        println!("line {}: {}", failure.line, failure.message);
        std::process::exit(1);
    }
}
