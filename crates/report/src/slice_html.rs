//! A slice as one page: source with highlighted lines, and the ways between them.

use crate::links::Link;
use crate::slice_report::SliceReport;
use position::{Error, Run};
use serde::Serialize;
use std::collections::BTreeMap;

/// The page, with a place for the data.
const PAGE: &str = include_str!("slice.html");

/// What the page shows.
#[derive(Serialize)]
struct Data<'a> {
    report: &'a SliceReport,
    links: &'a [Link],
    /// Lines of each source file.
    sources: BTreeMap<String, Vec<String>>,
}

impl SliceReport {
    /// The page, complete in itself.
    pub fn html(&self, run: &Run, links: &[Link]) -> Result<String, Error> {
        let mut sources = BTreeMap::new();
        for line in &self.lines {
            let Some(path) = &line.file else { continue };
            if !sources.contains_key(path) {
                let file = run.program.source_file(path).ok();
                let text = file.and_then(|f| run.program.source(f));
                let lines = text.map(|t| {
                    let all = (1..=t.len() as u32).filter_map(|n| t.line(n).map(str::to_owned));
                    all.collect::<Vec<String>>()
                });
                sources.insert(path.clone(), lines.unwrap_or_default());
            }
        }
        let data = Data { report: self, links, sources };
        let json = serde_json::to_string(&data).unwrap_or_default();
        // Nothing in the data may end the script it stands in.
        let json = json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028");
        Ok(PAGE.replace("/*DATA*/null", &json))
    }
}
