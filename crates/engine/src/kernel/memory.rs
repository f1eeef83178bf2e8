//! `mmap` and its kin, the same in recording and replay.

use super::files::{FileIdText, What};
use super::process::Process;
use crate::guest::memory::{Backing, Change, Memory, Region, host_map, host_prot};
use crate::layout::{self, PAGE, page_ceil, page_floor};
use crate::signal::careful;
use std::os::fd::AsRawFd;

const EINVAL: i64 = -(libc::EINVAL as i64);
const ENOMEM: i64 = -(libc::ENOMEM as i64);
const EEXIST: i64 = -(libc::EEXIST as i64);
const EBADF: i64 = -(libc::EBADF as i64);

/// Where the bytes of a file mapping come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Zeros.
    Nothing,
    /// A captured file.
    Captured(FileIdText),
    /// A descriptor of the host: the live file (recording), or a memory file that
    /// stands for it (replay). With its device and inode.
    Live(i32, (u64, u64)),
}

/// The arguments of `mmap`.
#[derive(Clone, Copy, Debug)]
pub struct Map {
    /// Hint or fixed address.
    pub address: u64,
    /// Length as asked.
    pub len: u64,
    /// Protection.
    pub prot: i32,
    /// Flags.
    pub flags: i32,
    /// Descriptor.
    pub fd: i32,
    /// Offset in the file.
    pub offset: u64,
}

impl Map {
    /// From the six arguments of the call.
    pub fn of(args: &[u64; 6]) -> Map {
        Map {
            address: args[0],
            len: args[1],
            prot: args[2] as i32 & 7,
            flags: args[3] as i32,
            fd: args[4] as i32,
            offset: args[5],
        }
    }

    /// No file behind it?
    pub fn is_anonymous(&self) -> bool {
        self.flags & libc::MAP_ANONYMOUS != 0
    }

    /// Shared?
    pub fn is_shared(&self) -> bool {
        // MAP_SHARED and MAP_SHARED_VALIDATE have the lowest bit.
        self.flags & libc::MAP_SHARED != 0
    }
}

impl Process {
    /// Performs an `mmap` whose source is known.
    pub fn map(&mut self, map: &Map, source: Source) -> i64 {
        if map.len == 0 || !map.offset.is_multiple_of(PAGE) || map.flags & 3 == 0 {
            return EINVAL;
        }
        let Some(len) = page_ceil(map.len) else { return ENOMEM };
        let data = map.prot & libc::PROT_WRITE != 0 && !map.is_shared();
        if !self.within_memory_limits(len, data) {
            return ENOMEM;
        }
        let read_only = !map.is_anonymous() && self.files.get(map.fd).is_some_and(|d| !d.writable);
        if read_only && map.is_shared() && map.prot & libc::PROT_WRITE != 0 {
            return -(libc::EACCES as i64);
        }
        let image = self.is_image(map, source);
        let start = match self.place(map, len, image) {
            Ok(start) => start,
            Err(error) => return error,
        };
        self.machine.cache.invalidate(start, start + len);
        let prot = host_prot(map.prot);
        let mapped = match source {
            // In a replay nobody else has it, and a fork of a replay must not share it.
            Source::Nothing => {
                let shared = map.is_shared() && self.shares_memory;
                let kind = if shared { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
                host_map(start, len, prot, kind | libc::MAP_ANONYMOUS, -1, 0)
            }
            Source::Captured(id) => match self.objects.open(id.0) {
                Ok(file) => {
                    host_map(start, len, prot, libc::MAP_PRIVATE, file.as_raw_fd(), map.offset)
                }
                Err(e) => Err(e.raw_os_error().unwrap_or(libc::EIO)),
            },
            Source::Live(fd, _) => {
                let kind = if map.is_shared() { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
                host_map(start, len, prot, kind, fd, map.offset)
            }
        };
        if let Err(errno) = mapped {
            return -(errno as i64);
        }
        let backing = self.backing(map, source);
        let file = self.shared_file(map, source);
        let shared = map.is_shared();
        let region = Region { end: start + len, prot: map.prot, shared, file, backing };
        self.machine.memory.insert(start, region);
        start as i64
    }

    /// The file that a map shares with whoever else has it.
    fn shared_file(&self, map: &Map, source: Source) -> Option<(u64, u64)> {
        match (source, self.files.get(map.fd).map(|d| &d.what)) {
            _ if !map.is_shared() => None,
            (Source::Live(_, identity), _) => Some(identity),
            (Source::Captured(_), Some(What::Regular { identity, .. })) => Some(*identity),
            _ => None,
        }
    }

    /// Is the file mapped shared?
    pub fn shares(&self, file: (u64, u64)) -> bool {
        self.machine.memory.regions().any(|(_, region)| region.file == Some(file))
    }

    /// Lets all shared maps of a file show the descriptor's contents from now on.
    pub fn make_live(&mut self, file: (u64, u64), fd: i32) -> Result<(), i32> {
        let maps: Vec<(u64, Region)> = self
            .machine
            .memory
            .regions()
            .filter(|(_, region)| region.file == Some(file))
            .map(|(start, region)| (start, region.clone()))
            .collect();
        for (start, region) in maps {
            let Backing::File { offset, .. } = region.backing else { continue };
            let (len, prot) = (region.end - start, host_prot(region.prot));
            host_map(start, len, prot, libc::MAP_SHARED, fd, offset)?;
            self.machine.cache.invalidate(start, region.end);
            self.machine.memory.note(Change::Mapped(start..region.end));
        }
        Ok(())
    }

    fn backing(&self, map: &Map, source: Source) -> Backing {
        if source == Source::Nothing {
            return Backing::Anonymous;
        }
        let path = match self.files.get(map.fd).map(|d| &d.what) {
            Some(What::Regular { path, .. }) => path.clone(),
            _ => b"/memfd: (deleted)".to_vec(),
        };
        Backing::File { path, offset: map.offset }
    }

    /// Do `RLIMIT_AS` and `RLIMIT_DATA` allow so much more?
    fn within_memory_limits(&self, more: u64, data: bool) -> bool {
        let limit = |resource| self.limits.get(&resource).map_or(u64::MAX, |(soft, _)| *soft);
        let (all, private) = (limit(libc::RLIMIT_AS), limit(libc::RLIMIT_DATA));
        if all == u64::MAX && private == u64::MAX {
            return true;
        }
        let sum = |counts: &dyn Fn(&Region) -> bool| {
            let sizes = self.machine.memory.regions().filter(|(_, r)| counts(r));
            // The kernel counts what the stack has grown to, which is little.
            let size = |start: u64, r: &Region| match r.backing {
                Backing::Stack => 33 * PAGE,
                _ => r.end - start,
            };
            sizes.map(|(start, r)| size(start, r)).sum::<u64>().saturating_add(more)
        };
        let writable = |r: &Region| r.prot & libc::PROT_WRITE != 0 && !r.shared;
        sum(&|_| true) <= all
            && (!data || sum(&|r| writable(r) && r.backing != Backing::Stack) <= private)
    }

    /// ELF files go into the window; everything else is placed high.
    fn is_image(&mut self, map: &Map, source: Source) -> bool {
        let Source::Captured(id) = source else { return false };
        map.offset == 0 && self.objects.bytes(id.0).is_ok_and(|b| b.starts_with(b"\x7fELF"))
            || map.prot & libc::PROT_EXEC != 0
    }

    fn place(&self, map: &Map, len: u64, image: bool) -> Result<u64, i64> {
        let memory = &self.machine.memory;
        let no_replace = map.flags & libc::MAP_FIXED_NOREPLACE != 0;
        if map.flags & libc::MAP_FIXED != 0 || no_replace {
            if !map.address.is_multiple_of(PAGE) {
                return Err(EINVAL);
            }
            if !Memory::is_allowed(map.address, len) {
                return Err(ENOMEM);
            }
            if no_replace && !memory.is_free(map.address, len) {
                return Err(EEXIST);
            }
            return Ok(map.address);
        }
        let hint = page_floor(map.address);
        if hint != 0 && Memory::is_allowed(hint, len) && memory.is_free(hint, len) {
            return Ok(hint);
        }
        let low = image || map.flags & libc::MAP_32BIT != 0;
        let place = if low { memory.find_low(len, PAGE) } else { None };
        place.or_else(|| memory.find_high(len)).ok_or(ENOMEM)
    }

    /// `munmap`.
    pub fn unmap(&mut self, start: u64, len: u64) -> i64 {
        let Some(len) = page_ceil(len) else { return EINVAL };
        if !start.is_multiple_of(PAGE) || len == 0 || start.checked_add(len).is_none() {
            return EINVAL;
        }
        // Only what is the guest's is really unmapped.
        let end = start + len;
        let mine: Vec<(u64, u64)> = self
            .machine
            .memory
            .regions()
            .filter(|(s, r)| *s < end && start < r.end)
            .map(|(s, r)| (s.max(start), r.end.min(end)))
            .collect();
        for (s, e) in mine {
            self.machine.cache.invalidate(s, e);
            self.machine.memory.unmap(s, e);
        }
        0
    }

    /// `mprotect`.
    pub fn protect(&mut self, start: u64, len: u64, prot: u64) -> i64 {
        let Some(len) = page_ceil(len) else { return ENOMEM };
        if !start.is_multiple_of(PAGE) {
            return EINVAL;
        }
        if len == 0 {
            return 0;
        }
        let Some(end) = start.checked_add(len) else { return ENOMEM };
        let mut start = start;
        if prot as i32 & libc::PROT_GROWSDOWN != 0 {
            match self.machine.memory.region(start) {
                Some((first, Region { backing: Backing::Stack, .. })) => start = first,
                _ => return EINVAL,
            }
        }
        let prot = prot as i32 & 7;
        let reach = self.machine.memory.run_mapped(start, end);
        if reach > start {
            // SAFETY: the range is mapped for the guest, as its regions say.
            let done = unsafe {
                libc::mprotect(start as *mut _, (reach - start) as usize, host_prot(prot))
            };
            if done != 0 {
                return -(std::io::Error::last_os_error().raw_os_error().unwrap_or(0) as i64);
            }
            self.machine.cache.invalidate(start, reach);
            self.machine.memory.protect(start, reach, prot);
        }
        if reach == end { 0 } else { ENOMEM }
    }

    /// `brk`.
    pub fn set_brk(&mut self, wanted: u64) -> i64 {
        let now = self.machine.memory.brk;
        if !(layout::BRK.start..=layout::BRK.end).contains(&wanted) {
            return now as i64;
        }
        let (old_end, new_end) = (round(now), round(wanted));
        if new_end > old_end {
            if !self.machine.memory.is_free(old_end, new_end - old_end)
                || !self.within_memory_limits(new_end - old_end, true)
            {
                return now as i64;
            }
            let prot = libc::PROT_READ | libc::PROT_WRITE;
            if self
                .machine
                .memory
                .map_anonymous(old_end, new_end - old_end, prot, Backing::Heap)
                .is_err()
            {
                return now as i64;
            }
        } else if new_end < old_end {
            self.machine.cache.invalidate(new_end, old_end);
            self.machine.memory.unmap(new_end, old_end);
        }
        self.machine.memory.brk = wanted;
        wanted as i64
    }

    /// `mremap`.
    pub fn remap(&mut self, args: &[u64; 6]) -> i64 {
        let [old, old_len, new_len, flags, wanted, _] = *args;
        let (may_move, fixed) = (flags & 1 != 0, flags & 2 != 0);
        let (Some(old_len), Some(new_len)) = (page_ceil(old_len), page_ceil(new_len)) else {
            return EINVAL;
        };
        if old % PAGE != 0 || new_len == 0 || flags & !7 != 0 || fixed && !may_move {
            return EINVAL;
        }
        let Some((region_start, region)) =
            self.machine.memory.region(old).map(|(s, r)| (s, r.clone()))
        else {
            return -(libc::EFAULT as i64);
        };
        if old_len == 0 || old.checked_add(old_len).is_none_or(|end| end > region.end) {
            // Duplicating shared maps (old_len 0) is an ancient extension.
            return if old_len == 0 { EINVAL } else { -(libc::EFAULT as i64) };
        }
        if !fixed && new_len <= old_len {
            if new_len < old_len {
                self.unmap(old + new_len, old_len - new_len);
            }
            return old as i64;
        }
        let data = region.prot & libc::PROT_WRITE != 0 && !region.shared;
        if new_len > old_len && !self.within_memory_limits(new_len - old_len, data) {
            return ENOMEM;
        }
        let grows_in_place = !fixed
            && old + old_len == region.end
            && Memory::is_allowed(old, new_len)
            && self.machine.memory.is_free(old + old_len, new_len - old_len);
        let target = if grows_in_place {
            old
        } else if !may_move {
            return ENOMEM;
        } else if fixed {
            if wanted % PAGE != 0 || !Memory::is_allowed(wanted, new_len) {
                return EINVAL;
            }
            self.unmap(wanted, new_len);
            wanted
        } else {
            match self.machine.memory.find_high(new_len) {
                Some(place) => place,
                None => return ENOMEM,
            }
        };
        self.machine.cache.invalidate(old, old + old_len);
        let move_flags = if target == old { 0 } else { libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED };
        // SAFETY: both ranges are the guest's.
        let got = unsafe {
            libc::mremap(
                old as *mut _,
                old_len as usize,
                new_len as usize,
                move_flags,
                target as *mut libc::c_void,
            )
        };
        if got == libc::MAP_FAILED {
            return -(std::io::Error::last_os_error().raw_os_error().unwrap_or(0) as i64);
        }
        let mut moved = region;
        if let Backing::File { offset, .. } = &mut moved.backing {
            *offset += old - region_start;
        }
        moved.end = target + new_len;
        self.machine.memory.remove(old, old + old_len);
        self.machine.memory.insert(target, moved);
        target as i64
    }

    /// `madvise`: only what changes contents matters.
    pub fn advise(&mut self, start: u64, len: u64, advice: i32) -> i64 {
        let Some(len) = page_ceil(len) else { return EINVAL };
        if !start.is_multiple_of(PAGE) {
            return EINVAL;
        }
        let end = start.saturating_add(len);
        let reach = self.machine.memory.run_mapped(start, end);
        match advice {
            libc::MADV_DONTNEED | libc::MADV_REMOVE => {
                self.machine.cache.invalidate(start, reach);
                self.machine.memory.note(Change::Mapped(start..reach));
                // Dropping a page of shared memory does not change what it holds.
                let kept = advice == libc::MADV_DONTNEED && self.has_shared(start, reach);
                if reach > start && !kept {
                    // SAFETY: guest memory.
                    let done =
                        unsafe { libc::madvise(start as *mut _, (reach - start) as usize, advice) };
                    if done != 0 {
                        return -(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
                            as i64);
                    }
                }
            }
            // Freed lazily or dropped from forks: contents would depend on memory
            // pressure, so the pages simply stay.
            libc::MADV_FREE | libc::MADV_DONTFORK | libc::MADV_WIPEONFORK => {}
            0..=25 => {}
            _ => return EINVAL,
        }
        if reach == end { 0 } else { ENOMEM }
    }

    /// Is anything in the range mapped shared?
    fn has_shared(&self, start: u64, end: u64) -> bool {
        let mut regions = self.machine.memory.regions();
        regions.any(|(first, region)| region.shared && first < end && start < region.end)
    }

    /// Other processes have changed shared memory, also where this one may only read.
    pub fn write_shared(&mut self, address: u64, data: &[u8]) -> bool {
        if self.machine.memory.is_writable(address, data.len() as u64) {
            return self.write_from_log(address, data);
        }
        let Some((start, region)) = self.machine.memory.region(address) else { return false };
        let (len, prot) = ((region.end - start) as usize, host_prot(region.prot));
        if address + data.len() as u64 > region.end || !region.shared {
            return false;
        }
        self.machine.cache.invalidate(address, address + data.len() as u64);
        // SAFETY: a region of the guest's, opened for the time of the copy.
        unsafe {
            libc::mprotect(start as *mut _, len, libc::PROT_READ | libc::PROT_WRITE);
            let done = careful::copy(address as *mut u8, data.as_ptr(), data.len());
            libc::mprotect(start as *mut _, len, prot);
            done
        }
    }

    /// The source of a mapping by its descriptor, where the descriptor alone tells.
    pub fn captured_source(&self, map: &Map) -> Result<Option<FileIdText>, i64> {
        match self.files.get(map.fd) {
            None => Err(EBADF),
            Some(d) => match &d.what {
                What::Regular { file, .. } => Ok(*file),
                _ => Ok(None),
            },
        }
    }
}

fn round(address: u64) -> u64 {
    page_ceil(address).expect("within the brk range")
}
