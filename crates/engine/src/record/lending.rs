//! `vfork`: the parent waits until the child has executed a program or ended, and sees
//! what the child wrote until then.
//!
//! The child is a copy, so what it wrote is sent to the parent: page by page through a
//! pipe, whose end also says that the wait is over.

use super::session::Session;
use crate::guest::memory::Memory;
use crate::layout::PAGE;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::FromRawFd;

/// The child's end.
pub struct Lender(File);

/// The parent's end.
pub struct Borrower(File);

/// Pages as the child left them.
#[derive(Default)]
pub struct Written(Vec<u8>);

const RECORD: usize = 8 + PAGE as usize;

/// Behind the last page: the child has not spoilt the cache, and does not use it any more.
const END: [u8; 1] = [0];

/// Bytes that differ are told together with those between them, if they are few.
const GAP: usize = 16;

/// A pair of ends.
pub fn lend() -> io::Result<(Lender, Borrower)> {
    let mut fds = [0; 2];
    // SAFETY: fills our array.
    if unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let file = |fd| -> io::Result<File> {
        let high = crate::sys::move_high(fd)?;
        // SAFETY: a descriptor that is only ours.
        Ok(unsafe { File::from_raw_fd(high) })
    };
    Ok((Lender(file(fds[1])?), Borrower(file(fds[0])?)))
}

impl Borrower {
    /// Waits for the child's word or its end.
    pub fn wait(mut self) -> Written {
        let mut bytes = Vec::new();
        // An error is as good as the end: there is nothing more to know.
        let _ = self.0.read_to_end(&mut bytes);
        Written(bytes)
    }
}

impl Written {
    /// Did the child leave the cache that it was lent as it should be? Not if it was killed.
    pub fn leaves_cache(&self) -> bool {
        self.0.len() % RECORD == END.len()
    }

    /// What differs from this process's memory.
    pub fn changes(&self, memory: &Memory) -> Vec<(u64, Vec<u8>)> {
        let mut changes = Vec::new();
        for record in self.0.chunks_exact(RECORD) {
            let (address, new) = record.split_at(8);
            let address = u64::from_le_bytes(address.try_into().expect("eight"));
            let Some(old) = memory.read(address, PAGE as usize) else { continue };
            changes.extend(runs(&old, new).map(|run| {
                let start = address + run.start as u64;
                (start, new[run].to_vec())
            }));
        }
        changes
    }
}

/// The parts of two pages that differ.
pub fn runs<'a>(old: &'a [u8], new: &'a [u8]) -> impl Iterator<Item = std::ops::Range<usize>> + 'a {
    let mut at = 0;
    std::iter::from_fn(move || {
        let differs = |n: &usize| old[*n] != new[*n];
        let start = (at..new.len()).find(differs)?;
        let mut end = start + 1;
        while let Some(next) = (end..new.len().min(end + GAP)).find(differs) {
            end = next + 1;
        }
        at = end;
        Some(start..end)
    })
}

impl Session {
    /// The parent need not wait any longer.
    pub(super) fn give_back_memory(&mut self) {
        let Some(Lender(mut pipe)) = self.lender.take() else { return };
        let memory = &self.process.machine.memory;
        let mut bytes = Vec::new();
        for page in crate::hash::pages_written(memory).unwrap_or_default() {
            if let Some(contents) = memory.read(page, PAGE as usize) {
                bytes.extend(page.to_le_bytes());
                bytes.extend(contents);
            }
        }
        if self.process.machine.cache.give_back() {
            bytes.extend(END);
        }
        // A parent that is gone has no use for it.
        let _ = pipe.write_all(&bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_told() {
        let old = [0u8; 100];
        let mut new = old;
        assert_eq!(runs(&old, &new).count(), 0);
        (new[0], new[3], new[50], new[99]) = (1, 1, 1, 1);
        assert!(runs(&old, &new).eq([0..4, 50..51, 99..100]));
    }
}
