//! Tables in the pages of docs/ that a command measured.

use anyhow::{Context, Result};

use crate::workspace;

/// Puts a table between its marks in a page of docs/.
pub fn put(page: &str, name: &str, table: &str) -> Result<()> {
    let path = workspace::root().join("docs").join(page);
    let page = std::fs::read_to_string(&path).context("cannot read the page")?;
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let (before, rest) = page.split_once(&begin).with_context(|| format!("no {begin} in it"))?;
    let (_, after) = rest.split_once(&end).with_context(|| format!("no {end} in it"))?;
    std::fs::write(&path, format!("{before}{begin}{table}{end}{after}"))
        .context("cannot write the page")
}
