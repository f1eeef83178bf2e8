//! The outside as a run that left its log sees it: descriptors, files under an
//! overlay in memory, pipes, clocks.
//!
//! While the replay follows the log, `follow.rs` keeps all this in step. Nothing
//! here ever touches the host.

use super::facts::Facts;
use recording::FileId;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Number of a file's contents.
pub type NodeId = usize;

/// A file's contents.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Node {
    /// What the recording captured; nothing changed yet if `bytes` is `None`.
    pub base: Option<FileId>,
    /// The contents after the first change.
    pub bytes: Option<Vec<u8>>,
    /// What its `stat` said, as far as it is known.
    pub stat: Option<Vec<u8>>,
    /// Device and inode, or what we chose.
    pub identity: (u64, u64),
    /// Are its contents known at all?
    pub known: bool,
}

/// What a path leads to, where the run itself changed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Name {
    /// A file.
    File(NodeId),
    /// A folder the run made.
    Folder,
    /// A symbolic link the run made.
    Link(Vec<u8>),
    /// Nothing: it was removed.
    Gone,
}

/// What a descriptor is open on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Standard input.
    Stdin,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A regular file.
    File(NodeId),
    /// A folder, by its path.
    Folder(Vec<u8>),
    /// One end of a pipe; both of them for a socket pair's half.
    Pipe {
        /// Read from here.
        from: Option<usize>,
        /// Written to there.
        to: Option<usize>,
    },
    /// An event counter.
    Event {
        /// Its value.
        value: u64,
        /// Reads take one?
        semaphore: bool,
    },
    /// An interest list: descriptor, events, data.
    Epoll(BTreeMap<i32, (u32, u64)>),
    /// `/dev/null`.
    Null,
    /// `/dev/zero`.
    Zero,
    /// `/dev/urandom`.
    Random,
    /// Something whose bytes came as a stream, by its path.
    Stream(Vec<u8>),
    /// Something that only the recorded run could use.
    Foreign(Cow<'static, str>),
}

/// An open file description.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Open {
    /// What it is open on.
    pub kind: Kind,
    /// Position.
    pub offset: u64,
    /// Flags of `open`.
    pub flags: i32,
    references: u32,
}

/// Bytes on their way.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Pipe {
    /// The bytes.
    pub bytes: VecDeque<u8>,
}

/// Most bytes a pipe holds, as the kernel's default.
pub const PIPE_BYTES: usize = 1 << 16;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Slot {
    open: u32,
    close_on_exec: bool,
}

/// Everything outside of the process, as far as it is known.
#[derive(Default, Serialize, Deserialize)]
pub struct World {
    /// What the whole recorded run tells.
    pub facts: Facts,
    /// Contents of files.
    pub nodes: Vec<Node>,
    /// Paths the run changed or opened.
    pub names: BTreeMap<Vec<u8>, Name>,
    /// Contents and identity of what the call at hand emptied.
    pub emptied: Option<(FileId, (u64, u64))>,
    /// Pipes.
    pub pipes: Vec<Pipe>,
    /// Children that were not waited for, by process number.
    pub children: BTreeMap<i32, super::children::Begun>,
    /// All children that were begun.
    pub begun: BTreeSet<i32>,
    /// Current folder.
    pub cwd: Vec<u8>,
    /// uid, euid, gid, egid.
    pub ids: [u32; 4],
    /// File creation mask.
    pub umask: u64,
    /// Nanoseconds since 1970.
    pub clock: u64,
    /// Nanoseconds since the machine started.
    pub uptime: u64,
    /// State of the random numbers.
    pub random: u64,
    /// Position in standard input.
    pub stdin_at: usize,
    /// Standard output and standard error so far.
    pub outputs: [Vec<u8>; 2],
    /// Files that programs made get these numbers.
    next_inode: u64,
    opens: BTreeMap<u32, Open>,
    slots: BTreeMap<i32, Slot>,
    next_open: u32,
}

impl World {
    /// At the first instruction of a run.
    pub fn new(cwd: &[u8], descriptors: &[i32], created: u64, ids: [u32; 4]) -> World {
        let mut world = World {
            cwd: cwd.to_vec(),
            ids,
            umask: 0o022,
            clock: created * 1_000_000_000,
            uptime: 1_000_000_000_000,
            random: 0x5bd1_e995,
            next_inode: 1 << 40,
            ..World::default()
        };
        for fd in descriptors {
            let kind = match fd {
                0 => Kind::Stdin,
                1 => Kind::Stdout,
                2 => Kind::Stderr,
                _ => Kind::Foreign("an inherited descriptor".into()),
            };
            world.open_at(*fd, kind, libc::O_RDWR, false);
        }
        world
    }

    /// A new description on a given descriptor.
    pub fn open_at(&mut self, fd: i32, kind: Kind, flags: i32, close_on_exec: bool) {
        self.close(fd);
        let open = self.next_open;
        self.next_open += 1;
        self.opens.insert(open, Open { kind, offset: 0, flags, references: 1 });
        self.slots.insert(fd, Slot { open, close_on_exec });
    }

    /// A new description on the lowest free descriptor.
    pub fn open_new(&mut self, kind: Kind, flags: i32, close_on_exec: bool) -> i32 {
        let fd = self.free_from(0);
        self.open_at(fd, kind, flags, close_on_exec);
        fd
    }

    /// The lowest free descriptor from a number on.
    pub fn free_from(&self, from: i32) -> i32 {
        let mut fd = from;
        while self.slots.contains_key(&fd) {
            fd += 1;
        }
        fd
    }

    /// What a descriptor is open on.
    pub fn get(&self, fd: i32) -> Option<&Open> {
        self.opens.get(&self.slots.get(&fd)?.open)
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, fd: i32) -> Option<&mut Open> {
        self.opens.get_mut(&self.slots.get(&fd)?.open)
    }

    /// Closes a descriptor. False if it is not open.
    pub fn close(&mut self, fd: i32) -> bool {
        let Some(slot) = self.slots.remove(&fd) else { return false };
        if let Some(open) = self.opens.get_mut(&slot.open) {
            open.references -= 1;
            if open.references == 0 {
                self.opens.remove(&slot.open);
            }
        }
        let lists = self.opens.values_mut().filter_map(|open| match &mut open.kind {
            Kind::Epoll(list) => Some(list),
            _ => None,
        });
        for list in lists {
            list.remove(&fd);
        }
        true
    }

    /// A second descriptor for the same description.
    pub fn duplicate(&mut self, from: i32, to: i32, close_on_exec: bool) {
        let Some(slot) = self.slots.get(&from).copied().filter(|_| from != to) else { return };
        self.close(to);
        if let Some(open) = self.opens.get_mut(&slot.open) {
            open.references += 1;
        }
        self.slots.insert(to, Slot { open: slot.open, close_on_exec });
    }

    /// Close-on-exec of a descriptor.
    pub fn close_on_exec(&self, fd: i32) -> bool {
        self.slots.get(&fd).is_some_and(|s| s.close_on_exec)
    }

    /// Sets it.
    pub fn set_close_on_exec(&mut self, fd: i32, on: bool) {
        if let Some(slot) = self.slots.get_mut(&fd) {
            slot.close_on_exec = on;
        }
    }

    /// All descriptors.
    pub fn descriptors(&self) -> Vec<i32> {
        self.slots.keys().copied().collect()
    }

    /// Is any descriptor open on this end of a pipe?
    pub fn pipe_has(&self, pipe: usize, writers: bool) -> bool {
        self.opens.values().any(|open| match open.kind {
            Kind::Pipe { from, to } => (if writers { to } else { from }) == Some(pipe),
            _ => false,
        })
    }

    /// A new pipe.
    pub fn new_pipe(&mut self) -> usize {
        self.pipes.push(Pipe::default());
        self.pipes.len() - 1
    }

    /// A file with new, empty contents.
    pub fn new_file(&mut self) -> NodeId {
        self.next_inode += 1;
        self.nodes.push(Node {
            bytes: Some(Vec::new()),
            identity: (1, self.next_inode),
            known: true,
            ..Node::default()
        });
        self.nodes.len() - 1
    }

    /// The file that a captured one stands for; duplicates share contents.
    pub fn captured(&mut self, base: Option<FileId>, identity: (u64, u64)) -> NodeId {
        if let Some(n) = self.nodes.iter().position(|n| n.identity == identity) {
            return n;
        }
        let known = base.is_some();
        self.nodes.push(Node { base, identity, known, ..Node::default() });
        self.nodes.len() - 1
    }

    /// An absolute path without `.` and `..`.
    pub fn absolute(&self, folder: Option<&[u8]>, path: &[u8]) -> Vec<u8> {
        let mut parts: Vec<&[u8]> = Vec::new();
        let base = folder.unwrap_or(&self.cwd);
        let base = if path.starts_with(b"/") { &[][..] } else { base };
        for part in base.split(|b| *b == b'/').chain(path.split(|b| *b == b'/')) {
            match part {
                b"" | b"." => {}
                b".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        let mut out = Vec::new();
        for part in parts {
            out.push(b'/');
            out.extend_from_slice(part);
        }
        if out.is_empty() { b"/".to_vec() } else { out }
    }

    /// The next random number.
    pub fn next_random(&mut self) -> u64 {
        // xorshift64*: repeatable, and good enough for hash seeds and temporary names.
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// All that the rest of a run can depend on, but for clocks and random numbers.
    pub fn write_state(&self, out: &mut impl std::fmt::Write) -> Option<()> {
        let World { nodes, names, pipes, children, cwd, umask, stdin_at, outputs, .. } = self;
        let kept = (names, pipes, children, cwd, umask, stdin_at, outputs);
        write!(out, "{kept:?}{:?}", self.next_inode).ok()?;
        for node in nodes {
            write!(out, "{:?}{:?}{:?}", node.bytes, node.identity, node.known).ok()?;
        }
        for (fd, slot) in &self.slots {
            let open = self.opens.get(&slot.open)?;
            write!(out, "{fd}:{slot:?}{open:?}").ok()?;
        }
        Some(())
    }

    /// A hash of what a new process could find out: all but clocks, and what was written to
    /// the standard streams.
    pub fn outside(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        // Other children may have changed what is not known here.
        (self.shared_files(), &self.cwd, self.umask, &self.begun).hash(&mut hasher);
        format!("{:?}", self.descriptions()).hash(&mut hasher);
        hasher.finish()
    }

    /// A hash of what a child could change under its parent.
    pub fn shared(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let opens: Vec<_> = self.opens.iter().filter(|(_, open)| open.references > 0).collect();
        let moved: u64 = opens.iter().map(|(_, open)| open.offset).sum();
        (self.shared_files(), moved, self.outputs.each_ref().map(Vec::len)).hash(&mut hasher);
        hasher.finish()
    }

    fn shared_files(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        format!("{:?}{:?}{}", self.names, self.pipes, self.stdin_at).hash(&mut hasher);
        for node in &self.nodes {
            (&node.bytes, node.identity, node.known).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Everything that is open, by number, as it is now.
    pub fn opens_by_number(&self) -> BTreeMap<u64, String> {
        let open = self.opens.iter().filter(|(_, open)| open.references > 0);
        let text = |open: &Open| format!("{:?} {} {}", open.kind, open.offset, open.flags);
        open.map(|(number, open)| (u64::from(*number), text(open))).collect()
    }

    /// What each descriptor is open on.
    pub fn descriptions(&self) -> BTreeMap<i32, String> {
        let text = |slot: &Slot| {
            let open = self.opens.get(&slot.open)?;
            // How much was written to a standard stream is of no interest to others.
            let written = matches!(open.kind, Kind::Stdout | Kind::Stderr);
            let offset = if written { 0 } else { open.offset };
            Some(format!("{} {:?} {offset} {}", slot.open, open.kind, open.flags))
        };
        self.slots.iter().filter_map(|(fd, slot)| Some((*fd, text(slot)?))).collect()
    }

    /// Time passes.
    pub fn tick(&mut self, nanoseconds: u64) {
        self.clock = self.clock.saturating_add(nanoseconds);
        self.uptime = self.uptime.saturating_add(nanoseconds);
    }
}
