//! Carries over to the native side what the engine did to guest memory, and
//! compares the memory of both.

use super::native::Native;
use super::twins::Twins;
use crate::Error;
use crate::guest::memory::{Backing, Change, Memory, Region};
use crate::layout::{PAGE, page_ceil, page_floor};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Most bytes moved at once.
const CHUNK: u64 = 1 << 20;
/// Differing addresses named.
const NAMED: usize = 4;

/// The protections the guest asked for, instead of the host's (which never allow
/// execution).
pub fn give_protections(native: &mut Native, memory: &Memory) -> Result<(), Error> {
    for (start, region) in memory.regions() {
        protect(native, start..region.end, region.prot)?;
    }
    Ok(())
}

/// Applies all changes since the last time. Did any of them concern maps, hence
/// possibly code?
pub fn apply(native: &mut Native, memory: &Memory, twins: &Twins) -> Result<bool, Error> {
    let changes = memory.take_changes();
    let here = here()?;
    let mut code = false;
    for change in &changes {
        if let Change::Mapped(range) = change {
            code = true;
            remap(native, memory, &here, twins, range)?;
        }
    }
    for change in changes {
        match change {
            Change::Protected(range) => {
                code = true;
                for (part, region) in parts(memory, &range) {
                    protect(native, part, region.prot)?;
                }
            }
            Change::Written(range) => {
                code |=
                    memory.region(range.start).is_some_and(|(_, r)| r.prot & libc::PROT_EXEC != 0);
                copy(native, &here, range)?;
            }
            Change::Mapped(_) => {}
        }
    }
    Ok(code)
}

fn here() -> Result<File, Error> {
    File::open("/proc/self/mem").map_err(Error::io("cannot open /proc/self/mem"))
}

/// The parts of a range that are mapped.
fn parts<'a>(memory: &'a Memory, range: &Range<u64>) -> Vec<(Range<u64>, &'a Region)> {
    memory
        .regions()
        .filter(|(start, region)| *start < range.end && range.start < region.end)
        .map(|(start, region)| (start.max(range.start)..region.end.min(range.end), region))
        .collect()
}

fn protect(native: &mut Native, range: Range<u64>, prot: i32) -> Result<(), Error> {
    let args = [range.start, range.end - range.start, prot as u64, 0, 0, 0];
    native.inject(libc::SYS_mprotect, args).map(|_| ())
}

/// Makes the range there what it is here: a map of the same file's twin, or
/// anonymous memory with the same contents.
fn remap(
    native: &mut Native,
    memory: &Memory,
    here: &File,
    twins: &Twins,
    range: &Range<u64>,
) -> Result<(), Error> {
    let range = page_floor(range.start)..page_ceil(range.end).unwrap_or(range.end);
    if range.is_empty() {
        return Ok(());
    }
    native.inject(libc::SYS_munmap, [range.start, range.end - range.start, 0, 0, 0, 0])?;
    for (part, region) in parts(memory, &range) {
        let twin = twins.behind(part.start)?;
        match (twin, &region.backing) {
            (Some(fd), Backing::File { .. }) => {
                let kind = if region.shared { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
                map(native, &part, region.prot, kind, fd, offset(memory, part.start))?;
            }
            _ => {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
                map(native, &part, region.prot, flags, -1, 0)?;
            }
        }
        if matches!(region.backing, Backing::File { .. }) || region.shared {
            copy_file(native, here, part, region.prot)?;
        } else {
            for present in present(part)? {
                copy(native, here, present)?;
            }
        }
    }
    Ok(())
}

/// Offset in its file of what is mapped at an address.
fn offset(memory: &Memory, address: u64) -> u64 {
    match memory.region(address) {
        Some((start, Region { backing: Backing::File { offset, .. }, .. })) => {
            offset + (address - start)
        }
        _ => 0,
    }
}

fn map(
    native: &mut Native,
    part: &Range<u64>,
    prot: i32,
    flags: i32,
    fd: i32,
    offset: u64,
) -> Result<(), Error> {
    let len = part.end - part.start;
    let flags = (flags | libc::MAP_FIXED) as u64;
    let args = [part.start, len, prot as u64, flags, fd as u64, offset];
    native.inject(libc::SYS_mmap, args).map(|_| ())
}

/// Copies pages that differ. Those behind the end of the file raise SIGBUS on
/// either side.
fn copy_file(native: &mut Native, here: &File, part: Range<u64>, prot: i32) -> Result<(), Error> {
    let (mut ours, mut theirs) = (vec![0; PAGE as usize], vec![0; PAGE as usize]);
    for page in part.step_by(PAGE as usize) {
        let behind_end = native.read(page, &mut theirs).is_err();
        if here.read_exact_at(&mut ours, page).is_ok() {
            if ours != theirs {
                native.write(page, &ours)?;
            }
        } else if !behind_end {
            let empty = native.empty_file();
            map(native, &(page..page + PAGE), prot, libc::MAP_SHARED, empty, 0)?;
        }
    }
    Ok(())
}

/// Copies bytes from here to there, as far as they can be read.
fn copy(native: &Native, here: &File, range: Range<u64>) -> Result<(), Error> {
    let mut at = range.start;
    while at < range.end {
        let n = (range.end - at).min(CHUNK);
        let mut bytes = vec![0; n as usize];
        if here.read_exact_at(&mut bytes, at).is_err() {
            return copy_readable_pages(native, here, at..range.end);
        }
        native.write(at, &bytes)?;
        at += n;
    }
    Ok(())
}

fn copy_readable_pages(native: &Native, here: &File, range: Range<u64>) -> Result<(), Error> {
    let mut at = range.start;
    while at < range.end {
        let end = (page_floor(at) + PAGE).min(range.end);
        let mut bytes = vec![0; (end - at) as usize];
        if here.read_exact_at(&mut bytes, at).is_ok() {
            native.write(at, &bytes)?;
        }
        at = end;
    }
    Ok(())
}

/// The parts of a range that the kernel has given memory to.
fn present(range: Range<u64>) -> Result<Vec<Range<u64>>, Error> {
    let failed = || Error::io("cannot read /proc/self/pagemap");
    let file = File::open("/proc/self/pagemap").map_err(failed())?;
    let mut parts: Vec<Range<u64>> = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let pages = ((range.end - at) / PAGE).min(4096);
        let mut bytes = vec![0u8; pages as usize * 8];
        file.read_exact_at(&mut bytes, at / PAGE * 8).map_err(failed())?;
        for (n, entry) in bytes.chunks_exact(8).enumerate() {
            let page = at + n as u64 * PAGE;
            // Bit 63: present; bit 62: swapped out.
            if entry[7] & 0xc0 == 0 {
                continue;
            }
            match parts.last_mut() {
                Some(last) if last.end == page => last.end += PAGE,
                _ => parts.push(page..page + PAGE),
            }
        }
        at += pages * PAGE;
    }
    Ok(parts)
}

/// Compares all private writable memory that either side may have touched.
pub fn compare(native: &mut Native, memory: &Memory) -> Result<Vec<String>, Error> {
    let here = here()?;
    let mut what = Vec::new();
    for (start, region) in memory.regions() {
        if region.prot & libc::PROT_WRITE == 0 {
            continue;
        }
        for part in present(start..region.end)? {
            let mut at = part.start;
            while at < part.end && what.len() < NAMED {
                let n = (part.end - at).min(CHUNK) as usize;
                let (mut ours, mut theirs) = (vec![0; n], vec![0; n]);
                if here.read_exact_at(&mut ours, at).is_ok()
                    && native.read(at, &mut theirs).is_ok()
                    && ours != theirs
                {
                    what.extend(first_difference(at, &ours, &theirs));
                }
                at += n as u64;
            }
        }
    }
    Ok(what)
}

fn first_difference(at: u64, ours: &[u8], theirs: &[u8]) -> Option<String> {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let pairs = ours.chunks_exact(8).zip(theirs.chunks_exact(8));
    let (n, (a, b)) = pairs.enumerate().find(|(_, (a, b))| a != b)?;
    Some(format!(
        "memory at {:#x}: translated {:#x}, native {:#x}",
        at + 8 * n as u64,
        word(a),
        word(b)
    ))
}
