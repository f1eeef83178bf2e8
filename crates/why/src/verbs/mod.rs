//! One file per verb: its words, its help and what it does.

mod debug;
mod info;
mod list;
mod record;
mod remove;
mod replay;
mod serve_gdb;
mod slice;

use std::io::Write;

use clap::Subcommand;

/// What `why` can do; each verb's help is at its definition.
#[derive(Subcommand)]
pub enum Verb {
    Record(record::Record),
    Replay(replay::Replay),
    Info(info::Info),
    Slice(slice::Slice),
    Debug(debug::Debug),
    ServeGdb(serve_gdb::ServeGdb),
    List(list::List),
    Remove(remove::Remove),
}

impl Verb {
    /// Does it, writes results to `out`, and returns the status to exit with.
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<u8> {
        match self {
            Verb::Record(record) => record.run(),
            Verb::Replay(replay) => replay.run(),
            Verb::Info(info) => info.run(out),
            Verb::Slice(slice) => slice.run(out),
            Verb::Debug(debug) => debug.run(),
            Verb::ServeGdb(serve) => serve.run(out),
            Verb::List(list) => list.run(out),
            Verb::Remove(remove) => remove.run(),
        }
    }
}
