//! Which numbers does a line of source say? Code has others beside: how far a member is from
//! the beginning, what to multiply with instead of dividing. Nobody wrote those, and nobody
//! would write another.

use iced_x86::{Instruction, Mnemonic};
use position::{At, PlaceId, Run};

/// The numbers that a line says.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    /// It may be any: there is no source, or it has a name in it that may stand for one.
    Any,
    /// These.
    These {
        /// The numbers.
        numbers: Vec<i64>,
        /// It may divide, which is done by multiplying with a large number.
        divides: bool,
    },
}

/// Smaller ones may well be meant without being said, as in `i++`.
const LARGE: i64 = 0xffff;

impl Said {
    /// Looks at the line.
    pub fn in_line(run: &Run, place: PlaceId) -> Said {
        let At::Line(file, line) = run.places.get(place).at else { return Said::Any };
        let source = run.program.source(file);
        source.as_ref().and_then(|s| s.line(line)).map_or(Said::Any, Said::in_text)
    }

    fn in_text(text: &str) -> Said {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let words = || text.split(|c: char| !is_part(c)).filter(|word| !word.is_empty());
        let is_name = |word: &str| !word.starts_with(|c: char| c.is_ascii_digit());
        let is_constant = |word: &str| !word.contains(|c: char| c.is_lowercase());
        // A letter in quotes is a number too.
        if text.contains('\'') || words().any(|word| is_name(word) && is_constant(word)) {
            return Said::Any;
        }
        let divides = text.contains(['/', '%']);
        Said::These { numbers: words().filter_map(number).collect(), divides }
    }

    /// May a number that an instruction has be one that somebody wrote?
    pub fn may_mean(&self, i: &Instruction, number: i64) -> bool {
        let Said::These { numbers: said, divides } = self else { return true };
        if matches!(i.mnemonic(), Mnemonic::Shl | Mnemonic::Sal | Mnemonic::Shr | Mnemonic::Sar) {
            // Multiplying by 8 is shifting by 3.
            return said.contains(&number) || said.contains(&(1 << number.clamp(0, 62)));
        }
        let adds = matches!(i.mnemonic(), Mnemonic::Add | Mnemonic::Sub);
        if adds && i.op0_register().is_gpr64() && number > 1 {
            return !said.is_empty();
        }
        let multiplies = matches!(i.mnemonic(), Mnemonic::Imul | Mnemonic::Mul | Mnemonic::Mov);
        let is_reciprocal = *divides && multiplies && number.abs() > LARGE;
        !is_reciprocal || said.iter().any(|said| *said as u32 == number as u32)
    }
}

/// A number as C, C++ and Rust write whole ones.
fn number(word: &str) -> Option<i64> {
    let plain: String = word.chars().filter(|c| *c != '_').collect();
    let (digits, radix) = match plain.strip_prefix("0x").or(plain.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (&plain[..], 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    i64::from_str_radix(&digits[..end], radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn decoded(bytes: &[u8]) -> Instruction {
        Decoder::new(64, bytes, DecoderOptions::NONE).decode()
    }

    #[test]
    fn numbers_are_found_as_languages_write_them() {
        let these = |numbers: &[i64]| Said::These { numbers: numbers.to_vec(), divides: false };
        assert_eq!(Said::in_text("x = 0x1f + 70_000u32;"), these(&[31, 70_000]));
        assert_eq!(Said::in_text("unlock(&pool->lock);"), these(&[]));
        assert_eq!(Said::in_text("if (n > MOST)"), Said::Any);
        assert_eq!(Said::in_text("if (c == 'x')"), Said::Any);
    }

    #[test]
    fn what_nobody_wrote_is_not_meant() {
        // add rax, 136
        let member = decoded(&[0x48, 0x05, 0x88, 0, 0, 0]);
        assert!(!Said::in_text("unlock(&pool->lock);").may_mean(&member, 136));
        assert!(Said::in_text("p = q + 136;").may_mean(&member, 136));
        // imul rax, rax, 0x51eb851f
        let divides = decoded(&[0x48, 0x69, 0xc0, 0x1f, 0x85, 0xeb, 0x51]);
        assert!(!Said::in_text("total / 100").may_mean(&divides, 0x51eb_851f));
        assert!(Said::in_text("x * 0x51eb851f").may_mean(&divides, 0x51eb_851f));
        assert!(Said::in_text("x = 64 * 1024 * 4;").may_mean(&divides, 262_144));
        assert!(Said::in_text("i++").may_mean(&divides, 1));
        // shr rax, 32
        let shifts = decoded(&[0x48, 0xc1, 0xe8, 0x20]);
        assert!(!Said::in_text("total / 100").may_mean(&shifts, 32));
        assert!(Said::in_text("key >> 32").may_mean(&shifts, 32));
        assert!(Said::in_text("n / 8").may_mean(&shifts, 3));
    }
}
