//! XSAVE images with one layout and one header on every CPU.
//!
//! Real CPUs differ in which components they report "in use" and in whether they
//! keep the address of the last x87 instruction (which, in a translator, would be
//! an address in the cache). Guests see neither.

use super::baseline::XSAVE_SIZE;
use crate::context::Vectors;

const HEADER: usize = 512;
const AVX: std::ops::Range<usize> = 576..832;
const X87_HEAD: std::ops::Range<usize> = 0..24;
const X87_REGISTERS: std::ops::Range<usize> = 32..160;
const MXCSR: std::ops::Range<usize> = 24..32;
const XMM: std::ops::Range<usize> = 160..416;

/// Removes what differs between CPUs from an image.
pub fn normalise(vectors: &mut Vectors) {
    let bytes = &mut vectors.0;
    // Last opcode, instruction pointer, data pointer.
    bytes[6..24].fill(0);
    bytes[28..32].copy_from_slice(&0xffffu32.to_le_bytes());
    // Software-reserved bytes and everything of the header but the components.
    bytes[416..512].fill(0);
    if bytes[HEADER] & 2 == 0 {
        bytes[XMM].fill(0);
    }
    if bytes[HEADER] & 4 == 0 {
        bytes[AVX].fill(0);
    }
    if bytes[HEADER] & 1 == 0 {
        bytes[0..6].copy_from_slice(&[0x7f, 3, 0, 0, 0, 0]);
        bytes[X87_REGISTERS].fill(0);
    }
    bytes[HEADER] |= 7;
    bytes[HEADER + 8..HEADER + 64].fill(0);
}

/// What `xsave` with the mask would leave in `image`.
pub fn save(vectors: &Vectors, mask: u64, image: &mut [u8; XSAVE_SIZE as usize]) {
    let mut v = vectors.clone();
    normalise(&mut v);
    if mask & 1 != 0 {
        image[X87_HEAD].copy_from_slice(&v.0[X87_HEAD]);
        image[X87_REGISTERS].copy_from_slice(&v.0[X87_REGISTERS]);
    }
    if mask & 2 != 0 {
        image[XMM].copy_from_slice(&v.0[XMM]);
    }
    if mask & 6 != 0 {
        image[MXCSR].copy_from_slice(&v.0[MXCSR]);
    }
    if mask & 4 != 0 {
        image[AVX].copy_from_slice(&v.0[AVX]);
    }
    image[HEADER] = (image[HEADER] & !(mask as u8)) | (mask as u8 & 7);
}

/// What `xrstor` with the mask would load from `image`.
pub fn restore(vectors: &mut Vectors, mask: u64, image: &[u8; XSAVE_SIZE as usize]) {
    normalise(vectors);
    let present = image[HEADER] as u64;
    let initial = Vectors::default();
    let from =
        |component: u64| if present & component != 0 { &image[..] } else { &initial.0[..832] };
    if mask & 1 != 0 {
        vectors.0[X87_HEAD].copy_from_slice(&from(1)[X87_HEAD]);
        vectors.0[X87_REGISTERS].copy_from_slice(&from(1)[X87_REGISTERS]);
    }
    if mask & 2 != 0 {
        vectors.0[XMM].copy_from_slice(&from(2)[XMM]);
    }
    if mask & 6 != 0 {
        vectors.0[MXCSR].copy_from_slice(&image[MXCSR]);
    }
    if mask & 4 != 0 {
        vectors.0[AVX].copy_from_slice(&from(4)[AVX]);
    }
    normalise(vectors);
}
