//! `why serve-gdb`: a recording as a target of gdb's remote protocol.

use std::io::{self, Write};
use std::os::unix::process::parent_id;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use debugger::Desk;
use debugger::gdb::{Listener, serve};

use crate::which::Which;

/// Serve a recording to any client of gdb's remote protocol.
///
/// The first client that connects is served, until it leaves. Only programs on this machine can
/// connect: through the loopback interface, or a socket that only you can use. The address is
/// printed once it can be connected to.
#[derive(Args)]
#[command(after_help = "Examples:
  why serve-gdb --port 2345      then, in gdb: target remote localhost:2345
  why serve-gdb 7 --socket ./s   then, in gdb: target remote ./s")]
pub struct ServeGdb {
    #[command(flatten)]
    which: Which,

    /// Listen at this port of the loopback interface; 0 for any
    #[arg(long, value_name = "N", required_unless_present = "socket")]
    port: Option<u16>,

    /// Listen at a new socket of this name
    #[arg(long, value_name = "P", conflicts_with = "port")]
    socket: Option<PathBuf>,

    /// Begin at this position [default: start]
    #[arg(long, value_name = "POS")]
    at: Option<String>,

    /// Remove this folder in the end
    #[arg(long, value_name = "DIR", hide = true)]
    temporary: Option<PathBuf>,
}

impl ServeGdb {
    /// Serves one client.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<u8> {
        let served = self.serve(out);
        if let Some(folder) = &self.temporary {
            // It holds what we made ourselves, and nobody needs it any more.
            let _ = std::fs::remove_dir_all(folder);
        }
        served.map(|()| 0)
    }

    fn serve(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        // Who started us for themselves alone may be gone before they connect.
        let (starter, alone) = (parent_id(), self.temporary.is_some());
        let recording = self.which.open_log(true)?;
        let mut desk = Desk::open(recording.dir())?;
        desk.search_with(super::debug::search(recording.dir().to_owned()));
        if let Some(position) = &self.at {
            desk.go_to(position)?;
        }
        let listener = match (&self.socket, self.port) {
            (Some(path), _) => Listener::socket(path).with_context(|| {
                format!("cannot listen at {}; remove it or name another socket", path.display())
            })?,
            (None, port) => {
                let port = port.unwrap_or_default();
                let told = || format!("cannot listen at port {port}; name another, or 0 for any");
                Listener::port(port).with_context(told)?
            }
        };
        writeln!(out, "{}", listener.address()?)?;
        out.flush()?;
        let served = serve(desk, listener, &|| alone && parent_id() != starter);
        if let Some(path) = &self.socket {
            let _ = std::fs::remove_file(path);
        }
        match served {
            // gdb was killed, or went without a word.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(()),
            served => Ok(served?),
        }
    }
}
