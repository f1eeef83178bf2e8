//! The code cache: where translated units live and how they are found, linked
//! and thrown away.
//!
//! Code, tables and free pointers are in one memory file. The code is mapped
//! twice: executable in the window, writable somewhere high where a guest's wild
//! store will not find it.

mod aside;
mod copies;
mod discarding;
mod landings;
mod lending;
mod links;
mod maps;
pub mod spare;
mod stocking;

pub use lending::Loan;
pub use maps::forget_returns;

use super::emit::Hole;
use super::translate::Translation;
use crate::layout;
use maps::{map, map_returns, map_views, populate};
use std::collections::HashSet;
use std::io;
use std::os::fd::{IntoRawFd, OwnedFd};

const CODE_BYTES: usize = (layout::CACHE.end - layout::CACHE.start) as usize;
/// The second half of the code is cold: ways out that are taken once.
const COLD: usize = CODE_BYTES / 2;
/// Most bytes one unit can take in either half.
const LARGEST_UNIT: usize = 1 << 16;
const RETURN_BYTES: usize = 1 << 16;
/// Host address of the stub for returns that do not match; the cache begins with
/// it, and the stub for indirect misses follows.
pub const WRONG_RETURN: u64 = layout::CACHE.start;
const MISS: u64 = layout::CACHE.start + 64;
const FIRST_UNIT: u64 = layout::CACHE.start + 128;
const TARGET_SLOTS: usize = 1 << 16;
const TARGET_BYTES: usize = TARGET_SLOTS * 4;
const MAX_UNITS: usize = 1 << 20;
const MAX_EXITS: usize = 1 << 22;
const BUCKETS: usize = 1 << 18;
const NONE: u32 = u32::MAX;
/// A discarded unit keeps its place so that a thread that stands in it can still be
/// located.
const DEAD: u32 = 0;
/// A unit that is found and linked to.
const IN_USE: u32 = 1;
/// A unit that an earlier run translated, and that may come into use.
const ASLEEP: u32 = 2;
const NO_PAGE: u64 = u64::MAX;

/// Number of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnitId(pub u32);

/// Number of a direct exit of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitId(pub u32);

/// One translated unit.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Unit {
    /// Guest address of its first instruction.
    pub pc: u64,
    /// Length of the guest code it covers.
    pub guest_len: u32,
    /// Number of its guest instructions.
    pub instructions: u32,
    /// Host address of its first byte: its own landing, or the body.
    pub start: u32,
    /// Host address of its body.
    pub host: u32,
    /// Host length of the body.
    pub host_len: u32,
    /// Host address of its landing, or 0.
    landing: u32,
    /// Host address of the landing's jump to the next landing of the same slot.
    landing_next: u32,
    /// First of the exits linked to it.
    incoming: u32,
    /// Next unit in the same hash bucket.
    next: u32,
    /// [`DEAD`], [`IN_USE`] or [`ASLEEP`].
    state: u32,
}

/// One direct exit.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Exit {
    target: u64,
    hole: u32,
    stub: u32,
    next_incoming: u32,
    linked: u32,
}

#[repr(C)]
struct Header {
    code_used: usize,
    cold_used: usize,
    units: usize,
    exits: usize,
    /// Units thrown away because their code changed.
    discarded: usize,
    /// Once there is a landing or a miss in every slot.
    has_targets: usize,
}

/// Addresses of pages differ in their middle bits, and nobody chooses them to collide.
#[derive(Clone, Copy, Default)]
struct ByPage(u64);

impl std::hash::BuildHasher for ByPage {
    type Hasher = ByPage;

    fn build_hasher(&self) -> ByPage {
        ByPage(0)
    }
}

impl std::hash::Hasher for ByPage {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, page: u64) {
        self.0 = crate::hash::mix(self.0, page);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Is the host address in the stub for returns that do not match?
pub fn is_wrong_return(host: u64) -> bool {
    (WRONG_RETURN..MISS).contains(&host)
}

/// A direct exit as the translator describes it.
pub struct NewExit {
    /// The branch displacement to patch.
    pub hole: Hole,
    /// Offset of the stub that asks the engine.
    pub stub: usize,
    /// Guest target.
    pub target: u64,
}

/// The cache. See the module's description.
pub struct Cache {
    file: libc::c_int,
    code: *mut u8,
    /// The map of the whole file.
    whole: *mut u8,
    /// Landings, by slot: what lies in the window has addresses of 32 bits.
    targets: *mut u32,
    header: *mut Header,
    units: *mut Unit,
    exits: *mut Exit,
    buckets: *mut u32,
    /// Guest pages that some unit was translated from.
    pages: HashSet<u64, ByPage>,
    /// The maps are this process's alone: code is written where it is executed.
    private: bool,
    /// Pages of it that may be written now.
    open: Vec<u64>,
    /// Code is known not to change until further notice.
    trusted: bool,
    /// Expected returns that wait with it, where it was set aside.
    returns: *mut u8,
    /// How often everything was thrown away.
    resets: u64,
    /// What is kept from run to run, if anything is.
    stock: Option<Box<stocking::Stock>>,
    /// If it is the parent's: where the next one will be.
    next: Option<OwnedFd>,
    /// It was the parent's, and what it holds may be wrong there.
    spoilt: bool,
}

// SAFETY: the pointers are to maps this value owns; it is used by whichever
// thread holds the turn.
unsafe impl Send for Cache {}

const fn align(n: usize) -> usize {
    (n + 4095) & !4095
}

const OFF_TARGETS: usize = CODE_BYTES;
const OFF_HEADER: usize = OFF_TARGETS + align(TARGET_BYTES);
const OFF_UNITS: usize = OFF_HEADER + 4096;
const OFF_EXITS: usize = OFF_UNITS + align(MAX_UNITS * size_of::<Unit>());
const OFF_BUCKETS: usize = OFF_EXITS + align(MAX_EXITS * size_of::<Exit>());
const TOTAL: usize = OFF_BUCKETS + align(BUCKETS * 4);

impl Cache {
    /// Maps an empty cache at its fixed place in the window.
    pub fn new() -> io::Result<Cache> {
        Cache::new_in(spare::own_file()?)
    }

    /// The same in a memory file that is to spare.
    pub fn new_in(file: OwnedFd) -> io::Result<Cache> {
        let mut cache = Cache::in_file(file)?;
        map_views(cache.file)?;
        map_returns()?;
        cache.reset();
        Ok(cache)
    }

    /// The next new cache of this process will be where this one was. No other process may
    /// have it.
    pub fn recycle(&self) {
        if let Ok(file) = spare::copy(self.file) {
            spare::recycle(file);
        }
    }

    /// Throws everything away.
    pub fn reset(&mut self) {
        self.empty_tables();
        let header = self.header();
        header.code_used = 0;
        header.units = 0;
        header.exits = 0;
        self.resets += 1;
        self.stock = None;
        self.pages.clear();
        self.write_code(0, &super::translate::wrong_return_stub(WRONG_RETURN));
        self.write_code(64, &super::translate::miss_stub(MISS));
        self.header().code_used = (FIRST_UNIT - layout::CACHE.start) as usize;
        self.header().cold_used = COLD;
        forget_returns();
    }

    fn header(&mut self) -> &mut Header {
        // SAFETY: mapped for the life of the cache; `&mut self` excludes others.
        unsafe { &mut *self.header }
    }

    /// Is there room for one more unit of any size?
    pub fn is_full(&mut self) -> bool {
        let h = self.header();
        h.code_used + LARGEST_UNIT > COLD
            || h.cold_used + LARGEST_UNIT > CODE_BYTES
            || h.units + 1 > MAX_UNITS
            || h.exits + 256 > MAX_EXITS
    }

    /// Host address where the next unit will be put.
    pub fn next_host(&mut self) -> u64 {
        layout::CACHE.start + self.header().code_used as u64
    }

    /// Host address where its cold part will be put.
    pub fn next_cold(&mut self) -> u64 {
        layout::CACHE.start + self.header().cold_used as u64
    }

    /// Number of the next unit to be added.
    pub fn next_unit(&mut self) -> UnitId {
        UnitId(self.header().units as u32)
    }

    /// Number of the next exit to be added.
    pub fn next_exit(&mut self) -> u32 {
        self.header().exits as u32
    }

    fn write_code(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= CODE_BYTES, "checked by is_full");
        self.unseal(self.code as u64 + offset as u64, bytes.len());
        // SAFETY: in bounds of the writable map of the code.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.code.add(offset), bytes.len());
        }
    }

    /// Points the displacement at host address `hole` to host address `to`.
    fn patch(&mut self, hole: u32, to: u32) {
        let displacement = to.wrapping_sub(hole + 4);
        self.write_code(hole as usize - layout::CACHE.start as usize, &displacement.to_le_bytes());
    }

    /// The unit that starts at guest address `pc`.
    pub fn find(&self, pc: u64) -> Option<UnitId> {
        let mut i = self.bucket(pc);
        while i != NONE {
            let unit = self.unit(UnitId(i));
            if unit.pc == pc {
                return Some(UnitId(i));
            }
            i = unit.next;
        }
        None
    }

    /// Code that lies together is found together, and few units begin within 32 bytes:
    /// few pages of the table are used, which every new process has to fill.
    fn bucket_index(pc: u64) -> usize {
        (pc >> 5 ^ pc >> 23) as usize & (BUCKETS - 1)
    }

    fn bucket(&self, pc: u64) -> u32 {
        // SAFETY: the index has 18 bits.
        let stored = unsafe { *self.buckets.add(Self::bucket_index(pc)) };
        // One more than the number, so that zero is `NONE`.
        stored.wrapping_sub(1)
    }

    fn set_bucket(&mut self, pc: u64, value: u32) {
        // SAFETY: the index has 18 bits.
        unsafe { *self.buckets.add(Self::bucket_index(pc)) = value.wrapping_add(1) }
    }

    /// A unit's record.
    pub fn unit(&self, id: UnitId) -> Unit {
        // SAFETY: ids are only made by `add`.
        unsafe { *self.units.add(id.0 as usize) }
    }

    fn unit_mut(&mut self, id: UnitId) -> &mut Unit {
        // SAFETY: ids are only made by `add`.
        unsafe { &mut *self.units.add(id.0 as usize) }
    }

    fn exit_mut(&mut self, id: u32) -> &mut Exit {
        // SAFETY: ids are only made by `add`, or were stored by translated code.
        unsafe {
            assert!((id as usize) < (*self.header).exits);
            &mut *self.exits.add(id as usize)
        }
    }

    /// Guest target of a direct exit.
    pub fn exit_target(&mut self, id: ExitId) -> u64 {
        self.exit_mut(id.0).target
    }

    /// Installs a unit that was translated for [`Self::next_host`] and
    /// [`Self::next_cold`].
    pub fn add(&mut self, pc: u64, t: &Translation) -> UnitId {
        self.install(pc, t, true)
    }

    /// The same for a unit that is not found by its address.
    pub fn add_apart(&mut self, pc: u64, t: &Translation) -> UnitId {
        self.install(pc, t, false)
    }

    fn install(&mut self, pc: u64, t: &Translation, hashed: bool) -> UnitId {
        let start = self.next_host() as u32;
        let cold = self.next_cold() as u32;
        self.put(t);
        let id = UnitId(self.header().units as u32);
        let first_exit = self.header().exits;
        for (i, exit) in t.exits.iter().enumerate() {
            // SAFETY: `is_full` keeps room for 256 exits.
            unsafe {
                *self.exits.add(first_exit + i) = Exit {
                    target: exit.target,
                    hole: start + exit.hole.0 as u32,
                    stub: cold + exit.stub as u32,
                    next_incoming: NONE,
                    linked: NONE,
                };
            }
        }
        let header = self.header();
        header.exits += t.exits.len();
        header.units += 1;
        header.code_used += t.bytes.len();
        header.cold_used += t.cold.len();
        let next = if hashed { self.bucket(pc) } else { NONE };
        *self.unit_mut(id) = Unit {
            pc,
            guest_len: t.guest_len,
            instructions: t.instructions,
            start,
            host: start + t.body as u32,
            host_len: (t.bytes.len() - t.body) as u32,
            landing: 0,
            landing_next: 0,
            incoming: NONE,
            next,
            state: IN_USE,
        };
        if hashed {
            // Should the process be killed: whoever gets its memory empties the buckets of
            // the units that there are.
            std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::Release);
            self.set_bucket(pc, id.0);
        } else {
            self.is_stray(id);
        }
        let mut last = NO_PAGE;
        for place in &t.places {
            for page in [place.pc, place.pc + 15].map(layout::page_floor) {
                if page != last {
                    self.pages.insert(page);
                    last = page;
                }
            }
        }
        if let Some(hole) = t.landing_next {
            self.install_landing(id, start, start + hole.0 as u32);
        }
        id
    }

    /// Puts code that belongs to no guest address (one-off prefixes) at the free
    /// end of the cache, without keeping it.
    pub fn put(&mut self, t: &Translation) {
        let (offset, cold) = (self.header().code_used, self.header().cold_used);
        self.write_code(offset, &t.bytes);
        self.write_code(cold, &t.cold);
    }

    /// The unit whose host code contains the address, alive or not.
    pub fn unit_at_host(&mut self, host: u64) -> Option<UnitId> {
        if !layout::CACHE.contains(&host) {
            return None;
        }
        let n = self.header().units;
        // SAFETY: the first `n` records are initialised.
        let units = unsafe { std::slice::from_raw_parts(self.units, n) };
        let i = units.partition_point(|u| u.host as u64 <= host).checked_sub(1)?;
        (host < units[i].host as u64 + units[i].host_len as u64).then_some(UnitId(i as u32))
    }

    /// Still in use?
    pub fn is_alive(&self, id: UnitId) -> bool {
        self.unit(id).state == IN_USE
    }

    fn new_unmapped() -> io::Result<Cache> {
        Cache::in_file(spare::memory_file()?)
    }

    /// An empty cache in a memory file, in which another process may have had its own.
    fn in_file(file: OwnedFd) -> io::Result<Cache> {
        let file = file.into_raw_fd();
        let all = map(file, 0, 0, TOTAL, libc::PROT_READ | libc::PROT_WRITE)?;
        // SAFETY: offsets are within the map of TOTAL bytes.
        let mut cache = unsafe {
            Cache {
                file,
                code: all,
                whole: all,
                targets: all.add(OFF_TARGETS).cast(),
                header: all.add(OFF_HEADER).cast(),
                units: all.add(OFF_UNITS).cast(),
                exits: all.add(OFF_EXITS).cast(),
                buckets: all.add(OFF_BUCKETS).cast(),
                pages: HashSet::default(),
                private: false,
                open: Vec::new(),
                trusted: false,
                returns: std::ptr::null_mut(),
                resets: 0,
                stock: None,
                next: None,
                spoilt: false,
            }
        };
        cache.empty_tables();
        let header = cache.header();
        (header.code_used, header.cold_used, header.units, header.exits) = (0, 0, 0, 0);
        Ok(cache)
    }

    /// Nothing is found any more.
    fn empty_tables(&mut self) {
        self.empty_targets();
        self.empty_buckets();
    }

    fn empty_targets(&mut self) {
        populate(self.targets.cast(), TARGET_BYTES);
        let (units, filled) = (self.header().units, self.header().has_targets != 0);
        if filled && !self.private && units < TARGET_SLOTS / 4 {
            for n in 0..units {
                let slot = self.unit(UnitId(n as u32)).pc as usize & (TARGET_SLOTS - 1);
                // SAFETY: `slot` is in range.
                unsafe { *self.targets.add(slot) = MISS as u32 };
            }
            return;
        }
        self.unseal(self.targets as u64, TARGET_BYTES);
        // SAFETY: within the map.
        unsafe {
            std::slice::from_raw_parts_mut(self.targets, TARGET_SLOTS).fill(MISS as u32);
        }
        self.header().has_targets = 1;
    }

    fn empty_buckets(&mut self) {
        let units = self.header().units;
        if units < BUCKETS / 4 {
            for n in 0..units {
                let pc = self.unit(UnitId(n as u32)).pc;
                self.set_bucket(pc, NONE);
            }
            return;
        }
        // SAFETY: within the maps. Giving the pages back costs less than filling them,
        // where that is possible.
        unsafe {
            let given_back = libc::madvise(self.buckets.cast(), BUCKETS * 4, libc::MADV_REMOVE);
            if given_back != 0 {
                std::slice::from_raw_parts_mut(self.buckets, BUCKETS).fill(0);
            }
        }
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        // SAFETY: the maps and the descriptor are this value's own. The views in
        // the window are replaced by whoever maps the next cache.
        unsafe {
            libc::munmap(self.whole.cast(), TOTAL);
            libc::close(self.file);
        }
    }
}
