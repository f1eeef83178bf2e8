//! Who writes memory, and from when on is it there?

use crate::{Flow, Instance, Range, Time, Trace};

/// Memory that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// By whom: by itself, or by asking the kernel.
    pub by: Instance,
    /// The first instant before which it was done.
    pub seen: Instance,
}

impl Trace {
    /// The first instant before which an instance has done what it does. Calls may wait, and
    /// other threads run meanwhile.
    pub fn seen(&self, by: Instance) -> Instance {
        let behind = Instance { index: by.index + 1, ..by };
        if self.code.info(self.instruction(by)).flow != Flow::System {
            return behind;
        }
        // They are in the order in which they returned, which is after they were made.
        let calls = &self.spans.calls;
        let mut later = calls[calls.partition_point(|site| site.at <= by.time)..].iter();
        later.find(|site| site.instance == by).map_or(behind, |site| returned(site.at))
    }

    /// The first write to some of these bytes that is not yet done before an instant.
    pub fn next_write(&self, from: Instance, memory: &[(u64, u64)]) -> Option<Write> {
        let mut next = None;
        self.writes(from, memory, &mut |write| {
            next = Some(write);
            false
        });
        next
    }

    /// Tells every such write, in the order in which they were done, until `tell` has heard
    /// enough.
    pub fn writes(
        &self,
        from: Instance,
        memory: &[(u64, u64)],
        tell: &mut dyn FnMut(Write) -> bool,
    ) {
        let hits = |start: u64, len: u64| {
            memory.iter().any(|(at, n)| start < at + n && *at < start.saturating_add(len))
        };
        let calls = &self.spans.calls;
        let mut calls =
            calls[calls.partition_point(|site| site.at <= from.time)..].iter().peekable();
        let is_hit = |range: &Range| hits(range.start, range.len);
        // Behind the last record there is nobody to see what calls do, but they do it.
        for time in (from.time.0..=self.records.len()).map(Time) {
            while let Some(site) = calls.next_if(|site| site.at <= time) {
                let call = self.call(site);
                let mut all = call.written.iter().chain(&call.mapped);
                let write = Write { by: site.instance, seen: returned(site.at) };
                if all.any(|(start, len)| hits(*start, *len)) && !tell(write) {
                    return;
                }
            }
            if time < self.records.now() {
                let first = if time == from.time { from.index } else { 0 };
                let mut stores = self.stores(time, first, &is_hit);
                if !stores.all(|by| tell(Write { by, seen: self.seen(by) })) {
                    return;
                }
            }
        }
    }

    /// Instances of a record that write something that is wanted by themselves.
    fn stores<'a>(
        &'a self,
        time: Time,
        first: u16,
        wanted: &'a dyn Fn(&Range) -> bool,
    ) -> impl Iterator<Item = Instance> + 'a {
        let path = self.code.path(self.records.path(time));
        let all = (first..path.len).map(move |index| Instance { time, index });
        all.filter(move |at| {
            let info = self.code.info(self.instruction(*at));
            info.accesses.iter().any(|a| a.writes) && self.stored(*at).iter().any(wanted)
        })
    }
}

/// Before this, a call is done whose effect is there from a record on.
fn returned(at: Time) -> Instance {
    Instance { time: at, index: 0 }
}
