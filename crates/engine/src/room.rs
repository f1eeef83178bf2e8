//! Room for much data.

use crate::layout::PAGE;

/// From here on large pages are worth asking for.
const LARGE: usize = 4 << 20;

/// Asks for large pages behind a vector's free room, if that is large. It makes no
/// difference but in time: the first touch of a page costs as much as filling it.
pub fn prepare<T>(vector: &mut Vec<T>) {
    let room = vector.spare_capacity_mut().as_mut_ptr_range();
    let start = (room.start as usize).next_multiple_of(PAGE as usize);
    let len = (room.end as usize).saturating_sub(start) & !(PAGE as usize - 1);
    if len >= LARGE {
        // SAFETY: whole pages of memory that the vector owns, of which nothing is changed.
        unsafe { libc::madvise(start as *mut libc::c_void, len, libc::MADV_HUGEPAGE) };
    }
}
