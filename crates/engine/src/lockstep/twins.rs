//! Files that the replay keeps as memory files because the guest maps them shared.
//!
//! The native side must not see the replay's stores, yet all its own maps of one
//! file must see each other's. So each memory file has a *twin* that only the
//! native side maps.

use super::native::Native;
use crate::Error;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{FileExt, MetadataExt};

/// All twins, by the inode of the replay's file.
#[derive(Default)]
pub struct Twins {
    by_inode: HashMap<u64, Twin>,
}

struct Twin {
    /// The replay's file.
    original: File,
    /// The native side's file, as this process sees it.
    twin: File,
    /// Its descriptor in the native process.
    there: i32,
}

impl Twins {
    /// Brings lengths and contents up to date, for all of the replay's files.
    pub fn update(&mut self, native: &mut Native, files: &[i32]) -> Result<(), Error> {
        for fd in files {
            self.update_one(native, *fd)?;
        }
        Ok(())
    }

    fn update_one(&mut self, native: &mut Native, fd: i32) -> Result<(), Error> {
        let failed = || Error::io("cannot keep a second copy of a mapped file");
        let original = File::open(format!("/proc/self/fd/{fd}")).map_err(failed())?;
        let inode = original.metadata().map_err(failed())?.ino();
        let twin = match self.by_inode.entry(inode) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let twin = memory_file().map_err(failed())?;
                let path = format!("/proc/{}/fd/{}", std::process::id(), twin.as_raw_fd());
                let there = native.open(&path)?;
                place.insert(Twin { original, twin, there })
            }
        };
        twin.update().map_err(failed())
    }

    /// Descriptor of the native side's file behind the map at an address here.
    pub fn behind(&self, address: u64) -> Result<Option<i32>, Error> {
        if self.by_inode.is_empty() {
            return Ok(None);
        }
        let maps = std::fs::read_to_string("/proc/self/maps")
            .map_err(Error::io("cannot read /proc/self/maps"))?;
        let inode = maps.lines().find_map(|line| inode_of(line, address));
        Ok(inode.and_then(|inode| self.by_inode.get(&inode)).map(|twin| twin.there))
    }
}

impl Twin {
    fn update(&self) -> std::io::Result<()> {
        let len = self.original.metadata()?.len();
        if self.twin.metadata()?.len() != len {
            self.twin.set_len(len)?;
        }
        let (mut ours, mut theirs) = (vec![0; len as usize], vec![0; len as usize]);
        self.original.read_exact_at(&mut ours, 0)?;
        self.twin.read_exact_at(&mut theirs, 0)?;
        if ours != theirs {
            self.twin.write_all_at(&ours, 0)?;
        }
        Ok(())
    }
}

fn memory_file() -> std::io::Result<File> {
    // SAFETY: a new descriptor that nobody else owns.
    unsafe {
        let fd = libc::memfd_create(c"why-twin".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(File::from_raw_fd(crate::sys::move_high(fd)?))
    }
}

/// The inode in a line of `/proc/self/maps`, if the line is for the address.
fn inode_of(line: &str, address: u64) -> Option<u64> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let here = (number(start)?..number(end)?).contains(&address);
    here.then(|| words.nth(3)?.parse().ok()).flatten()
}
