//! One file per verb: its words, its help and what it does.

mod chop;
mod completions;
mod coverage;
mod critical;
mod cut;
mod debug;
mod demo;
mod deps;
mod explain;
mod info;
mod last_write;
mod list;
mod manual;
mod omitted;
mod pack;
mod path;
mod record;
mod remove;
mod replay;
mod serve_gdb;
mod slice;
mod slices;
mod trace;
mod unpack;
mod values;
mod what_if;

pub use explain::Program;

use std::io::Write;

use clap::Subcommand;

/// What `why` can do; each verb's help is at its definition.
#[derive(Subcommand)]
pub enum Verb {
    Record(record::Record),
    Explain(explain::Explain),
    Demo(demo::Demo),
    Replay(replay::Replay),
    Info(info::Info),
    Slice(slice::Slice),
    Debug(debug::Debug),
    ServeGdb(serve_gdb::ServeGdb),
    Cut(cut::Cut),
    Chop(chop::Chop),
    Coverage(coverage::Coverage),
    Deps(deps::Deps),
    Slices(slices::Slices),
    Values(values::Values),
    Path(path::Path),
    LastWrite(last_write::LastWrite),
    Trace(trace::Trace),
    WhatIf(what_if::WhatIf),
    Critical(critical::Critical),
    Omitted(omitted::Omitted),
    List(list::List),
    Remove(remove::Remove),
    Completions(completions::Completions),
    Manual(manual::Manual),
    Pack(pack::Pack),
    Unpack(unpack::Unpack),
}

impl Verb {
    /// Does it, writes results to `out`, and returns the status to exit with.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<u8> {
        match self {
            Verb::Record(record) => record.run(),
            Verb::Explain(explain) => explain.run(out),
            Verb::Demo(demo) => demo.run(out),
            Verb::Replay(replay) => replay.run(),
            Verb::Info(info) => info.run(out),
            Verb::Slice(slice) => slice.run(out),
            Verb::Debug(debug) => debug.run(),
            Verb::ServeGdb(serve) => serve.run(out),
            Verb::Cut(cut) => cut.run(),
            Verb::Chop(chop) => chop.run(out),
            Verb::Coverage(coverage) => coverage.run(out),
            Verb::Deps(deps) => deps.run(out),
            Verb::Slices(slices) => slices.run(out),
            Verb::Values(values) => values.run(out),
            Verb::Path(path) => path.run(out),
            Verb::LastWrite(last_write) => last_write.run(out),
            Verb::Trace(trace) => trace.run(out),
            Verb::WhatIf(what_if) => what_if.run(out),
            Verb::Critical(critical) => critical.run(out),
            Verb::Omitted(omitted) => omitted.run(out),
            Verb::List(list) => list.run(out),
            Verb::Remove(remove) => remove.run(),
            Verb::Completions(completions) => completions.run(out),
            Verb::Manual(manual) => manual.run(),
            Verb::Pack(pack) => pack.run(),
            Verb::Unpack(unpack) => unpack.run(),
        }
    }
}
