//! Vector instructions, by name: which form of dependence each one has.
//!
//! One row serves an SSE instruction and its AVX counterpart, whose name has a `v`
//! in front and which has one operand more.

use super::builder::Builder;
use super::place::Place;
use super::shuffles::{self, Pick, Setting};
use super::{lanes, moves, selection};
use iced_x86::Mnemonic;
use std::collections::HashMap;
use std::sync::LazyLock;

/// How the bytes of the result come about. Numbers are bytes per element.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// Bit by bit from two sources.
    Bitwise,
    /// As `Bitwise`; the same register twice gives a constant.
    BitwiseCancels,
    /// Element by element from two sources.
    Packed(usize),
    /// As `Packed`; the same register twice gives a constant.
    Cancels(usize),
    /// Element by element, with carries upward inside.
    Sum(usize),
    /// As `Sum`; the same register twice gives zero.
    Difference(usize),
    /// As `Packed`, with rounding and exceptions.
    Float(usize),
    /// Element by element from one source.
    Unary(usize),
    /// As `Unary`, with rounding and exceptions.
    FloatUnary(usize),
    /// The lowest element from two sources, the rest from the first.
    FloatScalar(usize),
    /// The lowest element of `to` bytes from the lowest `from` bytes (all, if zero)
    /// of the second source, the rest from the first.
    Scalar { to: usize, from: usize, float: bool },
    /// Elements of `from` bytes become elements of `to` bytes.
    Convert { from: usize, to: usize, float: bool },
    /// Elements are extended, with their sign or with zeros.
    Extend { from: usize, to: usize, signed: bool },
    /// Neighbours are combined.
    Horizontal { width: usize, float: bool },
    /// Elements are narrowed to half their width.
    Pack(usize),
    /// The lower halves of elements of eight bytes are multiplied.
    MultiplyEven,
    /// Sums of eight differences, in two bytes.
    Differences,
    /// Elements are shifted by one common count.
    Shift { width: usize, to: Mnemonic },
    /// Multiply and add.
    Fused { width: usize, scalar: bool },
    /// To a general register.
    ToInteger(usize),
    /// Bytes of one source change places.
    Shuffle(fn(usize, &Setting) -> Pick),
    /// Bytes of two sources change places.
    Shuffle2(fn(usize, &Setting) -> Pick),
    /// A copy.
    Move,
    /// The lowest element is moved; what is above it depends on the form.
    MoveScalar(usize),
    /// The lowest element to or from a general register or memory.
    MoveLow(usize),
    /// Half a register to or from memory.
    MoveHalf { high: bool },
    /// One element is extracted.
    Extract(usize),
    /// Half a `ymm` register is extracted.
    ExtractHalf,
    /// One element is inserted.
    Insert(usize),
    /// Signs of a third source select, element by element.
    Blend(usize),
    /// Bytes of a second source select within 16 bytes.
    ShuffleBytes,
    /// Elements of a second source select within 16 bytes.
    Permute(usize),
    /// Elements of the first source select among all of the second.
    PermuteAcross(usize),
    /// The signs of all elements.
    Signs(usize),
    /// Flags from signs or bits of two sources.
    Test(usize),
    /// Flags from a comparison of the lowest elements.
    Compare(usize),
    /// Loads or stores the elements that a mask selects.
    Masked(usize),
    /// Stores the bytes that a mask selects, at `rdi`.
    MaskedBytes,
    /// One load per element, with elements of the index as wide as `index`.
    Gather { width: usize, index: usize },
    /// Clears what is above the first so many bytes of every register.
    Zero(usize),
}

use Kind::*;

const TABLE: &[(&str, Kind)] = &[
    ("pand por andps andpd orps orpd", Bitwise),
    ("pxor xorps xorpd pandn andnps andnpd", BitwiseCancels),
    ("paddsb paddusb pavgb pmaxsb pmaxub pminsb pminub psignb gf2p8mulb", Packed(1)),
    ("paddsw paddusw pavgw pmaxsw pmaxuw pminsw pminuw psignw pmulhw pmulhuw", Packed(2)),
    ("pmulhrsw pmaddubsw", Packed(2)),
    ("pmaxsd pmaxud pminsd pminud psignd pmaddwd vpsllvd vpsrlvd vpsravd", Packed(4)),
    ("vpsllvq vpsrlvq gf2p8affineqb gf2p8affineinvqb", Packed(8)),
    ("aesenc aesenclast aesdec aesdeclast mpsadbw pclmulqdq", Packed(16)),
    ("pcmpeqb pcmpgtb psubsb psubusb", Cancels(1)),
    ("pcmpeqw pcmpgtw psubsw psubusw", Cancels(2)),
    ("pcmpeqd pcmpgtd", Cancels(4)),
    ("pcmpeqq pcmpgtq", Cancels(8)),
    ("paddb", Sum(1)),
    ("paddw pmullw", Sum(2)),
    ("paddd pmulld", Sum(4)),
    ("paddq", Sum(8)),
    ("psubb", Difference(1)),
    ("psubw", Difference(2)),
    ("psubd", Difference(4)),
    ("psubq", Difference(8)),
    ("addps subps mulps divps minps maxps cmpps addsubps", Float(4)),
    ("addpd subpd mulpd divpd minpd maxpd cmppd addsubpd", Float(8)),
    ("dpps dppd", Float(16)),
    ("pabsb", Unary(1)),
    ("pabsw", Unary(2)),
    ("pabsd rcpps rsqrtps", Unary(4)),
    ("aesimc aeskeygenassist phminposuw", Unary(16)),
    ("sqrtps roundps", FloatUnary(4)),
    ("sqrtpd roundpd", FloatUnary(8)),
    ("addss subss mulss divss minss maxss cmpss", FloatScalar(4)),
    ("addsd subsd mulsd divsd minsd maxsd cmpsd", FloatScalar(8)),
    ("sqrtss roundss", Scalar { to: 4, from: 4, float: true }),
    ("sqrtsd roundsd", Scalar { to: 8, from: 8, float: true }),
    ("rcpss rsqrtss", Scalar { to: 4, from: 4, float: false }),
    ("cvtss2sd", Scalar { to: 8, from: 4, float: true }),
    ("cvtsd2ss", Scalar { to: 4, from: 8, float: true }),
    ("cvtsi2ss", Scalar { to: 4, from: 0, float: true }),
    ("cvtsi2sd", Scalar { to: 8, from: 0, float: true }),
    ("cvtdq2ps cvtps2dq cvttps2dq", Convert { from: 4, to: 4, float: true }),
    ("cvtps2pd", Convert { from: 4, to: 8, float: true }),
    ("cvtdq2pd", Convert { from: 4, to: 8, float: false }),
    ("cvtpd2ps cvtpd2dq cvttpd2dq", Convert { from: 8, to: 4, float: true }),
    ("vcvtph2ps", Convert { from: 2, to: 4, float: true }),
    ("vcvtps2ph", Convert { from: 4, to: 2, float: true }),
    ("cvtss2si cvttss2si", ToInteger(4)),
    ("cvtsd2si cvttsd2si", ToInteger(8)),
    ("pmovzxbw", Extend { from: 1, to: 2, signed: false }),
    ("pmovzxbd", Extend { from: 1, to: 4, signed: false }),
    ("pmovzxbq", Extend { from: 1, to: 8, signed: false }),
    ("pmovzxwd", Extend { from: 2, to: 4, signed: false }),
    ("pmovzxwq", Extend { from: 2, to: 8, signed: false }),
    ("pmovzxdq", Extend { from: 4, to: 8, signed: false }),
    ("pmovsxbw", Extend { from: 1, to: 2, signed: true }),
    ("pmovsxbd", Extend { from: 1, to: 4, signed: true }),
    ("pmovsxbq", Extend { from: 1, to: 8, signed: true }),
    ("pmovsxwd", Extend { from: 2, to: 4, signed: true }),
    ("pmovsxwq", Extend { from: 2, to: 8, signed: true }),
    ("pmovsxdq", Extend { from: 4, to: 8, signed: true }),
    ("phaddw phsubw phaddsw phsubsw", Horizontal { width: 2, float: false }),
    ("phaddd phsubd", Horizontal { width: 4, float: false }),
    ("haddps hsubps", Horizontal { width: 4, float: true }),
    ("haddpd hsubpd", Horizontal { width: 8, float: true }),
    ("packsswb packuswb", Pack(2)),
    ("packssdw packusdw", Pack(4)),
    ("pmuludq pmuldq", MultiplyEven),
    ("psadbw", Differences),
    ("psllw", Shift { width: 2, to: Mnemonic::Shl }),
    ("pslld", Shift { width: 4, to: Mnemonic::Shl }),
    ("psllq", Shift { width: 8, to: Mnemonic::Shl }),
    ("psrlw", Shift { width: 2, to: Mnemonic::Shr }),
    ("psrld", Shift { width: 4, to: Mnemonic::Shr }),
    ("psrlq", Shift { width: 8, to: Mnemonic::Shr }),
    ("psraw", Shift { width: 2, to: Mnemonic::Sar }),
    ("psrad", Shift { width: 4, to: Mnemonic::Sar }),
    ("pshufd", Shuffle(shuffles::doublewords)),
    ("pshuflw", Shuffle(shuffles::low_words)),
    ("pshufhw", Shuffle(shuffles::high_words)),
    ("movddup", Shuffle(shuffles::low_quadwords)),
    ("movsldup", Shuffle(shuffles::even_doublewords)),
    ("movshdup", Shuffle(shuffles::odd_doublewords)),
    ("pslldq", Shuffle(shuffles::bytes_up)),
    ("psrldq", Shuffle(shuffles::bytes_down)),
    ("vpermq vpermpd", Shuffle(shuffles::quadwords_across)),
    ("vpbroadcastb", Shuffle(shuffles::repeat::<1>)),
    ("vpbroadcastw", Shuffle(shuffles::repeat::<2>)),
    ("vpbroadcastd vbroadcastss", Shuffle(shuffles::repeat::<4>)),
    ("vpbroadcastq vbroadcastsd", Shuffle(shuffles::repeat::<8>)),
    ("vbroadcastf128 vbroadcasti128", Shuffle(shuffles::repeat::<16>)),
    ("shufps", Shuffle2(shuffles::two_and_two)),
    ("shufpd", Shuffle2(shuffles::one_and_one)),
    ("punpcklbw", Shuffle2(shuffles::interleave::<1, 0>)),
    ("punpcklwd", Shuffle2(shuffles::interleave::<2, 0>)),
    ("punpckldq unpcklps", Shuffle2(shuffles::interleave::<4, 0>)),
    ("punpcklqdq unpcklpd", Shuffle2(shuffles::interleave::<8, 0>)),
    ("punpckhbw", Shuffle2(shuffles::interleave::<1, 8>)),
    ("punpckhwd", Shuffle2(shuffles::interleave::<2, 8>)),
    ("punpckhdq unpckhps", Shuffle2(shuffles::interleave::<4, 8>)),
    ("punpckhqdq unpckhpd", Shuffle2(shuffles::interleave::<8, 8>)),
    ("palignr", Shuffle2(shuffles::align)),
    ("insertps", Shuffle2(shuffles::insert_single)),
    ("movhlps", Shuffle2(shuffles::high_to_low)),
    ("movlhps", Shuffle2(shuffles::low_to_high)),
    ("blendps", Shuffle2(shuffles::blend::<4>)),
    ("blendpd", Shuffle2(shuffles::blend::<8>)),
    ("pblendw", Shuffle2(shuffles::blend_words)),
    ("vpblendd", Shuffle2(shuffles::blend::<4>)),
    ("vperm2f128 vperm2i128", Shuffle2(shuffles::halves)),
    ("vinsertf128 vinserti128", Shuffle2(shuffles::insert_half)),
    ("movaps movapd movups movupd movdqa movdqu lddqu", Move),
    ("movntps movntpd movntdq movntdqa", Move),
    ("movss", MoveScalar(4)),
    ("movsd", MoveScalar(8)),
    ("movd", MoveLow(4)),
    ("movq", MoveLow(8)),
    ("movlps movlpd", MoveHalf { high: false }),
    ("movhps movhpd", MoveHalf { high: true }),
    ("pextrb", Extract(1)),
    ("pextrw", Extract(2)),
    ("pextrd extractps", Extract(4)),
    ("pextrq", Extract(8)),
    ("vextractf128 vextracti128", ExtractHalf),
    ("pinsrb", Insert(1)),
    ("pinsrw", Insert(2)),
    ("pinsrd", Insert(4)),
    ("pinsrq", Insert(8)),
    ("pblendvb", Blend(1)),
    ("blendvps", Blend(4)),
    ("blendvpd", Blend(8)),
    ("pshufb", ShuffleBytes),
    ("vpermilps", Permute(4)),
    ("vpermilpd", Permute(8)),
    ("vpermd vpermps", PermuteAcross(4)),
    ("pmovmskb", Signs(1)),
    ("movmskps", Signs(4)),
    ("movmskpd", Signs(8)),
    ("ptest", Test(0)),
    ("vtestps", Test(4)),
    ("vtestpd", Test(8)),
    ("comiss ucomiss", Compare(4)),
    ("comisd ucomisd", Compare(8)),
    ("vmaskmovps vpmaskmovd", Masked(4)),
    ("vmaskmovpd vpmaskmovq", Masked(8)),
    ("maskmovdqu", MaskedBytes),
    ("vgatherdps vpgatherdd", Gather { width: 4, index: 4 }),
    ("vgatherqps vpgatherqd", Gather { width: 4, index: 8 }),
    ("vgatherdpd vpgatherdq", Gather { width: 8, index: 4 }),
    ("vgatherqpd vpgatherqq", Gather { width: 8, index: 8 }),
    ("vzeroupper", Zero(16)),
    ("vzeroall", Zero(0)),
];

static KINDS: LazyLock<HashMap<Mnemonic, Kind>> = LazyLock::new(|| {
    let rows: HashMap<&str, Kind> =
        TABLE.iter().flat_map(|(names, kind)| names.split(' ').map(|name| (name, *kind))).collect();
    Mnemonic::values()
        .filter_map(|mnemonic| {
            let name = format!("{mnemonic:?}").to_lowercase();
            let plain = name.strip_prefix('v').unwrap_or(&name);
            let kind = rows.get(name.as_str()).or_else(|| rows.get(plain)).copied();
            Some((mnemonic, kind.or_else(|| fused(plain))?))
        })
        .collect()
});

/// `vfmadd132ps` and its 59 relatives.
fn fused(name: &str) -> Option<Kind> {
    let orders = ["132", "213", "231"];
    let (operation, form) = name.split_once(|c: char| c.is_ascii_digit())?;
    let order = &name[operation.len()..];
    let known = ["fmadd", "fmsub", "fnmadd", "fnmsub", "fmaddsub", "fmsubadd"];
    if !known.contains(&operation) || !orders.iter().any(|o| order.starts_with(o)) {
        return None;
    }
    let (width, scalar) = match &form[2..] {
        "ps" => (4, false),
        "pd" => (8, false),
        "ss" => (4, true),
        "sd" => (8, true),
        _ => return None,
    };
    Some(Fused { width, scalar })
}

pub(super) fn apply(b: &mut Builder<'_>) -> bool {
    match KINDS.get(&b.i.mnemonic()) {
        Some(kind) => {
            lanes::apply(b, *kind) || moves::apply(b, *kind) || selection::apply(b, *kind)
        }
        None => false,
    }
}

/// The two sources of an instruction whose target is the first of them, unless a
/// VEX prefix names three.
pub(super) fn pair(b: &mut Builder<'_>) -> (Place, Place) {
    let first = first_source(b);
    (b.read(first), b.read(first + 1))
}

/// Number of the first source operand.
pub(super) fn first_source(b: &Builder<'_>) -> u32 {
    b.vex().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_in_the_table_is_a_mnemonic() {
        let known: Vec<String> =
            Mnemonic::values().map(|mnemonic| format!("{mnemonic:?}").to_lowercase()).collect();
        for name in TABLE.iter().flat_map(|(names, _)| names.split(' ')) {
            assert!(known.contains(&name.to_owned()), "{name}");
        }
        assert_eq!(KINDS.values().filter(|kind| matches!(kind, Fused { .. })).count(), 60);
    }
}
