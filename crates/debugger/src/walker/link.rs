//! Messages over a socket, and sockets over a socket.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Sends a message.
pub fn put(mut socket: &UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut bytes = vec![0; 4];
    bytes = postcard::to_extend(message, bytes).map_err(io::Error::other)?;
    let len = (bytes.len() - 4) as u32;
    bytes[..4].copy_from_slice(&len.to_le_bytes());
    socket.write_all(&bytes)
}

/// Receives one.
pub fn get<T: DeserializeOwned>(mut socket: &UnixStream) -> io::Result<T> {
    let mut len = [0; 4];
    socket.read_exact(&mut len)?;
    let mut bytes = vec![0; u32::from_le_bytes(len) as usize];
    socket.read_exact(&mut bytes)?;
    postcard::from_bytes(&bytes).map_err(io::Error::other)
}

/// Has the other side left?
pub fn is_closed(socket: &UnixStream) -> bool {
    let mut byte = [0u8];
    matches!(recv(socket, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT), Ok((0, _)))
}

/// Does a message come within this time?
pub fn waits(socket: &UnixStream, most: Duration) -> io::Result<bool> {
    let mut wanted = [PollFd::new(socket, PollFlags::IN)];
    let most = Timespec::try_from(most).map_err(io::Error::other)?;
    match poll(&mut wanted, Some(&most)) {
        // Somebody pressed ^C: who waits looks whether it was meant for him.
        Err(rustix::io::Errno::INTR) => Ok(false),
        ready => Ok(ready? > 0),
    }
}

/// Hands a socket over.
pub fn put_socket(socket: &UnixStream, handed: &UnixStream) -> io::Result<()> {
    let handed = [handed.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&handed));
    sendmsg(socket, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::empty())?;
    Ok(())
}

/// Takes one over.
pub fn get_socket(socket: &UnixStream) -> io::Result<UnixStream> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut pieces = [IoSliceMut::new(&mut byte)];
    recvmsg(socket, &mut pieces, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let handed = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut all) => all.next(),
        _ => None,
    });
    handed.map(UnixStream::from).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}
