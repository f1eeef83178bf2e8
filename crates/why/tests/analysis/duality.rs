//! Backward and forward are two ways along the same dependences.

use std::collections::HashSet;

use position::Run;
use recording::{Home, Recording};
use slice::{Instances, Options, Slicer, Start};
use trace::{Instance, InstructionId};

use crate::support::{Bench, O0};

/// Opens the bench's latest recording, and asks about so many instances spread
/// over the program's own part of the run, whose beginning is told too.
pub fn compare(bench: &Bench, count: u64, mut ask: impl FnMut(&Slicer<'_>, &[Start], Instance)) {
    let run = open(bench);
    let slicer = Slicer::new(&run.trace);
    for at in spread(&run, count) {
        ask(&slicer, &[Start::Instance(at)], run.beginning().unwrap());
    }
}

fn open(bench: &Bench) -> Run {
    let home = Home::at(bench.path("home"));
    let dir = home.resolve(None).unwrap();
    Run::open(Recording::open(&dir).unwrap(), &mut |_| ()).unwrap()
}

fn spread(run: &Run, count: u64) -> Vec<Instance> {
    let mut own = Vec::new();
    for time in (0..run.trace.records.len()).map(trace::Time) {
        let len = run.trace.code.path(run.trace.records.path(time)).len;
        own.extend((0..len).map(|index| Instance { time, index }).filter(|at| {
            let id = run.trace.instruction(*at);
            run.is_own(id) && run.places.at(id).is_some()
        }));
    }
    let step = (own.len() / count as usize).max(1);
    own.into_iter().step_by(step).collect()
}

/// F-002-25: y is in the forward slice of x if and only if x is in the backward
/// slice of y. Bookkeeping is passed by in one way and met in the other, so it is
/// left out: copies of saved registers, and frame pointers.
#[test]
fn forward_is_backward_the_other_way() {
    for (file, source) in [("f.c", crate::answers::SUM), ("w.c", WALK)] {
        let bench = Bench::ran(file, source, O0, &["1"]);
        let run = open(&bench);
        let slicer = Slicer::new(&run.trace);
        let beginning = run.beginning().unwrap();
        let options = Options { from: beginning, ..Options::default() };
        let frames = |at: Instance| run.disassembled(at).is_some_and(|i| i == "mov rbp,rsp");
        let counts =
            |id: InstructionId| slicer.saved(id).is_none() && slicer.restored(id).is_none();
        let chosen: Vec<Instance> = spread(&run, 40)
            .into_iter()
            .filter(|at| counts(run.trace.instruction(*at)) && !frames(*at))
            .collect();
        let set = |found: Instances| found.0.into_iter().map(|i| i.0).collect::<HashSet<_>>();
        let backward: Vec<HashSet<Instance>> = chosen
            .iter()
            .map(|y| set(slicer.instances(&[Start::Instance(*y)], &options)))
            .collect();
        let mut met = 0;
        for x in &chosen {
            let start = [Start::Instance(*x)];
            let forward = set(slicer.forward(&start, &options, Instances::default()));
            for (y, behind) in chosen.iter().zip(&backward) {
                let (on, back) = (forward.contains(y), behind.contains(x));
                met += usize::from(on);
                let text = |at: &Instance| (run.trace.number(*at), run.disassembled(*at));
                assert_eq!(on, back, "{file}: from {:?} to {:?}", text(x), text(y));
            }
        }
        assert!(met > chosen.len(), "there is something to compare");
    }
}

/// A list is built, walked and changed through pointers.
const WALK: &str = r#"#include <stdio.h>
#include <stdlib.h>
struct node { int value; struct node *next; };
int main(int argc, char **argv) {
    struct node *head = 0;
    for (int i = 0; i < 5; i++) {
        struct node *new = malloc(sizeof *new);
        new->value = i * argc;
        new->next = head;
        head = new;
    }
    int sum = 0;
    for (struct node *n = head; n; n = n->next)
        if (n->value & 1)
            sum += n->value;
        else
            n->value = sum;
    printf("%d %d\n", sum, head->value);
}
"#;
