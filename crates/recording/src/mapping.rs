//! A private file as memory: what is stored here outlives the process at once, without a system call.
//!
//! This is the only module of the crate with `unsafe` code. It is kept this small so that its
//! two blocks can be checked at a glance; everything that gives the bytes a meaning is in `tail`.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{Advice, MmapMut, MmapOptions};

/// A whole file, mapped shared and writable.
pub(crate) struct Mapping(MmapMut);

impl Mapping {
    /// Maps `file`, whose blocks must be allocated already (a hole on a full disk would be a SIGBUS).
    pub(crate) fn new(file: &File, len: usize) -> io::Result<Mapping> {
        // SAFETY: the caller has just created this file with O_EXCL in a folder of mode 0700 and
        // extended it to `len`; it is never truncated while mapped, and no other process maps it:
        // readers use `pread`.
        let map = unsafe { MmapOptions::new().len(len).map_mut(file) }?;
        // Else the first touch reads in, that is zeroes, all of the file: a quarter of a millisecond.
        map.advise(Advice::Random)?;
        Ok(Mapping(map))
    }

    /// The mapped bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The mapped bytes, to change.
    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }

    /// Stores `value` at `at` in one piece, and only after everything stored before it.
    #[inline]
    pub(crate) fn publish(&mut self, at: usize, value: u64) {
        assert!(at.is_multiple_of(8) && at + 8 <= self.0.len());
        let word = self.0[at..].as_mut_ptr().cast::<u64>();
        // SAFETY: the assertion keeps the word inside the mapping and aligned (a mapping starts at
        // a page); `&mut self` excludes any other access by this process while it lives.
        let word = unsafe { AtomicU64::from_ptr(word) };
        word.store(value.to_le(), Ordering::Release);
    }

    /// Where the mapping lies in this process.
    pub(crate) fn addresses(&self) -> Range<usize> {
        let range = self.0.as_ptr_range();
        range.start as usize..range.end as usize
    }
}
