//! The workloads of `bench slicing`: 100 to 200 million instructions each.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::Result;

use super::rows::preprocess;
use crate::compat::{Random, find_cc1, text};

/// One workload.
pub struct Row {
    pub name: String,
    pub argv: Vec<OsString>,
}

const PERL: &str = "my %h; my $s = 0; for my $i (1..80000) { my $k = 'k' . ($i * 7919 % 5003); $h{$k} += $i; $s += length($k) if $k =~ /9[0-4]/; } print qq($s\\n);";
const PYTHON: &str = "class V:\n    def __init__(s, x): s.x = x\n    def add(s, o): return V(s.x + o.x)\n\
                      t = V(0)\nd = {}\nfor i in range(30000):\n    t = t.add(V(i % 7)); d[i % 1009] = t.x\nprint(t.x, sum(d.values()))\n";
const SQL: &str = "create table t(a integer primary key, b text, c real);\n\
                   with recursive n(i) as (select 1 union all select i+1 from n where i<12000) insert into t select i, 'v'||(i*7919%10007), i*0.25 from n;\n\
                   create index x on t(b); select b, count(*), sum(c) from t group by b order by 3 desc limit 3;\n";

fn row(name: &str, argv: &[OsString]) -> Row {
    Row { name: name.to_owned(), argv: argv.to_vec() }
}

/// Makes the inputs in `folder` and lists all rows.
pub fn make(folder: &Path, guests: &Path) -> Result<Vec<Row>> {
    let path = |name: &str| folder.join(name).into_os_string();
    let mut random = Random(7);
    fs::write(folder.join("text"), text(&mut random, 15_000))?;
    fs::write(folder.join("text-small"), text(&mut random, 7_000))?;
    for (name, script) in [("load.pl", PERL), ("load.py", PYTHON), ("load.sql", SQL)] {
        fs::write(folder.join(name), script)?;
    }
    preprocess(folder, "hist.c")?;
    let sql = format!(".read {}", folder.join("load.sql").display());
    Ok(vec![
        row("gzip", &["/usr/bin/gzip".into(), "-c".into(), path("text")]),
        row("bzip2", &["/usr/bin/bzip2".into(), "-c".into(), path("text-small")]),
        row("python3", &["/usr/bin/python3".into(), "-S".into(), path("load.py")]),
        row("perl", &["/usr/bin/perl".into(), path("load.pl")]),
        row("sqlite3", &["/usr/bin/sqlite3".into(), ":memory:".into(), sql.into()]),
        row(
            "cc1",
            &[find_cc1()?.into(), "-quiet".into(), path("real.i"), "-o".into(), "/dev/null".into()],
        ),
        row("four threads", &[guests.join("four_threads.O2").into(), "2500".into()]),
    ])
}

/// gzip on more and more text.
pub fn growth(folder: &Path) -> Result<Vec<Row>> {
    let sizes = [("10⁷", 800), ("10⁸", 8_000), ("10⁹", 80_000)];
    let make = |(name, lines): (&str, usize)| {
        let file = folder.join(format!("text-{lines}"));
        fs::write(&file, text(&mut Random(7), lines))?;
        let argv = ["/usr/bin/gzip".into(), "-c".into(), file.into_os_string()];
        Ok(row(&format!("gzip {name}"), &argv))
    };
    sizes.into_iter().map(make).collect()
}
