//! The guest's descriptors, as far as the calls it made tell.

use super::pipes::PipeId;
use recording::FileId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a descriptor is open on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// Standard input as inherited.
    Stdin,
    /// Standard output as inherited.
    Stdout,
    /// Standard error as inherited.
    Stderr,
    /// A regular file.
    Regular {
        /// Its contents when it was opened, if they were captured.
        file: Option<FileIdText>,
        /// Device and inode.
        identity: (u64, u64),
        /// The path it was opened by.
        path: Vec<u8>,
    },
    /// A memory file.
    Memory,
    /// An end of a pipe, or one of a connected pair of sockets.
    Pipe {
        /// What is read here.
        reads: Option<PipeId>,
        /// What is written here.
        writes: Option<PipeId>,
    },
    /// The listing of the process's own descriptors.
    OwnDescriptors,
    /// Anything else.
    Other,
}

/// A file id that serialises as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdText(pub FileId);

impl Serialize for FileIdText {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for FileIdText {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        text.parse().map(FileIdText).map_err(|_| serde::de::Error::custom("not a file id"))
    }
}

/// A descriptor that a program executed by another one finds open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedOn {
    /// Its number.
    pub fd: i32,
    /// The same for those that share a position.
    description: u32,
    kind: Kind,
    readable: bool,
    writable: bool,
    append: bool,
    path_only: bool,
}

/// What of [`What`] can be said in another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Stdin,
    Stdout,
    Stderr,
    Regular { file: Option<FileIdText>, device: u64, inode: u64, path: Vec<u8> },
    Memory,
    Other,
}

impl Kind {
    fn of(what: &What) -> Kind {
        match what {
            What::Stdin => Kind::Stdin,
            What::Stdout => Kind::Stdout,
            What::Stderr => Kind::Stderr,
            What::Regular { file, identity: (device, inode), path } => {
                Kind::Regular { file: *file, device: *device, inode: *inode, path: path.clone() }
            }
            What::Memory => Kind::Memory,
            // What is in a pipe is not known once others have it.
            What::Pipe { .. } | What::OwnDescriptors | What::Other => Kind::Other,
        }
    }

    fn what(&self) -> What {
        match self {
            Kind::Stdin => What::Stdin,
            Kind::Stdout => What::Stdout,
            Kind::Stderr => What::Stderr,
            Kind::Regular { file, device, inode, path } => {
                What::Regular { file: *file, identity: (*device, *inode), path: path.clone() }
            }
            Kind::Memory => What::Memory,
            Kind::Other => What::Other,
        }
    }
}

/// An open file description: shared by duplicates of a descriptor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Description {
    /// What it is open on.
    pub what: What,
    /// Position for reading and writing; `None` where it is not known.
    pub offset: Option<u64>,
    /// Opened with `O_APPEND`.
    pub append: bool,
    /// Opened for writing.
    pub writable: bool,
    /// In a replay: what `fstat` said of it when it was opened.
    #[serde(with = "stat_bytes")]
    pub stat: Option<[u8; 144]>,
    /// Opened for reading.
    pub readable: bool,
    /// Opened with `O_PATH`: it only names a file.
    pub path_only: bool,
    /// Other processes have it too, so its position is never known.
    pub shared: bool,
    references: u32,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Descriptor {
    description: u32,
    close_on_exec: bool,
}

/// A `struct stat` as bytes: arrays of that length have no form of their own.
mod stat_bytes {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(stat: &Option<[u8; 144]>, s: S) -> Result<S::Ok, S::Error> {
        stat.as_ref().map(|bytes| bytes.to_vec()).serialize(s)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<[u8; 144]>, D::Error> {
        let bytes = Option::<Vec<u8>>::deserialize(d)?;
        let sized = bytes.map(<[u8; 144]>::try_from).transpose();
        sized.map_err(|_| serde::de::Error::custom("a `struct stat` has 144 bytes"))
    }
}

/// The descriptor table.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Files {
    descriptors: BTreeMap<i32, Descriptor>,
    descriptions: BTreeMap<u32, Description>,
    next: u32,
}

impl Files {
    /// The table of a program started with these descriptors.
    pub fn inherited(fds: &[i32]) -> Files {
        let mut files = Files::default();
        for fd in fds {
            let what = match fd {
                0 => What::Stdin,
                1 => What::Stdout,
                2 => What::Stderr,
                _ => What::Other,
            };
            files.open(*fd, what, libc::O_RDWR, false);
        }
        files
    }

    /// A new description on a descriptor.
    pub fn open(&mut self, fd: i32, what: What, flags: i32, close_on_exec: bool) {
        self.close(fd);
        let n = self.next;
        self.next += 1;
        let description = Description {
            offset: matches!(what, What::Regular { .. } | What::Memory).then_some(0),
            what,
            append: flags & libc::O_APPEND != 0,
            writable: flags & libc::O_ACCMODE != libc::O_RDONLY,
            stat: None,
            readable: flags & libc::O_ACCMODE != libc::O_WRONLY,
            path_only: flags & libc::O_PATH != 0,
            shared: false,
            references: 1,
        };
        self.descriptions.insert(n, description);
        self.descriptors.insert(fd, Descriptor { description: n, close_on_exec });
    }

    /// All that is open now is open in another process too.
    pub fn share_all(&mut self) {
        for description in self.descriptions.values_mut() {
            description.shared = true;
            description.offset = None;
        }
    }

    /// What is handed on by `execve`.
    pub fn handed_on(&self) -> Vec<HandedOn> {
        let kept = self.descriptors.iter().filter(|(_, d)| !d.close_on_exec);
        kept.filter_map(|(fd, d)| {
            let description = self.descriptions.get(&d.description)?;
            Some(HandedOn {
                fd: *fd,
                description: d.description,
                kind: Kind::of(&description.what),
                readable: description.readable,
                writable: description.writable,
                append: description.append,
                path_only: description.path_only,
            })
        })
        .collect()
    }

    /// The table of a program that was executed with these.
    pub fn from_handed_on(all: &[HandedOn]) -> Files {
        let mut files = Files::default();
        let mut first: BTreeMap<u32, i32> = BTreeMap::new();
        for one in all {
            if let Some(fd) = first.get(&one.description) {
                files.duplicate(*fd, one.fd, false);
                continue;
            }
            first.insert(one.description, one.fd);
            files.open(one.fd, one.kind.what(), 0, false);
            if let Some(d) = files.get_mut(one.fd) {
                (d.readable, d.writable) = (one.readable, one.writable);
                (d.append, d.path_only) = (one.append, one.path_only);
            }
        }
        files.share_all();
        files
    }

    /// A descriptor is closed. Returns its description if that was the last one.
    pub fn close(&mut self, fd: i32) -> Option<Description> {
        let d = self.descriptors.remove(&fd)?;
        let description = self.descriptions.get_mut(&d.description)?;
        description.references -= 1;
        if description.references > 0 {
            return None;
        }
        self.descriptions.remove(&d.description)
    }

    /// The descriptor that the kernel gives next, at or above `from`.
    pub fn lowest_free(&self, from: i32) -> i32 {
        let mut free = from;
        for fd in self.descriptors.range(from..).map(|(fd, _)| *fd) {
            if fd != free {
                break;
            }
            free += 1;
        }
        free
    }

    /// Is it closed by `execve`?
    pub fn is_close_on_exec(&self, fd: i32) -> bool {
        self.descriptors.get(&fd).is_some_and(|d| d.close_on_exec)
    }

    /// Is any description of the pipe left?
    pub fn has_pipe(&self, pipe: PipeId) -> bool {
        self.descriptions.values().any(|d| match d.what {
            What::Pipe { reads, writes } => reads == Some(pipe) || writes == Some(pipe),
            _ => false,
        })
    }

    /// `dup` and friends.
    pub fn duplicate(&mut self, from: i32, to: i32, close_on_exec: bool) {
        let Some(d) = self.descriptors.get(&from).copied() else { return };
        if from == to {
            return;
        }
        self.close(to);
        if let Some(description) = self.descriptions.get_mut(&d.description) {
            description.references += 1;
        }
        self.descriptors.insert(to, Descriptor { description: d.description, close_on_exec });
    }

    /// What a descriptor refers to.
    pub fn get(&self, fd: i32) -> Option<&Description> {
        self.descriptions.get(&self.descriptors.get(&fd)?.description)
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, fd: i32) -> Option<&mut Description> {
        self.descriptions.get_mut(&self.descriptors.get(&fd)?.description)
    }

    /// The path of a regular file, once it is known in full.
    pub fn set_path(&mut self, fd: i32, new: Option<Vec<u8>>) {
        if let (Some(Description { what: What::Regular { path, .. }, .. }), Some(new)) =
            (self.get_mut(fd), new)
        {
            *path = new;
        }
    }

    /// Is the file open for writing anywhere?
    pub fn is_written(&self, file: (u64, u64)) -> bool {
        self.descriptions.values().any(|d| {
            d.writable && matches!(d.what, What::Regular { identity, .. } if identity == file)
                || d.what == What::Memory
        })
    }

    /// Sets close-on-exec.
    pub fn set_close_on_exec(&mut self, fd: i32, on: bool) {
        if let Some(d) = self.descriptors.get_mut(&fd) {
            d.close_on_exec = on;
        }
    }

    /// Descriptors that `execve` closes.
    pub fn close_for_exec(&mut self) -> Vec<i32> {
        let gone: Vec<i32> =
            self.descriptors.iter().filter(|(_, d)| d.close_on_exec).map(|(fd, _)| *fd).collect();
        for fd in &gone {
            self.close(*fd);
        }
        gone
    }

    /// All descriptors in use.
    pub fn all(&self) -> impl Iterator<Item = i32> {
        self.descriptors.keys().copied()
    }
}
