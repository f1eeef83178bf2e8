//! Which processor a recorded program sees, and where its recording replays.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

struct Place(tempfile::TempDir);

impl Place {
    fn with_program(source: &str) -> (Place, PathBuf) {
        let place = Place(tempfile::tempdir().expect("a folder"));
        let (file, program) = (place.0.path().join("p.c"), place.0.path().join("p"));
        fs::write(&file, source).expect("writes");
        let status = Command::new("gcc").args(["-O1", "-o"]).args([&program, &file]).status();
        assert!(status.expect("gcc is installed (./test installs it)").success());
        (place, program)
    }

    fn why(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_why"))
            .args(arguments)
            .env("WHY_DIR", self.0.path().join("home"))
            .current_dir(self.0.path())
            .output()
            .expect("why runs")
    }

    fn record(&self, cpu: &[&str], program: &Path) -> Output {
        let program = [program.to_str().expect("UTF-8")];
        self.why(&[&["record", "-q", "-o", "rec"], cpu, &program].concat())
    }

    /// Changes the manifest of the recording.
    fn edit(&self, change: impl FnOnce(&mut serde_json::Value)) {
        let path = self.0.path().join("rec/manifest.json");
        let text = fs::read(&path).expect("reads");
        let mut manifest = serde_json::from_slice(&text).expect("JSON");
        change(&mut manifest);
        fs::write(&path, manifest.to_string()).expect("writes");
    }
}

/// Prints what CPUID and XGETBV say, and takes the widest registers there are
/// through a handler that overwrites them.
const CPU: &str = r#"
#include <cpuid.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static int wide;

static void overwrite(int signal)
{
    (void)signal;
    if (wide)
        __asm__ volatile("vpxord %%zmm17, %%zmm17, %%zmm17\n\tvpxord %%zmm3, %%zmm3, %%zmm3\n\t"
                         "kxorw %%k3, %%k3, %%k3" ::: "memory");
}

int main(void)
{
    unsigned a, b, c, d;
    __cpuid_count(7, 0, a, b, c, d);
    printf("leaf 7: %08x\n", b & (1u << 16 | 1 << 5 | 1 << 29));
    wide = b >> 16 & 1;
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    printf("AVX-512 state: %x\n", low & 0xe0);
    signal(SIGUSR1, overwrite);
    unsigned char in[64], out[64] = {0}, low_out[64] = {0};
    unsigned mask = 0x5a5a, mask_out = 0x5a5a;
    for (int i = 0; i < 64; i++) in[i] = 3 * i + 1;
    if (wide) {
        register long pid __asm__("rdi");
        __asm__ volatile("vmovdqu64 %3, %%zmm17\n\tvmovdqu64 %3, %%zmm3\n\tkmovw %4, %%k3\n\t"
                         "mov $39, %%eax\n\tsyscall\n\tmov %%eax, %%edi\n\tmov $10, %%esi\n\t"
                         "mov $62, %%eax\n\tsyscall\n\t"
                         "vmovdqu64 %%zmm17, %0\n\tvmovdqu64 %%zmm3, %1\n\tkmovw %%k3, %2"
                         : "=m"(out), "=m"(low_out), "=r"(mask_out)
                         : "m"(in), "r"(mask) : "rax", "rcx", "r11", "rdi", "rsi", "memory");
        printf("wide: %d %d %x\n", memcmp(in, out, 64), memcmp(in, low_out, 64), mask_out);
    }
    (void)a, (void)c, (void)d, (void)high;
    return 0;
}
"#;

#[test]
fn the_hosts_own_processor_is_shown_on_request_only() {
    let (place, program) = Place::with_program(CPU);
    let native = Command::new(&program).output().expect("runs");
    let recorded = place.record(&["--cpu", "host"], &program);
    assert_eq!(recorded.status.code(), Some(0), "{recorded:?}");
    assert_eq!(recorded.stdout, native.stdout);
    let replayed = place.why(&["replay", "--verify", "rec"]);
    assert_eq!(replayed.stdout, native.stdout, "{replayed:?}");
    fs::remove_dir_all(place.0.path().join("rec")).expect("removes");
    let recorded = place.record(&[], &program);
    let text = String::from_utf8_lossy(&recorded.stdout).into_owned();
    assert!(text.starts_with("leaf 7: 00000020\nAVX-512 state: 0\n"), "{text}");
}

#[test]
fn a_replay_on_a_lesser_processor_is_refused_by_the_names_of_what_it_lacks() {
    let (place, program) = Place::with_program("int main(void) { return 0; }");
    place.record(&["--cpu", "host"], &program);
    assert_eq!(place.why(&["replay", "rec"]).status.code(), Some(0));
    place.edit(|manifest| {
        let features = manifest["cpu_features"].as_array_mut().expect("a list");
        assert!(features.iter().any(|f| f == "AVX2"));
        features.extend(["AMX-TILE".into(), "APX".into()]);
    });
    let refused = place.why(&["replay", "rec"]);
    assert_eq!(refused.status.code(), Some(125));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("lacks AMX-TILE, APX"), "{said}");
}

#[test]
fn a_replay_is_refused_where_vector_state_lies_elsewhere() {
    let (place, program) = Place::with_program("int main(void) { return 0; }");
    place.record(&["--cpu", "host"], &program);
    place.edit(|manifest| {
        manifest["start"]["cpu"]["components"][0]["offset"] = 640.into();
    });
    let refused = place.why(&["replay", "rec"]);
    assert_eq!(refused.status.code(), Some(125), "{refused:?}");
}

#[test]
fn the_default_needs_the_baseline_only() {
    let (place, program) = Place::with_program("int main(void) { return 0; }");
    place.record(&[], &program);
    place.edit(|manifest| {
        let features = manifest["cpu_features"].as_array().expect("a list");
        assert!(features.iter().any(|f| f == "AVX2"));
        assert!(!features.iter().any(|f| f.as_str().expect("text").starts_with("AVX512")));
    });
}
