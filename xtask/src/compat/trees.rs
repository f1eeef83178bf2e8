//! Real commands that start other processes.

use super::table::{Row, perl, python, row, script};

fn bash(name: &'static str, text: &'static str) -> Row {
    script(name, "/bin/bash -c", text)
}

fn sh(name: &'static str, text: &'static str) -> Row {
    script(name, "/bin/sh -c", text)
}

/// All of them.
pub fn rows() -> Vec<Row> {
    [shells(), tools(), languages(), development()].into_iter().flatten().collect()
}

fn shells() -> Vec<Row> {
    vec![
        sh("sh-pipeline", "seq 100 | grep 7 | sort -r | head -n 5; echo $?"),
        sh("sh-substitution", "echo one $(echo two $(echo three)) `expr 2 + 2`; x=$(exit 3); echo $?"),
        sh("sh-subshells", "(cd /; pwd; exit 4); echo $?; { echo a; echo b; } | cat -n; f() { echo in $1; }; f x | tr a-z A-Z"),
        sh("sh-here-document", "cat <<END | wc -c\nfirst $((6 * 7))\nsecond\nEND\ncat <<'END'\nraw $HOME\nEND"),
        sh("sh-missing-program", "nonesuch; echo $?; ./nonesuch; echo $?; /etc/passwd; echo $?; / ; echo $?"),
        sh("sh-exec", "echo before; exec /usr/bin/printf '%s after\\n' long"),
        sh("sh-loop", "i=0; while [ $i -lt 20 ]; do /bin/true; i=$((i+1)); done; /bin/echo $i"),
        sh("sh-redirections", "{ echo out; echo err >&2; } > both 2>&1; cat both; exec 3< both; read x <&3; cat <&3; echo $x; ls nonesuch 2>/dev/null || echo none").with(&["words.txt"]),
        sh("sh-fifo", "mkfifo p; (echo through; sleep 0.05; echo a fifo) > p & cat p; wait; rm p"),
        bash("bash-traps", "trap 'echo usr1' USR1; trap 'echo leaving $?' EXIT; trap 'echo int' INT; kill -USR1 $$; kill -INT $$; (trap 'echo child leaves' EXIT; exit 2); exit 5"),
        bash("bash-background", "for i in 1 2 3; do (sleep 0.0$i; exit $i) & p[$i]=$!; done; for i in 3 2 1; do wait ${p[$i]}; echo $?; done; sleep 20 & kill %1; wait %1; echo $?"),
        bash("bash-process-substitution", "diff <(seq 1 5) <(seq 2 6); tee >(wc -c > count) < words.txt | tail -n 1; sleep 0.3; cat count").with(&["words.txt"]),
        bash("bash-coprocess", "coproc tr a-z A-Z; echo shout >&${COPROC[1]}; exec {COPROC[1]}>&-; cat <&${COPROC[0]}; wait"),
        bash("bash-pipe-status", "set -o pipefail; true | false | (exit 3) | true; echo ${PIPESTATUS[@]}; false | true || echo failed; echo a | while read x; do echo [$x]; done; mapfile -t l < <(seq 3); echo ${#l[@]}"),
        bash("bash-killed-children", "for s in TERM KILL SEGV ABRT HUP PIPE; do bash -c \"kill -$s \\$\\$; sleep 1\" 2>/dev/null; echo $s $?; done 2>/dev/null"),
        bash("bash-job-control", "set -m; sleep 30 & kill -STOP %1; sleep 0.1; jobs -s | cut -c1-15; kill -CONT %1; kill -TERM %1; wait %1 2>/dev/null; echo $?"),
        bash("bash-own-group-killed", "exec 2>/dev/null; set -m; (trap '' TERM; kill -9 0) & wait $!; echo $?").slow(),
        bash("bash-many-children", "for i in {1..60}; do echo $(($(/usr/bin/expr $i \\* $i))); done | /usr/bin/paste -s -d+ | /usr/bin/bc"),
    ]
}

fn tools() -> Vec<Row> {
    vec![
        sh("find-xargs", "find tree -type f | sort | xargs -n 7 wc -c").with(&["tree"]),
        row("find-exec", "/usr/bin/find tree/b -name *1* -exec /usr/bin/basename {} ;").with(&["tree"]),
        sh("xargs-parallel", "seq 20 | xargs -P 4 -n 1 sh -c 'echo $(($0 * $0)) > out.$0'; cat out.* | sort -n"),
        row("env", "/usr/bin/env -i A=1 /usr/bin/env"),
        sh("timeout", "timeout 0.2 sleep 30; echo $?; timeout 20 true; echo $?; timeout -s KILL 0.2 sleep 30; echo $?"),
        sh("nohup-nice-setsid", "nohup echo one 2>/dev/null; nice -n 3 nice; setsid -w echo two; stdbuf -oL echo three"),
        row("tar-compressed", "/usr/bin/tar -czf out.tgz --sort=name --mtime=@0 tree").with(&["tree"]).nondeterministic(),
        row("tar-decompressed", "/usr/bin/tar -xJf words.tar.xz").with(&["words.tar.xz"]),
        row("sort-compressing", "/usr/bin/sort -S 1M -T . --compress-program=gzip big.txt -o sorted").with(&["big.txt"]).slow(),
        sh("zgrep-xzcat", "zgrep -c 7 words.txt.gz; xzcat words.txt.xz | cksum").with(&["words.txt.gz", "words.txt.xz"]),
        sh("ldd", "ldd /bin/bash | sed 's/ (0x.*//'").nondeterministic(),
        sh("split-filter", "split -n 3 --filter='wc -c > $FILE.size' words.txt part-; cat part-*.size").with(&["words.txt"]),
        script("gawk-pipes", "/usr/bin/gawk", "BEGIN { while ((\"seq 5\" | getline x) > 0) s += x; print s | \"cat -n\"; close(\"cat -n\"); print system(\"exit 3\"); c = \"sort\"; print \"b\\na\" |& c; close(c, \"to\"); while ((c |& getline l) > 0) print l }"),
        sh("flock", "(flock 9; echo locked; flock -n lock -c true; echo $?) 9> lock; flock lock echo free"),
        row("rsync", "/usr/bin/rsync -a --no-times tree/ copy").with(&["tree"]),
        row("ssh-keygen", "/usr/bin/ssh-keygen -q -t ed25519 -N  -f key").nondeterministic(),
        row("curl-file", "/usr/bin/curl -s file:///etc/debian_version"),
        sh("vim-ex", "printf '%%s/ka/KA/ge\\n1,3p\\nw! out\\nq\\n' | vim -es -u NONE words.txt; head -n 2 out").with(&["words.txt"]),
        sh("tmux", "export SHELL=/bin/sh; tmux -L $$ -f /dev/null new-session -d 'echo in a window > out; exec sleep 5'; while [ ! -s out ]; do sleep 0.05; done; cat out; tmux -L $$ kill-server").nondeterministic().slow(),
        sh("script-pty", "script -qec 'tty -s && stty size; echo terminal' /dev/null < /dev/null").nondeterministic(),
        sh("make-in-parallel", "make -s -j2 -C project && project/program").with(&["project"]),
    ]
}

fn languages() -> Vec<Row> {
    vec![
        perl("perl-fork", "$| = 1; for my $n (1..3) { if (!fork) { exit $n * 7 } wait; print $? >> 8, qq(\\n) } pipe(R, W); if (!fork) { close R; print W qq(from the child\\n); exit } close W; print <R>; wait; print `echo shell`; system('exit 3'); print $? >> 8, qq(\\n); open P, '|-', 'cat'; print P qq(to cat\\n); close P"),
        python("python-subprocess", "import subprocess as s\nprint(s.run(['ls', '/proc/self/fd'], capture_output=True).returncode, s.check_output('echo $0 $((1+1))', shell=True))\np = s.Popen(['cat', '-n'], stdin=s.PIPE, stdout=s.PIPE); print(p.communicate(b'a\\nb\\n'))\ntry: s.run(['nonesuch'])\nexcept FileNotFoundError as e: print(e)\np = s.Popen(['sleep', '30']); p.terminate(); print(p.wait())\ntry: s.run(['sleep', '30'], timeout=0.1)\nexcept s.TimeoutExpired as e: print('expired')"),
        python("python-multiprocessing-fork", "import multiprocessing as m\ndef f(c, n): c.send([n, n * n]); c.close()\nif __name__ == '__main__':\n    for n in range(4):\n        a, b = m.Pipe(); p = m.Process(target=f, args=(b, n)); p.start(); print(a.recv()); p.join(); print(p.exitcode)"),
        python("python-multiprocessing-spawn", "import subprocess, sys\nopen('main.py', 'w').write('''import multiprocessing as m\ndef f(c): c.send(sum(range(100))); c.close()\nif __name__ == \"__main__\":\n    m.set_start_method(\"spawn\"); a, b = m.Pipe(); p = m.Process(target=f, args=(b,)); p.start(); print(a.recv()); p.join(); print(p.exitcode)\n''')\nprint(subprocess.run([sys.executable, '-B', 'main.py']).returncode)").slow(),
        python("python-asyncio-subprocess", "import asyncio\nasync def main():\n    p = await asyncio.create_subprocess_exec('tr', 'a-z', 'A-Z', stdin=-1, stdout=-1); print(await p.communicate(b'quiet'))\n    q = await asyncio.create_subprocess_shell('exit 6'); print(await q.wait())\nasyncio.run(main())"),
        python("python-fork-threads", "import os, threading\ndef work():\n    p = os.fork()\n    if p == 0: os._exit(threading.active_count())\n    print(os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]))\nfor _ in range(3):\n    t = threading.Thread(target=work); t.start(); t.join()"),
        script("lua-popen", "/usr/bin/lua5.4 -e", "print(os.execute('exit 4')) local p = io.popen('seq 3') print(p:read('a')) print(p:close())"),
    ]
}

fn development() -> Vec<Row> {
    vec![
        row("gcc", "/usr/bin/gcc -O1 -o out small.c").with(&["small.c"]),
        row("gcc-error", "/usr/bin/gcc -c words.txt -x c words.txt").with(&["words.txt"]),
        sh("g++", "printf '#include <vector>\\n#include <cstdio>\\nint main() { std::vector<int> v(3, 4); printf(\"%%zu\\\\n\", v.size()); }' > v.cpp; g++ -o v v.cpp && ./v").slow(),
        sh("make-rules", "printf 'all: a b\\n\\t@cat a b\\na:\\n\\t@echo made $@ > $@\\nb: a\\n\\t@sed s/a/b/ a > b\\nfail:\\n\\t@exit 3\\n' > Makefile; make; make; make fail; echo $?"),
        sh("git", "export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e GIT_AUTHOR_DATE='@1 +0000' GIT_COMMITTER_DATE='@1 +0000'; git -c init.defaultBranch=main init -q r; cd r; echo one > f; git add f; git commit -q -m first; echo two >> f; git commit -q -a -m second; git log --oneline; git diff HEAD~1; git checkout -q -b side HEAD~1; echo other > g; git add g; git commit -q -m third; git merge -q main -m merged; git log --format=%s; git gc -q; git fsck; cd ..; rm -rf r"),
        sh("rustc", "printf 'fn main() { println!(\"{}\", (1..10u32).product::<u32>()); }' > m.rs; $(rustup which rustc 2>/dev/null || which rustc) -C codegen-units=1 m.rs && ./m; rm -f m").slow(),
    ]
}
