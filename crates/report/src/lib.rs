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

mod expressions;
mod gather;
mod slice_report;
mod slice_text;
mod style;
mod values;

pub use expressions::{Expression, expressions};
pub use gather::{Gather, LinePart};
pub use slice_report::{Kind, Line, Origin, SliceReport};
pub use style::Style;
pub use values::{Value, values};
