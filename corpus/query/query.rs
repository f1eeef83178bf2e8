//! query: runs small queries over tables in CSV files.
//!
//! usage: query TABLE=FILE... < QUERIES
//!
//! One query per line:
//!     select COLUMN|COUNT|SUM(c)|MIN(c)|MAX(c)|AVG(c)|*,... from TABLE [join TABLE on a = b]
//!         [where CONDITION] [group by COLUMN] [order by COLUMN [desc]] [limit N]
//! Conditions: comparisons (= <> < <= > >=), `like` with % at either end, and, or, not, brackets.
//! Values are whole numbers or text in single quotes; an empty field is null and compares with
//! nothing.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::io::BufRead;

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Null,
    Number(i64),
    Text(String),
}

impl Value {
    fn parse(field: &str) -> Value {
        if field.is_empty() {
            Value::Null
        } else if let Ok(number) = field.parse() {
            Value::Number(number)
        } else {
            Value::Text(field.to_string())
        }
    }

    /// The order of two values; none if one is null.
    fn compare(&self, other: &Value) -> Option<Ordering> {
        match (self, other) {
            (Value::Null, _) | (_, Value::Null) => None,
            (Value::Number(a), Value::Number(b)) => Some(a.cmp(b)),
            (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
            (Value::Number(_), Value::Text(_)) => Some(Ordering::Less),
            (Value::Text(_), Value::Number(_)) => Some(Ordering::Greater),
        }
    }

    /// A total order for sorting and grouping: nulls first.
    fn order(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Null, Value::Null) => Ordering::Equal,
            (Value::Null, _) => Ordering::Less,
            (_, Value::Null) => Ordering::Greater,
            _ => self.compare(other).unwrap_or(Ordering::Equal),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => out.pad("-"),
            Value::Number(number) => out.pad(&number.to_string()),
            Value::Text(text) => out.pad(text),
        }
    }
}

#[derive(Debug, Clone, Default)]
struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl Table {
    fn parse(text: &str) -> Table {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let columns: Vec<String> =
            lines.next().unwrap_or("").split(',').map(|name| name.trim().to_string()).collect();
        let rows = lines
            .map(|line| {
                let mut row: Vec<Value> =
                    line.split(',').map(|field| Value::parse(field.trim())).collect();
                row.resize(columns.len(), Value::Null);
                row
            })
            .collect();
        Table { columns, rows }
    }

    fn column(&self, name: &str) -> Result<usize, String> {
        let short = name.rsplit('.').next().unwrap_or(name);
        self.columns
            .iter()
            .position(|column| column == name)
            .or_else(|| {
                self.columns.iter().position(|column| column.rsplit('.').next() == Some(short))
            })
            .ok_or_else(|| format!("no column {name}"))
    }
}

// ---- tokens ----

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Number(i64),
    Text(String),
    Symbol(String),
}

fn tokens(line: &str) -> Result<Vec<Token>, String> {
    let characters: Vec<char> = line.chars().collect();
    let mut result = Vec::new();
    let mut i = 0;
    while i < characters.len() {
        let c = characters[i];
        if c.is_whitespace() {
            i += 1;
        } else if c.is_alphabetic() || c == '_' {
            let start = i;
            while i < characters.len()
                && (characters[i].is_alphanumeric() || characters[i] == '_' || characters[i] == '.')
            {
                i += 1;
            }
            result.push(Token::Word(characters[start..i].iter().collect()));
        } else if c.is_ascii_digit()
            || (c == '-' && characters.get(i + 1).is_some_and(|next| next.is_ascii_digit()))
        {
            let start = i;
            i += 1;
            while i < characters.len() && characters[i].is_ascii_digit() {
                i += 1;
            }
            let digits: String = characters[start..i].iter().collect();
            result.push(Token::Number(digits.parse().map_err(|_| "number too long".to_string())?));
        } else if c == '\'' {
            let start = i + 1;
            i = start;
            while i < characters.len() && characters[i] != '\'' {
                i += 1;
            }
            if i == characters.len() {
                return Err("text without end".to_string());
            }
            result.push(Token::Text(characters[start..i].iter().collect()));
            i += 1;
        } else {
            let two: String = characters[i..characters.len().min(i + 2)].iter().collect();
            if ["<=", ">=", "<>"].contains(&two.as_str()) {
                result.push(Token::Symbol(two));
                i += 2;
            } else if "=<>(),*".contains(c) {
                result.push(Token::Symbol(c.to_string()));
                i += 1;
            } else {
                return Err(format!("unexpected {c}"));
            }
        }
    }
    Ok(result)
}

// ---- queries ----

#[derive(Debug, Clone)]
enum Operand {
    Column(String),
    Constant(Value),
}

#[derive(Debug, Clone)]
enum Condition {
    Compare(Operand, String, Operand),
    Like(Operand, String),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
    Not(Box<Condition>),
}

#[derive(Debug, Clone)]
enum Output {
    All,
    Column(String),
    Count,
    Aggregate(String, String),
}

#[derive(Debug, Clone)]
struct Join {
    table: String,
    left: String,
    right: String,
}

#[derive(Debug, Clone)]
struct Query {
    outputs: Vec<Output>,
    table: String,
    join: Option<Join>,
    condition: Option<Condition>,
    group: Option<String>,
    order: Option<(String, bool)>,
    limit: Option<usize>,
}

struct Parser {
    tokens: Vec<Token>,
    position: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.position)
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(w)) if w.eq_ignore_ascii_case(word));
        self.position += usize::from(found);
        found
    }

    fn take_symbol(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Symbol(s)) if s == symbol);
        self.position += usize::from(found);
        found
    }

    fn need_word(&mut self, word: &str) -> Result<(), String> {
        if self.take_word(word) { Ok(()) } else { Err(format!("expected {word}")) }
    }

    fn need_symbol(&mut self, symbol: &str) -> Result<(), String> {
        if self.take_symbol(symbol) { Ok(()) } else { Err(format!("expected {symbol}")) }
    }

    fn name(&mut self) -> Result<String, String> {
        match self.peek().cloned() {
            Some(Token::Word(word)) => {
                self.position += 1;
                Ok(word)
            }
            _ => Err("expected a name".to_string()),
        }
    }

    fn query(&mut self) -> Result<Query, String> {
        self.need_word("select")?;
        let mut outputs = vec![self.output()?];
        while self.take_symbol(",") {
            outputs.push(self.output()?);
        }
        self.need_word("from")?;
        let table = self.name()?;
        let join = if self.take_word("join") { Some(self.join()?) } else { None };
        let condition = if self.take_word("where") { Some(self.disjunction()?) } else { None };
        let mut group = None;
        if self.take_word("group") {
            self.need_word("by")?;
            group = Some(self.name()?);
        }
        let mut order = None;
        if self.take_word("order") {
            self.need_word("by")?;
            let column = self.name()?;
            order = Some((column, self.take_word("desc")));
        }
        let mut limit = None;
        if self.take_word("limit") {
            match self.peek() {
                Some(Token::Number(number)) if *number >= 0 => limit = Some(*number as usize),
                _ => return Err("expected a limit".to_string()),
            }
            self.position += 1;
        }
        if self.position < self.tokens.len() {
            return Err("trailing text".to_string());
        }
        Ok(Query { outputs, table, join, condition, group, order, limit })
    }

    fn output(&mut self) -> Result<Output, String> {
        if self.take_symbol("*") {
            return Ok(Output::All);
        }
        let name = self.name()?;
        let upper = name.to_uppercase();
        if upper == "COUNT" {
            return Ok(Output::Count);
        }
        if ["SUM", "MIN", "MAX", "AVG"].contains(&upper.as_str()) && self.take_symbol("(") {
            let column = self.name()?;
            self.need_symbol(")")?;
            return Ok(Output::Aggregate(upper, column));
        }
        Ok(Output::Column(name))
    }

    fn join(&mut self) -> Result<Join, String> {
        let table = self.name()?;
        self.need_word("on")?;
        let left = self.name()?;
        self.need_symbol("=")?;
        let right = self.name()?;
        Ok(Join { table, left, right })
    }

    fn disjunction(&mut self) -> Result<Condition, String> {
        let mut condition = self.conjunction()?;
        while self.take_word("or") {
            condition = Condition::Or(Box::new(condition), Box::new(self.conjunction()?));
        }
        Ok(condition)
    }

    fn conjunction(&mut self) -> Result<Condition, String> {
        let mut condition = self.negation()?;
        while self.take_word("and") {
            condition = Condition::And(Box::new(condition), Box::new(self.negation()?));
        }
        Ok(condition)
    }

    fn negation(&mut self) -> Result<Condition, String> {
        if self.take_word("not") {
            return Ok(Condition::Not(Box::new(self.negation()?)));
        }
        if self.take_symbol("(") {
            let condition = self.disjunction()?;
            self.need_symbol(")")?;
            return Ok(condition);
        }
        let left = self.operand()?;
        if self.take_word("like") {
            return match self.operand()? {
                Operand::Constant(Value::Text(pattern)) => Ok(Condition::Like(left, pattern)),
                _ => Err("like needs a text".to_string()),
            };
        }
        for symbol in ["<=", ">=", "<>", "=", "<", ">"] {
            if self.take_symbol(symbol) {
                return Ok(Condition::Compare(left, symbol.to_string(), self.operand()?));
            }
        }
        Err("expected a comparison".to_string())
    }

    fn operand(&mut self) -> Result<Operand, String> {
        let operand = match self.peek().cloned() {
            Some(Token::Word(word)) => Operand::Column(word),
            Some(Token::Number(number)) => Operand::Constant(Value::Number(number)),
            Some(Token::Text(text)) => Operand::Constant(Value::Text(text)),
            _ => return Err("expected a value".to_string()),
        };
        self.position += 1;
        Ok(operand)
    }
}

// ---- running ----

struct Database {
    tables: BTreeMap<String, Table>,
}

impl Database {
    fn table(&self, name: &str) -> Result<&Table, String> {
        self.tables.get(name).ok_or_else(|| format!("no table {name}"))
    }

    fn run(&self, query: &Query) -> Result<Table, String> {
        let mut source = self.table(&query.table)?.clone();
        if let Some(join) = &query.join {
            source = joined(&query.table, &source, self.table(&join.table)?, join)?;
        }
        if let Some(condition) = &query.condition {
            source = filtered(source, condition)?;
        }
        let sort_after = query.group.is_some();
        if let (Some((column, descending)), false) = (&query.order, sort_after) {
            sort(&mut source, column, *descending)?;
        }
        let mut result = project(&source, query)?;
        if let (Some((column, descending)), true) = (&query.order, sort_after) {
            sort(&mut result, column, *descending)?;
        }
        if let Some(limit) = query.limit {
            result.rows.truncate(limit);
        }
        Ok(result)
    }
}

/// Every pair of rows whose columns are equal; the columns get the names of their tables.
fn joined(name: &str, left: &Table, right: &Table, join: &Join) -> Result<Table, String> {
    let left_column = left.column(&join.left)?;
    let right_column = right.column(&join.right)?;
    let mut result = Table::default();
    for column in &left.columns {
        result.columns.push(format!("{name}.{column}"));
    }
    for column in &right.columns {
        result.columns.push(format!("{}.{column}", join.table));
    }
    for a in &left.rows {
        for b in &right.rows {
            if a[left_column].compare(&b[right_column]) == Some(Ordering::Equal) {
                result.rows.push(a.iter().chain(b).cloned().collect());
            }
        }
    }
    Ok(result)
}

fn filtered(table: Table, condition: &Condition) -> Result<Table, String> {
    let mut rows = Vec::new();
    for row in &table.rows {
        if holds(condition, &table, row)? {
            rows.push(row.clone());
        }
    }
    Ok(Table { columns: table.columns, rows })
}

fn value_of(operand: &Operand, table: &Table, row: &[Value]) -> Result<Value, String> {
    match operand {
        Operand::Constant(value) => Ok(value.clone()),
        Operand::Column(name) => Ok(row[table.column(name)?].clone()),
    }
}

fn holds(condition: &Condition, table: &Table, row: &[Value]) -> Result<bool, String> {
    Ok(match condition {
        Condition::And(a, b) => holds(a, table, row)? && holds(b, table, row)?,
        Condition::Or(a, b) => holds(a, table, row)? || holds(b, table, row)?,
        Condition::Not(inner) => !holds(inner, table, row)?,
        Condition::Like(operand, pattern) => match value_of(operand, table, row)? {
            Value::Text(text) => like(&text, pattern),
            _ => false,
        },
        Condition::Compare(left, symbol, right) => {
            let order = value_of(left, table, row)?.compare(&value_of(right, table, row)?);
            match (order, symbol.as_str()) {
                (None, _) => false,
                (Some(order), "=") => order == Ordering::Equal,
                (Some(order), "<>") => order != Ordering::Equal,
                (Some(order), "<") => order == Ordering::Less,
                (Some(order), "<=") => order != Ordering::Greater,
                (Some(order), ">") => order == Ordering::Greater,
                (Some(order), _) => order != Ordering::Less,
            }
        }
    })
}

fn like(text: &str, pattern: &str) -> bool {
    let inner = pattern.trim_matches('%');
    match (pattern.starts_with('%'), pattern.ends_with('%')) {
        (true, true) => text.contains(inner),
        (true, false) => text.ends_with(inner),
        (false, true) => text.starts_with(inner),
        (false, false) => text == inner,
    }
}

fn sort(table: &mut Table, column: &str, descending: bool) -> Result<(), String> {
    let index = table.column(column)?;
    table.rows.sort_by(|a, b| {
        let order = a[index].order(&b[index]);
        if descending { order.reverse() } else { order }
    });
    Ok(())
}

fn output_name(output: &Output) -> String {
    match output {
        Output::All => "*".to_string(),
        Output::Column(name) => name.clone(),
        Output::Count => "count".to_string(),
        Output::Aggregate(function, column) => format!("{}({column})", function.to_lowercase()),
    }
}

/// Chooses the columns of the result, or works out one row per group.
fn project(source: &Table, query: &Query) -> Result<Table, String> {
    let aggregates = query.group.is_some()
        || query.outputs.iter().any(|o| matches!(o, Output::Count | Output::Aggregate(..)));
    let mut outputs = Vec::new();
    for output in &query.outputs {
        match output {
            Output::All => outputs.extend(source.columns.iter().cloned().map(Output::Column)),
            other => outputs.push(other.clone()),
        }
    }
    let mut result = Table::default();
    result.columns = outputs.iter().map(output_name).collect();
    let groups: Vec<Vec<&Vec<Value>>> = if aggregates {
        groups(source, query.group.as_deref())?
    } else {
        source.rows.iter().map(|row| vec![row]).collect()
    };
    for group in groups {
        let mut row = Vec::new();
        for output in &outputs {
            row.push(match output {
                Output::Count => Value::Number(group.len() as i64),
                Output::Aggregate(function, column) => {
                    aggregate(function, &group, source.column(column)?)
                }
                Output::Column(name) => {
                    let index = source.column(name)?;
                    group.first().map_or(Value::Null, |row| row[index].clone())
                }
                Output::All => unreachable!("stars were replaced"),
            });
        }
        result.rows.push(row);
    }
    Ok(result)
}

fn groups<'a>(source: &'a Table, by: Option<&str>) -> Result<Vec<Vec<&'a Vec<Value>>>, String> {
    let Some(by) = by else {
        return Ok(vec![source.rows.iter().collect()]);
    };
    let index = source.column(by)?;
    let mut sorted: Vec<&Vec<Value>> = source.rows.iter().collect();
    sorted.sort_by(|a, b| a[index].order(&b[index]));
    let mut groups: Vec<Vec<&Vec<Value>>> = Vec::new();
    for row in sorted {
        match groups.last_mut() {
            Some(group) if group[0][index] == row[index] => group.push(row),
            _ => groups.push(vec![row]),
        }
    }
    Ok(groups)
}

fn aggregate(function: &str, group: &[&Vec<Value>], index: usize) -> Value {
    let mut numbers = Vec::new();
    for row in group {
        if let Value::Number(number) = row[index] {
            numbers.push(number);
        }
    }
    if numbers.is_empty() {
        return Value::Null;
    }
    let sum: i64 = numbers.iter().sum();
    Value::Number(match function {
        "SUM" => sum,
        "MIN" => numbers.iter().copied().min().unwrap_or(0),
        "MAX" => numbers.iter().copied().max().unwrap_or(0),
        _ => sum / group.len() as i64,
    })
}

// ---- printing ----

fn print(table: &Table) {
    let mut widths: Vec<usize> = table.columns.iter().map(|name| name.len()).collect();
    for row in &table.rows {
        for (width, value) in widths.iter_mut().zip(row) {
            *width = (*width).max(value.to_string().len());
        }
    }
    let line = |cells: Vec<String>| println!("{}", cells.join("  ").trim_end());
    line(table.columns.iter().zip(&widths).map(|(name, width)| format!("{name:<width$}")).collect());
    for row in &table.rows {
        line(
            row.iter()
                .zip(&widths)
                .map(|(value, width)| match value {
                    Value::Number(_) => format!("{value:>width$}"),
                    _ => format!("{value:<width$}"),
                })
                .collect(),
        );
    }
    println!("({} rows)", table.rows.len());
}

fn load(arguments: impl Iterator<Item = String>) -> Result<Database, String> {
    let mut tables = BTreeMap::new();
    for argument in arguments {
        let (name, path) =
            argument.split_once('=').ok_or_else(|| format!("expected TABLE=FILE, not {argument}"))?;
        let text =
            std::fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"))?;
        tables.insert(name.to_string(), Table::parse(&text));
    }
    Ok(Database { tables })
}

fn main() {
    let database = match load(std::env::args().skip(1)) {
        Ok(database) => database,
        Err(error) => {
            eprintln!("query: {error}");
            std::process::exit(2);
        }
    };
    let mut errors = 0;
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap_or_default();
        if line.trim().is_empty() {
            continue;
        }
        let answer = tokens(&line)
            .and_then(|tokens| Parser { tokens, position: 0 }.query())
            .and_then(|query| database.run(&query));
        match answer {
            Ok(table) => print(&table),
            Err(error) => {
                println!("error: {error}");
                errors += 1;
            }
        }
    }
    std::process::exit(i32::from(errors > 0));
}
