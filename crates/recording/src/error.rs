//! What can go wrong with a recording, one sentence each, with what to do next.

use std::io;
use std::path::{Path, PathBuf};

/// Every failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder exists or not, but holds no `manifest.json`.
    #[error("{path:?} is not a recording; `why list` shows those that exist")]
    NotARecording {
        /// The folder that was asked for.
        path: PathBuf,
    },
    /// Neither a folder nor a known name.
    #[error("there is no recording {name:?}; give a recording's folder or a name from `why list`")]
    NoSuchRecording {
        /// What was asked for.
        name: PathBuf,
    },
    /// The latest recording was asked for, and there is none.
    #[error("there is no recording yet; make one with `why record PROG`")]
    NoRecordings,
    /// No process of the recording has this number.
    #[error("the recording has no process {0}; `why info` lists those it has")]
    NoProcess(i32),
    /// None of the variables that place our data is set.
    #[error("no place for recordings is known; set WHY_DIR or HOME")]
    NoHome,
    /// The recording was made by a later version of this program.
    #[error(
        "{path:?} was made by a newer why (format {found}, this one knows up to {known}); update why to read it"
    )]
    NewerFormat {
        /// The recording.
        path: PathBuf,
        /// The format version it states.
        found: u32,
        /// The latest format version that this build reads.
        known: u32,
    },
    /// Bytes on disk are not what was written; all that came before them is good.
    #[error(
        "the recording is damaged: {what} at byte {at}; copy it again from its origin, or record the program again"
    )]
    Damaged {
        /// Which part, and what is wrong with it.
        what: String,
        /// Offset in the file concerned.
        at: u64,
    },
    /// Somebody did not want to wait.
    #[error("interrupted; nothing was written")]
    Interrupted,
    /// A file that was to be unpacked was not made by `why pack`.
    #[error("{path:?} is no packed recording; `why pack` makes one")]
    NotAPack {
        /// The file.
        path: PathBuf,
    },
    /// A packed recording was made by a later version of this program.
    #[error("{path:?} was packed by a newer why; update why to unpack it")]
    NewerPack {
        /// The file.
        path: PathBuf,
    },
    /// A packed recording is not what was packed.
    #[error("the packed recording {path:?} is damaged: {what}; copy it again from its origin")]
    DamagedPack {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The recording has reached the size it was allowed.
    #[error("the recording reached its limit of {limit} bytes; allow more with `--max-size`")]
    LimitReached {
        /// The limit in bytes.
        limit: u64,
    },
    /// One event is larger than the format permits.
    #[error(
        "one event of {len} bytes exceeds the {limit} bytes that a recording can hold at once; please report this"
    )]
    EventTooLarge {
        /// Its length.
        len: u64,
        /// The greatest permitted length.
        limit: u64,
    },
    /// An earlier event was lost, so that later ones would make a wrong recording.
    #[error(
        "nothing more can be recorded since an earlier event could not be written; free some disk space and record again"
    )]
    Stopped,
    /// A new recording was to go where something else is.
    #[error("{path:?} already holds something; name a new or an empty folder")]
    FolderInUse {
        /// The folder.
        path: PathBuf,
    },
    /// A recording was removed, but its folder holds files that are not ours.
    #[error(
        "the recording in {path:?} is removed, but the folder holds other files; remove them yourself if they are not needed"
    )]
    OtherFilesLeft {
        /// The folder.
        path: PathBuf,
    },
    /// There is no room for what must be written.
    #[error(
        "no space is left to write {path:?}; free some, or choose another place with `-o DIR` or WHY_DIR"
    )]
    DiskFull {
        /// What was being written.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error(
        "cannot {doing} {path:?}: {error}; check that the file is there and that its folder is yours"
    )]
    Io {
        /// A verb: what was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the system said. Not called its source: the sentence has it already.
        error: io::Error,
    },
}

impl Error {
    /// Wraps what the system said while `doing` something to `path`.
    pub(crate) fn io(doing: &'static str, path: &Path, error: impl Into<io::Error>) -> Error {
        let error = error.into();
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::DiskFull { path },
            _ => Error::Io { doing, path, error },
        }
    }

    pub(crate) fn damaged(what: impl Into<String>, at: u64) -> Error {
        Error::Damaged { what: what.into(), at }
    }
}

mishap::mishaps! { Error {
    Error::NotARecording { .. } = Error::NotARecording { path: "DIR".into() } =>
        "The folder holds no `manifest.json`: it is something else, or a part of a recording was moved.",
        "Name the folder that `why record` named, or a number from `why list`.";
    Error::NoSuchRecording { .. } = Error::NoSuchRecording { name: "NAME".into() } =>
        "Neither a folder nor a recording in `why list` has this name; it may have been removed, or `WHY_DIR` is another one than when it was made.",
        "Look at `why list`, and at the value of `WHY_DIR`.";
    Error::NoRecordings = Error::NoRecordings =>
        "A verb was asked about the latest recording, and there is none.",
        "Make one with `why record PROG`, or name one with `-r`.";
    Error::NoProcess(_) = Error::NoProcess(1) =>
        "`-p` names a process, and the run had none of that number.",
        "Name one that `why info` lists, or leave `-p` out.";
    Error::NoHome = Error::NoHome =>
        "None of `WHY_DIR`, `XDG_DATA_HOME` and `HOME` is set, so there is no place for recordings.",
        "Set `WHY_DIR` to a folder of your own.";
    Error::NewerFormat { .. } = Error::NewerFormat { path: "DIR".into(), found: 99, known: crate::FORMAT } =>
        "The recording's manifest states a format that this version does not know.",
        "Update `why`; nothing is wrong with the recording.";
    Error::Damaged { .. } = Error::Damaged { what: "the checksum of PART does not fit".into(), at: 4096 } =>
        "Bytes on disk are not those that were written: a copy that was cut short, a bad disk, or an edit.",
        "Copy it again from its origin. What comes before the named place is good, and replays.";
    Error::Interrupted = Error::Interrupted =>
        "^C came while a recording was packed or unpacked. Nothing half-made is left.",
        "Begin again; the original is as it was.";
    Error::NotAPack { .. } = Error::NotAPack { path: "FILE".into() } =>
        "The file does not begin as those of `why pack` do.",
        "Name a file that `why pack` wrote; a folder needs no unpacking.";
    Error::NewerPack { .. } = Error::NewerPack { path: "FILE".into() } =>
        "The file was packed by a later version.",
        "Update `why`.";
    Error::DamagedPack { .. } = Error::DamagedPack { path: "FILE".into(), what: "its checksum is wrong" } =>
        "The packed file is shorter than it was, or some of its bytes have changed. Nothing was unpacked.",
        "Transfer it again, in binary mode.";
    Error::LimitReached { .. } = Error::LimitReached { limit: 1_000_000 } =>
        "The run wrote more than `--max-size` allows, over all its processes. What was recorded replays.",
        "Allow more, or record a shorter run.";
    Error::EventTooLarge { .. } = Error::EventTooLarge { len: 1 << 40, limit: crate::MAX_EVENT as u64 } =>
        "One system call moved more bytes than one event may hold.",
        "Report it; smaller reads avoid it.";
    Error::Stopped = Error::Stopped =>
        "A write to the recording failed before, and a log has no holes.",
        "Free some disk space and record again; what came before replays.";
    Error::FolderInUse { .. } = Error::FolderInUse { path: "DIR".into() } =>
        "`-o` names a folder with something in it.",
        "Name a new or an empty folder, or remove the recording in it first.";
    Error::OtherFilesLeft { .. } = Error::OtherFilesLeft { path: "DIR".into() } =>
        "Somebody put files into the recording's folder. Only ours were removed.",
        "Remove the folder yourself if nothing in it is needed.";
    Error::DiskFull { .. } = Error::DiskFull { path: "FILE".into() } =>
        "The file system or your quota is full. What was recorded before replays.",
        "Remove recordings (`why list`, `why remove NAME`), or name another place with `-o DIR` or `WHY_DIR`.";
    Error::Io { .. } = Error::Io { doing: "open", path: "FILE".into(), error: io::ErrorKind::PermissionDenied.into() } =>
        "The system refused to do something to a file of the recording.",
        "Check that the file is there, and that it and its folder are yours.";
} }

/// The result of everything here.
pub type Result<T, E = Error> = std::result::Result<T, E>;
