//! Where everything lies in the one address space that guest and engine share.
//!
//! The engine is a static position-independent file: the Linux kernel puts it,
//! its heap and its stacks at 0x5555_5555_4000 and above or just below the top
//! of the address space. None of the ranges named here can meet those, so the
//! guest's layout is ours alone to choose and is the same in every run, without
//! asking the kernel to switch randomisation off (which containers forbid).
//!
//! Everything below 2 GiB can be addressed as `[disp32]` and is within reach of
//! a `rel32` from everything else there. ELF images, the code cache and the
//! context page therefore share this *window*.

use std::ops::Range;

/// Smallest unit of memory protection.
pub const PAGE: u64 = 4096;

/// Lowest address a guest may map (the usual `vm.mmap_min_addr`).
pub const LOWEST: u64 = 0x1_0000;

/// Position-independent images and `MAP_32BIT` maps, allocated upward.
/// Images linked to a fixed address (0x400000) lie below it.
pub const IMAGES: Range<u64> = 0x1000_0000..0x5000_0000;

/// The engine's part of the window, with a guard gap on either side.
pub const ENGINE: Range<u64> = 0x5000_0000..0x7000_0000;

/// Translated code: executable here, writable only through a mapping elsewhere.
pub const CACHE: Range<u64> = 0x5100_0000..0x6100_0000;

/// Host addresses of indirect-branch targets, by the low 16 bits of the guest's.
pub const TARGETS: u64 = 0x6200_0000;

/// Where calls expect to return to in the cache, by the low 16 bits of the stack
/// pointer.
pub const RETURNS: u64 = 0x6280_0000;

/// Which memory is watched: where an access meets it, by the low bits of its address.
pub const WATCHES: u64 = 0x6290_0000;

/// The registers and scratch slots of the running guest thread.
pub const CONTEXT: u64 = 0x6300_0000;

/// The guest's heap as `brk` sees it. In TSan's "mid" range, below any address
/// where the kernel could have put the engine.
pub const BRK: Range<u64> = 0x5500_0000_0000..0x5540_0000_0000;

/// Anonymous maps and other non-image files, allocated downward. In ASan's and
/// TSan's "high" application range, below any address where the kernel puts the
/// engine's own maps (its randomisation spans 1 TiB below the stack).
pub const MAPS: Range<u64> = 0x7e80_0000_0000..0x7ee0_0000_0000;

/// Maps for which there is no room left there: programs that reserve terabytes. Above
/// ASan's heap and below TSan's.
pub const LARGE_MAPS: Range<u64> = 0x6400_0000_0000..0x7b00_0000_0000;

/// The main thread's stack ends here.
pub const STACK_TOP: u64 = 0x7eef_ffff_f000;

/// First address past all that a guest may ever map.
pub const HIGHEST: u64 = 0x7ef0_0000_0000;

/// Rounds down to a page boundary.
pub const fn page_floor(address: u64) -> u64 {
    address & !(PAGE - 1)
}

/// Rounds up to a page boundary; `None` past the end of the address space.
pub const fn page_ceil(address: u64) -> Option<u64> {
    match address.checked_add(PAGE - 1) {
        Some(a) => Some(a & !(PAGE - 1)),
        None => None,
    }
}

/// Are the highest bits all alike? The processor takes nothing else for an address.
pub fn is_address(number: u64) -> bool {
    (number << 16) as i64 >> 16 == number as i64
}
