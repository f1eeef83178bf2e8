//! Memory that will be used as a whole.

/// Where large pages begin.
const LARGE: usize = 2 << 20;

/// Makes room in an empty vector for so many elements and tells the kernel that large pages are
/// welcome: getting hundreds of megabytes page by page takes as long as filling them. Where
/// there is no such room, the vector grows as any other does.
pub fn reserve<T>(vec: &mut Vec<T>, capacity: usize) {
    if vec.try_reserve_exact(capacity).is_ok() {
        welcome(vec);
    }
}

/// So many zeros, likewise. They are not touched.
pub fn zeros(len: usize) -> Vec<u64> {
    let zeros = vec![0; len];
    welcome(&zeros);
    zeros
}

fn welcome<T>(vec: &Vec<T>) {
    let bytes = vec.capacity() * size_of::<T>();
    if bytes < LARGE {
        return;
    }
    // The allocator's own words lie before the first element: with them, the page is whole.
    let start = vec.as_ptr().addr() & !0xfff;
    let end = (vec.as_ptr().addr() + bytes) & !0xfff;
    // SAFETY: a hint about pages that the vector, or its allocator, has. It changes no contents.
    // That it is refused does not matter.
    unsafe { libc::madvise(start as *mut _, end - start, libc::MADV_HUGEPAGE) };
}

#[cfg(test)]
mod tests {
    use super::{reserve, zeros};

    #[test]
    fn room_that_cannot_be_had_is_no_mishap() {
        let mut much: Vec<u64> = Vec::new();
        reserve(&mut much, usize::MAX / 16);
        assert_eq!(much.capacity(), 0);
        reserve(&mut much, 1 << 20);
        assert!(much.capacity() >= 1 << 20);
        much.push(7);
        assert_eq!(much, [7]);
        assert!(zeros(1 << 20).iter().all(|n| *n == 0));
    }
}
