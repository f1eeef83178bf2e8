//! Maps of a run that left its log, and how much memory it may take.

use super::calls::{error, unserved};
use super::world::Kind;
use super::{Sandbox, Served, Stopped};
use crate::kernel::files::FileIdText;
use crate::kernel::memory::{Map, Source};
use crate::kernel::process::Asked;
use crate::kernel::table;

impl Sandbox {
    /// A trial may not take all memory. `None` if it may have this.
    pub(super) fn refuse_memory(&mut self, asked: &Asked) -> Option<Served> {
        let a = &asked.args;
        let more = match asked.number as u32 {
            table::brk => a[0].saturating_sub(self.replayer.process.machine.memory.brk),
            table::mremap => a[2].saturating_sub(a[1]),
            _ => a[1],
        };
        let writable = asked.number as u32 != table::mmap || a[2] as i32 & libc::PROT_WRITE != 0;
        if !writable || more == 0 {
            return None;
        }
        if more >= 1 << 40 {
            // No machine would grant that.
            return match asked.number as u32 {
                table::brk => None,
                _ => Some(error(libc::ENOMEM)),
            };
        }
        let regions = self.replayer.process.machine.memory.regions();
        let now: u64 = regions
            .filter(|(_, r)| r.prot & libc::PROT_WRITE != 0)
            .map(|(start, r)| r.end - start)
            .sum();
        (now + more > self.limits.memory).then_some(Served::End(Stopped::MemoryLimit))
    }

    pub(super) fn map(&mut self, asked: &Asked) -> Served {
        let map = Map::of(&asked.args);
        let process = &mut self.replayer.process;
        if map.is_anonymous() {
            return Served::Value(process.map(&map, Source::Nothing));
        }
        let node = match self.world.get(map.fd).map(|open| open.kind.clone()) {
            None => return error(libc::EBADF),
            Some(Kind::File(node)) => node,
            Some(Kind::Zero) => return Served::Value(process.map(&map, Source::Nothing)),
            Some(_) => return unserved("mmap of something that is no file"),
        };
        if map.is_shared() && map.prot & libc::PROT_WRITE != 0 {
            return unserved("mmap of a shared file for writing");
        }
        if !self.world.nodes[node].known {
            return unserved("mmap of a file whose contents were not captured");
        }
        let private = Map { flags: map.flags & !3 | libc::MAP_PRIVATE, ..map };
        match (&self.world.nodes[node].bytes, self.world.nodes[node].base) {
            (None, Some(base)) => {
                Served::Value(process.map(&private, Source::Captured(FileIdText(base))))
            }
            _ => self.map_changed(&private, node),
        }
    }

    /// A private map of a file that was written to: a copy of it.
    pub(super) fn map_changed(&mut self, map: &Map, node: usize) -> Served {
        let process = &mut self.replayer.process;
        let bytes = self.world.read_node(process, node, map.offset, map.len as usize);
        let open = Map {
            prot: libc::PROT_READ | libc::PROT_WRITE,
            flags: map.flags | libc::MAP_ANONYMOUS,
            fd: -1,
            offset: 0,
            ..*map
        };
        let start = process.map(&open, Source::Nothing);
        if start < 0 {
            return Served::Value(start);
        }
        let _ = process.machine.memory.write(start as u64, &bytes);
        process.protect(start as u64, map.len, map.prot as u64);
        Served::Value(start)
    }
}

/// May the call give the process more memory?
pub(super) fn grows(asked: &Asked) -> bool {
    matches!(asked.number as u32, table::mmap | table::brk | table::mremap)
}
