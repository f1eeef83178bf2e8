//! Real commands of every kind that people run: languages that bring a runtime or make
//! code at run time, programs that check themselves, servers with their clients, and
//! programs in a terminal.

use super::table::{Row, python, row, script};

/// All of them.
pub fn rows() -> Vec<Row> {
    [go(), jits(), sanitizers(), servers(), terminals(), large()].into_iter().flatten().collect()
}

fn sh(name: &'static str, text: &'static str) -> Row {
    script(name, "/bin/sh -c", text)
}

fn go() -> Vec<Row> {
    vec![
        row("go-goroutines", "./goroutines").with(&["goroutines"]),
        row("go-deadlock", "./deadlock").with(&["deadlock"]),
        row("go-nil-pointer", "./nil_pointer").with(&["nil_pointer"]),
        row("gofmt", "/usr/bin/gofmt untidy.go").with(&["untidy.go"]),
        sh("go-vet", "export GOCACHE=$PWD/cache GO111MODULE=off; go vet untidy.go; echo $?; rm -rf cache").with(&["untidy.go"]).slow(),
        sh("go-run", "export GOCACHE=$PWD/cache GO111MODULE=off; go run goroutines.go; echo $?; rm -rf cache").with(&["goroutines.go"]).slow(),
    ]
}

fn jits() -> Vec<Row> {
    vec![
        row("luajit", "/usr/bin/luajit traces.lua").with(&["traces.lua"]),
        row("luajit-no-jit", "/usr/bin/luajit -joff traces.lua")
            .with(&["traces.lua"])
            .nondeterministic(),
        script("node-hello", "/usr/bin/node -e", "console.log('hello', process.argv.length)"),
        row("node-events", "/usr/bin/node events.js").with(&["events.js"]).slow(),
        row("node-workers", "/usr/bin/node workers.js").with(&["workers.js"]).slow(),
        row("java-version", "/usr/bin/java -version").slow(),
        row("java-threads", "/usr/bin/java -cp . Threads").with(&["Threads.class"]).slow(),
        row("java-interpreted", "/usr/bin/java -Xint -XX:+UseSerialGC -cp . Threads")
            .with(&["Threads.class"])
            .slow(),
        row("javac", "/usr/bin/javac Threads.java").with(&["Threads.java"]).slow(),
    ]
}

/// What differs from run to run (process, addresses) is taken out of their reports.
fn sanitizers() -> Vec<Row> {
    vec![
        sh("asan-gcc", "./heap.gcc 2>&1 | sed 's/==[0-9]*==//; s/0x[0-9a-f]*/ADDRESS/g'")
            .with(&["heap.gcc"]),
        sh("asan-clang", "./heap.clang 2>&1 | sed 's/==[0-9]*==//; s/0x[0-9a-f]*/ADDRESS/g'")
            .with(&["heap.clang"])
            .slow(),
        row("ubsan-gcc", "./signed.gcc").with(&["signed.gcc"]),
        row("ubsan-clang", "./signed.clang").with(&["signed.clang"]),
        // Which thread is second is not the same in every run.
        row("tsan-gcc", "./race.gcc").with(&["race.gcc"]).nondeterministic(),
        row("tsan-clang", "./race.clang").with(&["race.clang"]).nondeterministic().slow(),
        sh(
            "tsan-report",
            "./race.gcc 2>&1 | grep -o 'WARNING: ThreadSanitizer: data race'; echo $?",
        )
        .with(&["race.gcc"]),
    ]
}

fn servers() -> Vec<Row> {
    vec![
        row("redis-and-clients", "/bin/sh redis.sh").with(&["redis.sh"]),
        row("nginx-and-curl", "/bin/sh nginx.sh").with(&["nginx.sh"]),
        row("python-http-server-and-curl", "/bin/sh http.sh")
            .with(&["http.sh", "words.txt"])
            .slow(),
    ]
}

fn terminals() -> Vec<Row> {
    vec![
        row("terminal-vim", "/usr/bin/python3 terminal.py vim").with(&["terminal.py"]).slow(),
        row("terminal-less", "/usr/bin/python3 terminal.py less").with(&["terminal.py"]).slow(),
        row("terminal-top", "/usr/bin/python3 terminal.py top").with(&["terminal.py"]).slow(),
        row("terminal-size", "/usr/bin/python3 terminal.py size").with(&["terminal.py"]).slow(),
        row("top-batch", "/usr/bin/top -b -n1").nondeterministic(),
    ]
}

fn large() -> Vec<Row> {
    vec![
        python("python-gigabytes", "b = bytearray(1 << 30)\nfor i in range(0, len(b), 4096): b[i] = i >> 12 & 255\nprint(len(b), sum(b[::1 << 20]))").slow(),
    ]
}
