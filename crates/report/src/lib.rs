//! How is an answer shown to a person, or to another program?
//!
//! Every answer is first made a plain structure, with lines, names and values in
//! it and nothing left to look up; the same structure then becomes text, JSON, a
//! graph or a page.
//!
//! ```
//! let found = report::expressions("total += list[i].size * factor;");
//! let names: Vec<&str> = found.iter().map(|e| e.text.as_str()).collect();
//! assert_eq!(names, ["total", "list[i].size", "i", "factor"]);
//! assert!(found[0].assigned && !found[1].assigned);
//! ```

mod coverage;
mod deps_report;
mod deps_text;
mod expressions;
mod gather;
mod known;
mod links;
mod slice_dot;
mod slice_html;
mod slice_report;
mod slice_text;
mod story;
mod story_forms;
mod story_text;
mod story_tried;
mod style;
mod values;

pub use coverage::Coverage;
pub use deps_report::{Because, Dependence, DepsReport, How};
pub use expressions::{Expression, expressions};
pub use gather::{Gather, LinePart};
pub use links::{Link, links};
pub use slice_report::{Execution, Kind, Line, Origin, Question, SliceReport};
pub use story::{
    Critical, Edited, Failed, FailureKind, Link as StepLink, MisuseKind, Misused, Spot, Step,
    Story, Suspect, Tried,
};
pub use style::{Style, grouped};
pub use values::{Value, code, values, values_of};
