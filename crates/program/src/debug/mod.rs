//! What do symbols and debug information say about an address, a line, a
//! variable?
//!
//! A [`Program`] is made of the files that a run mapped. Nothing is executed: the
//! registers and the memory of an instant come from a [`State`], which is
//! whatever the caller has, such as a replay or a core file. Files are read
//! lazily, and damage in them only hides what it damaged.
//!
//! ```
//! use program::debug::{MappedFile, Program, from_disk};
//!
//! let path = std::env::current_exe()?;
//! let data = std::sync::Arc::new(std::fs::read(&path)?);
//! let program = Program::new(vec![MappedFile { path, data, bias: 0 }], from_disk());
//!
//! let main = &program.functions_named("main")[0];
//! assert!(program.is_entry(main.start));
//! for frame in program.lines(main.start) {
//!     println!("{:?} at {:?}", frame.function, frame.line);
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! How it fits together: [`Image`] is one file; symbols, stubs and call frame
//! information are read from it, and its DWARF, wherever that is. Lines and
//! functions are kept per unit. A [`Variable`] becomes a [`Located`] value, whose
//! [`Piece`]s are places that a slice can begin with; an expression does too. A
//! located value becomes text.

mod cfi;
mod containers;
mod demangle;
mod dwarf;
mod error;
mod evaluate;
mod files;
mod function;
mod functions;
mod globals;
mod image;
mod lines;
mod located;
mod location;
mod members;
mod noreturn;
mod own;
mod parse;
mod plt;
mod print;
mod print_composite;
mod program;
mod scalars;
mod sequences;
mod similar;
mod source_lines;
mod state;
mod symbols;
mod type_names;
mod types;
mod unit;
mod unwind;
mod variables;
mod wrappers;

pub use dwarf::{DebugStatus, Loader, from_disk};
pub use error::Error;
pub use evaluate::NumberKind;
pub use files::{FileId, Source};
pub use function::Function;
pub use image::{FileData, Image, MappedFile};
pub use lines::LineRange;
pub use located::{BitField, Gone, Located, Piece};
pub use print::{Limits, Shown};
pub use program::Program;
pub use source_lines::{Frame, SourceLine};
pub use state::{Register, State};
pub use types::Type;
pub use unit::Language;
pub use unwind::{CallFrame, FrameState, Registers};
pub use variables::{Variable, VariableKind};
