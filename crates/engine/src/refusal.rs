//! What is refused by name: programs before they start, and runs whose replay would be
//! wrong.

/// Why a run was stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A call that is refused in the table of system calls.
    #[error("the program uses {0}, which cannot be replayed")]
    Call(&'static str),
    /// An instruction that is not known.
    #[error("the instruction `{text}` at {at:#x} cannot be translated")]
    Instruction {
        /// How it is written.
        text: String,
        /// Its address.
        at: u64,
    },
    /// A process forked after it gave up privileges, and the child could not do the same.
    #[error("cannot take over the rights of a process that forked")]
    Rights,
    /// A file is mapped shared that a process which is not recorded can change.
    #[error("the program maps {path:?} shared, and so does process {pid}, which is not recorded")]
    SharedOutside {
        /// The file.
        path: String,
        /// The other process.
        pid: i32,
    },
}

mishap::mishaps! { Refusal {
    Refusal::Call(_) = Refusal::Call("ptrace") =>
        "The kernel would change memory or registers in ways that no log holds.",
        "Record the program that is debugged, without its debugger. What came before is recorded.";
    Refusal::Instruction { .. } = Refusal::Instruction { text: "INSTRUCTION".into(), at: 0x40_1000 } =>
        "The program uses an instruction of the kernel's own, or one that no processor of the shown kind has.",
        "Build it for x86-64-v3, or record with `--cpu host`; report it if the instruction is a usual one.";
    Refusal::Rights = Refusal::Rights =>
        "The kernel refused credentials to a child that its parent has.",
        "Record it as an ordinary user.";
    Refusal::SharedOutside { .. } = Refusal::SharedOutside { path: "FILE".into(), pid: 1234 } =>
        "What the other process stores there is in no log, so a replay could not show it.",
        "Start both from one command that is recorded, such as a shell script, or end the other first.";
} }

/// Why a file cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum NotExecutable {
    /// A folder, a device.
    #[error("it is not a regular file")]
    NotAFile,
    /// The mode says no.
    #[error("it has no execute permission")]
    NoPermission,
    /// It would run with other rights.
    #[error("it is setuid or setgid, which cannot be recorded")]
    SetId,
    /// Scripts that name scripts.
    #[error("its #! lines nest too deep")]
    TooDeep,
    /// A script without an interpreter.
    #[error("its #! line names no interpreter")]
    NoInterpreter,
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(std::io::Error),
}

mishap::mishaps! { NotExecutable {
    NotExecutable::NotAFile = NotExecutable::NotAFile =>
        "The path names a folder or a device.",
        "Name a program.";
    NotExecutable::NoPermission = NotExecutable::NoPermission =>
        "The file's mode does not let anybody execute it.",
        "`chmod +x` it, or record its interpreter: `why record -- sh ./script`.";
    NotExecutable::SetId = NotExecutable::SetId =>
        "The kernel gives such a program no privileges under a recorder.",
        "Copy it without the bit, or run it as the user it wants to be.";
    NotExecutable::TooDeep = NotExecutable::TooDeep =>
        "A script's interpreter is a script, whose interpreter is one, and so on.",
        "Record the interpreter itself.";
    NotExecutable::NoInterpreter = NotExecutable::NoInterpreter =>
        "Nothing stands behind `#!`.",
        "Write the interpreter's path there.";
    NotExecutable::Unreadable(_) = NotExecutable::Unreadable(std::io::ErrorKind::PermissionDenied.into()) =>
        "The engine reads programs, and this file or its folder may not be read.",
        "Make it readable, or record a copy.";
} }
