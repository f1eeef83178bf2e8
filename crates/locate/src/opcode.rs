//! What the bytes of an instruction could say instead.

use iced_x86::{Instruction, Mnemonic};

/// Does nothing.
pub const NOP: u8 = 0x90;

/// Where the opcode begins, behind prefixes.
fn start(bytes: &[u8]) -> usize {
    let is_prefix = |b: &u8| matches!(b, 0x66 | 0xf2 | 0xf3 | 0x2e | 0x3e | 0x40..=0x4f);
    bytes.iter().take_while(|b| is_prefix(b)).count()
}

/// The byte whose lower half is the condition of a branch, a `setcc` or a `cmovcc`.
pub fn condition(bytes: &[u8]) -> Option<usize> {
    let at = start(bytes);
    match bytes.get(at..)? {
        [0x70..=0x7f, ..] => Some(at),
        [0x0f, 0x40..=0x4f | 0x80..=0x8f | 0x90..=0x9f, ..] => Some(at + 1),
        _ => None,
    }
}

/// Conditions that differ where both sides are equal.
pub fn boundaries(condition: u8) -> &'static [u8] {
    match condition {
        0x2 => &[0x6],
        0x3 => &[0x7],
        0x6 => &[0x2],
        0x7 => &[0x3],
        // Behind `test`: below 0 and not below 0.
        0x8 => &[0xe],
        0x9 => &[0xf],
        0xc => &[0xe],
        0xd => &[0xf],
        0xe => &[0xc],
        0xf => &[0xd],
        _ => &[],
    }
}

/// Orders instead of equality, and equality instead of orders.
pub fn comparisons(condition: u8) -> &'static [u8] {
    match condition {
        0x4 => &[0xe, 0xd],
        0x5 => &[0xc, 0xf],
        0x2 | 0x7 | 0xc | 0xf => &[0x5],
        0x3 | 0x6 | 0xd | 0xe => &[0x4],
        _ => &[],
    }
}

/// A conditional jump that is never and one that is always taken.
pub fn forced(bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let never = vec![NOP; bytes.len()];
    let mut always = bytes.to_vec();
    match start(bytes) {
        at if bytes.get(at) == Some(&0x0f) => always[at..at + 2].copy_from_slice(&[NOP, 0xe9]),
        at => always[at] = 0xeb,
    }
    (never, always)
}

/// The operation that is most easily mistaken for this one.
pub fn other_operator(i: &Instruction, bytes: &[u8]) -> Option<(Vec<u8>, &'static str)> {
    let at = start(bytes);
    let mut other = bytes.to_vec();
    let wide = bytes.get(at) == Some(&0x0f);
    let words = match i.mnemonic() {
        Mnemonic::Add => "+ is -",
        Mnemonic::Sub => "- is +",
        Mnemonic::And => "& is |",
        Mnemonic::Or => "| is &",
        Mnemonic::Addsd | Mnemonic::Addss => "+ is -",
        Mnemonic::Subsd | Mnemonic::Subss => "- is +",
        Mnemonic::Mulsd | Mnemonic::Mulss => "* is /",
        Mnemonic::Divsd | Mnemonic::Divss => "/ is *",
        Mnemonic::Shl => "<< is >>",
        Mnemonic::Shr | Mnemonic::Sar => ">> is <<",
        Mnemonic::Movzx => "the value has a sign",
        Mnemonic::Movsx => "the value has no sign",
        _ => return None,
    };
    match i.mnemonic() {
        Mnemonic::Add | Mnemonic::Sub => operation(&mut other, at, 0b101)?,
        Mnemonic::And | Mnemonic::Or => operation(&mut other, at, 0b101)?,
        Mnemonic::Shl | Mnemonic::Shr => other[at + 1] ^= 0b001 << 3,
        Mnemonic::Sar => other[at + 1] ^= 0b011 << 3,
        Mnemonic::Movzx | Mnemonic::Movsx if wide => other[at + 1] ^= 0x08,
        _ if wide => {
            other[at + 1] = match bytes[at + 1] {
                0x58 => 0x5c,
                0x5c => 0x58,
                0x59 => 0x5e,
                0x5e => 0x59,
                _ => return None,
            }
        }
        _ => return None,
    }
    Some((other, words))
}

/// Changes the operation among the eight of the first group: `add` is 0, `or` 1,
/// `and` 4, `sub` 5.
fn operation(bytes: &mut [u8], at: usize, change: u8) -> Option<()> {
    match bytes[at] {
        0x00..=0x3f => bytes[at] ^= change << 3,
        0x80..=0x83 => bytes[at + 1] ^= change << 3,
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn decoded(bytes: &[u8]) -> Instruction {
        Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode()
    }

    fn other(bytes: &[u8]) -> Mnemonic {
        let (bytes, _) = other_operator(&decoded(bytes), bytes).expect("there is one");
        decoded(&bytes).mnemonic()
    }

    #[test]
    fn operations_become_their_counterparts() {
        assert_eq!(other(&[0x01, 0xd0]), Mnemonic::Sub, "add eax, edx");
        assert_eq!(other(&[0x48, 0x83, 0xe8, 0x08]), Mnemonic::Add, "sub rax, 8");
        assert_eq!(other(&[0x21, 0xd0]), Mnemonic::Or, "and eax, edx");
        assert_eq!(other(&[0xc1, 0xe0, 0x02]), Mnemonic::Shr, "shl eax, 2");
        assert_eq!(other(&[0xf2, 0x0f, 0x58, 0xc1]), Mnemonic::Subsd, "addsd xmm0, xmm1");
        assert_eq!(other(&[0x0f, 0xb6, 0xc0]), Mnemonic::Movsx, "movzx eax, al");
    }

    #[test]
    fn conditions_are_found_behind_prefixes() {
        assert_eq!(condition(&[0x7e, 0x10]), Some(0), "jle");
        assert_eq!(condition(&[0x0f, 0x8c, 0, 0, 0, 0]), Some(1), "jl");
        assert_eq!(condition(&[0x41, 0x0f, 0x9e, 0xc0]), Some(2), "setle r8b");
        assert_eq!(condition(&[0x89, 0x7c, 0x24, 0x08]), None, "mov");
    }

    #[test]
    fn forced_jumps_keep_their_target() {
        for bytes in [&[0x7e, 0x10][..], &[0x0f, 0x8c, 0x30, 0x01, 0, 0][..]] {
            let (never, always) = forced(bytes);
            assert!(never.iter().all(|b| *b == NOP));
            let jump = always.iter().position(|b| *b != NOP).expect("a jump");
            let target = Decoder::with_ip(64, &always[jump..], 0x1000 + jump as u64, 0).decode();
            assert_eq!(target.near_branch_target(), decoded(bytes).near_branch_target());
        }
    }
}
