//! Between the process that replays and the one that reads the trace: chunks of
//! shared memory, and a pair of sockets that say which are full and which free.

use super::Event;
use crate::layout::PAGE;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

/// Bytes of a chunk, without the guard page behind it.
const CHUNK: usize = 1 << 20;
/// One is written, one is read, the rest lets either run ahead.
const CHUNKS: usize = 8;
const STRIDE: usize = CHUNK + PAGE as usize;

/// What one side tells the other.
#[derive(Serialize, Deserialize)]
pub enum Message {
    /// A chunk is full.
    Chunk {
        /// Which.
        chunk: usize,
        /// How many bytes of it.
        len: u32,
        /// What happened between records, by offset in the chunk.
        events: Vec<(u32, Event)>,
    },
    /// The run has been traced to its end, or why not.
    End(Result<Ended, String>),
}

/// How a traced replay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Did it reach the end of the recorded run?
    pub complete: bool,
    /// The address it would have gone on at.
    pub pc: u64,
}

/// Shared chunks.
pub struct Chunks {
    base: *mut u8,
}

impl Chunks {
    /// Maps them; a fork shares them.
    pub fn new() -> io::Result<Chunks> {
        let (read_write, shared) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new map where the kernel likes.
        let base =
            unsafe { libc::mmap(std::ptr::null_mut(), STRIDE * CHUNKS, read_write, shared, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base: *mut u8 = base.cast();
        for n in 0..CHUNKS {
            // SAFETY: the last page of each stride.
            let done = unsafe {
                libc::mprotect(base.add(n * STRIDE + CHUNK).cast(), PAGE as usize, libc::PROT_NONE)
            };
            if done != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(Chunks { base })
    }

    /// The first bytes of a chunk.
    pub fn bytes(&self, chunk: usize, len: u32) -> &[u8] {
        assert!(chunk < CHUNKS && len as usize <= CHUNK);
        // SAFETY: within the map; the other side does not write a chunk that it
        // has handed over.
        unsafe { std::slice::from_raw_parts(self.base.add(chunk * STRIDE), len as usize) }
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        // SAFETY: our own map.
        unsafe { libc::munmap(self.base.cast(), STRIDE * CHUNKS) };
    }
}

/// The writing side.
pub struct Link {
    chunks: Chunks,
    socket: UnixStream,
    fresh: usize,
}

impl Link {
    /// The side of the process that replays.
    pub fn new(chunks: Chunks, socket: UnixStream) -> Link {
        Link { chunks, socket, fresh: 0 }
    }

    /// Address of a chunk.
    pub fn address(&self, chunk: usize) -> u64 {
        self.chunks.base as u64 + (chunk * STRIDE) as u64
    }

    /// First address past it.
    pub fn end(&self, chunk: usize) -> u64 {
        self.address(chunk) + CHUNK as u64
    }

    /// Is the address in the page behind it?
    pub fn is_guard(&self, chunk: usize, address: u64) -> bool {
        (self.end(chunk)..self.end(chunk) + PAGE).contains(&address)
    }

    /// Copies bytes out of a chunk.
    pub fn read(&self, address: u64, bytes: &mut [u8]) {
        self.check(address, bytes.len());
        // SAFETY: within the chunks.
        unsafe {
            std::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), bytes.len());
        }
    }

    /// Copies bytes into a chunk.
    pub fn write(&self, address: u64, bytes: &[u8]) {
        self.check(address, bytes.len());
        // SAFETY: within the chunks, of which this side owns the one it writes.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len());
        }
    }

    fn check(&self, address: u64, len: usize) {
        let from = address.wrapping_sub(self.chunks.base as u64) as usize;
        assert!(from.saturating_add(len) <= STRIDE * CHUNKS, "only chunks are touched");
    }

    /// A chunk that may be written.
    pub fn wait_free(&mut self) -> io::Result<usize> {
        if self.fresh < CHUNKS {
            self.fresh += 1;
            return Ok(self.fresh - 1);
        }
        let mut chunk = [0];
        self.socket.read_exact(&mut chunk)?;
        Ok(chunk[0] as usize % CHUNKS)
    }

    /// Hands a chunk over.
    pub fn send(
        &mut self,
        chunk: usize,
        len: u32,
        events: Vec<(u32, Event)>,
        units: &[u8],
    ) -> io::Result<()> {
        put(&mut self.socket, &Message::Chunk { chunk, len, events }, units)
    }
}

/// Sends a message, and the meanings of units whose paths are new.
pub fn put(socket: &mut UnixStream, message: &Message, units: &[u8]) -> io::Result<()> {
    let bytes = postcard::to_allocvec(message).map_err(io::Error::other)?;
    for part in [&bytes, units] {
        socket.write_all(&(part.len() as u32).to_le_bytes())?;
        socket.write_all(part)?;
    }
    Ok(())
}

/// Receives one.
pub fn get(socket: &mut UnixStream) -> io::Result<(Message, Vec<u8>)> {
    let mut part = || {
        let mut len = [0; 4];
        socket.read_exact(&mut len)?;
        let mut bytes = vec![0; u32::from_le_bytes(len) as usize];
        socket.read_exact(&mut bytes)?;
        io::Result::Ok(bytes)
    };
    let message = postcard::from_bytes(&part()?).map_err(io::Error::other)?;
    Ok((message, part()?))
}

/// Gives a chunk back.
pub fn give_back(socket: &mut UnixStream, chunk: usize) -> io::Result<()> {
    socket.write_all(&[chunk as u8])
}
