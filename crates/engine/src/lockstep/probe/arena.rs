//! Memory that the scratch process and this one share, so large that an address
//! with one byte altered mostly still lies in it.

use super::state::Window;
use crate::Error;
use std::io;

/// All of it: nobody else maps anything there.
const START: u64 = 0x2000_0000_0000;
const LEN: u64 = 0x1000_0000_0000;
/// Where the instruction lies: with 2 GiB of memory on either side.
pub const CODE: u64 = START + 0x0155_8000_0000;
/// Operands are put here, each register's apart from the others'.
pub const DATA: u64 = START + 0x0155_2a55_8000;
/// Between the places of two registers.
pub const APART: u64 = 0x20_0000;

/// A register's place where all but the highest bytes of an address are zero.
pub fn boundary(register: u8) -> u64 {
    START + ((u64::from(register % 13) + 2) << 40)
}

/// The map.
pub struct Arena(());

impl Arena {
    /// Maps it; pages come when they are touched.
    pub fn map() -> Result<Arena, Error> {
        let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        let flags = libc::MAP_SHARED
            | libc::MAP_ANONYMOUS
            | libc::MAP_NORESERVE
            | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: a new map where nothing is.
        let got = unsafe { libc::mmap(START as *mut _, LEN as usize, all, flags, -1, 0) };
        if got as u64 != START {
            let error = io::Error::last_os_error();
            return Err(Error::Io { what: "cannot map memory for probing", error });
        }
        Ok(Arena(()))
    }

    /// Puts the instruction where it will be executed.
    pub fn put_code(&self, bytes: &[u8]) {
        self.put(&[Window { address: CODE, bytes: bytes.to_vec() }]);
    }

    /// Fills windows.
    pub fn put(&self, windows: &[Window]) {
        for window in windows {
            window.check(START, LEN);
            // SAFETY: within the map, which only the stopped child uses too.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    window.bytes.as_ptr(),
                    window.address as *mut u8,
                    window.bytes.len(),
                );
            }
        }
    }

    /// Reads windows.
    pub fn get(&self, windows: &mut [Window]) {
        for window in windows {
            window.check(START, LEN);
            // SAFETY: as above.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    window.address as *const u8,
                    window.bytes.as_mut_ptr(),
                    window.bytes.len(),
                );
            }
        }
    }

    /// Gives all pages back.
    pub fn forget(&self) {
        // SAFETY: our own map; its contents are not needed any more. If it fails,
        // memory is merely kept.
        unsafe { libc::madvise(START as *mut _, LEN as usize, libc::MADV_REMOVE) };
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: our own map.
        unsafe { libc::munmap(START as *mut _, LEN as usize) };
    }
}
