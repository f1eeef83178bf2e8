//! What the real commands read: made the same on every machine and in every run.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace;

/// A folder of prepared input files.
#[derive(Debug)]
pub struct Inputs {
    folder: PathBuf,
    cc1: PathBuf,
}

impl Inputs {
    /// Makes all of them in `folder`.
    pub fn make(folder: &Path) -> Result<Inputs> {
        fs::create_dir_all(folder)?;
        let inputs = Inputs { folder: folder.to_path_buf(), cc1: find_cc1()? };
        inputs.make_texts()?;
        inputs.make_tree()?;
        make_project(&inputs.path("project"))?;
        inputs.make_programs()?;
        inputs.make_archives()?;
        Ok(inputs)
    }

    /// Where the input of this name is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The C compiler proper, a single process.
    pub fn cc1(&self) -> &Path {
        &self.cc1
    }

    fn make_texts(&self) -> Result<()> {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        fs::write(self.path("words.txt"), text(&mut random, 20_000))?;
        fs::write(self.path("big.txt"), text(&mut random, 160_000))?;
        fs::write(
            self.path("numbers.txt"),
            lines(50_000, |_| (random.next() % 1_000_000).to_string()),
        )?;
        fs::write(self.path("left.txt"), lines(3_000, |n| format!("k{n:05} left{}", n * 7 % 31)))?;
        fs::write(
            self.path("right.txt"),
            lines(3_000, |n| format!("k{:05} right{}", n * 2, n * 5 % 17)),
        )?;
        fs::write(
            self.path("data.bin"),
            (0..1_000_000).map(|_| random.next() as u8).collect::<Vec<_>>(),
        )?;
        fs::write(
            self.path("table.csv"),
            lines(5_000, |n| format!("{n},name{},{}.{:02}", n * 31 % 977, n * 13 % 500, n % 100)),
        )?;
        fs::write(self.path("document.json"), document(&mut random))?;
        fs::write(self.path("script.sql"), SQL)?;
        fs::write(self.path("script.lua"), LUA)?;
        fs::write(self.path("script.pl"), PERL)?;
        fs::write(
            self.path("sums.bc"),
            "scale=60\n4*a(1)\ne(1)\n2^500\nfor (i=0; i<20; i++) s(i)\nsqrt(2)\n",
        )?;
        Ok(())
    }

    fn make_tree(&self) -> Result<()> {
        let tree = self.path("tree");
        let mut random = Random(42);
        for part in ["a/deep/er", "b", "empty"] {
            fs::create_dir_all(tree.join(part))?;
        }
        for n in 0..20 {
            fs::write(tree.join("a").join(format!("file{n}")), text(&mut random, n * 20 + 1))?;
            fs::write(tree.join("b").join(format!("other{n}.txt")), text(&mut random, 3))?;
        }
        fs::write(tree.join("a/deep/er/leaf"), "leaf\n")?;
        symlink("a/file3", tree.join("link"))?;
        Ok(())
    }

    /// A real source file of several thousand lines, preprocessed, compiled, assembled, linked.
    fn make_programs(&self) -> Result<()> {
        let (gcc, c) = (Path::new("gcc"), real_source()?);
        self.run(gcc, &["-E", "-P", "-o", "real.i", &c.to_string_lossy()])?;
        fs::write(self.path("small.c"), SMALL_C)?;
        let start = workspace::guest_sources().join("hello_without_libc.S");
        self.run(gcc, &["-c", "-o", "start.o", &start.to_string_lossy()])?;
        self.run(gcc, &["-O1", "-S", "-o", "small.s", "small.c"])?;
        self.run(gcc, &["-g", "-c", "-o", "small.o", "small.c"])?;
        self.run(gcc, &["-g", "-o", "small", "small.o"])
    }

    fn make_archives(&self) -> Result<()> {
        super::compare::fix_times(&self.path("tree"))?;
        self.run(Path::new("tar"), &["-cJf", "words.tar.xz", "words.txt"])?;
        for (tool, suffix) in [("gzip", "gz"), ("bzip2", "bz2"), ("xz", "xz"), ("zstd", "zst")] {
            let packed = format!("words.txt.{suffix}");
            self.run(Path::new("/bin/sh"), &["-c", &format!("{tool} -c words.txt > {packed}")])?;
        }
        self.run(
            Path::new("tar"),
            &["-cf", "tree.tar", "--owner=0", "--group=0", "--sort=name", "tree"],
        )
    }

    fn run(&self, program: &Path, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new(program);
        let status = command.args(arguments).current_dir(&self.folder).status();
        let status = status.with_context(|| {
            format!("cannot run {}; try `cargo xtask setup`", program.display())
        })?;
        if !status.success() {
            bail!("cannot prepare inputs: {} {} failed", program.display(), arguments.join(" "));
        }
        Ok(())
    }
}

/// A small C project with a makefile.
pub fn make_project(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("Makefile"), MAKEFILE)?;
    for n in 1..4 {
        let text = format!("int part{n}(int x) {{ return x * {n} + {n}; }}\n");
        fs::write(folder.join(format!("part{n}.c")), text)?;
    }
    fs::write(folder.join("main.c"), MAIN_C)?;
    Ok(())
}

/// Asks gcc where its compiler proper is.
pub fn find_cc1() -> Result<PathBuf> {
    let output = Command::new("gcc")
        .arg("-print-prog-name=cc1")
        .output()
        .context("cannot run gcc; try `cargo xtask setup`")?;
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// zstd's decompressor, which cargo has fetched for one of our dependencies; failing that, the
/// largest C file that is sure to be here.
pub fn real_source() -> Result<PathBuf> {
    Ok(dependency_source("zstd-sys-", "zstd/lib/decompress/zstd_decompress.c")
        .unwrap_or_else(|| workspace::guest_sources().join("string_functions.c")))
}

/// A file of a dependency in cargo's registry.
pub fn dependency_source(package: &str, file: &str) -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let registries = fs::read_dir(home.join("registry/src")).ok()?.flatten();
    let packages = registries
        .filter_map(|registry| fs::read_dir(registry.path()).ok())
        .flat_map(|entries| entries.flatten());
    let named = packages.filter(|entry| entry.file_name().to_string_lossy().starts_with(package));
    named.map(|entry| entry.path().join(file)).filter(|path| path.exists()).max()
}

/// A small generator whose numbers never change.
pub struct Random(pub u64);

impl Random {
    /// The next number (xorshift64).
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }
}

/// Lines of words that repeat as those of a language do.
pub fn text(random: &mut Random, lines: usize) -> String {
    const SYLLABLES: [&str; 16] = [
        "ka", "to", "mi", "ser", "an", "el", "ru", "pon", "is", "va", "du", "che", "or", "lin",
        "ba", "esk",
    ];
    let mut text = String::new();
    for _ in 0..lines {
        for word in 0..4 + random.next() % 8 {
            let common = random.next() % 97;
            let mut letters = Random(common * common * 2_654_435_761 + 1);
            let separator = if word > 0 { " " } else { "" };
            text.push_str(separator);
            for _ in 0..1 + letters.next() % 3 {
                text.push_str(SYLLABLES[(letters.next() % 16) as usize]);
            }
        }
        let number = random.next() % 10_000;
        let _ = writeln!(text, " {number}"); // writing to a String cannot fail
    }
    text
}

fn lines(count: usize, mut line: impl FnMut(usize) -> String) -> String {
    (0..count).map(|n| line(n) + "\n").collect()
}

fn document(random: &mut Random) -> String {
    let items: Vec<String> = (0..2_000)
        .map(|n| {
            format!(
                r#"{{"id":{n},"name":"item {}","price":{}.{:02},"tags":["t{}","ü{}"],"ok":{}}}"#,
                random.next() % 1000,
                random.next() % 500,
                n % 100,
                n % 7,
                n % 3,
                n % 2 == 0
            )
        })
        .collect();
    format!(r#"{{"items":[{}],"total":{}}}"#, items.join(","), items.len())
}

const MAKEFILE: &str = "objects = main.o part1.o part2.o part3.o
program: $(objects)
\tgcc -o $@ $(objects)
%.o: %.c
\tgcc -O1 -c -o $@ $<
";

const MAIN_C: &str = r#"#include <stdio.h>
int part1(int), part2(int), part3(int);
int main(void) { return printf("%d\n", part1(part2(part3(4)))) < 0; }
"#;

const SMALL_C: &str = r#"#include <stdio.h>
struct point { double x, y; };
static double dot(struct point a, struct point b) { return a.x * b.x + a.y * b.y; }
int main(int argc, char **argv)
{
    struct point p = {argc, 2}, q = {3, 4};
    for (int i = 0; i < argc; i++) printf("%s %g\n", argv[i] ? "argument" : "", dot(p, q));
    switch (argc) { case 1: puts("one"); break; case 2: puts("two"); break; default: puts("more"); }
    return 0;
}
"#;

const SQL: &str = "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, value REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<20000)
INSERT INTO t SELECT i, 'name'||(i*7919%1009), i*0.5 FROM n;
CREATE INDEX by_name ON t(name);
SELECT count(*), sum(value), avg(value) FROM t;
SELECT name, count(*) c, max(value) FROM t GROUP BY name ORDER BY c DESC, name LIMIT 10;
SELECT a.id, b.id FROM t a JOIN t b ON a.name=b.name WHERE a.id<5 ORDER BY 1,2 LIMIT 20;
UPDATE t SET value=value*2 WHERE id%3=0; DELETE FROM t WHERE id%5=0;
SELECT count(*), total(value), group_concat(id) FROM t WHERE id<60;
PRAGMA integrity_check; VACUUM;
";

const LUA: &str = "local function fib(n) if n < 2 then return n end return fib(n-1) + fib(n-2) end
print(fib(24))
local t = {}
for i = 1, 20000 do t[i] = (i * 7919) % 10007 end
table.sort(t)
print(t[1], t[10000], t[20000])
local co = coroutine.wrap(function() for i = 1, 5 do coroutine.yield(i * i) end end)
for _ = 1, 5 do io.write(co(), ' ') end print()
print(('hello world'):gsub('o', '0'), string.format('%.14g %q', 1/3, 'a\\nb'))
print(pcall(error, {code = 1}) , select('#', table.unpack({1, 2, 3})))
local s = 0 for w in io.open('words.txt'):read('a'):gmatch('%a+') do s = s + #w end print(s)
";

const PERL: &str = "use strict; use warnings;
my %count; open(my $file, '<', 'words.txt') or die; while (<$file>) { $count{$_}++ for /\\b([a-z]{3,})\\b/g }
my @top = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
printf \"%s %d\\n\", $_, $count{$_} for @top[0..9];
my $text = join '', map { chr(97 + $_ % 26) } 1..1000; (my $copy = $text) =~ tr/a-z/n-za-m/; print substr($copy, 0, 40), \"\\n\";
print join(',', unpack('N*', pack('N*', 1..10))), \"\\n\"; print sprintf('%b %o %x %e', 1234, 1234, 1234, 1/3), \"\\n\";
my @stack = map { { n => $_, sq => $_ ** 2 } } 1..100; print eval { die { code => 7 } } // $@->{code}, \"\\n\";
local $_ = 'a1b22c333'; print \"$1;\" while /(\\d+)/g; print \"\\n\", scalar reverse('abc'), ' ', ucfirst lc 'HELLO', \"\\n\";
";
