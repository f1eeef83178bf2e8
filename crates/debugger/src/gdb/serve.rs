//! Serving one gdb.

use super::arch::{AT_STOPS, Id};
use super::connection::{Stream, Wire};
use super::session::Session;
use crate::desk::Desk;
use gdbstub::conn::ConnectionExt;
use gdbstub::stub::GdbStub;
use gdbstub::stub::MultiThreadStopReason;
use gdbstub::stub::state_machine::GdbStubStateMachine;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

/// Long enough that files come over in few pieces.
const PACKET: usize = 1 << 17;

/// Between two looks at whether somebody will connect at all.
const BETWEEN_LOOKS: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Where gdb may connect.
pub enum Listener {
    /// A port of this machine, for programs on this machine.
    Port(TcpListener),
    /// A socket in the file system, for its owner.
    Socket(UnixListener),
}

impl Listener {
    /// Listens at a port of the loopback interface; 0 stands for any.
    pub fn port(port: u16) -> io::Result<Listener> {
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map(Listener::Port)
    }

    /// Listens at a socket that only its owner can use.
    pub fn socket(path: &Path) -> io::Result<Listener> {
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(Listener::Socket(listener))
    }

    /// What to tell gdb.
    pub fn address(&self) -> io::Result<String> {
        match self {
            Listener::Port(listener) => Ok(format!("localhost:{}", listener.local_addr()?.port())),
            Listener::Socket(listener) => {
                let address = listener.local_addr()?;
                let path = address.as_pathname().unwrap_or(Path::new("?"));
                Ok(path.display().to_string())
            }
        }
    }

    /// The first that connects; nobody, if it is known that nobody will.
    fn accept(self, is_over: &dyn Fn() -> bool) -> io::Result<Option<Stream>> {
        while !self.is_asked()? {
            if is_over() {
                return Ok(None);
            }
        }
        Ok(Some(match self {
            Listener::Port(listener) => Stream::Tcp(listener.accept()?.0),
            Listener::Socket(listener) => Stream::Unix(listener.accept()?.0),
        }))
    }

    /// Waits a little for somebody to connect.
    fn is_asked(&self) -> io::Result<bool> {
        let descriptor = match self {
            Listener::Port(listener) => listener.as_fd(),
            Listener::Socket(listener) => listener.as_fd(),
        };
        let mut wanted = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
        Ok(poll(&mut wanted, Some(&BETWEEN_LOOKS))? > 0)
    }
}

/// Serves the first gdb that connects, until it leaves.
pub fn serve(mut desk: Desk, listener: Listener, is_over: &dyn Fn() -> bool) -> io::Result<()> {
    let Some(stream) = listener.accept(is_over)? else { return Ok(()) };
    let wire = Wire::new(stream);
    desk.timeline.interrupt_by(wire.interrupts()?);
    let mut session = Session::new(desk).map_err(io::Error::other)?;
    let stub = GdbStub::builder(wire).packet_buffer_size(PACKET).build();
    let stub = stub.map_err(io::Error::other)?;
    let mut machine = stub.run_state_machine(&mut session).map_err(io::Error::other)?;
    loop {
        machine = match machine {
            GdbStubStateMachine::Idle(mut gdb) => match gdb.borrow_conn().read() {
                Ok(byte) => gdb.incoming_data(&mut session, byte).map_err(io::Error::other)?,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
            },
            GdbStubStateMachine::Running(gdb) => {
                let reason = session.run();
                let registers = session.registers_at_stop(&reason);
                let mut registers =
                    AT_STOPS.iter().zip(&registers).map(|(n, value)| (Id(*n), &value[..]));
                gdb.report_stop_with_regs(&mut session, reason, &mut registers)
                    .map_err(io::Error::other)?
            }
            GdbStubStateMachine::CtrlCInterrupt(gdb) => {
                // It stands still already.
                let nothing: Option<MultiThreadStopReason<u64>> = None;
                gdb.interrupt_handled(&mut session, nothing).map_err(io::Error::other)?
            }
            GdbStubStateMachine::Disconnected(_) => return Ok(()),
        }
    }
}
