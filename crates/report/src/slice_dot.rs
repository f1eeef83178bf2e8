//! A slice as a graph for Graphviz.

use crate::links::Link;
use crate::slice_report::SliceReport;
use std::io::{self, Write};

impl SliceReport {
    /// Writes lines as nodes and dependences as edges, from cause to effect.
    pub fn write_dot(&self, links: &[Link], out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "digraph slice {{")?;
        writeln!(
            out,
            "  label={};",
            quoted(&format!("{:?} slice of {}", self.kind, self.criterion))
        )?;
        writeln!(out, "  node [shape=box, fontname=monospace];")?;
        for (n, line) in self.lines.iter().enumerate() {
            let place = line.latest.first().map_or("", |e| e.position.as_str());
            let code = line.code.as_deref().unwrap_or("").trim();
            let mut label = format!("{place}\\n{code}");
            for value in line.latest.first().iter().flat_map(|e| &e.values) {
                label += &format!("\\n{} = {}", value.name, value.value);
            }
            writeln!(out, "  n{n} [label={}];", quoted(&label))?;
        }
        for link in links {
            let style = if link.control { " [style=dashed]" } else { "" };
            writeln!(out, "  n{} -> n{}{style};", link.source, link.user)?;
        }
        writeln!(out, "}}")
    }
}

/// Text in quotes; line breaks stay.
fn quoted(text: &str) -> String {
    let escaped = text.replace('"', "\\\"").replace('\n', " ");
    let clean: String = escaped.chars().filter(|c| !c.is_control()).collect();
    format!("\"{clean}\"")
}
