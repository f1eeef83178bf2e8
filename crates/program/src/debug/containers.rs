//! Which structures of libraries keep their elements in nodes or in a table, and where?

use super::located::Located;
use super::location::number;
use super::program::Program;
use super::state::State;
use super::types::{Kind, Type};
use super::unit::Language;

/// How deep a tree may be. Only damaged ones are deeper.
const DEEPEST: usize = 128;
/// How many places of a table are looked at.
const MOST_PLACES: u64 = 1 << 16;

/// A map, a set or a list: its first elements.
#[derive(Debug, Clone)]
pub(super) struct Container {
    pub(super) elements: Vec<Located>,
    /// Whether each is a key and a value.
    pub(super) has_keys: bool,
    /// How many there are.
    pub(super) len: u64,
}

impl Program {
    /// The container that a value is, if it is one of a well-known library type, with at
    /// most so many elements.
    pub(super) fn container(
        &self,
        value: &Located,
        state: &dyn State,
        most: u64,
    ) -> Option<Container> {
        let name = self.type_name(&self.without_names(&value.ty));
        let (base, _) = name.split_once('<')?;
        match (self.language_of(&value.ty), base) {
            (Language::Cpp, "map" | "multimap") => self.tree(value, true, state, most),
            (Language::Cpp, "set" | "multiset") => self.tree(value, false, state, most),
            (Language::Cpp, "unordered_map" | "unordered_multimap") => {
                self.chain(value, true, state, most)
            }
            (Language::Cpp, "unordered_set" | "unordered_multiset") => {
                self.chain(value, false, state, most)
            }
            (Language::Cpp, "list") => self.list(value, state, most),
            (Language::Cpp, "deque") => self.deque(value, state, most),
            (Language::Rust, "HashMap") => self.table(value, &["base", "table"], state, most),
            (Language::Rust, "HashSet") => {
                let path = ["base", "map", "table"];
                let pairs = self.table(value, &path, state, most)?;
                let keys = pairs.elements.iter().map(|e| self.member_named(e, "__0", state).ok());
                Some(Container { elements: keys.collect::<Option<_>>()?, has_keys: false, ..pairs })
            }
            _ => None,
        }
    }

    /// The key and the value of an element that has both.
    pub(super) fn entry_of(
        &self,
        element: &Located,
        state: &dyn State,
    ) -> Option<(Located, Located)> {
        let part = |name| self.member_named(element, name, state).ok();
        Some((part("first").or_else(|| part("__0"))?, part("second").or_else(|| part("__1"))?))
    }

    /// The red-black tree of GNU's maps: a node has its colour, its parent, what is left
    /// and right of it, and its element.
    fn tree(
        &self,
        value: &Located,
        has_keys: bool,
        state: &dyn State,
        most: u64,
    ) -> Option<Container> {
        let tree = self.member_named(value, "_M_t", state).ok()?;
        let element = self.parameter_of(&tree, "_Val")?;
        let header = self.member_path(&tree, &["_M_impl", "_M_header"], state)?.address()?;
        let implementation = self.member_named(&tree, "_M_impl", state).ok()?;
        let len = self.number_in(&implementation, "_M_node_count", state)?;
        let first = word(state, header.wrapping_add(LEFT))?;
        let next = |node| next_in_tree(state, node);
        let nodes = Nodes { first, behind: header, head: TREE_HEAD, count: len.min(most) };
        let elements = self.nodes(&element, &nodes, next)?;
        Some(Container { elements, has_keys, len })
    }

    /// GNU's hash tables: one chain of all nodes, each with the next and its element.
    fn chain(
        &self,
        value: &Located,
        has_keys: bool,
        state: &dyn State,
        most: u64,
    ) -> Option<Container> {
        let table = self.member_named(value, "_M_h", state).ok()?;
        let element = self.parameter_of(&table, "_Value")?;
        let len = self.number_in(&table, "_M_element_count", state)?;
        let first = self.member_path(&table, &["_M_before_begin", "_M_nxt"], state)?;
        let first = number(&first.bytes(state).ok()?);
        let next = |node| word(state, node);
        let nodes = Nodes { first, behind: 0, head: CHAIN_HEAD, count: len.min(most) };
        let elements = self.nodes(&element, &nodes, next)?;
        Some(Container { elements, has_keys, len })
    }

    /// GNU's lists: a ring of nodes, of which the list itself is one.
    fn list(&self, value: &Located, state: &dyn State, most: u64) -> Option<Container> {
        let element = self.parameter_of(value, "_Tp")?;
        let ring = self.member_path(value, &["_M_impl", "_M_node"], state)?;
        let len = self.number_in(&ring, "_M_size", state)?;
        let behind = ring.address()?;
        let first = word(state, behind)?;
        let next = |node| word(state, node);
        let nodes = Nodes { first, behind, head: LIST_HEAD, count: len.min(most) };
        let elements = self.nodes(&element, &nodes, next)?;
        Some(Container { elements, has_keys: false, len })
    }

    /// GNU's deques: a table of blocks, of which the first and the last are partly used.
    fn deque(&self, value: &Located, state: &dyn State, most: u64) -> Option<Container> {
        const BLOCK: u64 = 512;
        let element = self.parameter_of(value, "_Tp")?;
        let size = self.size_of(&element).filter(|size| *size > 0)?;
        let in_block = (BLOCK / size).max(1);
        let implementation = self.member_named(value, "_M_impl", state).ok()?;
        let at = |end: &str, what: &str| -> Option<u64> {
            let end = self.member_named(&implementation, end, state).ok()?;
            self.number_in(&end, what, state)
        };
        let skipped = at("_M_start", "_M_cur")?.checked_sub(at("_M_start", "_M_first")?)? / size;
        let used = at("_M_finish", "_M_cur")?.checked_sub(at("_M_finish", "_M_first")?)? / size;
        let first = at("_M_start", "_M_node")?;
        let blocks = at("_M_finish", "_M_node")?.checked_sub(first)? / 8;
        let len = (blocks.checked_mul(in_block)?.checked_add(used)?).checked_sub(skipped)?;
        let place = |n: u64| {
            let block = word(state, first.wrapping_add((skipped + n) / in_block * 8))?;
            Some(block.wrapping_add((skipped + n) % in_block * size))
        };
        let located = |n| Some(Located::in_memory(place(n)?, size, element.clone()));
        let elements = (0..len.min(most)).map(located).collect::<Option<_>>()?;
        Some(Container { elements, has_keys: false, len })
    }

    /// Rust's hash tables: bytes that say which places are taken, and before them the
    /// elements, backwards.
    fn table(
        &self,
        value: &Located,
        path: &[&str],
        state: &dyn State,
        most: u64,
    ) -> Option<Container> {
        const FREE: u8 = 0x80;
        let table = self.member_path(value, path, state)?;
        let element = self.parameter_of(&table, "T")?;
        let size = self.size_of(&element)?;
        let inner = self.member_named(&table, "table", state).ok()?;
        let control = self.member_named(&inner, "ctrl", state).ok()?;
        let control = number(&self.inner_pointer(&control, 0)?.bytes(state).ok()?);
        let places = self.number_in(&inner, "bucket_mask", state)?.checked_add(1)?;
        let len = self.number_in(&inner, "items", state)?;
        let marks = match len {
            0 => Vec::new(),
            _ => state.memory(control, places.min(MOST_PLACES) as usize)?,
        };
        let taken = marks.iter().enumerate().filter(|(_, mark)| **mark & FREE == 0);
        let place = |(n, _): (usize, &u8)| control.wrapping_sub((n as u64 + 1).wrapping_mul(size));
        let located = |address| Located::in_memory(address, size, element.clone());
        let elements = taken.map(place).map(located).take(most as usize).collect();
        Some(Container { elements, has_keys: true, len })
    }

    /// The elements of nodes. None if they are fewer than there should be: the container is
    /// damaged, or not made yet.
    fn nodes(
        &self,
        element: &Type,
        nodes: &Nodes,
        next: impl Fn(u64) -> Option<u64>,
    ) -> Option<Vec<Located>> {
        let size = self.size_of(element)?;
        let offset = nodes.head.checked_next_multiple_of(self.align_of(element)?)?;
        let (mut node, mut found) = (nodes.first, Vec::new());
        for n in 0..nodes.count {
            if n > 0 {
                node = next(node)?;
            }
            if node == 0 || node == nodes.behind {
                return None;
            }
            found.push(Located::in_memory(node.wrapping_add(offset), size, element.clone()));
        }
        Some(found)
    }

    fn parameter_of(&self, value: &Located, name: &str) -> Option<Type> {
        let Kind::Composite(id) = self.kind(&value.ty) else { return None };
        self.type_parameter(id, name)
    }
}

/// Where the nodes of GNU's library have what.
const PARENT: u64 = 8;
const LEFT: u64 = 16;
const RIGHT: u64 = 24;

/// How long their heads are, behind which elements lie.
const TREE_HEAD: u64 = 32;
const CHAIN_HEAD: u64 = 8;
const LIST_HEAD: u64 = 16;

/// Some nodes, one after the other.
struct Nodes {
    first: u64,
    /// What comes behind the last.
    behind: u64,
    head: u64,
    count: u64,
}

/// The node behind a node, by order.
fn next_in_tree(state: &dyn State, node: u64) -> Option<u64> {
    let right = word(state, node.wrapping_add(RIGHT))?;
    let mut at = if right != 0 { right } else { node };
    for _ in 0..DEEPEST {
        if right != 0 {
            match word(state, at.wrapping_add(LEFT))? {
                0 => return Some(at),
                left => at = left,
            }
        } else {
            let parent = word(state, at.wrapping_add(PARENT))?;
            if word(state, parent.wrapping_add(RIGHT))? != at {
                return Some(parent);
            }
            at = parent;
        }
    }
    None
}

fn word(state: &dyn State, address: u64) -> Option<u64> {
    Some(number(&state.memory(address, 8)?))
}
