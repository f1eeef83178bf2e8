//! `why debug`: stock gdb on a recording, forward and backward.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;

use anyhow::{Context, bail};
use clap::Args;
use debugger::Desk;
use recording::Recording;

use crate::status::FAILED;
use crate::which::Which;

/// Debug a recording in gdb, forward and backward.
///
/// Everything that gdb knows works: breakpoints, watchpoints, steps, and all of them backward
/// (reverse-step, reverse-continue, …). `why help` at gdb's prompt lists what is added. Binaries
/// come from the recording, sources from where they were compiled.
#[derive(Args)]
#[command(after_help = "Examples:
  why debug
  why debug --at crash
  why debug 7 --at list.c:42#3 --map /build=./src
  why debug --plain --at exit
  why debug -- -batch -ex 'break main' -ex continue -ex backtrace")]
pub struct Debug {
    #[command(flatten)]
    which: Which,

    /// Begin at this position [default: start]
    #[arg(long, value_name = "POS")]
    at: Option<String>,

    /// Sources whose path begins with FROM are at TO
    #[arg(long, value_name = "FROM=TO")]
    map: Vec<Moved>,

    /// A prompt of our own, without gdb
    #[arg(long, conflicts_with_all = ["gdb", "map"])]
    plain: bool,

    /// Arguments for gdb
    #[arg(last = true, value_name = "GDB-ARGS")]
    gdb: Vec<OsString>,
}

/// Where sources are now.
#[derive(Clone)]
struct Moved {
    from: String,
    to: String,
}

impl FromStr for Moved {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Moved, &'static str> {
        let (from, to) = text.split_once('=').ok_or("write FROM=TO")?;
        Ok(Moved { from: from.to_owned(), to: to.to_owned() })
    }
}

/// What became of the process that serves.
enum Server {
    Listens(Child),
    /// It did not, and said why; its status.
    Ended(u8),
}

impl Debug {
    /// Becomes gdb; returns only if that fails.
    pub fn run(&self) -> anyhow::Result<u8> {
        let recording = self.which.open_log(false)?;
        if self.plain {
            return self.prompt(&recording);
        }
        let folder = private_folder()?;
        let socket = folder.join("gdb");
        let extension = folder.join("why.py");
        std::fs::write(&extension, debugger::gdb::EXTENSION)?;
        let mut server = match self.start_server(&recording, &socket, &folder)? {
            Server::Listens(child) => child,
            Server::Ended(status) => return Ok(status),
        };
        let mut gdb = Command::new("gdb");
        gdb.args(["-q", "-iex", "set debuginfod enabled off"]);
        gdb.args(["-iex", "set remotetimeout 86400", "-iex", "set sysroot target:"]);
        for Moved { from, to } in &self.map {
            gdb.arg("-iex").arg(format!("set substitute-path {from} {to}"));
        }
        gdb.arg("-ex").arg(format!("target remote {}", socket.display()));
        gdb.arg("-x").arg(&extension);
        gdb.args(&self.gdb);
        let error = gdb.exec();
        // Nobody will connect, and nothing of it is to be left.
        let _ = server.kill().and_then(|()| server.wait());
        let _ = std::fs::remove_dir_all(&folder);
        Err(error).context("cannot start gdb; install it, for instance with `apt install gdb`")
    }

    /// Reads commands from standard input and answers them.
    fn prompt(&self, recording: &Recording) -> anyhow::Result<u8> {
        let mut desk = Desk::open(recording.dir())?;
        desk.search_with(search(recording.dir().to_owned()));
        if let Some(position) = &self.at {
            desk.go_to(position)?;
        }
        desk.timeline.interrupt_by(Box::new(engine::sandbox::is_interrupted));
        let (mut input, mut out) = (std::io::stdin().lock(), std::io::stdout().lock());
        loop {
            write!(out, "(why {}) ", desk.command("position").trim())?;
            out.flush()?;
            let mut line = Vec::new();
            if input.read_until(b'\n', &mut line)? == 0 {
                return Ok(0);
            }
            // Who types what is no text is told so, as of any other word.
            let line = String::from_utf8_lossy(&line);
            // ^C ends what is under way, not the session.
            engine::sandbox::catch_interrupts();
            let Some(answer) = desk.obey(&line) else { return Ok(0) };
            out.write_all(answer.as_bytes())?;
        }
    }

    /// Starts a process that serves the recording and waits until it listens.
    fn start_server(
        &self,
        recording: &Recording,
        socket: &Path,
        folder: &Path,
    ) -> anyhow::Result<Server> {
        let mut server = Command::new(std::env::current_exe()?);
        server.arg("serve-gdb").arg(recording.dir()).arg("--socket").arg(socket);
        server.arg("--temporary").arg(folder);
        if let Some(position) = &self.at {
            server.arg("--at").arg(position);
        }
        // ^C is gdb's, which tells the server if it means it.
        server.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = server.spawn()?;
        let mut line = String::new();
        let output = child.stdout.take().context("the server has an output")?;
        BufReader::new(output).read_line(&mut line)?;
        if !line.is_empty() {
            return Ok(Server::Listens(child));
        }
        let status = child.wait()?.code().and_then(|code| u8::try_from(code).ok());
        Ok(Server::Ended(status.filter(|code| *code != 0).unwrap_or(FAILED)))
    }
}

/// What takes a whole search is asked of ourselves, as on the command line.
pub fn search(recording: PathBuf) -> debugger::Search {
    Box::new(move |words| {
        let (verb, rest) = words.split_first().unwrap_or((&"", &[]));
        let answer = std::env::current_exe().and_then(|why| {
            Command::new(why).arg(verb).arg(&recording).args(rest).stdin(Stdio::null()).output()
        });
        match answer {
            Ok(answer) => {
                let said = [answer.stdout, answer.stderr].concat();
                String::from_utf8_lossy(&said).into_owned()
            }
            Err(error) => format!("cannot search: {error}\n"),
        }
    })
}

/// A new folder that only we can use.
fn private_folder() -> anyhow::Result<PathBuf> {
    let base = std::env::temp_dir();
    for n in 0..100 {
        let folder = base.join(format!("why-debug-{}-{n}", std::process::id()));
        match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
    }
    bail!("cannot make a folder in {}", base.display())
}
