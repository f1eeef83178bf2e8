//! lexgen: builds a lexer from regular expressions and runs it.
//!
//! usage: lexgen [--nfa|--dfa|--minimal|--stats] RULES < TEXT
//!
//! Rules, one per line: `NAME EXPRESSION`; a name that starts with `_` is skipped in the output.
//! Expressions: characters, `.`, `[a-z_]`, `[^"]`, groups, `|`, `*`, `+`, `?`, `\n`, `\t`, `\s`,
//! `\d` and other escapes. The longest match wins, among equals the earlier rule. `$` lines
//! define parts for use as `{name}`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read;

// ---- expressions ----

/// A set of bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Class([u64; 4]);

impl Class {
    fn none() -> Class {
        Class([0; 4])
    }

    fn of(byte: u8) -> Class {
        let mut class = Class::none();
        class.add(byte);
        class
    }

    fn add(&mut self, byte: u8) {
        self.0[usize::from(byte) / 64] |= 1 << (byte % 64);
    }

    fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte) / 64] >> (byte % 64) & 1 == 1
    }

    fn add_all(&mut self, other: &Class) {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a |= b;
        }
    }

    fn inverted(&self) -> Class {
        let mut class = Class(self.0.map(|part| !part));
        class.0[0] &= !(1 << b'\n');
        class
    }

    fn text(&self) -> String {
        let shown = |byte: u8| match byte {
            b'\n' => "\\n".to_string(),
            b'\t' => "\\t".to_string(),
            b' ' => "\\s".to_string(),
            _ if byte.is_ascii_graphic() => (byte as char).to_string(),
            _ => format!("\\x{byte:02x}"),
        };
        let mut parts = Vec::new();
        let mut byte = 0usize;
        while byte < 256 {
            if !self.has(byte as u8) {
                byte += 1;
                continue;
            }
            let start = byte;
            while byte < 256 && self.has(byte as u8) {
                byte += 1;
            }
            let end = byte - 1;
            if end == start {
                parts.push(shown(start as u8));
            } else {
                parts.push(format!("{}-{}", shown(start as u8), shown(end as u8)));
            }
        }
        parts.join(",")
    }
}

#[derive(Debug, Clone)]
enum Expression {
    Empty,
    One(Class),
    Sequence(Vec<Expression>),
    Either(Vec<Expression>),
    Repeat(Box<Expression>, usize, bool),
}

struct Parser<'a> {
    text: &'a [u8],
    position: usize,
    parts: &'a BTreeMap<String, Expression>,
}

impl Parser<'_> {
    fn parse(
        text: &str,
        parts: &BTreeMap<String, Expression>,
    ) -> Result<Expression, String> {
        let mut parser = Parser { text: text.as_bytes(), position: 0, parts };
        let expression = parser.either()?;
        if parser.position < parser.text.len() {
            return Err(format!("unexpected {}", parser.text[parser.position] as char));
        }
        Ok(expression)
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.position).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek();
        self.position += usize::from(byte.is_some());
        byte
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.position += usize::from(found);
        found
    }

    fn either(&mut self) -> Result<Expression, String> {
        let mut choices = vec![self.sequence()?];
        while self.take(b'|') {
            choices.push(self.sequence()?);
        }
        Ok(if choices.len() == 1 { choices.remove(0) } else { Expression::Either(choices) })
    }

    fn sequence(&mut self) -> Result<Expression, String> {
        let mut items = Vec::new();
        while let Some(byte) = self.peek() {
            if byte == b'|' || byte == b')' {
                break;
            }
            items.push(self.repeated()?);
        }
        Ok(match items.len() {
            0 => Expression::Empty,
            1 => items.remove(0),
            _ => Expression::Sequence(items),
        })
    }

    fn repeated(&mut self) -> Result<Expression, String> {
        let mut expression = self.atom()?;
        loop {
            expression = if self.take(b'*') {
                Expression::Repeat(Box::new(expression), 0, true)
            } else if self.take(b'+') {
                Expression::Repeat(Box::new(expression), 1, true)
            } else if self.take(b'?') {
                Expression::Repeat(Box::new(expression), 0, false)
            } else {
                return Ok(expression);
            };
        }
    }

    fn atom(&mut self) -> Result<Expression, String> {
        match self.next() {
            Some(b'(') => {
                let inner = self.either()?;
                if !self.take(b')') {
                    return Err("group without end".to_string());
                }
                Ok(inner)
            }
            Some(b'[') => Ok(Expression::One(self.class()?)),
            Some(b'.') => Ok(Expression::One(Class::none().inverted())),
            Some(b'\\') => Ok(Expression::One(self.escape()?)),
            Some(b'{') => {
                let rest = &self.text[self.position..];
                let length =
                    rest.iter().position(|b| *b == b'}').ok_or("part without end")?;
                let name = String::from_utf8_lossy(&rest[..length]).into_owned();
                self.position += length + 1;
                self.parts.get(&name).cloned().ok_or_else(|| format!("no part {name}"))
            }
            Some(byte @ (b'*' | b'+' | b'?')) => {
                Err(format!("nothing to repeat before {}", byte as char))
            }
            Some(byte) => Ok(Expression::One(Class::of(byte))),
            None => Err("the expression ends too early".to_string()),
        }
    }

    fn escape(&mut self) -> Result<Class, String> {
        let mut class = Class::none();
        match self.next().ok_or("escape without end")? {
            b'n' => class.add(b'\n'),
            b't' => class.add(b'\t'),
            b's' => b" \t\r\n".iter().for_each(|byte| class.add(*byte)),
            b'd' => (b'0'..=b'9').for_each(|byte| class.add(byte)),
            byte => class.add(byte),
        }
        Ok(class)
    }

    fn class(&mut self) -> Result<Class, String> {
        let mut class = Class::none();
        let inverted = self.take(b'^');
        let mut first = true;
        loop {
            let byte = self.next().ok_or("class without end")?;
            if byte == b']' && !first {
                break;
            }
            first = false;
            if byte == b'\\' {
                class.add_all(&self.escape()?);
                continue;
            }
            let range = self.peek() == Some(b'-')
                && self.text.get(self.position + 1).is_some_and(|next| *next != b']');
            if range {
                self.position += 1;
                let end = self.next().ok_or("class without end")?;
                (byte..=end).for_each(|member| class.add(member));
            } else {
                class.add(byte);
            }
        }
        Ok(if inverted { class.inverted() } else { class })
    }
}

// ---- rules ----

#[derive(Debug)]
struct Rule {
    name: String,
    expression: Expression,
}

fn parse_rules(text: &str) -> Result<Vec<Rule>, String> {
    let mut parts = BTreeMap::new();
    let mut rules = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fail = |error: String| format!("rule {}: {error}", index + 1);
        let (name, rest) =
            line.split_once(' ').ok_or_else(|| fail("no expression".to_string()))?;
        let expression = Parser::parse(rest.trim_start(), &parts).map_err(fail)?;
        match name.strip_prefix('$') {
            Some(part) => {
                parts.insert(part.to_string(), expression);
            }
            None => rules.push(Rule { name: name.to_string(), expression }),
        }
    }
    if rules.is_empty() {
        return Err("there are no rules".to_string());
    }
    Ok(rules)
}

// ---- non-deterministic automaton ----

#[derive(Debug, Default)]
struct NfaState {
    on: Vec<(Class, usize)>,
    free: Vec<usize>,
    accepts: Option<usize>,
}

#[derive(Debug, Default)]
struct Nfa {
    states: Vec<NfaState>,
}

impl Nfa {
    fn build(rules: &[Rule]) -> Nfa {
        let mut nfa = Nfa::default();
        let start = nfa.add();
        for (index, rule) in rules.iter().enumerate() {
            let (from, to) = (nfa.add(), nfa.add());
            nfa.states[start].free.push(from);
            nfa.connect(&rule.expression, from, to);
            nfa.states[to].accepts = Some(index);
        }
        nfa
    }

    fn add(&mut self) -> usize {
        self.states.push(NfaState::default());
        self.states.len() - 1
    }

    fn connect(&mut self, expression: &Expression, from: usize, to: usize) {
        match expression {
            Expression::Empty => self.states[from].free.push(to),
            Expression::One(class) => self.states[from].on.push((class.clone(), to)),
            Expression::Sequence(items) => {
                let mut here = from;
                for (index, item) in items.iter().enumerate() {
                    let next = if index + 1 == items.len() { to } else { self.add() };
                    self.connect(item, here, next);
                    here = next;
                }
            }
            Expression::Either(choices) => {
                for choice in choices {
                    self.connect(choice, from, to);
                }
            }
            Expression::Repeat(inner, least, unlimited) => {
                let (begin, end) = (self.add(), self.add());
                self.connect(inner, begin, end);
                self.states[from].free.push(begin);
                self.states[end].free.push(to);
                if *least == 0 {
                    self.states[from].free.push(to);
                }
                if *unlimited {
                    self.states[end].free.push(begin);
                }
            }
        }
    }

    /// All states reachable without reading anything.
    fn closure(&self, states: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut found = states.clone();
        let mut open: Vec<usize> = states.iter().copied().collect();
        while let Some(state) = open.pop() {
            for next in &self.states[state].free {
                if found.insert(*next) {
                    open.push(*next);
                }
            }
        }
        found
    }

    fn print(&self) {
        for (index, state) in self.states.iter().enumerate() {
            let accepts = state.accepts.map_or(String::new(), |rule| format!(" accepts {rule}"));
            println!("{index}{accepts}");
            for (class, to) in &state.on {
                println!("    {} -> {to}", class.text());
            }
            for to in &state.free {
                println!("    free -> {to}");
            }
        }
    }
}

// ---- deterministic automaton ----

#[derive(Debug, Clone, Default)]
struct DfaState {
    next: BTreeMap<u8, usize>,
    accepts: Option<usize>,
}

#[derive(Debug, Default)]
struct Dfa {
    states: Vec<DfaState>,
    start: usize,
}

impl Dfa {
    /// The subset construction.
    fn build(nfa: &Nfa) -> Dfa {
        let mut dfa = Dfa::default();
        let mut known: HashMap<BTreeSet<usize>, usize> = HashMap::new();
        let first = nfa.closure(&BTreeSet::from([0]));
        let mut open = vec![first.clone()];
        known.insert(first, 0);
        dfa.states.push(DfaState::default());
        while let Some(set) = open.pop() {
            let number = known[&set];
            dfa.states[number].accepts =
                set.iter().filter_map(|state| nfa.states[*state].accepts).min();
            for byte in 0..=255u8 {
                let moved: BTreeSet<usize> = set
                    .iter()
                    .flat_map(|state| &nfa.states[*state].on)
                    .filter(|(class, _)| class.has(byte))
                    .map(|(_, to)| *to)
                    .collect();
                if moved.is_empty() {
                    continue;
                }
                let target = nfa.closure(&moved);
                let next = *known.entry(target.clone()).or_insert_with(|| {
                    dfa.states.push(DfaState::default());
                    open.push(target);
                    dfa.states.len() - 1
                });
                dfa.states[number].next.insert(byte, next);
            }
        }
        dfa
    }

    /// Joins states that cannot be told apart: first by what they accept, then, until nothing
    /// changes, by the groups they lead to.
    fn minimal(&self) -> Dfa {
        let mut groups: Vec<usize> =
            self.states.iter().map(|state| usize::from(state.accepts.is_some())).collect();
        loop {
            let mut numbers: HashMap<(usize, Vec<(u8, usize)>), usize> = HashMap::new();
            let mut refined = Vec::new();
            for (index, state) in self.states.iter().enumerate() {
                let steps: Vec<(u8, usize)> =
                    state.next.iter().map(|(byte, to)| (*byte, groups[*to])).collect();
                let fresh = numbers.len();
                refined.push(*numbers.entry((groups[index], steps)).or_insert(fresh));
            }
            let same = numbers.len() == groups.iter().collect::<BTreeSet<_>>().len();
            groups = refined;
            if same {
                break;
            }
        }
        self.joined(&groups)
    }

    fn joined(&self, groups: &[usize]) -> Dfa {
        let count = groups.iter().max().map_or(0, |largest| largest + 1);
        let mut dfa = Dfa { states: vec![DfaState::default(); count], start: groups[self.start] };
        for (index, state) in self.states.iter().enumerate() {
            let target = &mut dfa.states[groups[index]];
            target.accepts = match (target.accepts, state.accepts) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            for (byte, to) in &state.next {
                target.next.insert(*byte, groups[*to]);
            }
        }
        dfa
    }

    fn print(&self) {
        for (index, state) in self.states.iter().enumerate() {
            let start = if index == self.start { " start" } else { "" };
            let accepts = state.accepts.map_or(String::new(), |rule| format!(" accepts {rule}"));
            println!("{index}{start}{accepts}");
            let mut classes: BTreeMap<usize, Class> = BTreeMap::new();
            for (byte, to) in &state.next {
                classes.entry(*to).or_insert_with(Class::none).add(*byte);
            }
            for (to, class) in classes {
                println!("    {} -> {to}", class.text());
            }
        }
    }

    /// The longest match at the start of the text: its rule and length.
    fn longest(&self, text: &[u8]) -> Option<(usize, usize)> {
        let mut state = self.start;
        let mut best = None;
        for (index, byte) in text.iter().enumerate() {
            let Some(next) = self.states[state].next.get(byte) else { break };
            state = *next;
            if let Some(rule) = self.states[state].accepts {
                best = Some((rule, index + 1));
            }
        }
        best
    }
}

// ---- the lexer ----

struct Position {
    line: usize,
    column: usize,
}

impl Position {
    fn advance(&mut self, text: &[u8]) {
        for byte in text {
            if *byte == b'\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
    }
}

/// Prints the tokens; returns how many characters fitted no rule.
fn tokenize(dfa: &Dfa, rules: &[Rule], text: &[u8]) -> usize {
    let mut position = Position { line: 1, column: 1 };
    let mut rest = text;
    let mut unknown = 0;
    while !rest.is_empty() {
        let length = match dfa.longest(rest) {
            Some((rule, length)) => {
                let name = &rules[rule].name;
                if !name.starts_with('_') {
                    let shown = String::from_utf8_lossy(&rest[..length]).escape_debug().to_string();
                    println!("{}:{} {name} {shown}", position.line, position.column);
                }
                length
            }
            None => {
                println!("{}:{} ? {:?}", position.line, position.column, rest[0] as char);
                unknown += 1;
                1
            }
        };
        position.advance(&rest[..length]);
        rest = &rest[length..];
    }
    unknown
}

fn statistics(rules: &[Rule], nfa: &Nfa, dfa: &Dfa, minimal: &Dfa) {
    println!("{} rules", rules.len());
    println!("{} states before, {} deterministic, {} minimal", nfa.states.len(), dfa.states.len(), minimal.states.len());
    let steps: usize = minimal.states.iter().map(|state| state.next.len()).sum();
    println!("{steps} steps");
    for (index, rule) in rules.iter().enumerate() {
        let reachable = minimal.states.iter().any(|state| state.accepts == Some(index));
        if !reachable {
            println!("{} can never match", rule.name);
        }
    }
}

fn run(arguments: &[String]) -> Result<usize, String> {
    let (options, files): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|argument| argument.starts_with("--"));
    let path = files.first().ok_or("usage: lexgen [--nfa|--dfa|--minimal|--stats] RULES")?;
    let text = std::fs::read_to_string(path).map_err(|_| format!("cannot read {path}"))?;
    let rules = parse_rules(&text)?;
    let nfa = Nfa::build(&rules);
    let dfa = Dfa::build(&nfa);
    let minimal = dfa.minimal();
    match options.first().map(|option| option.as_str()) {
        Some("--nfa") => nfa.print(),
        Some("--dfa") => dfa.print(),
        Some("--minimal") => minimal.print(),
        Some("--stats") => statistics(&rules, &nfa, &dfa, &minimal),
        Some(other) => return Err(format!("no such option: {other}")),
        None => {
            let mut input = Vec::new();
            std::io::stdin().read_to_end(&mut input).map_err(|error| error.to_string())?;
            return Ok(tokenize(&minimal, &rules, &input));
        }
    }
    Ok(0)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(0) => {}
        Ok(_) => std::process::exit(1),
        Err(error) => {
            println!("lexgen: {error}");
            std::process::exit(2);
        }
    }
}
