//! Which function contains an address, and what is known of it?

use std::ops::Range;

use gimli::constants;

use crate::flow::Boundary;

use super::demangle::{demangle, is_cold_part};
use super::dwarf::{Attribute, DebugInfo};
use super::functions::{FunctionEntry, Functions};
use super::image::Image;
use super::noreturn;
use super::program::{Program, distinct};
use super::symbols::Symbol;

/// A function, or the part of one that its compiler moved elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The name as the source writes it, without parameters; the file and an
    /// offset (`libfoo.so+0x1234`) if nothing names it.
    pub name: String,
    /// The symbol, if there is one.
    pub linkage_name: Option<String>,
    /// The address of its first instruction.
    pub start: u64,
    /// The address behind its last instruction.
    pub end: u64,
    /// The distance of the address that was asked for from the start.
    pub offset: u64,
}

impl Program {
    /// The function at an address: by symbol, else by debug information, else by
    /// the extent that call frame information gives.
    pub fn function(&self, address: u64) -> Option<Function> {
        let (index, image) = self.image_at(address)?;
        let link = image.to_link(address);
        stub(image, link)
            .or_else(|| by_symbol(image, link))
            .or_else(|| self.by_debug_info(index, link))
            .or_else(|| by_frame_info(image, link))
    }

    /// Whether an address is in a stub that leads to another file's function.
    pub fn is_plt(&self, address: u64) -> bool {
        let at = self.image_at(address);
        at.is_some_and(|(_, image)| image.plt().contains(image.to_link(address)))
    }

    /// The symbol that a stub leads to.
    pub fn plt_target(&self, address: u64) -> Option<&str> {
        let (_, image) = self.image_at(address)?;
        Some(&image.plt().stub(image.to_link(address))?.name)
    }

    /// Whether a function begins at an address.
    pub fn is_entry(&self, address: u64) -> bool {
        let Some((index, image)) = self.image_at(address) else { return false };
        let link = image.to_link(address);
        if let Some(stub) = image.plt().stub(link) {
            return stub.start == link;
        }
        if let Some(symbol) = image.symbols().at(link) {
            return symbol.start == link && !is_cold_part(&symbol.name);
        }
        if let Some((_, _, function)) = self.described_at(index, link) {
            return function.ranges.first().is_some_and(|range| range.start == link);
        }
        image.cfi().extent(link).is_some_and(|extent| extent.start == link)
    }

    /// What begins at an address, for the sake of control flow. Of the system's
    /// libraries, symbols and call frames are enough: reading all that describes
    /// them takes longer than most questions.
    pub fn boundary(&self, address: u64) -> Boundary {
        let Some((index, image)) = self.image_at(address) else { return Boundary::None };
        let link = image.to_link(address);
        let begins = |start: u64, what| if start == link { what } else { Boundary::None };
        if let Some(stub) = image.plt().stub(link) {
            return begins(stub.start, Boundary::Function);
        }
        if let Some(symbol) = image.symbols().at(link) {
            let part = is_cold_part(&symbol.name);
            return begins(symbol.start, if part { Boundary::Part } else { Boundary::Function });
        }
        if !self.is_system(index)
            && let Some((_, _, function)) = self.described_at(index, link)
        {
            let start = function.ranges.first().map_or(0, |range| range.start);
            return begins(start, Boundary::Function);
        }
        let extent = image.cfi().extent(link);
        extent.map_or(Boundary::None, |extent| begins(extent.start, Boundary::Part))
    }

    /// The code from an address on in which nothing else begins: behind that address,
    /// [`boundary`](Program::boundary) says so of all of it, and
    /// [`extent_start`](Program::extent_start) names the address. Empty where that takes longer to
    /// find out.
    pub fn undivided(&self, address: u64) -> Range<u64> {
        let found = self.image_at(address).and_then(|(index, image)| {
            let link = image.to_link(address);
            let (symbols, plt) = (image.symbols(), image.plt());
            let own = match symbols.at(link) {
                Some(symbol) => Some(link..symbol.end).filter(|_| symbol.start == link),
                None if self.is_system(index) || self.info(index).is_none() => {
                    image.cfi().undivided(link)
                }
                None => None,
            };
            let nexts = [symbols.next_start(link), plt.next_start(link)].into_iter().flatten();
            let own = own.filter(|_| !plt.contains(link))?;
            let end = nexts.fold(own.end, u64::min);
            Some(address..image.to_run(end))
        });
        found.unwrap_or(address..address)
    }

    /// Where the function around an address begins, by symbols and call frames.
    pub fn extent_start(&self, address: u64) -> Option<u64> {
        let (_, image) = self.image_at(address)?;
        let link = image.to_link(address);
        let symbol = image.symbols().at(link).map(|symbol| symbol.start);
        let start = symbol.or_else(|| image.cfi().extent(link).map(|extent| extent.start))?;
        Some(image.to_run(start))
    }

    /// The addresses at which functions begin, in all files.
    pub fn function_entries(&self) -> Vec<u64> {
        let starts = self.images().iter().enumerate().flat_map(|(index, image)| {
            let symbols = image.symbols().iter().map(|symbol| symbol.start);
            let stubs = image.plt().stubs().map(|stub| stub.start);
            let frames = image.cfi().extents().map(|extent| extent.start);
            let described = self.unnamed_functions(index).into_iter();
            let starts: Vec<u64> = symbols.chain(stubs).chain(frames).chain(described).collect();
            starts.into_iter().map(|start| image.to_run(start))
        });
        let mut starts = distinct(starts);
        starts.retain(|start| self.is_entry(*start));
        starts
    }

    /// The functions of a name: the symbol, the name in the source, or its end
    /// behind `::`. The best matches only: exact ones hide mere endings, unless
    /// only the latter are the user's own (as the `main` of a Rust program is).
    pub fn functions_named(&self, name: &str) -> Vec<Function> {
        let last = name.rsplit("::").next().unwrap_or(name);
        let mut found = Vec::new();
        for (index, image) in self.images().iter().enumerate() {
            let symbols = image.symbols().iter().filter(|symbol| symbol.name.contains(last));
            found.extend(symbols.map(|symbol| of_symbol(image, symbol, symbol.start)));
            let unnamed = self.unnamed_functions(index).into_iter();
            found.extend(unnamed.filter_map(|start| self.by_debug_info(index, start)));
        }
        found.retain(|function| !is_part(function));
        self.best_matches(found, name)
    }

    /// The addresses that a symbol of exactly this name has, and the indices of their files.
    pub fn symbols_named(&self, name: &str) -> Vec<(usize, u64)> {
        let images = self.images().iter().enumerate();
        let found = images.flat_map(|(index, image)| {
            let symbols = image.symbols().iter().filter(|symbol| symbol.name == name);
            symbols.map(move |symbol| (index, image.to_run(symbol.start)))
        });
        found.collect()
    }

    /// Copies of a function that were inlined into others of the user's own: the code of
    /// each, in order of address.
    pub fn inlined_copies(&self, name: &str) -> Vec<Vec<Range<u64>>> {
        let mut found = Vec::new();
        for (_, image, info) in self.infos().filter(|(index, _, _)| !self.is_system(*index)) {
            for unit in 0..info.units.len() {
                let copies = functions(info, unit).iter().flat_map(|function| {
                    function.inlined(info, unit, |offset| {
                        let names = info.names(unit, offset);
                        names.plain.as_deref() == Some(name)
                            || names.linkage.is_some_and(|l| l == name || demangle(&l) == name)
                    })
                });
                let to_run =
                    |range: &Range<u64>| image.to_run(range.start)..image.to_run(range.end);
                found.extend(copies.map(|copy| copy.iter().map(to_run).collect()));
            }
        }
        found
    }

    /// Where functions begin that were inlined within some code of one function.
    pub fn inlined_starts(&self, code: Range<u64>) -> Vec<u64> {
        let Ok(place) = self.place(code.start) else { return Vec::new() };
        let Some(function) = functions(place.info, place.unit_index).at(place.link) else {
            return Vec::new();
        };
        let copies = function.inlined(place.info, place.unit_index, |_| true);
        let starts = copies.into_iter().filter_map(|copy| Some(copy.first()?.start));
        let to_run = |start: u64| code.start.wrapping_add(start.wrapping_sub(place.link));
        starts.map(to_run).filter(|start| code.contains(start)).collect()
    }

    /// Where the function at an address begins, or the copy of one that was inlined there.
    pub fn innermost_start(&self, address: u64) -> Option<u64> {
        let place = self.place(address).ok()?;
        let function = functions(place.info, place.unit_index).at(place.link)?;
        let start = function.innermost(place.info, place.unit_index, place.link)?;
        Some(address.wrapping_add(start.wrapping_sub(place.link)))
    }

    fn best_matches(&self, found: Vec<Function>, name: &str) -> Vec<Function> {
        let is_own = |function: &Function| self.is_own(function.start);
        let mut best: Vec<_> = found.iter().filter(|f| is_called(f, name)).cloned().collect();
        if !best.iter().any(is_own) {
            let ending: Vec<_> = found.into_iter().filter(|f| ends_in(f, name)).collect();
            let own: Vec<_> = ending.iter().filter(|f| is_own(f)).cloned().collect();
            best = match (own.is_empty(), best.is_empty()) {
                (false, false) => own,
                (_, true) => ending,
                (true, false) => best,
            };
        }
        best.sort_by_key(|function| function.start);
        best.dedup_by_key(|function| function.start);
        best
    }

    /// Whether a function at this address, or behind the stub at it, is known
    /// never to return.
    pub fn is_noreturn(&self, address: u64) -> bool {
        if let Some(symbol) = self.plt_target(address) {
            return noreturn::is_noreturn(symbol, &demangle(symbol));
        }
        let known = if self.is_system_at(address) {
            self.image_at(address).and_then(|(_, image)| by_symbol(image, image.to_link(address)))
        } else {
            self.function(address)
        };
        let Some(function) = known else { return false };
        let symbol = function.linkage_name.as_deref().unwrap_or(&function.name);
        noreturn::is_noreturn(symbol, &function.name)
            || !self.is_system_at(address) && self.is_declared_noreturn(address)
    }

    fn is_declared_noreturn(&self, address: u64) -> bool {
        let Ok(place) = self.place(address) else { return false };
        let functions = functions(place.info, place.unit_index);
        let Some(function) = functions.at(place.link) else { return false };
        let at = constants::DW_AT_noreturn;
        let value = place.info.inherited(place.unit_index, function.offset, at);
        matches!(value, Some((_, Attribute::Flag(true))))
    }

    fn by_debug_info(&self, image: usize, link: u64) -> Option<Function> {
        let (info, unit, function) = self.described_at(image, link)?;
        let image = self.images().get(image)?;
        let range = function.ranges.iter().find(|range| range.contains(&link))?;
        let names = info.names(unit, function.offset);
        let name = names.linkage.as_deref().map(demangle).or(names.plain)?;
        Some(named(image, link, range.clone(), name, names.linkage))
    }

    /// The function of debug information at an address: file, unit, entry.
    fn described_at(&self, image: usize, link: u64) -> Option<(&DebugInfo, usize, &FunctionEntry)> {
        let info = self.info(image)?;
        let unit = info.unit_at(link)?;
        Some((info, unit, functions(info, unit).at(link)?))
    }

    /// The first addresses of functions that only debug information knows. There
    /// are none where a symbol table names them all, which saves reading on.
    fn unnamed_functions(&self, image: usize) -> Vec<u64> {
        let is_complete = self.images().get(image).is_some_and(|i| i.symbols().is_complete);
        let Some(info) = self.info(image).filter(|_| !is_complete) else { return Vec::new() };
        let units = 0..info.units.len();
        let entries = units.flat_map(|unit| functions(info, unit).iter());
        entries.filter_map(|function| Some(function.ranges.first()?.start)).collect()
    }
}

/// The functions of a unit, read when first asked for.
pub(super) fn functions(info: &DebugInfo, unit: usize) -> &Functions {
    info.units[unit].functions.get_or_init(|| Functions::read(info, unit))
}

fn stub(image: &Image, link: u64) -> Option<Function> {
    let stub = image.plt().stub(link)?;
    let name = format!("{}@plt", demangle(&stub.name));
    Some(named(image, link, stub.start..stub.end, name, None))
}

fn by_symbol(image: &Image, link: u64) -> Option<Function> {
    Some(of_symbol(image, image.symbols().at(link)?, link))
}

fn of_symbol(image: &Image, symbol: &Symbol, link: u64) -> Function {
    let name = demangle(&symbol.name);
    named(image, link, symbol.start..symbol.end, name, Some(symbol.name.clone()))
}

fn by_frame_info(image: &Image, link: u64) -> Option<Function> {
    let range = image.cfi().extent(link)?;
    let name = format!("{}+{:#x}", image.name(), range.start);
    Some(named(image, link, range, name, None))
}

fn named(
    image: &Image,
    link: u64,
    range: Range<u64>,
    name: String,
    linkage_name: Option<String>,
) -> Function {
    Function {
        name,
        linkage_name,
        start: image.to_run(range.start),
        end: image.to_run(range.end),
        offset: link.wrapping_sub(range.start),
    }
}

/// Whether this is code that is only jumped to from its function.
fn is_part(function: &Function) -> bool {
    function.linkage_name.as_deref().is_some_and(is_cold_part)
}

fn is_called(function: &Function, name: &str) -> bool {
    function.name == name || function.linkage_name.as_deref() == Some(name)
}

/// Whether the name of a function ends in `name`, with or without what is before
/// it in its path.
fn ends_in(function: &Function, name: &str) -> bool {
    let plain = without_arguments(&function.name);
    plain == name || plain.strip_suffix(name).is_some_and(|before| before.ends_with("::"))
}

/// A name without the template arguments at its end.
fn without_arguments(name: &str) -> &str {
    let Some(inside) = name.strip_suffix('>') else { return name };
    let mut depth = 1;
    for (at, character) in inside.char_indices().rev() {
        match character {
            '>' => depth += 1,
            '<' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return name[..at].trim_end_matches("::");
        }
    }
    name
}
