//! `struct stat` as bytes.

/// Device and inode.
pub fn identity(stat: &[u8]) -> (u64, u64) {
    (word(stat, 0), word(stat, 8))
}

/// Size.
pub fn size(stat: &[u8]) -> u64 {
    word(stat, 48)
}

/// A folder?
pub fn is_folder(stat: &[u8]) -> bool {
    mode(stat) & libc::S_IFMT == libc::S_IFDIR
}

/// A regular file?
pub fn is_regular(stat: &[u8]) -> bool {
    mode(stat) & libc::S_IFMT == libc::S_IFREG
}

/// A terminal or another device?
pub fn is_device(stat: &[u8]) -> bool {
    mode(stat) & libc::S_IFMT == libc::S_IFCHR
}

fn mode(stat: &[u8]) -> u32 {
    word(stat, 24) as u32
}

fn word(stat: &[u8], at: usize) -> u64 {
    stat.get(at..at + 8).map_or(0, |b| u64::from_le_bytes(b.try_into().expect("eight")))
}

/// Names in what `getdents64` gives.
pub fn names(entries: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = entries;
    std::iter::from_fn(move || {
        let size = usize::from(u16::from_le_bytes([*rest.get(16)?, *rest.get(17)?]));
        let name = rest.get(19..size)?;
        rest = rest.get(size..)?;
        Some(name.split(|b| *b == 0).next().unwrap_or_default())
    })
}

/// What `stat` says of something we made up.
pub fn made(mode: u32, size: u64, identity: (u64, u64), ids: (u32, u32), seconds: u64) -> Vec<u8> {
    let mut stat = vec![0u8; 144];
    let mut put = |at: usize, value: u64| stat[at..at + 8].copy_from_slice(&value.to_le_bytes());
    put(0, identity.0);
    put(8, identity.1);
    put(16, 1);
    put(24, u64::from(mode) | u64::from(ids.0) << 32);
    put(32, u64::from(ids.1));
    put(48, size);
    put(56, 4096);
    put(64, size.div_ceil(512));
    for at in [72, 88, 104] {
        put(at, seconds);
    }
    stat
}

/// The same `stat` with another size.
pub fn with_size(mut stat: Vec<u8>, size: u64) -> Vec<u8> {
    if stat.len() == 144 {
        stat[48..56].copy_from_slice(&size.to_le_bytes());
        stat[64..72].copy_from_slice(&size.div_ceil(512).to_le_bytes());
    }
    stat
}

/// `struct statx` from `struct stat`.
pub fn wide(stat: &[u8]) -> Vec<u8> {
    let mut out = vec![0u8; 256];
    let mut put32 = |at: usize, value: u64| {
        out[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
    };
    // STATX_BASIC_STATS; block size; links; owner.
    put32(0, 0x7ff);
    put32(4, word(stat, 56));
    put32(16, word(stat, 16));
    put32(20, word(stat, 24) >> 32);
    put32(24, word(stat, 32));
    put32(28, word(stat, 24) & 0xffff);
    let (major, minor) = (libc::major(word(stat, 0)), libc::minor(word(stat, 0)));
    put32(136, u64::from(major));
    put32(140, u64::from(minor));
    let mut put64 = |at: usize, value: u64| out[at..at + 8].copy_from_slice(&value.to_le_bytes());
    put64(32, word(stat, 8));
    put64(40, word(stat, 48));
    put64(48, word(stat, 64));
    for (to, from) in [(64, 72), (96, 104), (112, 88)] {
        put64(to, word(stat, from));
        put64(to + 8, word(stat, from + 8) & 0xffff_ffff);
    }
    out
}
