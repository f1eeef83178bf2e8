//! The nearest way from every instance of a slice back to the criterion.

use crate::follow::{Follow, Used};
use crate::wanted::Distance;
use std::collections::HashMap;
use trace::{Instance, InstructionId};

/// Number of a node; the criterion itself has none.
pub type NodeId = u32;
const CRITERION: NodeId = u32::MAX;

/// More than this is not remembered.
const MOST: usize = 20_000_000;

/// An instance of the slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The instance.
    pub at: Instance,
    /// Groups, such as lines, between it and the criterion.
    pub groups: Distance,
    /// Dependences between it and the criterion.
    pub distance: Distance,
    /// The next one on the way to the criterion.
    pub towards: Option<NodeId>,
}

/// What an instance belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its number.
    pub number: u32,
    /// Is it there for another, as a library's code is for the line that called it?
    /// From one such to another is a long way.
    pub inner: bool,
}

/// So many groups lie between two that meet only inside of others.
const APART: Distance = 4;

/// What a wanted thing carries: how far it is, and who wants it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Way {
    groups: Distance,
    distance: Distance,
    node: NodeId,
    group: u32,
    inner: bool,
}

impl Default for Way {
    fn default() -> Self {
        Way { groups: 0, distance: 0, node: CRITERION, group: u32::MAX, inner: false }
    }
}

/// A slice with the nearest way to each of its instances. Instances belong to
/// groups, such as source lines; few groups count as near.
pub struct Tree<'a> {
    group: &'a dyn Fn(Instance, InstructionId) -> Option<Group>,
    nodes: Vec<Node>,
    /// The nearest node of each group.
    nearest: HashMap<u32, NodeId>,
    /// The instance that was included last, and how what it uses is marked.
    last: Option<(Instance, Way)>,
    complete: bool,
}

impl<'a> Tree<'a> {
    /// Begins with nothing. Instances without a group cost nothing to pass.
    pub fn new(group: &'a dyn Fn(Instance, InstructionId) -> Option<Group>) -> Tree<'a> {
        Tree { group, nodes: Vec::new(), nearest: HashMap::new(), last: None, complete: true }
    }

    /// Was everything followed and remembered?
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// All instances of the slice.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Groups in the slice, with the nearest node of each.
    pub fn groups(&self) -> impl Iterator<Item = (u32, &Node)> {
        self.nearest.iter().map(|(group, node)| (*group, &self.nodes[*node as usize]))
    }

    /// The way from the nearest instance of a group to the criterion, that instance first.
    pub fn way_from_group(&self, group: u32) -> Vec<Node> {
        let mut next = self.nearest.get(&group).copied();
        let mut way = Vec::new();
        while let Some(id) = next {
            let node = self.nodes[id as usize];
            way.push(node);
            next = node.towards;
        }
        way
    }

    fn add(&mut self, at: Instance, id: InstructionId, way: Way) -> Way {
        let group = (self.group)(at, id);
        let further = match group {
            Some(g) if g.number == way.group => 0,
            Some(g) if g.inner && way.inner => APART,
            Some(_) => 1,
            None => 0,
        };
        let groups = if way.group == u32::MAX { 0 } else { way.groups + further };
        let number = self.nodes.len() as NodeId;
        let towards = (way.node != CRITERION).then_some(way.node);
        self.nodes.push(Node { at, groups, distance: way.distance, towards });
        if let Some(group) = group {
            let nodes = &self.nodes;
            let nearest = self.nearest.entry(group.number).or_insert(number);
            let known = nodes[*nearest as usize];
            if (groups, way.distance) < (known.groups, known.distance) {
                *nearest = number;
            }
        }
        let inner = group.map_or(way.inner, |g| g.inner);
        let group = group.map_or(way.group, |g| g.number);
        Way { groups, distance: way.distance + 1, node: number, group, inner }
    }
}

impl Follow for Tree<'_> {
    type Mark = Way;

    fn join(&mut self, a: Way, b: Way) -> Way {
        if (b.groups, b.distance) < (a.groups, a.distance) { b } else { a }
    }

    fn rank(way: Way) -> u64 {
        u64::from(way.groups) << 32 | u64::from(way.distance)
    }

    fn join_all(&mut self, mut ways: impl Iterator<Item = Way>) -> Option<Way> {
        ways.next()
    }

    fn start(&mut self, at: Instance, instruction: InstructionId) {
        self.add(at, instruction, Way::default());
    }

    fn seed(&mut self, at: Instance, _: Used) -> Way {
        let n = self.nodes.iter().rposition(|node| node.at == at);
        let group = n.and_then(|n| self.nearest.iter().find(|(_, id)| **id == n as NodeId));
        let group = group.map_or(u32::MAX, |(group, _)| *group);
        let node = n.map_or(CRITERION, |n| n as NodeId);
        Way { groups: 0, distance: 1, node, group, inner: false }
    }

    /// What is named at an instance of the slice is further on the way than that.
    fn named(&mut self, at: Instance, _: Used) -> Way {
        self.last.filter(|(last, _)| *last == at).map(|(_, way)| way).unwrap_or_default()
    }

    fn include(&mut self, at: Instance, id: InstructionId, way: Way) -> Option<Way> {
        if self.nodes.len() >= MOST {
            self.complete = false;
            return None;
        }
        let way = self.add(at, id, way);
        self.last = Some((at, way));
        Some(way)
    }

    fn cut_short(&mut self) {
        self.complete = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::Time;

    #[test]
    fn what_is_named_at_an_instance_of_the_slice_is_further_on_than_that() {
        let group = |_, id: InstructionId| Some(Group { number: id.0, inner: false });
        let mut tree = Tree::new(&group);
        let at = |time| Instance { time: Time(time), index: 0 };
        let criterion = tree.named(at(9), Used::Control);
        tree.include(at(5), InstructionId(1), criterion);
        let by = tree.named(at(5), Used::Control);
        tree.include(at(3), InstructionId(2), by);
        let way = tree.way_from_group(2);
        assert_eq!(
            way.iter().map(|n| (n.at, n.groups)).collect::<Vec<_>>(),
            [(at(3), 1), (at(5), 0)]
        );
    }
}
