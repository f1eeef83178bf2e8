//! Units that earlier runs translated: asleep in the cache until the guest comes to
//! their code, and kept for the runs to come.

use super::maps::populate;
use super::{ASLEEP, COLD, Cache, DEAD, ExitId, FIRST_UNIT, IN_USE, MAX_EXITS, MAX_UNITS, MISS};
use super::{NO_PAGE, NONE, OFF_EXITS, OFF_UNITS, Unit, UnitId};
use crate::code::stock::{self, Group, Image, Loaded, Meanings};
use crate::hash;
use crate::layout;
use crate::signal::careful;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

const FIRST: usize = (FIRST_UNIT - layout::CACHE.start) as usize;

/// A cache larger than this is not kept.
const LARGEST: usize = 48 << 20;

/// What the cache knows of earlier runs, and must know for later ones.
#[derive(Clone)]
pub struct Stock {
    path: PathBuf,
    /// Those of its groups that sleep.
    groups: Vec<Sleeping>,
    /// The units that exits are to be linked to when they wake.
    links: Vec<u32>,
    /// How many units need not be written again.
    kept: usize,
    /// Pages that the translator looked at, and a hash of what it saw there first.
    looked_at: BTreeMap<u64, u64>,
    /// The maps that units came from, as they were then.
    maps: Vec<Range<u64>>,
    /// For each unit, which of them; [`NONE`] for those that came from more than one, or
    /// are not what is at their address.
    origins: Vec<u32>,
    /// Is the code traced? Then whoever reads the trace must be told what it means.
    traced: bool,
    meanings: Meanings,
}

/// A group of units that sleep.
#[derive(Clone)]
struct Sleeping {
    group: Group,
    units: Vec<u32>,
    /// The exits that are to be linked to one of them.
    exits: Vec<u32>,
}

impl Stock {
    /// What sleeps, group by group.
    fn put_to_sleep(&mut self, groups: Vec<Group>, units: &[Unit]) {
        let sleeping = |group| Sleeping { group, units: Vec::new(), exits: Vec::new() };
        self.groups = groups.into_iter().map(sleeping).collect();
        let mut last = 0;
        let mut groups_of = Vec::with_capacity(units.len());
        for (n, unit) in units.iter().enumerate() {
            let has = |group: &Sleeping| group.group.range.contains(&unit.pc);
            if !self.groups.get(last).is_some_and(has) {
                last = self.groups.iter().position(has).unwrap_or(usize::MAX);
            }
            groups_of.push(last);
            if unit.state == ASLEEP
                && let Some(group) = self.groups.get_mut(last)
            {
                group.units.push(n as u32);
            }
        }
        for (n, to) in self.links.iter().enumerate() {
            let group = groups_of.get(*to as usize).and_then(|n| self.groups.get_mut(*n));
            if let Some(group) = group {
                group.exits.push(n as u32);
            }
        }
    }

    fn map_number(&mut self, map: &Range<u64>) -> u32 {
        let known = self.maps.iter().rposition(|known| known == map).unwrap_or_else(|| {
            self.maps.push(map.clone());
            self.maps.len() - 1
        });
        known as u32
    }

    fn set_origin(&mut self, unit: u32, map: u32) {
        let n = unit as usize;
        if self.origins.len() <= n {
            self.origins.resize(n + 1, NONE);
        }
        self.origins[n] = map;
    }

    /// Is this the map that a unit came from?
    fn is_from(&self, unit: usize, map: &Range<u64>) -> bool {
        self.origins.get(unit).and_then(|n| self.maps.get(*n as usize)) == Some(map)
    }
}

impl Cache {
    /// Puts in what earlier runs of a program translated, and keeps for later ones what
    /// this one will. To be called while the cache is empty. Returns the number of the first
    /// path that is none of theirs, if code is `traced`.
    pub fn stock_from(&mut self, path: PathBuf, traced: bool) -> u32 {
        let mut stock = Stock {
            path,
            groups: Vec::new(),
            links: Vec::new(),
            kept: 0,
            looked_at: BTreeMap::new(),
            maps: Vec::new(),
            origins: Vec::new(),
            traced,
            meanings: Meanings::default(),
        };
        if let Some(loaded) = crate::clerk::run(|| stock::read(&stock.path)) {
            self.put_back(&loaded, &mut stock);
        }
        let next_path = stock.meanings.next_path;
        self.stock = Some(Box::new(stock));
        next_path
    }

    /// Is there nothing in it?
    pub fn is_empty(&self) -> bool {
        self.units_made() == 0
    }

    /// Are translations kept?
    pub fn is_stocked(&self) -> bool {
        self.stock.is_some()
    }

    /// Is what is kept traced code?
    pub fn is_stocked_with_traced(&self) -> bool {
        self.stock.as_ref().is_some_and(|stock| stock.traced)
    }

    /// What the records of the next unit mean.
    pub fn note_meaning(&mut self, meaning: &[u8], next_path: u32) {
        let next = self.next_unit();
        if let Some(stock) = &mut self.stock {
            stock.meanings.add(next.0, meaning, next_path);
        }
    }

    fn put_back(&mut self, loaded: &Loaded, stock: &mut Stock) {
        let (code, cold) = (loaded.code(), loaded.cold());
        let (units, mut exits) = (loaded.units(), loaded.exits());
        let fits = FIRST + code.len() <= COLD
            && cold.len() <= COLD
            && units.len() <= MAX_UNITS
            && exits.len() <= MAX_EXITS;
        let Some(groups) = loaded.groups().filter(|_| fits) else { return };
        stock.links = exits.iter().map(|exit| exit.linked).collect();
        stock.put_to_sleep(groups, &units);
        stock.kept = units.len();
        stock.meanings = loaded.meanings();
        for exit in &mut exits {
            exit.linked = NONE;
        }
        self.fill(FIRST, code);
        self.fill(COLD, cold);
        self.fill(OFF_UNITS, stock::raw(&units));
        self.fill(OFF_EXITS, stock::raw(&exits));
        let header = self.header();
        header.code_used = FIRST + code.len();
        header.cold_used = COLD + cold.len();
        header.units = units.len();
        header.exits = exits.len();
    }

    /// Puts bytes into the cache's file, of which this part was not used yet.
    fn fill(&mut self, offset: usize, bytes: &[u8]) {
        // SAFETY: writes our own bytes into our own file, which stays as long as it is.
        let written =
            unsafe { libc::pwrite(self.file, bytes.as_ptr().cast(), bytes.len(), offset as i64) };
        // SAFETY: within the map, as the caller has seen.
        let there = unsafe { self.whole.add(offset) };
        // A page that is written whole need not be cleared first, as one that is mapped is.
        populate(there, bytes.len());
        if usize::try_from(written) != Ok(bytes.len()) {
            // SAFETY: as above, and nothing is there yet.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), there, bytes.len()) };
        }
    }

    /// Wakes all units that were translated from a map, which is as it was then. Returns
    /// what the records of those mean, if there were any.
    pub fn wake(&mut self, range: &Range<u64>) -> Option<Vec<u8>> {
        let stock = self.stock.as_mut()?;
        let n = stock.groups.iter().position(|s| s.group.range == *range)?;
        let Sleeping { group, units, exits } = stock.groups.swap_remove(n);
        let seen = hashes_of(&group.pages).filter(|seen| together(seen) == group.hash)?;
        stock.looked_at.extend(seen);
        let origin = stock.map_number(range);
        let mut stock = self.stock.take().expect("just seen");
        let mut meanings = Vec::new();
        let mut last = NO_PAGE;
        for n in units {
            let unit = self.unit(UnitId(n));
            if unit.state == ASLEEP {
                self.wake_unit(UnitId(n), &unit, &mut last);
                stock.set_origin(n, origin);
                meanings.extend_from_slice(stock.meanings.of(n).unwrap_or_default());
            }
        }
        for n in exits {
            self.link(ExitId(n), UnitId(stock.links[n as usize]));
        }
        self.stock = Some(stock);
        Some(meanings)
    }

    fn wake_unit(&mut self, id: UnitId, unit: &Unit, last: &mut u64) {
        let next = self.bucket(unit.pc);
        let woken = self.unit_mut(id);
        woken.state = IN_USE;
        woken.next = next;
        woken.incoming = NONE;
        self.set_bucket(unit.pc, id.0);
        let mut page = layout::page_floor(unit.pc);
        while page < unit.pc + u64::from(unit.guest_len) + 15 {
            if page != *last {
                self.pages.insert(page);
                *last = page;
            }
            page += layout::PAGE;
        }
        if unit.landing != 0 {
            self.install_landing(id, unit.landing, unit.landing_next);
        }
    }

    /// The next unit is made of code that was found in these pages, which ought to be of
    /// one map.
    pub fn came_from(&mut self, pages: &[u64], map: Option<&Range<u64>>) {
        let next = self.next_unit();
        let Some(stock) = &mut self.stock else { return };
        let Some(map) = map.filter(|map| pages.iter().all(|page| map.contains(page))) else {
            return;
        };
        for page in pages {
            if !stock.looked_at.contains_key(page) {
                let Some(seen) = hashes_of(&[*page]) else { return };
                stock.looked_at.extend(seen);
            }
        }
        let origin = stock.map_number(map);
        stock.set_origin(next.0, origin);
    }

    /// A unit that later runs must not find.
    pub(super) fn is_stray(&mut self, id: UnitId) {
        if let Some(stock) = &mut self.stock {
            stock.set_origin(id.0, NONE);
        }
    }

    /// A cache of a process that was forked: what it has is its parent's to keep.
    pub(super) fn stock_for_fork(&self) -> Option<Box<Stock>> {
        let mut stock = self.stock.clone()?;
        stock.kept = self.units_made();
        Some(stock)
    }

    fn units_made(&self) -> usize {
        // SAFETY: mapped for the life of the cache.
        unsafe { (*self.header).units }
    }

    /// Keeps what was translated from these maps, if it is worth it.
    pub fn restock(&mut self, maps: &[Range<u64>]) {
        let Some(stock) = self.stock.take() else { return };
        let (code, cold, units) = {
            let h = self.header();
            (h.code_used - FIRST, h.cold_used - COLD, h.units)
        };
        let new = units - stock.kept;
        // What grows by code that came and went is better begun anew: it was loaded in vain.
        let used = (0..units as u32).filter(|n| self.unit(UnitId(*n)).state != DEAD).count();
        if new > units / 16 && code + cold <= LARGEST && used > units / 2 {
            let image = self.image(&stock, maps);
            crate::clerk::run(|| stock::write(&stock.path, &image));
        }
    }

    fn image(&mut self, stock: &Stock, maps: &[Range<u64>]) -> Image {
        let mut groups = self.sleeping(stock, maps);
        let asleep = groups.len();
        groups.extend(maps.iter().filter_map(|map| group(stock, map)));
        let (used, cold_used, n_units, n_exits) = {
            let h = self.header();
            (h.code_used, h.cold_used, h.units, h.exits)
        };
        let mut image = Image {
            code: self.code_bytes(FIRST..used),
            cold: self.code_bytes(COLD..cold_used),
            // SAFETY: the first so many records are initialised.
            units: unsafe { std::slice::from_raw_parts(self.units, n_units) }.to_vec(),
            // SAFETY: as above.
            exits: unsafe { std::slice::from_raw_parts(self.exits, n_exits) }.to_vec(),
            groups,
            meanings: Meanings::default(),
        };
        let of_unit: Vec<Option<usize>> = image
            .units
            .iter()
            .enumerate()
            .map(|(n, unit)| {
                if stock.traced && stock.meanings.of(n as u32).is_none() {
                    return None;
                }
                let (awake, from, to) = match unit.state {
                    ASLEEP => (false, 0, asleep),
                    IN_USE => (true, asleep, image.groups.len()),
                    _ => return None,
                };
                let end = unit.pc + u64::from(unit.guest_len);
                let fits = |g: &Group| {
                    let own = !awake || stock.is_from(n, &g.range);
                    own && g.range.contains(&unit.pc) && end <= g.range.end
                };
                image.groups[from..to].iter().position(fits).map(|n| from + n)
            })
            .collect();
        for (n, _) in of_unit.iter().enumerate().filter(|(_, group)| group.is_some()) {
            if let Some(meaning) = stock.meanings.of(n as u32) {
                image.meanings.add(n as u32, meaning, stock.meanings.next_path);
            }
        }
        unlink_exits(&mut image, stock, &of_unit);
        for (unit, group) in image.units.iter_mut().zip(&of_unit) {
            if unit.landing != 0 {
                point(&mut image.code, &mut image.cold, unit.landing_next, MISS as u32);
            }
            unit.incoming = NONE;
            unit.next = NONE;
            unit.state = if group.is_some() { ASLEEP } else { DEAD };
        }
        image
    }

    /// The groups that still sleep and are in nobody's way.
    fn sleeping(&self, stock: &Stock, maps: &[Range<u64>]) -> Vec<Group> {
        let meets = |a: &Range<u64>, b: &Range<u64>| a.start < b.end && b.start < a.end;
        let free = |group: &&Group| !maps.iter().any(|map| meets(map, &group.range));
        stock.groups.iter().map(|s| &s.group).filter(free).cloned().collect()
    }

    fn code_bytes(&self, range: Range<usize>) -> Vec<u8> {
        // SAFETY: a part of the code that is in use.
        unsafe { std::slice::from_raw_parts(self.code.add(range.start), range.len()) }.to_vec()
    }
}

/// What was translated from a map, if all that was looked at is still as it was then.
fn group(stock: &Stock, map: &Range<u64>) -> Option<Group> {
    let seen: Vec<(u64, u64)> = stock.looked_at.range(map.clone()).map(|(p, h)| (*p, *h)).collect();
    let pages: Vec<u64> = seen.iter().map(|(page, _)| *page).collect();
    let same = !pages.is_empty() && hashes_of(&pages)? == seen;
    same.then(|| Group { range: map.clone(), pages, hash: together(&seen) })
}

/// Every exit leads to its stub again, and knows which unit of its group it led to.
fn unlink_exits(image: &mut Image, stock: &Stock, of_unit: &[Option<usize>]) {
    let mut owner = 0;
    for (n, exit) in image.exits.iter_mut().enumerate() {
        // Both are in the order of their host addresses.
        while image.units.get(owner + 1).is_some_and(|unit| unit.start <= exit.hole) {
            owner += 1;
        }
        let linked = exit.linked != NONE;
        if linked {
            point(&mut image.code, &mut image.cold, exit.hole, exit.stub);
        }
        let asleep = image.units.get(owner).is_some_and(|unit| unit.state == ASLEEP);
        let to = match (linked, asleep) {
            (true, _) => exit.linked,
            (false, true) => stock.links.get(n).copied().unwrap_or(NONE),
            (false, false) => NONE,
        };
        let group = of_unit.get(owner).copied().flatten();
        let same = group.is_some() && of_unit.get(to as usize).copied().flatten() == group;
        exit.linked = if same { to } else { NONE };
        exit.next_incoming = NONE;
    }
}

/// Points the displacement at host address `hole` to host address `to`, in a copy.
fn point(code: &mut [u8], cold: &mut [u8], hole: u32, to: u32) {
    let at = hole as usize - layout::CACHE.start as usize;
    let bytes = match at {
        COLD.. => &mut cold[at - COLD..],
        _ => &mut code[at - FIRST..],
    };
    bytes[..4].copy_from_slice(&to.wrapping_sub(hole + 4).to_le_bytes());
}

/// Hashes of guest pages; `None` if one is not there: a map may go on beyond its file.
fn hashes_of(pages: &[u64]) -> Option<Vec<(u64, u64)>> {
    let mut bytes = [0u8; layout::PAGE as usize];
    let hash = |page: &u64| {
        // SAFETY: from a page of the guest's, which does not run, into one of ours.
        let read = unsafe { careful::copy(bytes.as_mut_ptr(), *page as *const u8, bytes.len()) };
        read.then(|| (*page, hash::bytes(&bytes)))
    };
    pages.iter().map(hash).collect()
}

/// One hash of them all.
fn together(seen: &[(u64, u64)]) -> u64 {
    seen.iter().fold(0, |sum, (page, hash)| hash::mix(hash::mix(sum, *page), *hash))
}
