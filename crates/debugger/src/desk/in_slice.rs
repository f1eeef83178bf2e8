//! Breakpoints in a slice: most addresses are never come to.

use super::Desk;
use std::collections::BTreeSet;

impl Desk {
    /// Breakpoints where the slice comes by.
    pub(super) fn breaks_in_slice(&mut self, asked: &BTreeSet<u64>) -> BTreeSet<u64> {
        asked.iter().map(|at| self.nearest_point(*at).unwrap_or(*at)).collect()
    }

    /// The address itself if it is in the slice, else the next one of its function that is;
    /// `None` if the function has none.
    fn nearest_point(&mut self, address: u64) -> Option<u64> {
        if self.points.is_empty() || self.points.binary_search(&address).is_ok() {
            return Some(address);
        }
        let function = self.program().ok()?.function(address)?;
        let from = |first: u64| {
            let n = self.points.partition_point(|point| *point < first);
            self.points.get(n).copied().filter(|point| *point < function.end)
        };
        from(address).or_else(|| from(function.start))
    }

    /// Is one of these addresses in the slice?
    pub(super) fn is_in_slice(&self, address: u64) -> bool {
        self.points.is_empty() || self.points.binary_search(&address).is_ok()
    }

    /// The breakpoint for which we stop at another address, in words.
    pub(super) fn moved_break(&mut self, pc: u64) -> Option<String> {
        if !self.is_slice {
            return None;
        }
        let asked = self.wanted.stops.breaks.clone();
        let moved = asked.into_iter().find(|at| self.nearest_point(*at) == Some(pc))?;
        let name = self.name_of(moved);
        Some(format!(
            "breakpoint at {moved:#x}{name}, which is not in the slice; \
             this is the next that is"
        ))
    }

    /// Breakpoints of the program that the slice never comes near, in words.
    pub(super) fn missed_breaks(&mut self) -> String {
        let mut text = String::new();
        for at in self.wanted.stops.breaks.clone() {
            let has_source = self.program().is_ok_and(|program| program.line(at).is_some());
            if has_source && self.nearest_point(at).is_none() {
                let name = self.name_of(at);
                text += &format!(
                    "\nthe breakpoint at {at:#x}{name} was not met: nothing of that \
                     function is in the slice"
                );
            }
        }
        text
    }

    fn name_of(&mut self, address: u64) -> String {
        let function = self.program().ok().and_then(|program| program.function(address));
        function.map_or(String::new(), |function| format!(" in {}", function.name))
    }
}
