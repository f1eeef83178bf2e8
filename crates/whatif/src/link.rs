//! Messages between the process that asks and the one that makes experiments.

use crate::experiment::{CrashPoint, Experiment};
use crate::oracle::Oracle;
use crate::verdict::Outcome;
use engine::sandbox::{Limits, Original};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// What is asked for.
#[derive(Serialize, Deserialize)]
pub struct Order {
    pub experiments: Vec<(u32, Experiment)>,
    pub oracle: Oracle,
    pub crash: Option<CrashPoint>,
    pub limits: Limits,
    pub jobs: usize,
    pub keep_outputs: bool,
    /// Experiments behind the first that passes need not be made.
    pub first_only: bool,
    /// Trials count their instructions.
    pub exact: bool,
    /// Trials end where they come back to the recorded run.
    pub rejoins: bool,
    /// Only where the first one's path differs is wanted.
    pub difference: bool,
    /// What is not done after this time is not done at all.
    pub time: Option<Duration>,
}

/// What comes back.
#[derive(Serialize, Deserialize)]
pub enum Answer {
    Ready(Result<Original, String>),
    Outcome(u32, Outcome),
    Difference(Option<u64>),
    Done(Result<(), String>),
}

/// An order follows.
pub const ORDER: u8 = 1;
/// The batch that runs may stop; it means nothing if none runs.
pub const STOP: u8 = 0;

/// The next order.
pub fn order(socket: &mut UnixStream) -> io::Result<Order> {
    let mut tag = [STOP];
    while tag[0] != ORDER {
        socket.read_exact(&mut tag)?;
    }
    get(socket)
}

pub fn put(socket: &mut UnixStream, message: &impl Serialize) -> io::Result<()> {
    let bytes = postcard::to_allocvec(message).map_err(io::Error::other)?;
    let mut all = (bytes.len() as u64).to_le_bytes().to_vec();
    all.extend_from_slice(&bytes);
    socket.write_all(&all)
}

pub fn get<T: DeserializeOwned>(socket: &mut UnixStream) -> io::Result<T> {
    let mut len = [0; 8];
    socket.read_exact(&mut len)?;
    let mut bytes = vec![0; u64::from_le_bytes(len) as usize];
    socket.read_exact(&mut bytes)?;
    postcard::from_bytes(&bytes).map_err(io::Error::other)
}
