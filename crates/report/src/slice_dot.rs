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
            let mut label = vec![place.to_owned(), code.to_owned()];
            let values = line.latest.first().into_iter().flat_map(|e| &e.values);
            label.extend(values.map(|v| format!("{} = {}", v.name, v.value)));
            writeln!(out, "  n{n} [label={}];", quoted(&label.join("\n")))?;
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
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let clean: String = escaped.chars().filter(|c| !c.is_control()).collect();
    format!("\"{clean}\"")
}
