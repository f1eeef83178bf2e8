//! The pages of `docs/` that only the code can write: what goes wrong, and what is
//! refused.

mod errors;
mod limits;

use std::path::Path;

/// Writes the pages.
pub fn write(folder: &Path) -> std::io::Result<()> {
    std::fs::write(folder.join("errors.md"), errors::page())?;
    std::fs::write(folder.join("limits.md"), limits::page())
}

/// A text as one cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
