//! Contents of files: captured ones, and what was written over them.

use super::world::{Kind, Name, NodeId, PIPE_BYTES, World};
use crate::kernel::process::Process;

impl World {
    /// Size of a file.
    pub fn size(&self, process: &mut Process, node: NodeId) -> u64 {
        let node = &self.nodes[node];
        match (&node.bytes, node.base) {
            (Some(bytes), _) => bytes.len() as u64,
            (None, Some(base)) => process.objects.bytes(base).map_or(0, |b| b.len() as u64),
            (None, None) => 0,
        }
    }

    /// A part of a file.
    pub fn read_node(&self, process: &mut Process, node: NodeId, at: u64, len: usize) -> Vec<u8> {
        let node = &self.nodes[node];
        let all = match (&node.bytes, node.base) {
            (Some(bytes), _) => &bytes[..],
            (None, Some(base)) => process.objects.bytes(base).unwrap_or(&[]),
            (None, None) => &[],
        };
        let from = usize::try_from(at).unwrap_or(usize::MAX).min(all.len());
        all[from..from.saturating_add(len).min(all.len())].to_vec()
    }

    /// The contents, to be changed: a copy of what was captured.
    fn own_bytes(&mut self, process: &mut Process, node: NodeId) -> &mut Vec<u8> {
        let node = &mut self.nodes[node];
        let base = node.base;
        node.bytes.get_or_insert_with(|| {
            base.and_then(|id| process.objects.bytes(id).ok().map(<[u8]>::to_vec))
                .unwrap_or_default()
        })
    }

    /// Writes a part of a file.
    pub fn write_node(&mut self, process: &mut Process, node: NodeId, at: u64, data: &[u8]) {
        let bytes = self.own_bytes(process, node);
        let at = at as usize;
        if bytes.len() < at + data.len() {
            bytes.resize(at + data.len(), 0);
        }
        bytes[at..at + data.len()].copy_from_slice(data);
    }

    /// Changes the length of a file.
    pub fn truncate(&mut self, process: &mut Process, node: NodeId, len: u64) {
        if len == 0 {
            self.nodes[node].bytes = Some(Vec::new());
            self.nodes[node].known = true;
            return;
        }
        self.own_bytes(process, node).resize(len as usize, 0);
    }

    /// The same by descriptor.
    pub fn truncate_open(&mut self, process: &mut Process, fd: i32, len: u64) {
        if let Some(Kind::File(node)) = self.get(fd).map(|open| open.kind.clone()) {
            self.truncate(process, node, len);
        }
    }

    /// Bytes that went to a descriptor, at its position or another.
    pub fn put(&mut self, process: &mut Process, fd: i32, at: Option<u64>, data: &[u8]) {
        let Some(open) = self.get(fd) else { return };
        let (kind, append) = (open.kind.clone(), open.flags & libc::O_APPEND != 0);
        match kind {
            Kind::Stdout => self.outputs[0].extend_from_slice(data),
            Kind::Stderr => self.outputs[1].extend_from_slice(data),
            Kind::Pipe { to: Some(pipe), .. } => {
                let held = &mut self.pipes[pipe].bytes;
                // A log may have more in flight, if somebody else reads.
                let room = (64 * PIPE_BYTES).saturating_sub(held.len());
                held.extend(&data[..data.len().min(room)]);
            }
            Kind::Event { .. } => {
                if let (Some(Kind::Event { value, .. }), Ok(bytes)) =
                    (self.get_mut(fd).map(|open| &mut open.kind), data.try_into())
                {
                    *value = value.saturating_add(u64::from_le_bytes(bytes));
                }
            }
            Kind::File(node) => {
                let from = match at {
                    Some(at) => at,
                    None if append => self.size(process, node),
                    None => self.get(fd).expect("seen").offset,
                };
                self.write_node(process, node, from, data);
                if at.is_none() {
                    self.get_mut(fd).expect("seen").offset = from + data.len() as u64;
                }
            }
            _ => {}
        }
    }

    /// A path gets another name.
    pub fn move_name(&mut self, from: Vec<u8>, to: Vec<u8>) {
        let name = self.names.get(&from).cloned().or_else(|| self.original(&from));
        // What it held before is not known if it was never opened.
        match name {
            Some(name) => self.change(to, name),
            None => drop(self.facts.changed.insert(to)),
        }
        self.change(from, Name::Gone);
    }

    /// What the recording knows of a path that the run has not changed.
    pub fn original(&mut self, path: &[u8]) -> Option<Name> {
        if let Some(Ok(captured)) = self.facts.opens.get(path).cloned() {
            let node = self.captured(captured.file.map(recording::FileId), captured.identity);
            if self.nodes[node].stat.is_none()
                && let Some(Ok(stat)) = self.facts.stats.get(&(path.to_vec(), true))
            {
                self.nodes[node].stat = Some(stat.clone());
            }
            return Some(Name::File(node));
        }
        if let Some(Ok(link)) = self.facts.links.get(path) {
            return Some(Name::Link(link.clone()));
        }
        let stat = self.facts.stats.get(&(path.to_vec(), true));
        match stat {
            Some(Ok(stat)) if super::stat::is_folder(stat) => return Some(Name::Folder),
            Some(Err(error)) if *error == -i64::from(libc::ENOENT) => return Some(Name::Gone),
            _ => {}
        }
        let missing = Some(&Err(-i64::from(libc::ENOENT)));
        if self.facts.opens.get(path) == missing.map(|e: &Result<_, i64>| e) {
            return Some(Name::Gone);
        }
        let denied = self.facts.accesses.range((path.to_vec(), 0)..=(path.to_vec(), u64::MAX));
        let absent = denied.into_iter().any(|(_, r)| *r == -i64::from(libc::ENOENT));
        if absent {
            return Some(Name::Gone);
        }
        if self.facts.listings.contains_key(path) {
            return Some(Name::Folder);
        }
        self.is_missing(path).then_some(Name::Gone)
    }

    /// Is it known that there is nothing, because its folder is not there, or was
    /// listed without it?
    fn is_missing(&mut self, path: &[u8]) -> bool {
        let Some(cut) = path.iter().rposition(|b| *b == b'/').filter(|cut| *cut > 0) else {
            return false;
        };
        let (folder, name) = (&path[..cut], &path[cut + 1..]);
        if let Some((entries, true)) = self.facts.listings.get(folder) {
            return !super::stat::names(entries).any(|entry| entry == name);
        }
        self.original(folder) == Some(Name::Gone)
    }
}
