//! What do symbols and debug information say about an address, a line, a
//! variable?

mod cfi;
mod demangle;
mod dwarf;
mod error;
mod files;
mod globals;
mod located;
mod function;
mod functions;
mod image;
mod lines;
mod location;
mod noreturn;
mod own;
mod plt;
mod program;
mod source_lines;
mod state;
mod symbols;
mod types;
mod unit;
mod unwind;
mod variables;

pub use dwarf::{DebugStatus, Loader, from_disk};
pub use error::Error;
pub use files::{FileId, Source};
pub use function::Function;
pub use image::{FileData, Image, MappedFile};
pub use lines::LineRange;
pub use located::{BitField, Gone, Located, Piece};
pub use program::Program;
pub use source_lines::{Frame, SourceLine};
pub use state::{Register, State};
pub use types::Type;
pub use unit::Language;
pub use unwind::{CallFrame, FrameState, Registers};
pub use variables::{Variable, VariableKind};
