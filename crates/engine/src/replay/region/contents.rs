//! The contents of memory at a region's entry.
//!
//! Pages that the run made its own are in the log. What lies behind them comes from a
//! captured file where there is one, so that pages which still are the file's stay so:
//! hashes of memory tell the two apart.

use super::entry::damaged;
use crate::Error;
use crate::guest::memory::{Backing, Memory, Region, host_map, host_prot};
use crate::kernel::files::FileIdText;
use crate::layout::PAGE;
use crate::pages::Pages;
use crate::replay::Replayer;
use crate::replay::live::{memory_file, write_all};
use crate::signal::careful;
use recording::event::Encoder;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// What lies behind a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Behind {
    /// Zeros.
    Nothing,
    /// A captured file.
    Captured(FileIdText),
    /// A file whose pages are in the log.
    Logged,
    /// A file that is mapped shared.
    Live,
}

/// A region of memory, as it is kept.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    start: u64,
    region: Region,
    behind: Behind,
}

/// Most bytes of memory in one event.
const CHUNK: usize = 1 << 20;

type Page = [u8; PAGE as usize];

/// Looks at the memory of this process whatever its protection.
struct Look {
    memory: File,
    pages: Pages,
}

impl Look {
    fn open() -> Result<Look, Error> {
        let memory = File::open("/proc/self/mem").map_err(Error::io("cannot read memory"))?;
        let pages = Pages::open_anew().ok_or_else(|| {
            Error::Machine("/proc/self/pagemap cannot be read, which cutting needs".to_owned())
        })?;
        Ok(Look { memory, pages })
    }

    /// A page; `None` if there is nothing, as behind the end of a file.
    fn page(&self, address: u64) -> Option<Page> {
        let mut page = [0; PAGE as usize];
        self.memory.read_exact_at(&mut page, address).ok()?;
        Some(page)
    }

    /// Which pages of a region are the run's own.
    fn own(&self, start: u64, end: u64) -> Result<Vec<Range<u64>>, Error> {
        self.pages
            .own(start..end)
            .ok_or_else(|| Error::Machine("/proc/self/pagemap cannot be read".to_owned()))
    }
}

impl Replayer {
    /// All regions, and what lies behind them.
    pub(super) fn kept_regions(&mut self, files: &[(Vec<u8>, String)]) -> Result<Vec<Kept>, Error> {
        let look = Look::open()?;
        let regions = self.process.machine.memory.regions();
        let regions: Vec<(u64, Region)> = regions.map(|(start, r)| (start, r.clone())).collect();
        let mut kept = Vec::new();
        for (start, region) in regions {
            let behind = self.behind(&look, start, &region, files)?;
            kept.push(Kept { start, region, behind });
        }
        Ok(kept)
    }

    fn behind(
        &mut self,
        look: &Look,
        start: u64,
        region: &Region,
        files: &[(Vec<u8>, String)],
    ) -> Result<Behind, Error> {
        if self.live.files().any(|(identity, _)| region.file == Some(identity)) {
            return Ok(Behind::Live);
        }
        let Backing::File { path, offset } = &region.backing else { return Ok(Behind::Nothing) };
        let candidates = files.iter().filter(|(of, _)| of == path);
        let own = look.own(start, region.end)?;
        for id in candidates.filter_map(|(_, id)| id.parse().ok()) {
            let Ok(contents) = self.process.objects.bytes(id) else { continue };
            let mut others = rest_of(start..region.end, &own).into_iter().flat_map(addresses);
            if others.all(|at| shows(contents, offset + (at - start), look.page(at))) {
                return Ok(Behind::Captured(FileIdText(id)));
            }
        }
        Ok(Behind::Logged)
    }
}

/// Addresses of the pages of a range.
fn addresses(range: Range<u64>) -> impl Iterator<Item = u64> {
    range.step_by(PAGE as usize)
}

/// What is left of a range without parts of it, which are in order.
fn rest_of(range: Range<u64>, parts: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut rest = Vec::new();
    let mut at = range.start;
    for part in parts {
        rest.push(at..part.start);
        at = part.end;
    }
    rest.push(at..range.end);
    rest.retain(|part| !part.is_empty());
    rest
}

/// Is the page that of a file at an offset?
fn shows(contents: &[u8], offset: u64, page: Option<Page>) -> bool {
    let there = usize::try_from(offset).ok().and_then(|offset| contents.get(offset..));
    match (there.filter(|rest| !rest.is_empty()), page) {
        (None, None) => true,
        (Some(rest), Some(page)) => {
            let (head, tail) = page.split_at(rest.len().min(PAGE as usize));
            head == &rest[..head.len()] && tail.iter().all(|b| *b == 0)
        }
        _ => false,
    }
}

/// Hands on the events that hold memory.
pub(super) fn write(
    regions: &[Kept],
    put: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let look = Look::open()?;
    for Kept { start, region, behind } in regions {
        if *behind == Behind::Live {
            continue;
        }
        let own = look.own(*start, region.end)?;
        // What lies behind first: the other pages are put over it.
        for wanted in [false, true] {
            if !wanted && *behind != Behind::Logged {
                continue;
            }
            let mut run = Run::default();
            let pages = if wanted { own.clone() } else { rest_of(*start..region.end, &own) };
            for at in pages.into_iter().flat_map(addresses) {
                let page = look.page(at);
                let blank =
                    |page: &Page| *behind == Behind::Nothing && page.iter().all(|byte| *byte == 0);
                match page.filter(|page| !blank(page)) {
                    Some(page) => run.add(at, &page, wanted, put)?,
                    None => run.flush(wanted, put)?,
                }
            }
            run.flush(wanted, put)?;
        }
    }
    Ok(())
}

/// Pages one after the other.
#[derive(Default)]
struct Run {
    at: u64,
    bytes: Vec<u8>,
    encoder: Encoder,
}

impl Run {
    fn add(
        &mut self,
        at: u64,
        page: &Page,
        own: bool,
        put: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.bytes.len() >= CHUNK || at != self.at + self.bytes.len() as u64 {
            self.flush(own, put)?;
        }
        if self.bytes.is_empty() {
            self.at = at;
        }
        self.bytes.extend_from_slice(page);
        Ok(())
    }

    fn flush(
        &mut self,
        own: bool,
        put: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        put(self.encoder.contents(self.at, own, &self.bytes).bytes())?;
        self.bytes.clear();
        Ok(())
    }
}

/// Memory that is being put back.
pub(super) struct Restored {
    /// Beginning, end, protection, and the memory file behind it.
    regions: Vec<(u64, u64, i32, Option<File>)>,
}

impl Restored {
    /// Maps all regions, writable for now.
    pub fn map(replayer: &mut Replayer, kept: &[Kept]) -> Result<Restored, Error> {
        let failed = |errno| Error::Io {
            what: "cannot map memory",
            error: std::io::Error::from_raw_os_error(errno),
        };
        replayer.process.machine.memory.clear();
        let mut regions = Vec::new();
        for Kept { start, region, behind } in kept {
            let len = region.end.checked_sub(*start).filter(|len| *len > 0).ok_or_else(damaged)?;
            if !Memory::is_allowed(*start, len) || start % PAGE != 0 || len % PAGE != 0 {
                return Err(damaged());
            }
            let offset = match region.backing {
                Backing::File { offset, .. } => offset,
                _ => 0,
            };
            let open = libc::PROT_READ | libc::PROT_WRITE;
            let private = libc::MAP_PRIVATE;
            let mut logged = None;
            match behind {
                Behind::Nothing => {
                    host_map(*start, len, open, private | libc::MAP_ANONYMOUS, -1, 0)
                }
                Behind::Captured(id) => {
                    let file = replayer.process.objects.open(id.0);
                    let file = file.map_err(Error::io("cannot open a captured file"))?;
                    host_map(*start, len, open, private, file.as_raw_fd(), offset)
                }
                Behind::Logged => {
                    use std::os::fd::FromRawFd;
                    let fd = memory_file().map_err(Error::io("cannot make a memory file"))?;
                    // SAFETY: a new descriptor that is only ours.
                    logged = Some(unsafe { File::from_raw_fd(fd) });
                    host_map(*start, len, open, private, fd, 0)
                }
                Behind::Live => {
                    let mut files = replayer.live.files();
                    let live = files.find(|(identity, _)| region.file == Some(*identity));
                    let (_, fd) = live.ok_or_else(damaged)?;
                    host_map(*start, len, host_prot(region.prot), libc::MAP_SHARED, fd, offset)
                }
            }
            .map_err(failed)?;
            if *behind != Behind::Live {
                regions.push((*start, region.end, host_prot(region.prot), logged));
            }
            replayer.process.machine.memory.insert(*start, region.clone());
        }
        Ok(Restored { regions })
    }

    /// Puts bytes where they were.
    pub fn put(&mut self, address: u64, own: bool, data: &[u8]) -> Result<(), Error> {
        let end = address.checked_add(data.len() as u64).ok_or_else(damaged)?;
        let region =
            self.regions.iter().find(|(first, last, ..)| *first <= address && end <= *last);
        match region {
            Some((start, _, _, Some(file))) if !own => {
                write_all(file.as_raw_fd(), data, address - start);
                Ok(())
            }
            Some(_) if own => {
                // SAFETY: within a private map that `map` made writable.
                let copied =
                    unsafe { careful::copy(address as *mut u8, data.as_ptr(), data.len()) };
                copied.then_some(()).ok_or_else(damaged)
            }
            _ => Err(damaged()),
        }
    }

    /// Gives all regions the protection that the guest asked for.
    pub fn protect(self) {
        for (start, end, prot, _) in self.regions {
            // SAFETY: a map of the guest's, made by `map`.
            unsafe { libc::mprotect(start as *mut _, (end - start) as usize, prot) };
        }
    }
}
