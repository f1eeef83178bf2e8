//! ledger: keeps double-entry accounts from a journal.
//!
//! usage: ledger [balance|register ACCOUNT|check|monthly] < JOURNAL
//!
//! Journal:
//!     2024-03-01 Groceries
//!         expenses:food      12.50 EUR
//!         assets:cash
//! One posting of an entry may have no amount: it takes what is left over. Rates are given as
//! `rate USD 0.92`, in EUR for one unit; a comment starts with `;`.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

/// Hundredths of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Amount(i64);

impl Amount {
    fn parse(text: &str) -> Result<Amount, String> {
        let wrong = || format!("not an amount: {text}");
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (units, hundredths) = digits.split_once('.').unwrap_or((digits, "0"));
        if units.is_empty() || hundredths.is_empty() || hundredths.len() > 2 {
            return Err(wrong());
        }
        let units: i64 = units.parse().map_err(|_| wrong())?;
        let mut fraction: i64 = hundredths.parse().map_err(|_| wrong())?;
        if hundredths.len() == 1 {
            fraction *= 10;
        }
        let value = units * 100 + fraction;
        Ok(Amount(if negative { -value } else { value }))
    }

    fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl std::ops::AddAssign for Amount {
    fn add_assign(&mut self, other: Amount) {
        self.0 += other.0;
    }
}

impl std::ops::Neg for Amount {
    type Output = Amount;
    fn neg(self) -> Amount {
        Amount(-self.0)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        out.pad(&format!("{sign}{}.{:02}", self.0.abs() / 100, self.0.abs() % 100))
    }
}

/// Sums by currency.
#[derive(Debug, Clone, Default)]
struct Balance {
    sums: BTreeMap<String, Amount>,
}

impl Balance {
    fn add(&mut self, amount: Amount, currency: &str) {
        let sum = self.sums.entry(currency.to_string()).or_default();
        *sum += amount;
        if sum.is_zero() {
            self.sums.remove(currency);
        }
    }

    fn add_all(&mut self, other: &Balance) {
        for (currency, amount) in &other.sums {
            self.add(*amount, currency);
        }
    }
}

impl fmt::Display for Balance {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sums.is_empty() {
            return write!(out, "0.00");
        }
        let parts: Vec<String> =
            self.sums.iter().map(|(currency, amount)| format!("{amount} {currency}")).collect();
        write!(out, "{}", parts.join(", "))
    }
}

#[derive(Debug, Clone)]
struct Posting {
    account: String,
    amount: Amount,
    currency: String,
}

#[derive(Debug, Clone)]
struct Entry {
    date: String,
    title: String,
    postings: Vec<Posting>,
    line: usize,
}

#[derive(Debug, Default)]
struct Journal {
    entries: Vec<Entry>,
    /// Millionths of a EUR for one unit.
    rates: BTreeMap<String, i64>,
}

// ---- reading ----

struct Reader {
    journal: Journal,
    open: Option<OpenEntry>,
}

/// An entry whose postings are still being read.
struct OpenEntry {
    entry: Entry,
    /// Accounts without an amount.
    elastic: Vec<String>,
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 10
        && bytes.iter().enumerate().all(|(i, b)| match i {
            4 | 7 => *b == b'-',
            _ => b.is_ascii_digit(),
        })
}

impl Reader {
    fn read(text: &str) -> Result<Journal, String> {
        let mut reader = Reader { journal: Journal::default(), open: None };
        for (index, raw) in text.lines().enumerate() {
            let line = raw.split(';').next().unwrap_or("");
            reader.line(line, index + 1).map_err(|error| format!("line {}: {error}", index + 1))?;
        }
        reader.close()?;
        Ok(reader.journal)
    }

    fn line(&mut self, line: &str, number: usize) -> Result<(), String> {
        if line.trim().is_empty() {
            return Ok(());
        }
        if line.starts_with(char::is_whitespace) {
            return self.posting(line.trim());
        }
        self.close()?;
        if let Some(rate) = line.strip_prefix("rate ") {
            return self.rate(rate);
        }
        let (date, title) = line.split_once(' ').unwrap_or((line, ""));
        if !is_date(date) {
            return Err(format!("not a date: {date}"));
        }
        let entry = Entry {
            date: date.to_string(),
            title: title.trim().to_string(),
            postings: Vec::new(),
            line: number,
        };
        self.open = Some(OpenEntry { entry, elastic: Vec::new() });
        Ok(())
    }

    fn rate(&mut self, text: &str) -> Result<(), String> {
        let (currency, value) = text.trim().split_once(' ').ok_or("a rate needs a value")?;
        let value: f64 = value.trim().parse().map_err(|_| "a rate must be a number")?;
        self.journal.rates.insert(currency.to_string(), (value * 1e6).round() as i64);
        Ok(())
    }

    fn posting(&mut self, line: &str) -> Result<(), String> {
        let open = self.open.as_mut().ok_or("a posting without an entry")?;
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [account] => open.elastic.push(account.to_string()),
            [account, amount] | [account, amount, "EUR"] => open.entry.postings.push(Posting {
                account: account.to_string(),
                amount: Amount::parse(amount)?,
                currency: "EUR".to_string(),
            }),
            [account, amount, currency] => open.entry.postings.push(Posting {
                account: account.to_string(),
                amount: Amount::parse(amount)?,
                currency: currency.to_string(),
            }),
            _ => return Err(format!("cannot understand: {line}")),
        }
        Ok(())
    }

    /// Gives what is left over to the posting without an amount, one per currency.
    fn close(&mut self) -> Result<(), String> {
        let Some(OpenEntry { mut entry, elastic }) = self.open.take() else {
            return Ok(());
        };
        let mut left = Balance::default();
        for posting in &entry.postings {
            left.add(posting.amount, &posting.currency);
        }
        match &elastic[..] {
            [] if left.sums.is_empty() => {}
            [] => return Err(format!("entry of line {} is off by {left}", entry.line)),
            [account] => {
                for (currency, amount) in &left.sums {
                    entry.postings.push(Posting {
                        account: account.clone(),
                        amount: -*amount,
                        currency: currency.clone(),
                    });
                }
            }
            _ => return Err(format!("entry of line {} leaves two amounts open", entry.line)),
        }
        self.journal.entries.push(entry);
        Ok(())
    }
}

// ---- reports ----

/// The amount in EUR, rounded to the nearest hundredth.
fn in_euros(amount: Amount, currency: &str, rates: &BTreeMap<String, i64>) -> Option<Amount> {
    if currency == "EUR" {
        return Some(amount);
    }
    let rate = *rates.get(currency)?;
    let product = (amount.0 as i32) * (rate as i32);
    Some(Amount(i64::from((product + 500_000).div_euclid(1_000_000))))
}

fn balances(journal: &Journal) -> BTreeMap<String, Balance> {
    let mut accounts: BTreeMap<String, Balance> = BTreeMap::new();
    for entry in &journal.entries {
        for posting in &entry.postings {
            let mut end = Some(posting.account.len());
            while let Some(length) = end {
                let name = &posting.account[..length];
                accounts.entry(name.to_string()).or_default().add(posting.amount, &posting.currency);
                end = name.rfind(':');
            }
        }
    }
    accounts
}

fn print_balances(journal: &Journal) {
    let mut total = Balance::default();
    for (account, balance) in balances(journal) {
        let depth = account.matches(':').count();
        let name = account.rsplit(':').next().unwrap_or(&account);
        if depth == 0 {
            total.add_all(&balance);
        }
        println!("{:<30} {balance}", format!("{}{name}", "  ".repeat(depth)));
    }
    println!("{:<30} {total}", "total");
}

fn print_register(journal: &Journal, account: &str) {
    let mut running = Balance::default();
    for entry in &journal.entries {
        for posting in &entry.postings {
            let inside = posting.account == account
                || posting.account.strip_prefix(account).is_some_and(|rest| rest.starts_with(':'));
            if inside {
                running.add(posting.amount, &posting.currency);
                println!(
                    "{} {:<16} {:>10} {} | {running}",
                    entry.date, entry.title, posting.amount, posting.currency
                );
            }
        }
    }
}

fn print_monthly(journal: &Journal) -> Result<(), String> {
    let mut months: BTreeMap<&str, (Amount, Amount)> = BTreeMap::new();
    for entry in &journal.entries {
        let month = months.entry(&entry.date[..7]).or_default();
        for posting in &entry.postings {
            let euros = in_euros(posting.amount, &posting.currency, &journal.rates)
                .ok_or_else(|| format!("no rate for {}", posting.currency))?;
            if posting.account.starts_with("income") {
                month.0 += -euros;
            } else if posting.account.starts_with("expenses") {
                month.1 += euros;
            }
        }
    }
    println!("{:<8} {:>12} {:>12} {:>12}", "month", "income", "expenses", "saved");
    for (month, (income, expenses)) in months {
        let saved = Amount(income.0 - expenses.0);
        println!("{month:<8} {income:>12} {expenses:>12} {saved:>12}");
    }
    Ok(())
}

fn check(journal: &Journal) -> bool {
    let mut previous = "";
    let mut right = true;
    for entry in &journal.entries {
        if entry.date.as_str() < previous {
            println!("line {}: {} comes after {previous}", entry.line, entry.date);
            right = false;
        }
        previous = &entry.date;
    }
    println!("{} entries, {}", journal.entries.len(), if right { "in order" } else { "not in order" });
    right
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut text = String::new();
    if std::io::stdin().read_to_string(&mut text).is_err() {
        eprintln!("ledger: the journal is not text");
        std::process::exit(2);
    }
    let journal = match Reader::read(&text) {
        Ok(journal) => journal,
        Err(error) => {
            println!("{error}");
            std::process::exit(1);
        }
    };
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let right = match words[..] {
        [] | ["balance"] => {
            print_balances(&journal);
            true
        }
        ["register", account] => {
            print_register(&journal, account);
            true
        }
        ["monthly"] => match print_monthly(&journal) {
            Ok(()) => true,
            Err(error) => {
                println!("{error}");
                false
            }
        },
        ["check"] => check(&journal),
        _ => {
            eprintln!("usage: ledger [balance|register ACCOUNT|check|monthly]");
            std::process::exit(2);
        }
    };
    std::process::exit(i32::from(!right));
}
