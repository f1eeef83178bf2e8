//! Which path does a call name?

use super::world::{Kind, World};
use crate::kernel::process::{Asked, Process};
use crate::kernel::table;

/// A path that a call names.
pub struct Path {
    /// Absolute, without `.` and `..`.
    pub path: Vec<u8>,
    /// Is a link at its end followed?
    pub follow: bool,
    /// An empty path that means the descriptor itself.
    pub of: Option<i32>,
}

/// The first path of a call; `None` if it names none or it is unreadable.
pub fn path_of(world: &World, process: &Process, asked: &Asked) -> Option<Path> {
    let a = &asked.args;
    let plain = |at: usize, follow: bool| (None, a[at], follow, false);
    let beside = |at: usize, follow: bool| (Some(a[0] as i32), a[at], follow, false);
    let flagged = |flags: u64| {
        let follow = flags as i32 & libc::AT_SYMLINK_NOFOLLOW == 0;
        (Some(a[0] as i32), a[1], follow, flags as i32 & libc::AT_EMPTY_PATH != 0)
    };
    let (folder, at, follow, may_be_empty) = match asked.number as u32 {
        table::open
        | table::creat
        | table::stat
        | table::access
        | table::chdir
        | table::truncate
        | table::statfs
        | table::chmod
        | table::chown
        | table::utime
        | table::utimes
        | table::getxattr
        | table::listxattr => plain(0, true),
        table::lstat
        | table::readlink
        | table::unlink
        | table::rmdir
        | table::mkdir
        | table::rename
        | table::link
        | table::symlink
        | table::mknod
        | table::lchown
        | table::lgetxattr
        | table::llistxattr => plain(0, false),
        table::openat | table::openat2 | table::faccessat | table::fchmodat | table::faccessat2 => {
            beside(1, true)
        }
        table::readlinkat
        | table::unlinkat
        | table::mkdirat
        | table::renameat
        | table::renameat2
        | table::linkat
        | table::mknodat
        | table::fchownat
        | table::utimensat
        | table::futimesat => beside(1, false),
        table::symlinkat => plain(0, false),
        table::newfstatat => flagged(a[3]),
        table::statx => flagged(a[2]),
        _ => return None,
    };
    let text = process.machine.memory.read_string(at, 4096)?;
    if text.is_empty() {
        let of = folder.filter(|fd| may_be_empty && *fd >= 0);
        return of.map(|fd| Path { path: Vec::new(), follow, of: Some(fd) });
    }
    let folder = folder_of(world, folder);
    Some(Path { path: world.absolute(folder.as_deref(), &text), follow, of: None })
}

/// The second path of `rename`, `link` and `symlink`.
pub fn second_path(world: &World, process: &Process, asked: &Asked) -> Option<Vec<u8>> {
    let a = &asked.args;
    let (folder, at) = match asked.number as u32 {
        table::rename | table::link | table::symlink => (None, a[1]),
        table::renameat | table::renameat2 | table::linkat => (Some(a[2] as i32), a[3]),
        table::symlinkat => (Some(a[1] as i32), a[2]),
        _ => return None,
    };
    let text = process.machine.memory.read_string(at, 4096)?;
    let folder = folder_of(world, folder);
    Some(world.absolute(folder.as_deref(), &text))
}

fn folder_of(world: &World, fd: Option<i32>) -> Option<Vec<u8>> {
    match &world.get(fd?)?.kind {
        Kind::Folder(path) | Kind::Stream(path) => Some(path.clone()),
        _ => None,
    }
}

/// Flags of an `open`.
pub fn open_flags(process: &Process, asked: &Asked) -> i32 {
    let a = &asked.args;
    match asked.number as u32 {
        table::open => a[1] as i32,
        table::creat => libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC,
        table::openat => a[2] as i32,
        _ => process.machine.memory.read_u64(a[2]).unwrap_or(0) as i32,
    }
}
