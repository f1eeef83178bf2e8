//! What passed through the kernel: bytes read from and written to files, pipes,
//! sockets and the standard streams, and files that were mapped.

use crate::Time;
use crate::spans::Spans;
use engine::trace::{Call, DescriptorKind, Event};
use std::collections::{HashMap, HashSet};

/// Something that bytes are kept in, or pass through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub u32);

impl ObjectId {
    /// Standard input.
    pub const STDIN: ObjectId = ObjectId(0);
    /// Standard output.
    pub const STDOUT: ObjectId = ObjectId(1);
    /// Standard error.
    pub const STDERR: ObjectId = ObjectId(2);
}

/// Which way bytes went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Into memory.
    Read,
    /// Out of memory.
    Write,
}

/// Bytes between memory and an object, by one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Which object.
    pub object: ObjectId,
    /// Offset of the first byte in it.
    pub offset: u64,
    /// Which way.
    pub direction: Direction,
    /// Memory, piece by piece.
    pub pieces: Vec<(u64, u64)>,
}

impl Transfer {
    /// The object's byte that a byte of memory came from or went to.
    pub fn offset_of(&self, address: u64) -> Option<u64> {
        let mut offset = self.offset;
        for &(start, len) in &self.pieces {
            if (start..start + len).contains(&address) {
                return Some(offset + address - start);
            }
            offset += len;
        }
        None
    }

    /// The byte of memory that belongs to an object's byte.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        let mut at = self.offset;
        for &(start, len) in &self.pieces {
            if (at..at + len).contains(&offset) {
                return Some(start + offset - at);
            }
            at += len;
        }
        None
    }

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        self.pieces.iter().map(|(_, len)| len).sum()
    }

    /// Were there none?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a call does with the position of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moves {
    /// Which open file: a file that is opened twice has two positions.
    pub object: ObjectId,
    /// Does what it does depend on where the position was?
    pub uses: bool,
}

/// All transfers of a run.
#[derive(Default)]
pub struct Objects {
    /// By number of the call site.
    transfers: HashMap<usize, Transfer>,
    /// By number of the call site: the object whose position it uses or moves.
    positions: HashMap<usize, Moves>,
    names: Vec<Vec<u8>>,
}

/// What a descriptor that is no regular file is connected to.
#[derive(Clone, Copy)]
struct Ends {
    read: ObjectId,
    write: ObjectId,
}

#[derive(Default)]
struct Finder {
    objects: Objects,
    files: HashMap<(u64, u64), ObjectId>,
    /// Files whose code ran: their maps are the program, not what it read.
    images: HashSet<Vec<u8>>,
    ends: HashMap<i32, Ends>,
    /// What stands for the position that a descriptor shares with its copies.
    openings: HashMap<i32, ObjectId>,
    read_positions: HashMap<ObjectId, u64>,
    write_positions: HashMap<ObjectId, u64>,
}

impl Objects {
    /// Reads the calls. `size` knows how long a captured file is.
    pub fn find(
        events: &[(Time, Event)],
        spans: &Spans,
        size: &dyn Fn(&str) -> Option<u64>,
    ) -> Objects {
        let mut finder = Finder::default();
        finder.objects.names =
            vec![b"standard input".into(), b"standard output".into(), b"standard error".into()];
        finder.images = events.iter().filter_map(|(_, event)| image(event)).collect();
        for (n, site) in spans.calls.iter().enumerate() {
            // A map is told just before its call.
            let before = site.event.checked_sub(1).map(|event| &events[event].1);
            let mapped = match before {
                Some(Event::Mapped(mapped)) => mapped.file.as_deref().and_then(size),
                _ => None,
            };
            if let Event::Call(call) = &events[site.event].1 {
                finder.call(n, call, mapped);
            }
        }
        finder.objects
    }

    /// What a call transferred, by its number in [`Spans::calls`].
    pub fn transfer(&self, call: usize) -> Option<&Transfer> {
        self.transfers.get(&call)
    }

    /// The position that a call moves, by its number in [`Spans::calls`].
    pub fn moves(&self, call: usize) -> Option<Moves> {
        self.positions.get(&call).copied()
    }

    /// What people call an object: a path, mostly.
    pub fn name(&self, object: ObjectId) -> String {
        let name = self.names.get(object.0 as usize);
        name.map(|n| String::from_utf8_lossy(n).into_owned()).unwrap_or_default()
    }

    /// The object that a path names, by its end.
    pub fn named(&self, path: &str) -> Option<ObjectId> {
        let suffix = format!("/{path}");
        let matches = |name: &Vec<u8>| name == path.as_bytes() || name.ends_with(suffix.as_bytes());
        self.names.iter().position(matches).map(|n| ObjectId(n as u32))
    }
}

mod number {
    pub const READ: u32 = 0;
    pub const WRITE: u32 = 1;
    pub const CLOSE: u32 = 3;
    pub const OPEN: u32 = 2;
    pub const LSEEK: u32 = 8;
    pub const MMAP: u32 = 9;
    pub const PREAD: u32 = 17;
    pub const PWRITE: u32 = 18;
    pub const READV: u32 = 19;
    pub const WRITEV: u32 = 20;
    pub const PIPE: u32 = 22;
    pub const DUP: u32 = 32;
    pub const DUP2: u32 = 33;
    pub const SENDTO: u32 = 44;
    pub const RECVFROM: u32 = 45;
    pub const SENDMSG: u32 = 46;
    pub const RECVMSG: u32 = 47;
    pub const SOCKETPAIR: u32 = 53;
    pub const FCNTL: u32 = 72;
    pub const CREAT: u32 = 85;
    pub const OPENAT: u32 = 257;
    pub const DUP3: u32 = 292;
    pub const PIPE2: u32 = 293;
    pub const PREADV: u32 = 295;
    pub const PWRITEV: u32 = 296;
    pub const PREADV2: u32 = 327;
    pub const PWRITEV2: u32 = 328;
    pub const OPENAT2: u32 = 437;
}
use number::*;

impl Finder {
    fn call(&mut self, n: usize, call: &Call, file_size: Option<u64>) {
        self.track(n, call);
        self.position(n, call);
        let direction = match call.number {
            MMAP if self.is_input(call) => Direction::Read,
            READ | PREAD | READV | PREADV | PREADV2 | RECVFROM | RECVMSG => Direction::Read,
            WRITE | PWRITE | WRITEV | PWRITEV | PWRITEV2 | SENDTO | SENDMSG => Direction::Write,
            _ => return,
        };
        let Ok(len) = u64::try_from(call.result) else { return };
        let Some(object) = self.object(call, direction) else { return };
        let offset = self.offset(call, object, direction, len);
        let pieces = match call.number {
            // Behind the file's end, a map has zeros; what the run wrote made it longer.
            MMAP if !self.write_positions.contains_key(&object) => {
                let left = file_size.unwrap_or(u64::MAX).saturating_sub(offset);
                vec![(call.result as u64, call.args[1].min(left))]
            }
            MMAP => vec![(call.result as u64, call.args[1])],
            READ | PREAD | RECVFROM | WRITE | PWRITE | SENDTO => vec![(call.args[1], len)],
            _ => first_bytes(&call.vector, len),
        };
        self.objects.transfers.insert(n, Transfer { object, offset, direction, pieces });
    }

    /// Reads, writes and seeks move the position of a regular file.
    fn position(&mut self, n: usize, call: &Call) {
        const FROM_START: u64 = 0;
        let uses = match call.number {
            READ | READV | WRITE | WRITEV => true,
            LSEEK => call.args[2] != FROM_START,
            _ => return,
        };
        let regular = |kind: &DescriptorKind| matches!(kind, DescriptorKind::File(..));
        if call.result >= 0 && call.descriptor.as_ref().is_some_and(|d| regular(&d.kind)) {
            let fd = call.args[0] as i32;
            let known = self.openings.get(&fd).copied();
            let object = known.unwrap_or_else(|| self.opening(fd));
            self.objects.positions.insert(n, Moves { object, uses });
        }
    }

    /// A position of its own for a descriptor. Nobody asks for it by name.
    fn opening(&mut self, fd: i32) -> ObjectId {
        let object = self.new_object(b"");
        self.openings.insert(fd, object);
        object
    }

    /// Does it map a file as data?
    fn is_input(&self, call: &Call) -> bool {
        match call.descriptor.as_ref().map(|d| &d.kind) {
            Some(DescriptorKind::File(_, _, path)) => !self.images.contains(path),
            _ => false,
        }
    }

    fn object(&mut self, call: &Call, direction: Direction) -> Option<ObjectId> {
        match &call.descriptor.as_ref()?.kind {
            DescriptorKind::Stdin => Some(ObjectId::STDIN),
            DescriptorKind::Stdout => Some(ObjectId::STDOUT),
            DescriptorKind::Stderr => Some(ObjectId::STDERR),
            DescriptorKind::File(device, inode, path) => {
                let key = (*device, *inode);
                if let Some(object) = self.files.get(&key) {
                    return Some(*object);
                }
                let object = self.new_object(path);
                self.files.insert(key, object);
                Some(object)
            }
            DescriptorKind::Other => {
                let fd = call.args[0] as i32;
                let known = self.ends.get(&fd).copied();
                let ends = known.unwrap_or_else(|| self.unknown(fd));
                Some(if direction == Direction::Read { ends.read } else { ends.write })
            }
        }
    }

    /// A device, or the other end is outside: nothing written to it comes back.
    fn unknown(&mut self, fd: i32) -> Ends {
        let name = format!("descriptor {fd}").into_bytes();
        let ends = Ends { read: self.new_object(&name), write: self.new_object(&name) };
        self.ends.insert(fd, ends);
        ends
    }

    fn new_object(&mut self, name: &[u8]) -> ObjectId {
        self.objects.names.push(name.to_vec());
        ObjectId(self.objects.names.len() as u32 - 1)
    }

    fn offset(&mut self, call: &Call, object: ObjectId, way: Direction, len: u64) -> u64 {
        match call.number {
            PREAD | PWRITE | PREADV | PWRITEV | PREADV2 | PWRITEV2 => return call.args[3],
            MMAP => return call.args[5],
            _ => {}
        }
        let standard = object <= ObjectId::STDERR;
        let known = call.descriptor.as_ref().and_then(|d| d.offset).filter(|_| !standard);
        let positions = match way {
            Direction::Read => &mut self.read_positions,
            Direction::Write => &mut self.write_positions,
        };
        let position = positions.entry(object).or_default();
        let at = known.unwrap_or(*position);
        *position = at + len;
        at
    }

    /// Keeps track of pipes, pairs of sockets and open files.
    fn track(&mut self, n: usize, call: &Call) {
        let result = call.result as i32;
        match call.number {
            OPEN | CREAT | OPENAT | OPENAT2 if result >= 0 => {
                self.ends.remove(&result);
                let object = self.opening(result);
                self.objects.positions.insert(n, Moves { object, uses: false });
            }
            PIPE | PIPE2 | SOCKETPAIR => {
                let Some((first, second)) = call.pair else { return };
                let one = self.new_object(b"pipe");
                let other =
                    if call.number == SOCKETPAIR { self.new_object(b"socket") } else { one };
                self.ends.insert(first, Ends { read: one, write: other });
                self.ends.insert(second, Ends { read: other, write: one });
            }
            DUP | DUP2 | DUP3 if result >= 0 => self.copy(call.args[0] as i32, result),
            FCNTL if result >= 0 && is_copy(call.args[1]) => {
                self.copy(call.args[0] as i32, result);
            }
            CLOSE => {
                self.ends.remove(&(call.args[0] as i32));
                self.openings.remove(&(call.args[0] as i32));
            }
            _ => {}
        }
    }

    /// A descriptor is what another one is.
    fn copy(&mut self, from: i32, to: i32) {
        match self.ends.get(&from).copied() {
            Some(ends) => _ = self.ends.insert(to, ends),
            None => _ = self.ends.remove(&to),
        }
        let known = self.openings.get(&from).copied();
        let object = known.unwrap_or_else(|| self.opening(from));
        self.openings.insert(to, object);
    }
}

/// `F_DUPFD` and `F_DUPFD_CLOEXEC`.
fn is_copy(command: u64) -> bool {
    matches!(command, 0 | 1030)
}

/// The path of a file that is mapped to be executed.
fn image(event: &Event) -> Option<Vec<u8>> {
    match event {
        Event::Mapped(mapped) if mapped.executable => Some(mapped.path.clone()),
        _ => None,
    }
}

/// The first `len` bytes of several pieces.
fn first_bytes(pieces: &[(u64, u64)], mut len: u64) -> Vec<(u64, u64)> {
    let mut out = Vec::new();
    for &(start, size) in pieces {
        let part = size.min(len);
        if part > 0 {
            out.push((start, part));
        }
        len -= part;
    }
    out
}
