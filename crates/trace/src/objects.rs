//! What passed through the kernel: bytes read from and written to files, pipes,
//! sockets and the standard streams.

use crate::Time;
use crate::spans::Spans;
use engine::trace::{Call, DescriptorKind, Event};
use std::collections::HashMap;

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
    /// Which file.
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
    ends: HashMap<i32, Ends>,
    read_positions: HashMap<ObjectId, u64>,
    write_positions: HashMap<ObjectId, u64>,
}

impl Objects {
    /// Reads the calls.
    pub fn find(events: &[(Time, Event)], spans: &Spans) -> Objects {
        let mut finder = Finder::default();
        finder.objects.names =
            vec![b"standard input".into(), b"standard output".into(), b"standard error".into()];
        for (n, site) in spans.calls.iter().enumerate() {
            if let Event::Call(call) = &events[site.event].1 {
                finder.call(n, call);
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
    pub const LSEEK: u32 = 8;
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
    pub const DUP3: u32 = 292;
    pub const PIPE2: u32 = 293;
    pub const PREADV: u32 = 295;
    pub const PWRITEV: u32 = 296;
    pub const PREADV2: u32 = 327;
    pub const PWRITEV2: u32 = 328;
}
use number::*;

impl Finder {
    fn call(&mut self, n: usize, call: &Call) {
        self.track(call);
        self.position(n, call);
        let direction = match call.number {
            READ | PREAD | READV | PREADV | PREADV2 | RECVFROM | RECVMSG => Direction::Read,
            WRITE | PWRITE | WRITEV | PWRITEV | PWRITEV2 | SENDTO | SENDMSG => Direction::Write,
            _ => return,
        };
        let Ok(len) = u64::try_from(call.result) else { return };
        let Some(object) = self.object(call, direction) else { return };
        let offset = self.offset(call, object, direction, len);
        let pieces = match call.number {
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
        if call.result >= 0
            && call.descriptor.as_ref().is_some_and(|d| regular(&d.kind))
            && let Some(object) = self.object(call, Direction::Read)
        {
            self.objects.positions.insert(n, Moves { object, uses });
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
        let positioned =
            matches!(call.number, PREAD | PWRITE | PREADV | PWRITEV | PREADV2 | PWRITEV2);
        if positioned {
            return call.args[3];
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

    /// Keeps track of pipes and pairs of sockets.
    fn track(&mut self, call: &Call) {
        let result = call.result as i32;
        match call.number {
            PIPE | PIPE2 | SOCKETPAIR => {
                let Some((first, second)) = call.pair else { return };
                let one = self.new_object(b"pipe");
                let other =
                    if call.number == SOCKETPAIR { self.new_object(b"socket") } else { one };
                self.ends.insert(first, Ends { read: one, write: other });
                self.ends.insert(second, Ends { read: other, write: one });
            }
            DUP | DUP2 | DUP3 if result >= 0 => {
                match self.ends.get(&(call.args[0] as i32)).copied() {
                    Some(ends) => _ = self.ends.insert(result, ends),
                    None => _ = self.ends.remove(&result),
                }
            }
            CLOSE => _ = self.ends.remove(&(call.args[0] as i32)),
            _ => {}
        }
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
