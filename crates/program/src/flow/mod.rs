//! Where can control go, and where do the ways out of a branch meet again?
//!
//! Code is discovered from function entries along direct branches, completed with
//! the targets that indirect jumps were seen to take, and cut into functions. A
//! branch's *join* is its immediate post-dominator: the nearest block that every
//! way from the branch to the function's end passes. What runs between a branch
//! and its join runs because of the branch.
//!
//! ```
//! use program::flow::{Code, Flow};
//! struct Bytes(&'static [u8]);
//! impl Code for Bytes {
//!     fn bytes(&self, address: u64) -> &[u8] {
//!         address.checked_sub(0x1000).and_then(|at| self.0.get(at as usize..)).unwrap_or(&[])
//!     }
//! }
//! // test edi,edi; je +2; mov bl,1; ret
//! let code = Bytes(&[0x85, 0xff, 0x74, 0x02, 0xb3, 0x01, 0xc3]);
//! let flow = Flow::discover(&code, &[0x1000], &[]);
//! assert_eq!(flow.join(0x1002), Some(Some(0x1006)));
//! ```

mod covered;
mod function;
mod joins;
mod places;
mod ways;

use covered::Covered;
use function::Function;
use iced_x86::Instruction;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The code of a program, and what is known of it. Functions are looked at side by side.
pub trait Code: Sync {
    /// Bytes at an address and behind it; empty where there is no code.
    fn bytes(&self, address: u64) -> &[u8];
    /// Targets that the indirect jump at this address was seen to take.
    fn seen_targets(&self, _jump: u64) -> &[u64] {
        &[]
    }
    /// Does a call at this address never come back?
    fn never_returns(&self, _call: &Instruction) -> bool {
        false
    }
    /// Does a function begin here, by other knowledge than that it was called?
    fn boundary(&self, _address: u64) -> Boundary {
        Boundary::None
    }
    /// Code from an address on that belongs to it, by other knowledge, and in which nothing else
    /// begins. So much need not be asked about address by address.
    fn undivided(&self, address: u64) -> Range<u64> {
        address..address
    }
    /// The function that code belongs to by other knowledge, where it was not
    /// reached from any entry.
    fn owner(&self, _address: u64) -> Option<u64> {
        None
    }
}

/// How an address is known to be a function's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// It is not.
    None,
    /// Something begins here, a function or a part that was moved away from one.
    Part,
    /// A function begins here.
    Function,
}

/// The control flow of a program.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// Per branch with more than one way on: where they meet; `None` if only at
    /// the function's end.
    joins: FxHashMap<u64, Option<u64>>,
    /// Where code of one function begins, in order, and the entry of that.
    functions: Vec<(u64, u64)>,
    entries: FxHashSet<u64>,
    /// Every instruction met.
    covered: Covered,
}

impl Flow {
    /// Discovers what is reachable from `entries`, then from `others`: code that
    /// was seen to run but that no entry reaches (landing pads, targets of
    /// `longjmp`).
    pub fn discover(code: &dyn Code, entries: &[u64], others: &[u64]) -> Flow {
        let mut flow = Flow { entries: entries.iter().copied().collect(), ..Flow::default() };
        // Few entries lie within what another has reached: it pays to look at all of them.
        let found =
            side_by_side(entries, |entry| Function::find(code, &flow.entries, *entry, &[*entry]));
        flow.joins.reserve(found.iter().map(|function| function.joins.len()).sum());
        for function in found {
            if !flow.covered.contains(function.entry) {
                flow.add(function);
            }
        }
        let mut left: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        // Where calls return to is inside, though no block begins there.
        for &other in others.iter().filter(|other| !flow.covered.contains(**other)) {
            left.entry(code.owner(other).unwrap_or(other)).or_default().push(other);
        }
        let rest = |(owner, roots)| Rest { owner, roots };
        let left: Vec<Rest> = left.into_iter().map(rest).collect();
        // What is known to have different owners hardly ever reaches into another's. Where no owner
        // is known, each may reach all others.
        let found = side_by_side(&left, |rest| {
            code.owner(rest.owner).is_some().then(|| rest.find(code, &flow.entries))
        });
        for (rest, found) in left.into_iter().zip(found) {
            let still_left = rest.without(&flow.covered);
            if still_left.roots.is_empty() {
                continue;
            }
            let found = found.filter(|_| still_left.roots == rest.roots);
            flow.add(found.unwrap_or_else(|| still_left.find(code, &flow.entries)));
        }
        // Code that several functions share is the first one's: the sort is stable.
        flow.functions.sort_by_key(|(start, _)| *start);
        flow.functions.dedup_by_key(|(start, _)| *start);
        flow.functions.dedup_by_key(|(_, function)| *function);
        flow
    }

    /// Where the ways out of the branch at this address meet. `None` if it is not a
    /// branch with several; `Some(None)` if they meet only at the function's end.
    pub fn join(&self, branch: u64) -> Option<Option<u64>> {
        self.joins.get(&branch).copied()
    }

    /// Does a function begin here?
    pub fn is_entry(&self, address: u64) -> bool {
        self.entries.contains(&address)
    }

    /// Entry of the function that code belongs to.
    pub fn function_of(&self, address: u64) -> Option<u64> {
        let behind = self.functions.partition_point(|(start, _)| *start <= address);
        self.functions[..behind].last().map(|(_, function)| *function)
    }

    fn add(&mut self, function: Function) {
        self.covered.add(&function.covered);
        self.functions.extend(function.starts.iter().map(|start| (*start, function.entry)));
        for (branch, join) in function.joins {
            self.joins.entry(branch).or_insert(join);
        }
    }
}

/// Code that ran and that no entry reaches, of one owner.
struct Rest {
    owner: u64,
    roots: Vec<u64>,
}

impl Rest {
    fn find(&self, code: &dyn Code, entries: &FxHashSet<u64>) -> Function {
        let roots: Vec<u64> = self.roots.iter().copied().chain([self.owner]).collect();
        Function::find(code, entries, self.owner, &roots)
    }

    /// Without what has been reached meanwhile.
    fn without(&self, covered: &Covered) -> Rest {
        let left = self.roots.iter().filter(|root| !covered.contains(**root));
        Rest { owner: self.owner, roots: left.copied().collect() }
    }
}

/// So many are taken at once: one takes a hundredth of a millisecond or a hundred times as long.
const SHARE: usize = 16;

/// Does the same to all, on all processors, and returns the results in order. The threads
/// are gone when it returns: whoever traces next must be alone.
fn side_by_side<T: Sync, R: Send>(all: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let shares: Vec<&[T]> = all.chunks(SHARE).collect();
    let next = AtomicUsize::new(0);
    let some = || {
        let mine = std::iter::from_fn(|| {
            let n = next.fetch_add(1, Ordering::Relaxed);
            Some((n, shares.get(n)?.iter().map(&work).collect()))
        });
        mine.collect::<Vec<(usize, Vec<R>)>>()
    };
    let others = std::thread::available_parallelism().map_or(1, |n| n.get()) - 1;
    let mut done = std::thread::scope(|scope| {
        // Where no thread can be had, this one does the work.
        let begin = |_| std::thread::Builder::new().spawn_scoped(scope, some).ok();
        let begun: Vec<_> = (0..others).filter_map(begin).collect();
        let mut done = some();
        let theirs = begun.into_iter().flat_map(|thread| thread.join().expect("nobody panics"));
        done.extend(theirs);
        done
    });
    done.sort_unstable_by_key(|(n, _)| *n);
    done.into_iter().flat_map(|(_, results)| results).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    struct Bytes(Vec<u8>, HashMap<u64, Vec<u64>>);

    impl Code for Bytes {
        fn bytes(&self, address: u64) -> &[u8] {
            address.checked_sub(0x1000).and_then(|at| self.0.get(at as usize..)).unwrap_or(&[])
        }
        fn seen_targets(&self, jump: u64) -> &[u64] {
            self.1.get(&jump).map_or(&[], |v| v)
        }
    }

    fn flow(bytes: &[u8]) -> Flow {
        Flow::discover(&Bytes(bytes.to_vec(), HashMap::new()), &[0x1000], &[])
    }

    #[test]
    fn both_arms_of_an_if_meet_behind_it() {
        // test edi,edi; je 1008; mov bl,1; jmp 100a; mov bl,2; ret
        let f = flow(&[0x85, 0xff, 0x74, 0x04, 0xb3, 1, 0xeb, 2, 0xb3, 2, 0xc3]);
        assert_eq!(f.join(0x1002), Some(Some(0x100a)));
        assert_eq!(f.function_of(0x1008), Some(0x1000));
    }

    #[test]
    fn an_early_return_leaves_only_the_end_as_join() {
        // test edi,edi; je 1005; ret; mov bl,2; ret
        let f = flow(&[0x85, 0xff, 0x74, 0x01, 0xc3, 0xb3, 2, 0xc3]);
        assert_eq!(f.join(0x1002), Some(None));
    }

    #[test]
    fn the_join_of_a_loop_is_what_follows_it() {
        // dec edi; jne 1000; ret
        let f = flow(&[0xff, 0xcf, 0x75, 0xfc, 0xc3]);
        assert_eq!(f.join(0x1002), Some(Some(0x1004)));
    }

    #[test]
    fn what_follows_a_loop_joins_it_though_it_runs_into_no_code() {
        // dec edi; jne 1000; nop
        let f = flow(&[0xff, 0xcf, 0x75, 0xfc, 0x90]);
        assert_eq!(f.join(0x1002), Some(Some(0x1004)));
    }

    #[test]
    fn an_endless_loop_has_joins_too() {
        // test edi,edi; je 1006; mov bl,1; jmp 1000
        let f = flow(&[0x85, 0xff, 0x74, 0x02, 0xb3, 1, 0xeb, 0xf8]);
        assert_eq!(f.join(0x1002), Some(Some(0x1006)));
    }

    /// F-001-36
    #[test]
    fn the_cases_of_a_switch_are_known_once_they_were_seen() {
        // jmp rax; 1002: mov bl,1; jmp 1008; 1006: mov bl,2; 1008: ret
        let bytes = [0xff, 0xe0, 0xb3, 1, 0xeb, 2, 0xb3, 2, 0xc3];
        assert_eq!(flow(&bytes).join(0x1000), None);
        let seen = HashMap::from([(0x1000, vec![0x1002, 0x1006])]);
        let f = Flow::discover(&Bytes(bytes.to_vec(), seen), &[0x1000], &[]);
        assert_eq!(f.join(0x1000), Some(Some(0x1008)));
    }
}
