//! Processor features by name: which a recording needs, and which are missing here.

use super::baseline::Leaf;
use std::arch::x86_64::__cpuid_count;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Where CPUID shows a feature: name, leaf, subleaf, register (EAX first), bit.
type Row = (&'static str, u32, u32, usize, u32);

const EBX: usize = 1;
const ECX: usize = 2;
const EDX: usize = 3;

/// The features that programs choose their instructions by.
const TABLE: &[Row] = &[
    ("SSE3", 1, 0, ECX, 0),
    ("PCLMULQDQ", 1, 0, ECX, 1),
    ("SSSE3", 1, 0, ECX, 9),
    ("FMA", 1, 0, ECX, 12),
    ("CX16", 1, 0, ECX, 13),
    ("SSE4.1", 1, 0, ECX, 19),
    ("SSE4.2", 1, 0, ECX, 20),
    ("MOVBE", 1, 0, ECX, 22),
    ("POPCNT", 1, 0, ECX, 23),
    ("AES", 1, 0, ECX, 25),
    ("XSAVE", 1, 0, ECX, 26),
    ("AVX", 1, 0, ECX, 28),
    ("F16C", 1, 0, ECX, 29),
    ("RDRAND", 1, 0, ECX, 30),
    ("FSGSBASE", 7, 0, EBX, 0),
    ("BMI1", 7, 0, EBX, 3),
    ("AVX2", 7, 0, EBX, 5),
    ("BMI2", 7, 0, EBX, 8),
    ("ERMS", 7, 0, EBX, 9),
    ("AVX512F", 7, 0, EBX, 16),
    ("AVX512DQ", 7, 0, EBX, 17),
    ("RDSEED", 7, 0, EBX, 18),
    ("ADX", 7, 0, EBX, 19),
    ("AVX512IFMA", 7, 0, EBX, 21),
    ("CLFLUSHOPT", 7, 0, EBX, 23),
    ("CLWB", 7, 0, EBX, 24),
    ("AVX512CD", 7, 0, EBX, 28),
    ("SHA", 7, 0, EBX, 29),
    ("AVX512BW", 7, 0, EBX, 30),
    ("AVX512VL", 7, 0, EBX, 31),
    ("AVX512VBMI", 7, 0, ECX, 1),
    ("AVX512VBMI2", 7, 0, ECX, 6),
    ("GFNI", 7, 0, ECX, 8),
    ("VAES", 7, 0, ECX, 9),
    ("VPCLMULQDQ", 7, 0, ECX, 10),
    ("AVX512VNNI", 7, 0, ECX, 11),
    ("AVX512BITALG", 7, 0, ECX, 12),
    ("AVX512VPOPCNTDQ", 7, 0, ECX, 14),
    ("RDPID", 7, 0, ECX, 22),
    ("CLDEMOTE", 7, 0, ECX, 25),
    ("MOVDIRI", 7, 0, ECX, 27),
    ("FSRM", 7, 0, EDX, 4),
    ("AVX512VP2INTERSECT", 7, 0, EDX, 8),
    ("AVX512FP16", 7, 0, EDX, 23),
    ("SHA512", 7, 1, 0, 0),
    ("SM3", 7, 1, 0, 1),
    ("SM4", 7, 1, 0, 2),
    ("AVX-VNNI", 7, 1, 0, 4),
    ("AVX512BF16", 7, 1, 0, 5),
    ("AVX-IFMA", 7, 1, 0, 23),
    ("AVX-VNNI-INT8", 7, 1, EDX, 4),
    ("AVX-NE-CONVERT", 7, 1, EDX, 5),
    ("AVX-VNNI-INT16", 7, 1, EDX, 10),
    ("LAHF", 0x8000_0001, 0, ECX, 0),
    ("LZCNT", 0x8000_0001, 0, ECX, 5),
    ("SSE4A", 0x8000_0001, 0, ECX, 6),
    ("PREFETCHW", 0x8000_0001, 0, ECX, 8),
    ("XOP", 0x8000_0001, 0, ECX, 11),
    ("FMA4", 0x8000_0001, 0, ECX, 16),
    ("TBM", 0x8000_0001, 0, ECX, 21),
    ("RDTSCP", 0x8000_0001, 0, EDX, 27),
    ("CLZERO", 0x8000_0008, 0, EBX, 0),
];

/// What the x86-64-v3 baseline, and the engine itself, need.
pub const BASELINE: &[&str] = &[
    "SSE3",
    "SSSE3",
    "SSE4.1",
    "SSE4.2",
    "CX16",
    "POPCNT",
    "PCLMULQDQ",
    "AES",
    "MOVBE",
    "XSAVE",
    "AVX",
    "F16C",
    "FMA",
    "AVX2",
    "BMI1",
    "BMI2",
    "FSGSBASE",
    "LAHF",
    "LZCNT",
];

/// What this machine's CPUID answered so far: in a virtual machine it is slow to ask, and a
/// replay of many processes asks for each.
static ANSWERS: Mutex<BTreeMap<(u32, u32), Leaf>> = Mutex::new(BTreeMap::new());

/// What this machine's CPUID answers.
pub fn host_cpuid(leaf: u32, subleaf: u32) -> Leaf {
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    *answers.entry((leaf, subleaf)).or_insert_with(|| {
        let r = __cpuid_count(leaf, subleaf);
        [r.eax, r.ebx, r.ecx, r.edx]
    })
}

/// Does the processor with this CPUID have what the row says?
fn shows(row: &Row, cpuid: &dyn Fn(u32, u32) -> Leaf) -> bool {
    let (_, leaf, subleaf, register, bit) = *row;
    cpuid(leaf & 0x8000_0000, 0)[0] >= leaf && cpuid(leaf, subleaf)[register] >> bit & 1 != 0
}

/// The named features of the processor with this CPUID.
pub fn of(cpuid: &dyn Fn(u32, u32) -> Leaf) -> Vec<String> {
    TABLE.iter().filter(|row| shows(row, cpuid)).map(|row| row.0.to_owned()).collect()
}

/// Those of `needed` that the processor with this CPUID lacks. A feature that
/// this build does not know counts as missing.
pub fn missing<'a>(
    needed: impl IntoIterator<Item = &'a str>,
    cpuid: &dyn Fn(u32, u32) -> Leaf,
) -> Vec<&'a str> {
    let has =
        |name: &str| TABLE.iter().find(|row| row.0 == name).is_some_and(|row| shows(row, cpuid));
    needed.into_iter().filter(|name| !has(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::baseline;

    #[test]
    fn the_baseline_offers_what_it_needs() {
        assert_eq!(missing(BASELINE.iter().copied(), &baseline::cpuid), [""; 0]);
    }

    #[test]
    fn a_lesser_processor_lacks_what_a_greater_one_has() {
        let needed = ["AVX2", "AVX512F", "SHA", "FROM-THE-FUTURE"];
        assert_eq!(missing(needed, &baseline::cpuid), ["AVX512F", "SHA", "FROM-THE-FUTURE"]);
    }

    #[test]
    fn leaves_beyond_the_last_offer_nothing() {
        let old = |leaf: u32, _: u32| if leaf == 0 { [1, 0, 0, 0] } else { [!0; 4] };
        assert_eq!(missing(["AVX2"], &old), ["AVX2"]);
    }
}
