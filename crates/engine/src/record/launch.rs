//! From what the user typed to the files that must be loaded.

use super::{RecordOptions, leaks};
use crate::guest::image::{Headers, ImageError};
use crate::{Error, NotExecutable};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A program to be started: its file, its interpreter, its arguments.
pub struct Launch {
    /// Absolute path of the ELF file.
    pub path: PathBuf,
    /// The ELF file.
    pub file: File,
    /// Path and file of its program interpreter (`ld.so`).
    pub interpreter: Option<(PathBuf, File)>,
    /// Arguments, the program's name first.
    pub argv: Vec<Vec<u8>>,
    /// What the program sees as the path it was executed by.
    pub exec_path: Vec<u8>,
    /// Does it look for leaks when it ends?
    pub has_leak_checker: bool,
    /// Descriptors it inherits.
    pub descriptors: Vec<i32>,
}

/// So many bytes of a script are looked at for its `#!` line, as in the kernel.
const SCRIPT_LINE: usize = 256;

/// How deep scripts may name scripts as interpreters, as in the kernel.
const MAX_SCRIPTS: usize = 5;

impl Launch {
    /// Finds and checks everything before anything runs.
    pub fn prepare(options: &RecordOptions) -> Result<Launch, Error> {
        // Before we open any of our own.
        let descriptors = crate::sys::guest_descriptors();
        let path = find(&options.program)?;
        let mut argv = vec![options.program.as_bytes().to_vec()];
        argv.extend(options.args.iter().map(|a| a.as_bytes().to_vec()));
        Ok(Launch { descriptors, ..Launch::of(&path, argv)? })
    }

    /// Prepares a file with arguments, following `#!` lines.
    pub fn of(path: &Path, argv: Vec<Vec<u8>>) -> Result<Launch, Error> {
        let exec_path = path.as_os_str().as_bytes().to_vec();
        let mut path = path.to_owned();
        let mut argv = argv;
        for _ in 0..MAX_SCRIPTS {
            let file = open_executable(&path)?;
            let head = beginning(&file, SCRIPT_LINE, &path)?;
            if let Some(line) = head.strip_prefix(b"#!") {
                let (interpreter, argument) = script_line(line, &path)?;
                let mut new = vec![interpreter.as_os_str().as_bytes().to_vec()];
                new.extend(argument);
                new.push(path.as_os_str().as_bytes().to_vec());
                new.extend(argv.drain(1.min(argv.len())..));
                argv = new;
                path = interpreter;
                continue;
            }
            return Launch::elf(path, file, argv, exec_path);
        }
        Err(Error::NotExecutable { path, why: NotExecutable::TooDeep })
    }

    fn elf(
        path: PathBuf,
        file: File,
        argv: Vec<Vec<u8>>,
        exec_path: Vec<u8>,
    ) -> Result<Launch, Error> {
        let mut headers = Headers::parse(&beginning(&file, Headers::USUAL, &path)?);
        if headers.is_err() {
            let bytes = std::fs::read(&path).map_err(|e| unreadable(&path, e))?;
            headers = Headers::parse(&bytes);
        }
        let headers = headers.map_err(|error| image_error(&path, error))?;
        let has_leak_checker = leaks::has_leak_checker(&headers, &file);
        let interpreter = match &headers.interpreter {
            None => None,
            Some(p) => {
                let p = PathBuf::from(OsStr::from_bytes(p));
                let file = open_executable(&p)?;
                Some((p, file))
            }
        };
        let absolute = std::fs::canonicalize(&path).unwrap_or(path);
        Ok(Launch {
            path: absolute,
            file,
            interpreter,
            argv,
            exec_path,
            has_leak_checker,
            descriptors: Vec::new(),
        })
    }
}

fn image_error(path: &Path, error: ImageError) -> Error {
    Error::Image { path: path.to_owned(), error }
}

fn unreadable(path: &Path, error: std::io::Error) -> Error {
    Error::NotExecutable { path: path.to_owned(), why: NotExecutable::Unreadable(error) }
}

/// Looks a program up as `execvp` does.
fn find(program: &OsStr) -> Result<PathBuf, Error> {
    if program.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    for folder in std::env::split_paths(&path) {
        let candidate = folder.join(program);
        if candidate.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0) {
            return Ok(candidate);
        }
    }
    Err(Error::NotFound(PathBuf::from(program)))
}

fn open_executable(path: &Path) -> Result<File, Error> {
    let file = File::open(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Error::NotFound(path.to_owned()),
        _ => unreadable(path, e),
    })?;
    let metadata = file.metadata().map_err(|e| unreadable(path, e))?;
    let mode = metadata.permissions().mode();
    let refuse = |why| Error::NotExecutable { path: path.to_owned(), why };
    if !metadata.is_file() {
        return Err(refuse(NotExecutable::NotAFile));
    }
    if mode & 0o111 == 0 {
        return Err(refuse(NotExecutable::NoPermission));
    }
    if gives_rights(&metadata) {
        return Err(refuse(NotExecutable::SetId));
    }
    Ok(file)
}

/// Would executing it change whose rights the process has?
fn gives_rights(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    let [_, user, _, group] = crate::sys::ids();
    metadata.mode() & libc::S_ISUID != 0 && metadata.uid() != user
        || metadata.mode() & libc::S_ISGID != 0 && metadata.gid() != group
}

/// The first bytes of a file.
fn beginning(file: &File, most: usize, path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; most];
    let mut read = 0;
    while read < most {
        match file.read_at(&mut bytes[read..], read as u64).map_err(|e| unreadable(path, e))? {
            0 => break,
            n => read += n,
        }
    }
    bytes.truncate(read);
    Ok(bytes)
}

/// The interpreter and its one argument in a `#!` line.
fn script_line(line: &[u8], path: &Path) -> Result<(PathBuf, Option<Vec<u8>>), Error> {
    let end = line.iter().position(|b| *b == b'\n').unwrap_or(line.len());
    let line = line[..end].trim_ascii();
    let split = line.iter().position(|b| *b == b' ' || *b == b'\t');
    let (name, argument) = match split {
        None => (line, None),
        Some(n) => (&line[..n], Some(line[n..].trim_ascii().to_vec())),
    };
    if name.is_empty() {
        let why = NotExecutable::NoInterpreter;
        return Err(Error::NotExecutable { path: path.to_owned(), why });
    }
    let name = std::ffi::OsString::from_vec(name.to_vec());
    Ok((PathBuf::from(name), argument))
}
