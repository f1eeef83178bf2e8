//! How values look to people: sizes, dates, command lines.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::time::Duration;

use recording::ByteString;

/// A number of bytes, rounded to three digits.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if value < 9.95 { 1 } else { 0 };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// Reads a time: a number, then nothing or one of ms, s, m, h.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => Some(0.001),
        "" | "s" => Some(1.0),
        "m" | "min" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    };
    let seconds = digits.parse::<f64>().ok().zip(unit).map(|(number, unit)| number * unit);
    seconds
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "write a time as 30s, 500ms or 2m".to_owned())
}

/// Reads a number of bytes: digits, then nothing or one of K, M, G, T for powers of 1024.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let power = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 1,
        "M" | "MB" | "MIB" => 2,
        "G" | "GB" | "GIB" => 3,
        "T" | "TB" | "TIB" => 4,
        _ => return Err("write a size as 500M or 2G".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| "write a size as 500M or 2G".to_owned())?;
    number.checked_mul(1 << (10 * power)).ok_or_else(|| "that is too much".to_owned())
}

/// Words one after the other.
pub fn listed(words: &BTreeSet<String>) -> String {
    words.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// An instant, in seconds since 1970, as date and time in UTC.
pub fn date(seconds: u64) -> String {
    let (day, second) = (seconds / 86400, seconds % 86400);
    let (year, month, day) = civil(day);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// Year, month and day of the day that is so many days after 1970-01-01.
fn civil(mut day: u64) -> (u64, u64, u64) {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    // 400 years have 146097 days, whichever they are.
    let mut year = 1970 + day / 146_097 * 400;
    day %= 146_097;
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    (year, month, day + 1)
}

/// A command line that a shell would read as these words, with nothing a terminal would obey.
pub fn command(words: &[ByteString]) -> String {
    words.iter().map(|word| quoted(&word.0)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &[u8]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-+=./:,@%^".contains(c);
    match std::str::from_utf8(word) {
        Ok(text) if !text.is_empty() && text.chars().all(plain) => text.to_owned(),
        Ok(text) if !text.contains(is_unprintable) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => escaped(word),
    }
}

/// `$'…'` as bash, zsh and the latest POSIX read it.
fn escaped(word: &[u8]) -> String {
    let mut out = String::from("$'");
    for chunk in word.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => out.push_str(r"\n"),
                '\t' => out.push_str(r"\t"),
                '\'' | '\\' => out.extend(['\\', c]),
                c if is_unprintable(c) => {
                    let mut bytes = [0; 4];
                    c.encode_utf8(&mut bytes).bytes().for_each(|byte| push_octal(&mut out, byte));
                }
                c => out.push(c),
            }
        }
        chunk.invalid().iter().for_each(|&byte| push_octal(&mut out, byte));
    }
    out + "'"
}

fn push_octal(out: &mut String, byte: u8) {
    let _ = write!(out, "\\{byte:03o}");
}

/// Control characters, and those that turn the direction of a text.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Columns that a line may have.
const WIDTH: usize = 80;

/// Writes a text behind `begin`, in as many lines as it needs. Those that follow are indented
/// by so many columns. Lines break at spaces, and words that are longer than a line anywhere.
pub fn hanging(begin: &str, text: &str, indent: usize, out: &mut dyn io::Write) -> io::Result<()> {
    let mut line = begin.to_owned();
    let mut empty = true;
    for word in text.split(' ') {
        let room = WIDTH.saturating_sub(line.chars().count());
        let needed = word.chars().count() + usize::from(!empty);
        if needed > room && !empty {
            writeln!(out, "{line}")?;
            line = " ".repeat(indent);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        for c in word.chars() {
            if line.chars().count() >= WIDTH {
                writeln!(out, "{line}")?;
                line = " ".repeat(indent);
            }
            line.push(c);
        }
        empty = false;
    }
    writeln!(out, "{line}")
}

/// What stdout can show.
pub fn style() -> report::Style {
    let terminal = std::io::stdout().is_terminal();
    let colour = terminal && std::env::var_os("NO_COLOR").is_none();
    report::Style { colour, width: 80 }
}

/// `text` in bold, if stdout is a terminal that wants it.
pub fn bold(text: &str) -> String {
    let wanted = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    if wanted { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_two_or_three_digits() {
        let sizes = [0, 1023, 1024, 10 << 10, 1000 << 10, 1 << 20, 1536 << 20, u64::MAX];
        let shown =
            ["0 B", "1023 B", "1.0 KiB", "10 KiB", "1.0 MiB", "1.0 MiB", "1.5 GiB", "16 EiB"];
        assert_eq!(sizes.map(size), shown);
    }

    fn hung(begin: &str, text: &str, indent: usize) -> Vec<String> {
        let mut out = Vec::new();
        hanging(begin, text, indent, &mut out).expect("memory");
        String::from_utf8(out).expect("text").lines().map(str::to_owned).collect()
    }

    #[test]
    fn long_texts_hang_and_lose_nothing() {
        assert_eq!(hung("a ", "b c", 2), ["a b c"]);
        assert_eq!(hung("a ", "", 2), ["a "]);
        let words = ["word"; 40].join(" ");
        let path = format!("/{}", "long/".repeat(60));
        for text in [words, path.clone(), format!("x {path} y")] {
            let lines = hung("name   ", &text, 7);
            assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:?}");
            assert!(lines.len() > 2 && lines[1..].iter().all(|line| line.starts_with("       ")));
            let bare: String = lines.iter().map(|line| line[7..].trim_end()).collect();
            assert_eq!(bare.replace(' ', ""), text.replace(' ', ""));
        }
    }

    #[test]
    fn times_are_read_with_their_units() {
        let seconds = |text| parse_time(text).map(|time| time.as_secs_f64());
        for (text, wanted) in [("30s", 30.0), ("1.5", 1.5), ("500ms", 0.5), ("2m", 120.0)] {
            assert_eq!(seconds(text), Ok(wanted), "{text}");
        }
        for text in ["", "s", "0", "-1", "5 days", "nan", "inf", "1e300h"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!(parse_size("12"), Ok(12));
        assert_eq!(parse_size("3k"), Ok(3 << 10));
        assert_eq!(parse_size("500MiB"), Ok(500 << 20));
        assert_eq!(parse_size("2G"), Ok(2 << 30));
        for wrong in ["", "G", "-1", "1.5G", "1X", "99999999T", "9é"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn dates_follow_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_709_251_199), "2024-02-29 23:59 UTC");
        assert_eq!(date(4_107_542_400), "2100-03-01 00:00 UTC");
        assert_eq!(date(1_767_225_599), "2025-12-31 23:59 UTC");
    }

    #[test]
    fn commands_are_quoted_for_a_shell_and_safe_for_a_terminal() {
        let words =
            [&b"ls"[..], b"-l", b"", b"a b", b"it's", b"x\n\x1b[2J", b"\xff", "größe".as_bytes()];
        let words: Vec<_> = words.iter().map(|word| ByteString(word.to_vec())).collect();
        assert_eq!(command(&words), r"ls -l '' 'a b' 'it'\''s' $'x\n\033[2J' $'\377' größe");
    }
}
