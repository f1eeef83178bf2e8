//! Bytes to and from gdb.

use gdbstub::conn::{Connection, ConnectionExt};
use rustix::net::{RecvFlags, recv};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// What gdb sends to stop a running program.
const INTERRUPT: u8 = 3;

/// A connection with buffers.
pub struct Wire {
    stream: Stream,
    incoming: VecDeque<u8>,
    outgoing: Vec<u8>,
}

/// The two kinds of connections.
pub enum Stream {
    /// Over the network, from this machine.
    Tcp(TcpStream),
    /// Over a socket in the file system.
    Unix(UnixStream),
}

impl Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => Read::read(stream, bytes),
            Stream::Unix(stream) => Read::read(stream, bytes),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => Write::write_all(stream, bytes),
            Stream::Unix(stream) => Write::write_all(stream, bytes),
        }
    }

    fn descriptor(&self) -> io::Result<OwnedFd> {
        match self {
            Stream::Tcp(stream) => stream.as_fd().try_clone_to_owned(),
            Stream::Unix(stream) => stream.as_fd().try_clone_to_owned(),
        }
    }
}

impl Wire {
    /// Over a stream.
    pub fn new(stream: Stream) -> Wire {
        if let Stream::Tcp(stream) = &stream {
            // Answers are short and each is waited for.
            let _ = stream.set_nodelay(true);
        }
        Wire { stream, incoming: VecDeque::new(), outgoing: Vec::new() }
    }

    /// Something that tells whether gdb wants to interrupt.
    pub fn interrupts(&self) -> io::Result<Box<dyn FnMut() -> bool>> {
        let stream = self.stream.descriptor()?;
        Ok(Box::new(move || {
            let mut byte = [0u8];
            let look = RecvFlags::PEEK | RecvFlags::DONTWAIT;
            match recv(&stream, &mut byte, look) {
                // Nobody waits for the answer any more.
                Ok((0, _)) => true,
                Ok(_) if byte[0] == INTERRUPT => {
                    recv(&stream, &mut byte, RecvFlags::DONTWAIT).is_ok()
                }
                _ => false,
            }
        }))
    }
}

impl Connection for Wire {
    type Error = io::Error;

    fn write(&mut self, byte: u8) -> io::Result<()> {
        self.outgoing.push(byte);
        Ok(())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.outgoing.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.outgoing)?;
        self.outgoing.clear();
        Ok(())
    }
}

impl ConnectionExt for Wire {
    fn read(&mut self) -> io::Result<u8> {
        if let Some(byte) = self.incoming.pop_front() {
            return Ok(byte);
        }
        let mut bytes = [0; 4096];
        let n = self.stream.read(&mut bytes)?;
        self.incoming.extend(&bytes[..n]);
        self.incoming.pop_front().ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        Ok(self.incoming.front().copied())
    }
}
