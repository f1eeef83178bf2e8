//! How is a number, a character or an enumeration written?

use gimli::{DwAte, constants};

use super::located::BitField;
use super::unit::Language;

/// The bits of a bit-field, as the lowest bits of a number.
pub(super) fn extract(bytes: &[u8], bits: BitField) -> u128 {
    let value = wide(bytes).checked_shr(bits.first).unwrap_or(0);
    match 1u128.checked_shl(bits.len) {
        Some(above) => value & above.wrapping_sub(1),
        None => value,
    }
}

/// A little-endian number of up to 16 bytes.
pub(super) fn wide(bytes: &[u8]) -> u128 {
    bytes.iter().take(16).rev().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// A number of `bits` bits read as a signed one.
pub(super) fn signed(value: u128, bits: u32) -> i128 {
    let unused = 128u32.saturating_sub(bits).min(127);
    ((value << unused) as i128) >> unused
}

pub(super) fn is_float(encoding: DwAte) -> bool {
    matches!(
        encoding,
        constants::DW_ATE_float
            | constants::DW_ATE_complex_float
            | constants::DW_ATE_imaginary_float
            | constants::DW_ATE_decimal_float
    )
}

pub(super) fn is_signed(encoding: DwAte) -> bool {
    matches!(encoding, constants::DW_ATE_signed | constants::DW_ATE_signed_char)
}

/// Whether values are the characters of strings.
pub(super) fn is_character(encoding: DwAte, size: u64) -> bool {
    size == 1
        && matches!(
            encoding,
            constants::DW_ATE_signed_char | constants::DW_ATE_unsigned_char | constants::DW_ATE_UTF
        )
}

/// Writes a value of a base type. `bits` is its length.
pub(super) fn base(value: u128, bits: u32, encoding: DwAte, language: Language) -> String {
    match encoding {
        // Rust describes the unit type as a number without bits.
        _ if bits == 0 => "()".to_owned(),
        constants::DW_ATE_boolean if value < 2 => (value == 1).to_string(),
        constants::DW_ATE_float => float(value, bits),
        constants::DW_ATE_complex_float => {
            let half = bits / 2;
            let imaginary = value.checked_shr(half).unwrap_or(0);
            let real = value & (1u128.checked_shl(half).unwrap_or(0)).wrapping_sub(1);
            format!("{} + {}i", float(real, half), float(imaginary, half))
        }
        constants::DW_ATE_UTF => character(value as u32),
        constants::DW_ATE_signed_char | constants::DW_ATE_unsigned_char
            if language != Language::Rust =>
        {
            let number = match encoding {
                constants::DW_ATE_signed_char => signed(value, bits).to_string(),
                _ => value.to_string(),
            };
            match value {
                0x20..=0x7e => format!("{number} {}", character(value as u32)),
                0 => "0 '\\0'".to_owned(),
                0x07..=0x0d => format!("{number} {}", character(value as u32)),
                _ => number,
            }
        }
        _ if is_signed(encoding) => signed(value, bits).to_string(),
        _ => value.to_string(),
    }
}

fn character(value: u32) -> String {
    match char::from_u32(value) {
        Some(character) => format!("'{}'", character.escape_debug()),
        None => format!("{value:#x}"),
    }
}

fn float(value: u128, bits: u32) -> String {
    match bits {
        32 => format!("{:?}", f32::from_bits(value as u32)),
        64 => format!("{:?}", f64::from_bits(value as u64)),
        80 | 96 | 128 => format!("{:?}", extended(value)),
        _ => format!("{value:#x}"),
    }
}

/// The x87 format, rounded to a double.
fn extended(value: u128) -> f64 {
    let mantissa = value as u64;
    let exponent = (value >> 64) as i32 & 0x7fff;
    let sign = if value >> 79 & 1 == 1 { -1.0 } else { 1.0 };
    match (exponent, mantissa << 1) {
        (0x7fff, 0) => sign * f64::INFINITY,
        (0x7fff, _) => f64::NAN,
        // The mantissa has 63 bits behind the point; the bias is 16383.
        _ => sign * mantissa as f64 * 2f64.powi(exponent - 16383 - 63),
    }
}

/// Writes an enumeration: the name of its value; names joined by `|` if its
/// values are flags; else the number.
pub(super) fn enumeration(value: i128, names: &[(String, i128)], prefix: &str) -> String {
    if let Some((name, _)) = names.iter().find(|(_, known)| *known == value) {
        return format!("{prefix}{name}");
    }
    let are_flags = names.iter().all(|(_, known)| *known >= 0 && known.count_ones() <= 1);
    if !are_flags || value <= 0 {
        return value.to_string();
    }
    let set = names.iter().filter(|(_, flag)| *flag != 0 && value & flag == *flag);
    let mut parts: Vec<String> = set.clone().map(|(name, _)| format!("{prefix}{name}")).collect();
    let rest = set.fold(value, |rest, (_, flag)| rest & !flag);
    if parts.is_empty() {
        return value.to_string();
    }
    if rest != 0 {
        parts.push(format!("{rest:#x}"));
    }
    parts.join(" | ")
}

/// A string with quotes and escapes, and whether it goes on.
pub(super) fn text(bytes: &[u8], goes_on: bool) -> String {
    let text = String::from_utf8_lossy(bytes);
    let more = if goes_on { "..." } else { "" };
    format!("\"{}\"{more}", text.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn c(value: u128, bits: u32, encoding: DwAte) -> String {
        base(value, bits, encoding, Language::C)
    }

    #[test]
    fn numbers_are_written_by_their_signedness() {
        assert_eq!(c(0xffff_ffff, 32, constants::DW_ATE_signed), "-1");
        assert_eq!(c(0xffff_ffff, 32, constants::DW_ATE_unsigned), "4294967295");
        assert_eq!(c(u128::MAX, 128, constants::DW_ATE_signed), "-1");
    }

    #[test]
    fn characters_are_written_with_their_number() {
        assert_eq!(c(65, 8, constants::DW_ATE_signed_char), "65 'A'");
        assert_eq!(c(0xff, 8, constants::DW_ATE_signed_char), "-1");
        assert_eq!(c(10, 8, constants::DW_ATE_signed_char), "10 '\\n'");
        assert_eq!(base(0x1f600, 32, constants::DW_ATE_UTF, Language::Rust), "'😀'");
    }

    #[test]
    fn floats_of_all_sizes_are_written() {
        assert_eq!(c(1.5f32.to_bits().into(), 32, constants::DW_ATE_float), "1.5");
        assert_eq!(c((-0.1f64).to_bits().into(), 64, constants::DW_ATE_float), "-0.1");
        // 2.5 as long double: mantissa 0xa000…, exponent 0x4000.
        assert_eq!(c(0x4000_a000_0000_0000_0000, 128, constants::DW_ATE_float), "2.5");
    }

    #[test]
    fn bits_are_taken_from_the_middle() {
        assert_eq!(extract(&[0b1011_0100, 0b1], BitField { first: 2, len: 3 }), 0b101);
        assert_eq!(extract(&[0xff; 16], BitField { first: 0, len: 128 }), u128::MAX);
        assert_eq!(signed(0b101, 3), -3);
    }

    #[test]
    fn flags_are_written_by_their_names() {
        let names = [("A".to_owned(), 1), ("B".to_owned(), 2), ("C".to_owned(), 4)];
        assert_eq!(enumeration(2, &names, ""), "B");
        assert_eq!(enumeration(5, &names, ""), "A | C");
        assert_eq!(enumeration(9, &names, ""), "A | 0x8");
        assert_eq!(enumeration(8, &names, ""), "8");
        assert_eq!(enumeration(7, &[("X".to_owned(), 3)], ""), "7");
    }
}
