//! Where is the fault?
//!
//! The first locator is predicate switching: among the branches that the failing run
//! executed, [`Search`] looks for those whose other outcome makes it succeed.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use locate::{Failure, Order, Ordered, Options, Search, predicates};
//! let recording = recording::Recording::open(std::path::Path::new("/tmp/rec"))?;
//! let mut laboratory = whatif::Laboratory::open(&recording)?;
//! let oracle = whatif::Oracle { stdout: Some(b"3\n".to_vec()), ..Default::default() };
//! let run = position::Run::open(recording, &mut |_| ())?;
//! let failure = Failure::of(&run, &oracle, laboratory.original())?;
//! let all = predicates(&run, failure.until, false);
//! let slicer = slice::Slicer::new(&run.trace);
//! let dependences = slice::Options::default();
//! let ordered = Ordered::new(&slicer, &dependences, &all, Order::Prior, &failure, None);
//! let mut search = Search::new(&all, &ordered, &failure, oracle, Options::default());
//! search.run(&mut laboratory, &mut |_| true)?;
//! println!("{} found", search.found().len());
//! # Ok(())
//! # }
//! ```

mod chop;
mod edited;
mod edits;
mod failure;
mod omitted;
mod opcode;
mod order;
mod pairs;
mod predicates;
mod said;
mod search;
mod wrong_files;

pub use chop::{Around, Side, Statement};
pub use edited::{Edited, try_edits};
pub use edits::{Edit, Kind, edits};
pub use failure::{Criterion, Error, Failure, Other, before, shown_at};
pub use omitted::{Omitted, Potential, Reach, omitted};
pub use order::{Order, Ordered, Used};
pub use pairs::Pair;
pub use predicates::{Predicate, predicates};
pub use search::{Decide, Found, Judge, Options, Progress, Search};
