//! The workloads: about one to two seconds each natively, where the CPU is what limits them.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::compat::{Random, dependency_source, find_cc1, make_project, real_source, text};

/// What limits a row's speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Computation: part of the geometric means.
    Cpu,
    /// System calls, clock reads, threads: shown, but not averaged with the others.
    Special,
    /// Only starting and ending.
    StartUp,
}

/// One workload.
#[derive(Debug)]
pub struct Row {
    pub name: &'static str,
    pub argv: Vec<OsString>,
    pub kind: Kind,
    /// Words before the native command: threads are compared on one CPU.
    pub native_prefix: Vec<OsString>,
}

const PERL: &str = "my %h; my $s = 0; for my $i (1..6000000) { my $k = 'k' . ($i * 7919 % 5003); $h{$k} += $i; $s += length($k) if $k =~ /9[0-4]/; } \
                    my @k = sort { $h{$a} <=> $h{$b} || $a cmp $b } keys %h; print scalar(@k), qq( $s $k[0]\\n);";
const PYTHON: &str = "class V:\n    def __init__(s, x): s.x = x\n    def add(s, o): return V(s.x + o.x)\n\
                      def sieve(n):\n    p = [True] * n\n    for i in range(2, int(n ** .5) + 1):\n        if p[i]:\n            for j in range(i * i, n, i): p[j] = False\n    return sum(p)\n\
                      t = V(0)\nd = {}\nfor i in range(3000000):\n    t = t.add(V(i % 7)); d[i % 1009] = t.x\n\
                      print(sieve(4000000), t.x, len(d), sum(d.values()))";
const SQL: &str = "with recursive n(i) as (select 1 union all select i+1 from n where i<1500000) select count(*), sum(i*i%97) from n;\n\
                   create table t(a integer primary key, b text, c real);\n\
                   with recursive n(i) as (select 1 union all select i+1 from n where i<700000) insert into t select i, 'v'||(i*7919%10007), i*0.25 from n;\n\
                   create index x on t(b); select b, count(*), sum(c) from t group by b order by 3 desc limit 3;\n\
                   select count(*) from t p join t q on p.b=q.b and p.a<q.a where p.a<8000;\n";
const LUA: &str = "local function fib(n) if n < 2 then return n end return fib(n-1) + fib(n-2) end print(fib(35))\n\
                   local t = {} for i = 1, 5000000 do t[i] = (i * 7919) % 1000003 end local s = 0 for i = 1, #t do s = s + t[i] % 7 end print(s)\n\
                   local w = {} for i = 1, 150000 do w[#w+1] = ('%d:%s'):format(i, ('x'):rep(i % 5)) end print(#table.concat(w, ','))";

/// Makes the inputs in `folder` and lists all rows.
pub fn make(folder: &Path, guests: &Path) -> Result<Vec<Row>> {
    let path = |name: &str| folder.join(name).into_os_string();
    let mut random = Random(7);
    fs::write(folder.join("text"), text(&mut random, 360_000))?;
    fs::write(folder.join("text-small"), text(&mut random, 120_000))?;
    fs::write(folder.join("bytes"), &fs::read(folder.join("text"))?[..1_000_000])?;
    for (name, script) in
        [("load.pl", PERL), ("load.py", PYTHON), ("load.sql", SQL), ("load.lua", LUA)]
    {
        fs::write(folder.join(name), script)?;
    }
    // Large enough for a second of compilation.
    preprocess(folder, "zstd_compress.c")?;
    make_project(&folder.join("project"))?;
    let project = folder.join("project").display().to_string();
    let sql = format!(".read {}", folder.join("load.sql").display());
    Ok(vec![
        cpu("gzip", vec!["/usr/bin/gzip".into(), "-c".into(), path("text")]),
        cpu("bzip2", vec!["/usr/bin/bzip2".into(), "-c".into(), path("text")]),
        cpu(
            "xz",
            vec!["/usr/bin/xz".into(), "-T1".into(), "-3".into(), "-c".into(), path("text-small")],
        ),
        cpu("perl", vec!["/usr/bin/perl".into(), path("load.pl")]),
        cpu("python3", vec!["/usr/bin/python3".into(), "-S".into(), path("load.py")]),
        cpu("sqlite3", vec!["/usr/bin/sqlite3".into(), ":memory:".into(), sql.into()]),
        cpu("lua", vec!["/usr/bin/lua5.4".into(), path("load.lua")]),
        cpu(
            "cc1",
            vec![
                find_cc1()?.into(),
                "-quiet".into(),
                "-O2".into(),
                path("real.i"),
                "-o".into(),
                "/dev/null".into(),
            ],
        ),
        special(
            "dd bs=1",
            vec![
                "/usr/bin/dd".into(),
                prefixed("if=", path("bytes")),
                "of=/dev/null".into(),
                "bs=1".into(),
                "status=none".into(),
            ],
        ),
        special("clock", vec![guests.join("clock_heavy.O2").into(), "1000000".into()]),
        Row {
            native_prefix: ["taskset", "-c", "0"].map(OsString::from).to_vec(),
            ..special("four threads", vec![guests.join("four_threads.O2").into(), "200000".into()])
        },
        special("200 commands", shell("for i in $(seq 200); do /usr/bin/true; done")),
        special("make -j2", shell(&format!("cd {project} && make -s -B -j2"))),
        Row { kind: Kind::StartUp, ..special("true", vec!["/usr/bin/true".into()]) },
    ])
}

fn cpu(name: &'static str, argv: Vec<OsString>) -> Row {
    Row { name, argv, kind: Kind::Cpu, native_prefix: Vec::new() }
}

fn special(name: &'static str, argv: Vec<OsString>) -> Row {
    Row { name, argv, kind: Kind::Special, native_prefix: Vec::new() }
}

fn shell(script: &str) -> Vec<OsString> {
    ["/bin/sh", "-c", script].map(OsString::from).to_vec()
}

fn prefixed(prefix: &str, rest: OsString) -> OsString {
    let mut whole = OsString::from(prefix);
    whole.push(rest);
    whole
}

/// A file of zstd's compressor, preprocessed, as `real.i`: a real source for a compiler.
pub fn preprocess(folder: &Path, file: &str) -> Result<()> {
    let file = format!("zstd/lib/compress/{file}");
    let source = match dependency_source("zstd-sys-", &file) {
        Some(source) => source,
        None => real_source()?,
    };
    let status = Command::new("gcc")
        .args(["-E", "-P", "-o"])
        .arg(folder.join("real.i"))
        .arg(&source)
        .status()
        .context("cannot run gcc")?;
    ensure!(status.success(), "cannot preprocess {}", source.display());
    Ok(())
}
