//! Tables in the pages of docs/ that a command measured.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::workspace;

/// Puts a table between its marks in a page of docs/.
pub fn put(page: &str, name: &str, table: &str) -> Result<()> {
    let (path, text) = read(page)?;
    let (before, _, after) = split(&text, name)?;
    std::fs::write(&path, format!("{before}{table}{after}")).context("cannot write the page")
}

/// What is between the marks of a table.
pub fn get(page: &str, name: &str) -> Result<String> {
    let (_, text) = read(page)?;
    Ok(split(&text, name)?.1.to_owned())
}

fn read(page: &str) -> Result<(PathBuf, String)> {
    let path = workspace::root().join("docs").join(page);
    let text = std::fs::read_to_string(&path).context("cannot read the page")?;
    Ok((path, text))
}

/// Up to the table with its first mark, the table, and the rest with its last mark.
fn split<'a>(page: &'a str, name: &str) -> Result<(&'a str, &'a str, &'a str)> {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let first = page.find(&begin).with_context(|| format!("no {begin} in it"))? + begin.len();
    let len = page[first..].find(&end).with_context(|| format!("no {end} in it"))?;
    Ok((&page[..first], &page[first..first + len], &page[first + len..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_between_its_marks() {
        let page = "text\n<!-- a -->\n| 1 |\n<!-- end of a -->\nmore\n";
        let wanted = ("text\n<!-- a -->\n", "| 1 |\n", "<!-- end of a -->\nmore\n");
        assert_eq!(split(page, "a").unwrap(), wanted);
        assert!(split(page, "b").is_err());
    }
}
