//! The real commands of one process each: programs that are not ours.

use std::ffi::OsString;

use super::inputs::Inputs;
use super::programs;
use crate::trial::{Agreement, Trial};

/// One real command.
pub struct Row {
    name: &'static str,
    argv: Vec<&'static str>,
    inputs: Vec<&'static str>,
    stdin: Option<&'static str>,
    nondeterministic: bool,
    slow: bool,
}

impl Row {
    pub(super) fn with(mut self, inputs: &[&'static str]) -> Row {
        self.inputs = inputs.to_vec();
        self
    }

    /// One input, named as the last argument too.
    pub(super) fn with_file(mut self, input: &'static str) -> Row {
        self.argv.push(input);
        self.with(&[input])
    }

    pub(super) fn stdin(mut self, text: &'static str) -> Row {
        self.stdin = Some(text);
        self
    }

    /// Its output differs from run to run: only recording and replay must agree.
    pub(super) fn nondeterministic(mut self) -> Row {
        self.nondeterministic = true;
        self
    }

    /// Left out by `--quick`.
    pub(super) fn slow(mut self) -> Row {
        self.slow = true;
        self
    }

    /// Whether `--quick` leaves it out.
    pub fn is_slow(&self) -> bool {
        self.slow
    }

    /// What it is called.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The trial it stands for; what it needs is made.
    pub fn trial(&self, inputs: &Inputs) -> Trial {
        let mut trial =
            Trial::new(self.name, self.argv.iter().map(|word| argument(word, inputs)).collect());
        let made = self.inputs.iter().try_for_each(|name| programs::make(inputs, name));
        trial.obstacle = made.err().map(|error| format!("{error:#}"));
        trial.inputs = self.inputs.iter().map(|name| inputs.path(name)).collect();
        trial.stdin = self.stdin.map(|text| text.as_bytes().to_vec());
        trial.agreement = if self.nondeterministic { Agreement::Replay } else { Agreement::Native };
        trial
    }
}

/// The compiler proper lies where its driver says, not on the PATH.
fn argument(word: &str, inputs: &Inputs) -> OsString {
    if word == "cc1" { inputs.cc1().into() } else { word.into() }
}

/// A row from its name and its command line, split at spaces.
pub(super) fn row(name: &'static str, command: &'static str) -> Row {
    Row {
        name,
        argv: command.split(' ').collect(),
        inputs: Vec::new(),
        stdin: None,
        nondeterministic: false,
        slow: false,
    }
}

/// A row whose last argument is a script.
pub(super) fn script(name: &'static str, command: &'static str, text: &'static str) -> Row {
    let mut row = row(name, command);
    row.argv.push(text);
    row
}

pub(super) fn python(name: &'static str, text: &'static str) -> Row {
    script(name, "/usr/bin/python3 -c", text)
}

pub(super) fn perl(name: &'static str, text: &'static str) -> Row {
    script(name, "/usr/bin/perl -e", text)
}

/// All real commands, grouped by where they come from.
pub fn rows() -> Vec<Row> {
    let groups = [
        coreutils(),
        text_tools(),
        archivers(),
        interpreters(),
        pythons(),
        databases_and_crypto(),
        toolchain(),
        nondeterministic(),
    ];
    groups.into_iter().flatten().collect()
}

fn coreutils() -> Vec<Row> {
    vec![
        row("true", "/usr/bin/true"),
        row("false", "/usr/bin/false"),
        row("echo", "/usr/bin/echo -e one\\ttwo\\x41"),
        row("cat-stdin", "/usr/bin/cat -n").stdin("first\nsecond\nlast without newline"),
        row("cat-missing", "/usr/bin/cat does-not-exist"),
        row("ls-long", "/usr/bin/ls -lAR --time-style=full-iso tree").with(&["tree"]),
        row("cp-recursive", "/usr/bin/cp -r tree copy").with(&["tree"]),
        row("mv", "/usr/bin/mv words.txt tree/moved").with(&["words.txt", "tree"]),
        row("rm-recursive", "/usr/bin/rm -rf tree").with(&["tree"]),
        row("ln-symlink", "/usr/bin/ln -s words.txt link").with(&["words.txt"]),
        row("mkdir-parents", "/usr/bin/mkdir -p -m 750 x/y/z"),
        row("dd", "/usr/bin/dd if=data.bin of=out bs=4096 skip=3 count=100 conv=swab status=none")
            .with(&["data.bin"]),
        row("dd-small-blocks", "/usr/bin/dd if=data.bin of=out bs=7 count=20000 status=none")
            .with(&["data.bin"]),
        row("sort", "/usr/bin/sort words.txt").with(&["words.txt"]),
        row("sort-numeric-unique", "/usr/bin/sort -n -u -r numbers.txt").with(&["numbers.txt"]),
        row("sort-parallel", "/usr/bin/sort --parallel=4 -S 64M big.txt -o sorted")
            .with(&["big.txt"])
            .slow(),
        row("sort-parallel-external", "/usr/bin/sort --parallel=4 -S 1M -T . big.txt -o sorted")
            .with(&["big.txt"])
            .slow(),
        row("uniq-count", "/usr/bin/uniq -c left.txt").with(&["left.txt"]),
        row("join", "/usr/bin/join left.txt right.txt").with(&["left.txt", "right.txt"]),
        row("comm", "/usr/bin/comm left.txt right.txt").with(&["left.txt", "right.txt"]),
        row("wc", "/usr/bin/wc words.txt numbers.txt").with(&["words.txt", "numbers.txt"]),
        row("cut", "/usr/bin/cut -d, -f2,3 table.csv").with(&["table.csv"]),
        row("paste", "/usr/bin/paste -d: left.txt right.txt").with(&["left.txt", "right.txt"]),
        row("tr", "/usr/bin/tr a-z A-Z").stdin("shouting\n"),
        row("od", "/usr/bin/od -A x -t x1z -N 5000 data.bin").with(&["data.bin"]),
        row("split", "/usr/bin/split -n 7 data.bin part-").with(&["data.bin"]),
        row("tac", "/usr/bin/tac numbers.txt").with(&["numbers.txt"]),
        row("fold", "/usr/bin/fold -w 30 -s words.txt").with(&["words.txt"]),
        row("head", "/usr/bin/head -n 100 words.txt").with(&["words.txt"]),
        row("tail", "/usr/bin/tail -c 1000 words.txt").with(&["words.txt"]),
        row("tee", "/usr/bin/tee one two").stdin("copied\n"),
        row("sha256sum", "/usr/bin/sha256sum data.bin words.txt").with(&["data.bin", "words.txt"]),
        row("md5sum-cksum", "/usr/bin/md5sum big.txt").with(&["big.txt"]),
        row("base64", "/usr/bin/base64 data.bin").with(&["data.bin"]),
        row(
            "factor",
            "/usr/bin/factor 1234567890123456789 18446744073709551557 600851475143 1000000016000000063",
        ),
        row("expr", "/usr/bin/expr 123456789012345678901234567890 * 987654321"),
        row("seq", "/usr/bin/seq -f %.3f 0 0.125 500"),
        row("printf", "/usr/bin/printf %s-%05d-%.3e\\n name 42 3.14159"),
        row("date-fixed", "/usr/bin/date -u -d @1234567890 +%Y-%m-%dT%H:%M:%S"),
        row("numfmt", "/usr/bin/numfmt --to=iec 1024 1048576 123456789"),
        row("stat", "/usr/bin/stat -c %n:%s:%F:%a tree tree/link words.txt")
            .with(&["tree", "words.txt"]),
        row("du-apparent", "/usr/bin/du -b -a tree/a").with(&["tree"]),
        row("find", "/usr/bin/find tree -name *e* -size -10k -printf %p:%y:%l\\n").with(&["tree"]),
        row("cmp", "/usr/bin/cmp left.txt right.txt").with(&["left.txt", "right.txt"]),
        row("diff", "/usr/bin/diff -u left.txt right.txt").with(&["left.txt", "right.txt"]),
    ]
}

fn text_tools() -> Vec<Row> {
    vec![
        row("grep", "/usr/bin/grep -n -E (ka|to)mi.*7$ words.txt").with(&["words.txt"]),
        row("grep-perl-jit", "/usr/bin/grep -P -o \\b(?=\\w*an)\\w+\\b words.txt").with(&["words.txt"]),
        row("grep-recursive", "/usr/bin/grep -r -c leaf tree").with(&["tree"]),
        row("grep-no-match", "/usr/bin/grep xyzzy words.txt").with(&["words.txt"]),
        script("sed", "/usr/bin/sed -E", "s/([a-z]+) ([a-z]+)/\\2 \\1/g; /9$/d; 5q").with(&["words.txt"]).stdin("the quick brown fox 1\nover the lazy dog 9\nx y z\n"),
        row("sed-in-place", "/usr/bin/sed -i s/left/LEFT/ left.txt").with(&["left.txt"]),
        script("gawk", "/usr/bin/gawk -F,", "{ s[$2] += $3 } END { n = asorti(s, k); for (i = 1; i <= n; i++) printf \"%s %.2f\\n\", k[i], s[k[i]] }").with_file("table.csv"),
        script("mawk", "/usr/bin/mawk", "{ for (i = 1; i <= NF; i++) c[length($i)]++ } END { for (n = 1; n < 12; n++) print n, c[n] + 0 }").with_file("words.txt"),
        row("jq", "/usr/bin/jq -S [.items[]|select(.ok)|{id,p:(.price*2)}]|group_by(.p)|map({k:.[0].p,n:length}) document.json").with(&["document.json"]),
        row("jq-error", "/usr/bin/jq .x document.json.missing"),
        row("bc", "/usr/bin/bc -l -q sums.bc").with(&["sums.bc"]),
        script("dc", "/usr/bin/dc -e", "50k 2v p [la1+dsa*pla10>y]sy 0sa1 lyx 3 100^p"),
    ]
}

fn archivers() -> Vec<Row> {
    vec![
        row("tar-create", "/usr/bin/tar -cf out.tar --sort=name tree").with(&["tree"]),
        row("tar-extract", "/usr/bin/tar -xf tree.tar").with(&["tree.tar"]),
        row("gzip", "/usr/bin/gzip -9 -k -n words.txt").with(&["words.txt"]),
        row("gunzip", "/usr/bin/gzip -d words.txt.gz").with(&["words.txt.gz"]),
        row("gzip-corrupt", "/usr/bin/gzip -t words.txt").with(&["words.txt"]),
        row("bzip2", "/usr/bin/bzip2 -k words.txt").with(&["words.txt"]),
        row("bunzip2", "/usr/bin/bzip2 -d words.txt.bz2").with(&["words.txt.bz2"]),
        row("xz-threads", "/usr/bin/xz -T2 -2 --block-size=1MiB -k big.txt")
            .with(&["big.txt"])
            .slow(),
        row("unxz", "/usr/bin/xz -d words.txt.xz").with(&["words.txt.xz"]),
        row("zstd-threads", "/usr/bin/zstd -q -T2 -6 big.txt").with(&["big.txt"]),
        row("unzstd", "/usr/bin/zstd -q -d words.txt.zst").with(&["words.txt.zst"]),
    ]
}

fn interpreters() -> Vec<Row> {
    vec![
        row("perl-script", "/usr/bin/perl script.pl").with(&["script.pl", "words.txt"]),
        perl(
            "perl-bigint",
            "use Math::BigInt; print Math::BigInt->new(2)->bpow(400), ' ', Math::BigInt->new(60)->bfac, qq(\\n)",
        ),
        perl(
            "perl-sort-closures",
            "my @c = map { my $n = $_; sub { $n * $_[0] } } 1..50; my $s = 0; $s += $_->(3) for @c; print join(' ', sort { $b <=> $a } map { $_ * 37 % 101 } 1..100), qq( $s\\n)",
        ),
        perl(
            "perl-signals",
            "$SIG{USR1} = sub { print qq(handled\\n) }; kill USR1 => $$; local $SIG{ALRM} = sub { die qq(alarm\\n) }; eval { alarm 1; 1 while 1 }; print $@",
        ),
        perl(
            "perl-sprintf-time",
            "use POSIX; print strftime('%F %T', gmtime(86400 * 365)), sprintf(' %.10g %s', atan2(1, 1) * 4, 1e15 / 3), qq(\\n); exit 7",
        ),
        perl("perl-die", "warn qq(warned\\n); die qq(died)"),
        row("lua", "/usr/bin/lua5.4 script.lua").with(&["script.lua", "words.txt"]),
        script(
            "lua-error",
            "/usr/bin/lua5.4 -e",
            "local t = setmetatable({}, {__index = function(_, k) error('no ' .. k) end}) print(t.x)",
        ),
        script(
            "dash",
            "/bin/dash -c",
            "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); s=$((s+i)); done; echo $s; case $s in 2*) echo two;; esac; set -- a b c; echo $# $*; exit 4",
        ),
        script(
            "bash",
            "/bin/bash -c",
            "declare -A m; for i in {1..500}; do m[$((i%7))]+=x; done; for k in 0 1 2 3 4 5 6; do echo $k ${#m[$k]}; done; printf '%q\\n' 'a b'; trap 'echo trapped' USR1; kill -USR1 $$; exit 9",
        ),
    ]
}

fn pythons() -> Vec<Row> {
    vec![
        python("python-hello", "print('hello')"),
        python("python-threads", "import threading, queue\nq = queue.Queue(); done = []\ndef work():\n    while (n := q.get()) is not None: done.append(n * n)\nts = [threading.Thread(target=work) for _ in range(4)]\n[t.start() for t in ts]\n[q.put(n) for n in range(500)]; [q.put(None) for _ in ts]\n[t.join() for t in ts]\nprint(sum(done), len(done))"),
        python("python-asyncio", "import asyncio\nasync def serve(r, w):\n    w.write((await r.readline()).upper()); await w.drain(); w.close()\nasync def main():\n    s = await asyncio.start_server(serve, '127.0.0.1', 0); port = s.sockets[0].getsockname()[1]\n    async def ask(n):\n        r, w = await asyncio.open_connection('127.0.0.1', port); w.write(f'message {n}\\n'.encode()); await asyncio.sleep(0.001 * n); x = await r.readline(); w.close(); return x\n    print(await asyncio.gather(*(ask(n) for n in range(20))))\nasyncio.run(main())"),
        python("python-sqlite3", "import sqlite3\nd = sqlite3.connect('file.db'); d.execute('create table t(a, b)'); d.executemany('insert into t values(?, ?)', [(i, str(i * i)) for i in range(5000)]); d.commit()\nprint(d.execute('select sum(a), max(length(b)), count(distinct b) from t').fetchall()); d.close()"),
        python("python-floats", "import math, statistics, decimal, fractions\nx = [math.sin(i) * math.exp(i / 50) for i in range(1000)]\nprint(math.fsum(x), statistics.fmean(x), statistics.pstdev(x)); print(decimal.Decimal(2).sqrt(), fractions.Fraction(1, 3) + fractions.Fraction(1, 7)); print(float.hex(math.pi), 0.1 + 0.2, 1e308 * 10, math.gamma(7.5), complex(1, 2) ** 0.5)"),
        python("python-big-integers", "import math, sys\nsys.set_int_max_str_digits(0) if hasattr(sys, 'set_int_max_str_digits') else None\nprint(math.factorial(1500)); print(pow(3, 10**6, 2**607 - 1)); print(2**3000 // 3**1000, math.isqrt(10**300))"),
        python("python-json-re", "import json, re\nd = json.load(open('document.json')); print(sum(i['price'] for i in d['items']), json.dumps(d['items'][7], sort_keys=True, ensure_ascii=False)); print(len(re.findall(r'(\\w+) \\1', open('words.txt').read())), re.sub(r'(?<=a)(b+)', lambda m: m[1].upper(), 'abbcab'))").with(&["document.json", "words.txt"]),
        python("python-hashlib-zlib", "import hashlib, zlib, struct, bz2, lzma\nb = open('data.bin', 'rb').read()\nfor n in ('md5', 'sha1', 'sha256', 'sha512', 'blake2b', 'sha3_256'): print(n, hashlib.new(n, b).hexdigest())\nprint(zlib.crc32(b), len(zlib.compress(b[:100000])), struct.unpack('<4Id', b[:24])[:4]); print(hashlib.pbkdf2_hmac('sha256', b'p', b's', 2000).hex())").with(&["data.bin"]),
        python("python-classes-generators", "import collections, functools, itertools, dataclasses\n@dataclasses.dataclass(order=True)\nclass P:\n    x: int; y: str = 'a'\n@functools.lru_cache(None)\ndef f(n): return n if n < 2 else f(n - 1) + f(n - 2)\nprint(f(300), sorted([P(3), P(1, 'z'), P(1)])); print(collections.Counter(open('words.txt').read().split()).most_common(5)); print(sum(1 for _ in itertools.permutations(range(8))))").with(&["words.txt"]),
        python("python-traceback", "def f(n): return 1 // n\ntry: f(0)\nexcept ZeroDivisionError as e: print(repr(e))\n[].pop()"),
        python("python-signals", "import signal, time, os\ndef h(n, f): print('signal', signal.Signals(n).name)\nsignal.signal(signal.SIGALRM, h); signal.signal(signal.SIGUSR1, h); os.kill(os.getpid(), signal.SIGUSR1)\nsignal.setitimer(signal.ITIMER_REAL, 0.02); time.sleep(0.2)\nt = time.monotonic()\nsignal.setitimer(signal.ITIMER_REAL, 0.02); x = [i for i in range(300000)]\nos.kill(os.getpid(), signal.SIGTERM)"),
        python("python-ctypes", "import ctypes, ctypes.util\nl = ctypes.CDLL(None); l.qsort.restype = None\nA = ctypes.c_int * 10; a = A(5, 3, 8, 1, 9, 2, 7, 0, 6, 4)\nC = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))\nl.qsort(a, 10, ctypes.sizeof(ctypes.c_int), C(lambda p, q: p[0] - q[0])); print(list(a)); print(l.strlen(b'twelve bytes'))"),
        python("python-mmap-files", "import mmap, os, tempfile\nwith open('m', 'w+b') as f:\n    f.truncate(100000); m = mmap.mmap(f.fileno(), 0); m[500:505] = b'hello'; m.flush(); print(m.find(b'hello'), os.stat('m').st_size); m.close()\nos.makedirs('p/q'); os.rename('m', 'p/q/n'); print([(r, sorted(d), sorted(f)) for r, d, f in os.walk('.')])"),
    ]
}

fn databases_and_crypto() -> Vec<Row> {
    let key = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    let mut encrypt = row("openssl-enc", "/usr/bin/openssl enc -aes-256-cbc -in data.bin -out out.enc -iv 0f0e0d0c0b0a09080706050403020100 -K").with(&["data.bin"]);
    encrypt.argv.push(key);
    vec![
        row("sqlite3-script", "/usr/bin/sqlite3 -batch new.db")
            .stdin(".read script.sql\n")
            .with(&["script.sql"]),
        script(
            "sqlite3-memory",
            "/usr/bin/sqlite3 :memory:",
            "with recursive c(x) as (select 1 union all select x+1 from c where x<30000) select sum(x*x), hex(zeroblob(4)), printf('%.6f', avg(x)) from c;",
        ),
        row("openssl-dgst", "/usr/bin/openssl dgst -sha512 data.bin").with(&["data.bin"]),
        encrypt,
        row("openssl-prime", "/usr/bin/openssl prime 170141183460469231731687303715884105727"),
    ]
}

fn toolchain() -> Vec<Row> {
    vec![
        row("cc1-O0", "cc1 -quiet -O0 real.i -o real.s").with(&["real.i"]),
        row("cc1-O2", "cc1 -quiet -O2 real.i -o real.s").with(&["real.i"]).slow(),
        row("cpp-small", "cc1 -E -quiet small.c -o small.i").with(&["small.c"]),
        row("as", "/usr/bin/as -o out.o small.s").with(&["small.s"]),
        row("ld", "/usr/bin/ld -o out start.o").with(&["start.o"]),
        row("objdump", "/usr/bin/objdump -d -r small").with(&["small"]),
        row("readelf", "/usr/bin/readelf -a -W --debug-dump=info small").with(&["small"]),
        row("nm", "/usr/bin/nm -n small.o").with(&["small.o"]),
        row("strip", "/usr/bin/strip -o stripped small").with(&["small"]),
        row("size-strings", "/usr/bin/strings -n 6 small").with(&["small"]),
    ]
}

fn nondeterministic() -> Vec<Row> {
    vec![
        row("openssl-genrsa", "/usr/bin/openssl genrsa 1024").nondeterministic(),
        row("openssl-rand", "/usr/bin/openssl rand -hex 64").nondeterministic(),
        row("date-now", "/usr/bin/date +%s.%N").nondeterministic(),
        row("mktemp", "/usr/bin/mktemp -p . name.XXXXXXXX").nondeterministic(),
        row("shuf", "/usr/bin/shuf numbers.txt").with(&["numbers.txt"]).nondeterministic(),
        row("urandom", "/usr/bin/od -A n -t x1 -N 64 /dev/urandom").nondeterministic(),
        row("proc-self-maps", "/usr/bin/cat /proc/self/maps").nondeterministic(),
        row("proc-self-status", "/usr/bin/cat /proc/self/status /proc/self/stat /proc/self/limits").nondeterministic(),
        python("python-random-uuid", "import random, uuid, os, time, sys\nprint(random.random(), uuid.uuid4(), os.getpid(), time.time(), time.perf_counter(), id(object()), hash('x'))").nondeterministic(),
        python("python-thread-race", "import threading, sys\nsys.setswitchinterval(1e-5); n = 0\ndef f():\n    global n\n    for _ in range(100000):\n        m = n; n = m + 1\nts = [threading.Thread(target=f) for _ in range(4)]\n[t.start() for t in ts]; [t.join() for t in ts]; print(n)").nondeterministic(),
    ]
}
