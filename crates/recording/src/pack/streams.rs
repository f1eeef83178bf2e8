//! What bytes pass through on their way into and out of a packed recording.

use super::{GoesOn, HASH};
use std::fs::File;
use std::io::{self, Read, Write};

/// Gives just so many bytes, or fails.
pub struct Exactly {
    pub source: Wanted<File>,
    pub left: u64,
}

/// Gives bytes as long as they are wanted.
pub struct Wanted<R> {
    pub source: R,
    pub goes_on: GoesOn,
}

impl<R: Read> Read for Wanted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.goes_on)() { self.source.read(buffer) } else { Err(io::Error::other("enough")) }
    }
}

impl Read for Exactly {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let len = self.source.read(&mut buffer[..most])?;
        if len == 0 && most > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= len as u64;
        Ok(len)
    }
}

/// Hashes what passes to `inner`.
pub struct Hashing<W> {
    inner: W,
    hasher: blake3::Hasher,
    written: u64,
}

impl<W: Write> Hashing<W> {
    /// Over `inner`.
    pub fn new(inner: W) -> Hashing<W> {
        Hashing { inner, hasher: blake3::Hasher::new(), written: 0 }
    }

    /// Writes the hash behind it all; returns the length.
    pub fn finish(mut self) -> io::Result<u64> {
        let hash = self.hasher.finalize();
        self.inner.write_all(hash.as_bytes())?;
        self.inner.flush()?;
        Ok(self.written + HASH)
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..len]);
        self.written += len as u64;
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
