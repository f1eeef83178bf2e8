//! CPUID of the x86-64-v3 baseline.
//!
//! The answers are constants (a Haswell), so that
//! library dispatch, cache-size tuning and with them every instruction count are
//! the same on every machine. `--cpu host` shows the real CPU instead.

/// The four registers CPUID answers with: EAX, EBX, ECX, EDX.
pub type Leaf = [u32; 4];

/// XCR0 of the baseline: x87, SSE, AVX.
pub const XCR0: u64 = 7;

/// Size of the XSAVE area of the baseline: legacy, header, upper halves.
pub const XSAVE_SIZE: u32 = 832;

/// EDX of leaf 1: everything a v3 CPU has there, with hyper-threading.
const EDX_1: u32 = 0x1f8b_fbff;

/// ECX of leaf 1: SSE3, PCLMUL, SSSE3, FMA, CX16, SSE4.1, SSE4.2, MOVBE, POPCNT,
/// AES, XSAVE, OSXSAVE, AVX, F16C. RDRAND is emulated and therefore there too.
const ECX_1: u32 = 1
    | 1 << 1
    | 1 << 9
    | 1 << 12
    | 1 << 13
    | 1 << 19
    | 1 << 20
    | 1 << 22
    | 1 << 23
    | 1 << 25
    | 1 << 26
    | 1 << 27
    | 1 << 28
    | 1 << 29
    | 1 << 30;

/// EBX of leaf 7: FSGSBASE, BMI1, AVX2, BMI2, ERMS.
const EBX_7: u32 = 1 | 1 << 3 | 1 << 5 | 1 << 8 | 1 << 9;

/// What CPUID answers.
pub fn cpuid(leaf: u32, subleaf: u32) -> Leaf {
    match leaf {
        0 => [0xd, word(b"Genu"), word(b"ntel"), word(b"ineI")],
        1 => [0x000306c3, 0x0001_0800, ECX_1, EDX_1],
        2 => [0x7603_6301, 0x00f0_b5ff, 0, 0x00c1_0000],
        4 => cache(subleaf),
        7 if subleaf == 0 => [0, EBX_7, 0, 0],
        0xd => xsave(subleaf),
        0x8000_0000 => [0x8000_0008, 0, 0, 0],
        // LAHF, LZCNT; SYSCALL, NX, 1 GiB pages, RDTSCP, long mode.
        0x8000_0001 => [0, 0, 1 | 1 << 5, 1 << 11 | 1 << 20 | 1 << 26 | 1 << 27 | 1 << 29],
        0x8000_0002..=0x8000_0004 => brand(leaf),
        0x8000_0006 => [0, 0, 0x0100_6040, 0],
        0x8000_0007 => [0, 0, 0, 1 << 8],
        0x8000_0008 => [0x3027, 0, 0, 0],
        _ => [0; 4],
    }
}

const fn word(text: &[u8; 4]) -> u32 {
    u32::from_le_bytes(*text)
}

/// Deterministic cache parameters: 32 KiB L1, 256 KiB L2, 8 MiB L3.
fn cache(subleaf: u32) -> Leaf {
    match subleaf {
        0 => [0x1c00_4121, 0x01c0_003f, 63, 0],
        1 => [0x1c00_4122, 0x01c0_003f, 63, 0],
        2 => [0x1c00_4143, 0x01c0_003f, 511, 0],
        3 => [0x1c03_c163, 0x03c0_003f, 8191, 6],
        _ => [0; 4],
    }
}

fn xsave(subleaf: u32) -> Leaf {
    match subleaf {
        0 => [XCR0 as u32, XSAVE_SIZE, XSAVE_SIZE, 0],
        // XSAVEOPT only: no compact form, so that its layout never shows.
        1 => [1, 0, 0, 0],
        2 => [256, 576, 0, 0],
        _ => [0; 4],
    }
}

fn brand(leaf: u32) -> Leaf {
    let text = b"Whydunit x86-64-v3 CPU\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let at = (leaf - 0x8000_0002) as usize * 16;
    let w = |i: usize| u32::from_le_bytes(text[at + i..at + i + 4].try_into().expect("four"));
    [w(0), w(4), w(8), w(12)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_v3_feature_is_shown_and_avx512_is_not() {
        let [_, _, ecx, _] = cpuid(1, 0);
        for bit in [0, 9, 12, 13, 19, 20, 22, 23, 26, 27, 28, 29] {
            assert!(ecx & (1 << bit) != 0, "leaf 1 ECX bit {bit}");
        }
        let [_, ebx, _, _] = cpuid(7, 0);
        for bit in [3, 5, 8] {
            assert!(ebx & (1 << bit) != 0, "leaf 7 EBX bit {bit}");
        }
        assert_eq!(ebx & (1 << 16), 0, "AVX-512F");
        assert!(cpuid(0x8000_0001, 0)[2] & (1 << 5) != 0, "LZCNT");
    }
}
