//! How much a terminal can show.

/// What text may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Escape sequences for colours.
    pub colour: bool,
    /// Characters in a line.
    pub width: usize,
}

impl Style {
    /// What fits everywhere.
    pub const PLAIN: Style = Style { colour: false, width: 80 };

    /// Stands out.
    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// Stands back.
    pub fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// A text in lines of so many characters, broken between words.
    pub fn wrapped(text: &str, width: usize) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split(' ') {
            match lines.last_mut() {
                Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                    line.push(' ');
                    line.push_str(word);
                }
                Some(_) => lines.push(format!("  {word}")),
                None => lines.push(word.to_owned()),
            }
        }
        lines
    }

    /// A text cut to a number of characters, with nothing that a terminal would
    /// obey. What is cut ends in `…`.
    pub fn cut(text: &str, width: usize) -> String {
        let clean = |c: char| if c.is_control() { ' ' } else { c };
        if text.chars().count() <= width {
            return text.chars().map(clean).collect();
        }
        let kept: String = text.chars().take(width.saturating_sub(1)).map(clean).collect();
        kept + "…"
    }
}

/// A number with its thousands apart.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A share in percent, with as many digits as make sense.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "0 %".to_owned();
    }
    let share = 100.0 * part as f64 / whole as f64;
    if share >= 10.0 || part == 0 { format!("{share:.0} %") } else { format!("{share:.1} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_easy_to_read() {
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([percent(1, 3), percent(1, 100), percent(0, 5)], ["33 %", "1.0 %", "0 %"]);
    }

    #[test]
    fn what_is_cut_says_so_and_is_harmless() {
        assert_eq!(Style::cut("a\tb\x1b[2J", 10), "a b [2J");
        assert_eq!(Style::cut("abcdef", 4), "abc…");
    }
}
