//! XSAVE images with one layout and one header on every CPU.
//!
//! Real CPUs differ in which components they report "in use" and in whether they
//! keep the address of the last x87 instruction (which, in a translator, would be
//! an address in the cache). Guests see neither.

use super::shown::shown;
use crate::context::{Vectors, XSAVE_BYTES};
use std::ops::Range;

/// An XSAVE image with room for every component; a guest's may be shorter.
pub type Image = [u8; XSAVE_BYTES];

const HEADER: usize = 512;
const AVX: Range<usize> = 576..832;
const X87_HEAD: Range<usize> = 0..24;
const X87_REGISTERS: Range<usize> = 32..160;
const MXCSR: Range<usize> = 24..32;
const XMM: Range<usize> = 160..416;

/// Bytes of the components beyond x87 and SSE, with their bits.
fn extended() -> impl Iterator<Item = (u64, Range<usize>)> {
    let shown = shown();
    let avx = shown.components.is_empty().then_some((4, AVX));
    let others = shown.components.iter().map(|c| {
        let start = c.offset as usize;
        (1 << c.bit, start..start + c.size as usize)
    });
    avx.into_iter().chain(others)
}

/// Size of an image that ends with the last component of the mask.
pub fn size_for(mask: u64) -> usize {
    let parts = extended().filter(|(bit, _)| mask & bit != 0);
    parts.map(|(_, range)| range.end).max().unwrap_or(576)
}

/// XSTATE_BV of an image.
fn present(image: &Image) -> u64 {
    u64::from_le_bytes(image[HEADER..HEADER + 8].try_into().expect("eight"))
}

fn set_present(image: &mut Image, components: u64) {
    image[HEADER..HEADER + 8].copy_from_slice(&components.to_le_bytes());
}

/// Removes what differs between CPUs from an image.
pub fn normalise(vectors: &mut Vectors) {
    let bytes = &mut vectors.0;
    // Last opcode, instruction pointer, data pointer.
    bytes[6..24].fill(0);
    bytes[28..32].copy_from_slice(&0xffffu32.to_le_bytes());
    // Software-reserved bytes and everything of the header but the components.
    bytes[416..512].fill(0);
    let there = present(bytes);
    if there & 2 == 0 {
        bytes[XMM].fill(0);
    }
    for (bit, range) in extended() {
        if there & bit == 0 {
            bytes[range].fill(0);
        }
    }
    if there & 1 == 0 {
        bytes[0..6].copy_from_slice(&[0x7f, 3, 0, 0, 0, 0]);
        bytes[X87_REGISTERS].fill(0);
    }
    set_present(bytes, shown().xcr0);
    bytes[HEADER + 8..HEADER + 64].fill(0);
}

/// What `xsave` with the mask would leave in `image`.
pub fn save(vectors: &Vectors, mask: u64, image: &mut Image) {
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
    for (bit, range) in extended() {
        if mask & bit != 0 {
            image[range.clone()].copy_from_slice(&v.0[range]);
        }
    }
    let there = present(image) & !mask | mask & shown().xcr0;
    set_present(image, there);
}

/// What `xrstor` with the mask would load from `image`.
pub fn restore(vectors: &mut Vectors, mask: u64, image: &Image) {
    normalise(vectors);
    let present = present(image);
    let initial = Vectors::default();
    let from = |component: u64| if present & component != 0 { image } else { &initial.0 };
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
    for (bit, range) in extended() {
        if mask & bit != 0 {
            vectors.0[range.clone()].copy_from_slice(&from(bit)[range]);
        }
    }
    normalise(vectors);
}
