//! Instances as people see them: names, code and values, looked up all at once.

use position::{At, Error, Names, PlaceId, Run};
use report::{Spot, Value};
use std::collections::HashMap;
use trace::Instance;

/// What is known of some instances.
pub struct Spots<'a> {
    run: &'a Run,
    names: Names<'a>,
    values: HashMap<Instance, Vec<Value>>,
}

impl<'a> Spots<'a> {
    /// Looks instances up; those in libraries stand for the call that led there.
    pub fn of(run: &'a Run, instances: &[Instance]) -> Result<Spots<'a>, Error> {
        let own: Vec<Instance> =
            instances.iter().map(|at| run.own_instance(*at).unwrap_or(*at)).collect();
        let names = Names::of(run, own.iter().copied());
        let mut entries: Vec<Instance> =
            own.iter().filter_map(|at| Some(names.get(*at)?.entry)).collect();
        entries.sort_unstable();
        entries.dedup();
        let values = report::values(run, &entries)?;
        Ok(Spots { run, names, values })
    }

    /// One of them, as another line that its code belongs to.
    pub fn get_as(&self, at: Instance, place: PlaceId) -> Spot {
        let run = self.run;
        let spot = self.get(at);
        let own = run.own_instance(at).map(|at| run.trace.instruction(at));
        let At::Line(file, line) = run.places.get(place).at else { return spot };
        if own.and_then(|id| run.places.at(id)) == Some(place) {
            return spot;
        }
        Spot {
            position: run.place_name(place),
            file: Some(run.program.path(file).display().to_string()),
            line: Some(line),
            function: run.places.get(place).function.clone(),
            code: code_of(run, place).map(|c| c.trim().to_owned()),
            values: Vec::new(),
            ..spot
        }
    }

    /// One of them.
    pub fn get(&self, at: Instance) -> Spot {
        let run = self.run;
        let at = run.own_instance(at).unwrap_or(at);
        let entry = self.names.get(at).map_or(at, |n| n.entry);
        let place = run.places.at(run.trace.instruction(at)).map(|id| run.places.get(id));
        let (file, line) = match place.map(|p| p.at) {
            Some(At::Line(file, line)) => {
                (Some(run.program.path(file).display().to_string()), Some(line))
            }
            _ => (None, None),
        };
        let code = report::code(run, at).map(|c| c.trim().to_owned());
        Spot {
            position: self.names.name(at),
            thread: self.names.thread(at),
            file,
            line,
            function: place.and_then(|p| p.function.clone()),
            code: code.or_else(|| run.disassembled(at)),
            values: self.values.get(&entry).cloned().unwrap_or_default(),
        }
    }
}

/// The text of a place's line.
pub fn code_of(run: &Run, place: PlaceId) -> Option<String> {
    let At::Line(file, line) = run.places.get(place).at else { return None };
    Some(run.program.source(file)?.line(line)?.to_owned())
}
