//! The first moments of a recording: what the program is started with, kept in the
//! manifest, and the session around it.

use super::RecordOptions;
use super::launch::Launch;
use super::session::{Beginning, Counters, Session, make_process};
use super::signals::install;
use super::supervise::Report;
use crate::code::Profile;
use crate::cpu::shown::Shown;
use crate::guest::start::Start;
use crate::guest::task::Task;
use crate::kernel::files::FileIdText;
use crate::signal::{self, host};
use crate::{Error, hash};
use recording::event::{Encoder, When};
use recording::{ByteString, FileId, Manifest, Writer};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

pub(super) fn begin(
    options: &RecordOptions,
    launch: Launch,
    report: &Report,
) -> Result<(Session, Task), Error> {
    let nofile = crate::sys::reserve_descriptors().map_err(Error::io("cannot set limits"))?;
    let lifted = [libc::RLIMIT_AS, libc::RLIMIT_DATA, libc::RLIMIT_FSIZE].map(|resource| {
        let (soft, hard) = crate::sys::lift_limit(resource);
        (resource, soft, hard)
    });
    let captured = |file: &File| -> Result<FileId, Error> {
        Ok(options.store.capture(file, &options.dir)?.id)
    };
    let stack = crate::sys::limit(libc::RLIMIT_STACK);
    let (ignored, mask) = crate::sys::inherited_signals();
    let start = Start {
        path: launch.exec_path.clone(),
        argv: launch.argv.clone(),
        env: std::env::vars_os()
            .map(|(k, v)| [k.as_bytes(), b"=", v.as_bytes()].concat())
            .collect(),
        random: crate::sys::random(),
        ids: crate::sys::ids(),
        stack: if stack.0 == libc::RLIM_INFINITY { 8 << 20 } else { stack.0 },
    };
    recording::prepare(&options.dir)?;
    let mut manifest = Manifest::new(
        std::iter::once(&options.program).chain(&options.args).map(ByteString::from).collect(),
    );
    manifest.program = ByteString(launch.path.as_os_str().as_bytes().to_vec());
    manifest.directory =
        ByteString(std::env::current_dir().unwrap_or_default().as_os_str().as_bytes().to_vec());
    manifest.environment = start.env.iter().map(|e| ByteString(e.clone())).collect();
    let cpu = match options.cpu {
        recording::Cpu::V3 => Shown::baseline(),
        recording::Cpu::Host => Shown::host(),
    };
    manifest.cpu = options.cpu;
    manifest.cpu_features = cpu.features();
    let program = captured(&launch.file)?;
    let interpreter = match &launch.interpreter {
        Some((path, file)) => Some((captured(file)?, path.as_os_str().as_bytes().to_vec())),
        None => None,
    };
    // SAFETY: no memory is touched.
    let pid = unsafe { libc::getpid() };
    let beginning = Beginning {
        start: start.clone(),
        program: FileIdText(program),
        program_path: launch.path.as_os_str().as_bytes().to_vec(),
        interpreter: interpreter.map(|(id, path)| (FileIdText(id), path)),
        descriptors: launch.descriptors.clone(),
        ignored,
        mask,
        pid,
        umask: crate::sys::umask(),
        cwd: manifest.directory.0.clone(),
        limits: [(libc::RLIMIT_NOFILE, nofile.0, nofile.1), (libc::RLIMIT_STACK, stack.0, stack.1)]
            .into_iter()
            .chain(lifted)
            .collect(),
        cpu,
    };
    manifest.start = serde_json::to_value(&beginning).expect("plain data");
    let writer = Writer::create(
        &options.dir,
        &manifest,
        &recording::Options {
            max_bytes: options.max_bytes,
            lowest_fd: crate::sys::first_engine_fd(),
            ..Default::default()
        },
    )?;
    let (process, task) = make_process(&beginning, &options.dir, Profile::PLAIN)?;
    host::set_up_thread().map_err(Error::io("cannot set up a signal stack"))?;
    host::install_synchronous();
    for signal in 1..=64 {
        if signal::UNBLOCKABLE & signal::only(signal) == 0 {
            install(signal, &process.actions);
        }
    }
    host::set_mask(mask);
    hash::keep_pagemap();
    crate::sys::set_name(launch.path.file_name().unwrap_or_default().as_bytes());
    let session = Session {
        process,
        writer: Some(writer),
        encoder: Encoder::default(),
        dir: options.dir.clone(),
        store: options.store.clone(),
        pid,
        start,
        current: task.thread,
        stopped: (When::Here, 0),
        threads: 1,
        next_thread: 2,
        files_captured: 0,
        stamps: HashMap::new(),
        counters: Counters::default(),
        partly_captured: BTreeSet::new(),
        unsupported: BTreeMap::new(),
        live: BTreeSet::new(),
        last_hash: Instant::now(),
        hash_cost: Duration::ZERO,
        report: report.clone(),
    };
    Ok((session, task))
}
