//! The first moments of a recording: what the program is started with, kept in the
//! manifest, and the session around it.

use super::RecordOptions;
use super::beginning::{Beginning, make_process};
use super::chaos::Chaos;
use super::launch::Launch;
use super::leaks;
use super::session::{Counters, Session};
use super::signals::install;
use super::supervise::Report;
use super::tree::Tree;
use crate::Error;
use crate::code::Profile;
use crate::cpu::shown::Shown;
use crate::guest::start::Start;
use crate::guest::task::Task;
use crate::kernel::files::FileIdText;
use crate::signal::{self, host};
use recording::event::{Encoder, When};
use recording::{ByteString, Manifest, Writer};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::{Duration, Instant};

/// The session of a program that is about to execute its first instruction.
pub(super) fn begin(
    options: &RecordOptions,
    launch: Launch,
    tree: Tree,
    report: &Report,
) -> Result<(Session, Task), Error> {
    let mut beginning = beginning(options, &launch)?;
    let leaks_off = leaks::switch_off(launch.has_leak_checker, &mut beginning.start.env);
    let manifest = manifest(options, &beginning);
    let writer = Writer::create(
        &options.dir,
        &manifest,
        &recording::Options {
            max_bytes: options.max_bytes,
            total: Some(tree.bytes()),
            lowest_fd: crate::sys::first_engine_fd(),
            ..Default::default()
        },
    )?;
    let (mut process, task) = make_process(&beginning, &options.dir, Profile::PLAIN)?;
    process.machine.stock_for(beginning.program.0);
    process.shares_memory = true;
    host::set_up_thread().map_err(Error::io("cannot set up a signal stack"))?;
    host::install_synchronous();
    for signal in 1..=64 {
        if signal::UNBLOCKABLE & signal::only(signal) == 0 {
            install(signal, &process.actions);
        }
    }
    host::set_mask(beginning.mask);
    crate::pages::keep_pagemap();
    crate::sys::set_name(launch.path.file_name().unwrap_or_default().as_bytes());
    let mut session = Session {
        process,
        writer: Some(writer),
        encoder: Encoder::default(),
        chaos: options.chaos.map(Chaos::new),
        dir: options.dir.clone(),
        tree,
        number: manifest.process.log,
        manifest,
        max_bytes: options.max_bytes,
        lender: None,
        ends_with_recorder: true,
        commons: None,
        store: options.store.clone(),
        pid: beginning.pid,
        start: beginning.start,
        current: task.thread,
        stopped: (When::Here, 0),
        threads: 1,
        tids: BTreeSet::from([beginning.pid]),
        next_thread: 2,
        files_captured: 0,
        stamps: HashMap::new(),
        counters: Counters::default(),
        partly_captured: BTreeSet::new(),
        unsupported: BTreeMap::new(),
        switched_off: BTreeSet::new(),
        live: BTreeSet::new(),
        outsiders: None,
        last_hash: Instant::now(),
        hash_cost: Duration::ZERO,
        report: report.clone(),
    };
    if leaks_off {
        session.note_switched_off(leaks::LEAK_CHECKING);
    }
    Ok((session, task))
}

/// How the program begins; its files are captured.
fn beginning(options: &RecordOptions, launch: &Launch) -> Result<Beginning, Error> {
    let limits = limits()?;
    let stack = crate::sys::limit(libc::RLIMIT_STACK).0;
    let (ignored, mask) = crate::sys::inherited_signals();
    recording::prepare(&options.dir)?;
    let captured = |file: &File| -> Result<FileIdText, Error> {
        Ok(FileIdText(options.store.capture(file, &options.dir)?.id))
    };
    let interpreter = match &launch.interpreter {
        Some((path, file)) => Some((captured(file)?, path.as_os_str().as_bytes().to_vec())),
        None => None,
    };
    let env = std::env::vars_os().map(|(k, v)| [k.as_bytes(), b"=", v.as_bytes()].concat());
    Ok(Beginning {
        start: Start {
            path: launch.exec_path.clone(),
            argv: launch.argv.clone(),
            env: env.collect(),
            random: crate::sys::random(),
            ids: crate::sys::ids(),
            stack: if stack == libc::RLIM_INFINITY { 8 << 20 } else { stack },
        },
        program: captured(&launch.file)?,
        program_path: launch.path.as_os_str().as_bytes().to_vec(),
        interpreter,
        descriptors: launch.descriptors.clone(),
        ignored,
        mask,
        // SAFETY: no memory is touched.
        pid: unsafe { libc::getpid() },
        umask: crate::sys::umask(),
        cwd: std::env::current_dir().unwrap_or_default().into_os_string().into_vec(),
        around: around(),
        limits,
        cpu: match options.cpu {
            recording::Cpu::V3 => Shown::baseline(),
            recording::Cpu::Host => Shown::host(),
        },
        dense: options.chaos.is_some(),
        handed_on: None,
    })
}

/// Where panics look for debug information, error messages for their translation, and
/// dates for their zone.
const AROUND: [&std::ffi::CStr; 6] = [
    c"/usr/lib/debug",
    c"/usr/share/locale",
    c"/usr/lib/locale",
    c"/etc/localtime",
    c"/dev/tty",
    c"/tmp",
];

pub(super) fn around() -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let stat = |path: &std::ffi::CStr| {
        let mut bytes = vec![0u8; size_of::<libc::stat>()];
        // SAFETY: the kernel fills memory of the right size.
        let found = unsafe { libc::stat(path.as_ptr(), bytes.as_mut_ptr().cast()) } == 0;
        (path.to_bytes().to_vec(), found.then_some(bytes))
    };
    AROUND.map(stat).to_vec()
}

/// The limits that the engine keeps for the guest, because it must not be bound by
/// them itself.
fn limits() -> Result<Vec<(u32, u64, u64)>, Error> {
    let (soft, hard) = crate::sys::reserve_descriptors().map_err(Error::io("cannot set limits"))?;
    let mut limits = vec![(libc::RLIMIT_NOFILE, soft, hard)];
    let (soft, hard) = crate::sys::limit(libc::RLIMIT_STACK);
    limits.push((libc::RLIMIT_STACK, soft, hard));
    for resource in [libc::RLIMIT_AS, libc::RLIMIT_DATA, libc::RLIMIT_FSIZE] {
        let (soft, hard) = crate::sys::lift_limit(resource);
        limits.push((resource, soft, hard));
    }
    Ok(limits)
}

fn manifest(options: &RecordOptions, beginning: &Beginning) -> Manifest {
    let command = std::iter::once(&options.program).chain(&options.args);
    let mut manifest = Manifest::new(command.map(ByteString::from).collect());
    manifest.program = ByteString(beginning.program_path.clone());
    manifest.directory = ByteString(beginning.cwd.clone());
    manifest.environment = beginning.start.env.iter().map(|e| ByteString(e.clone())).collect();
    manifest.cpu = options.cpu;
    manifest.cpu_features = beginning.cpu.features();
    manifest.start = serde_json::to_value(beginning).expect("plain data");
    manifest.process.pid = beginning.pid;
    manifest
}
