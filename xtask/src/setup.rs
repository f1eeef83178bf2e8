//! Is everything here that the other tasks need? Installs with apt-get what is not, and shows it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

/// Options of `cargo xtask setup`.
#[derive(Args)]
pub struct Options {
    /// Only say what is missing
    #[arg(long)]
    check: bool,
}

/// Debian packages and, for each, a file that shows it is installed.
const PACKAGES: &[(&str, &str)] = &[
    ("gcc", "/usr/bin/gcc"),
    ("g++", "/usr/bin/g++"),
    ("clang", "/usr/bin/clang"),
    ("libc6-dev", "/usr/include/stdio.h"),
    ("binutils", "/usr/bin/objdump"),
    ("csmith", "/usr/bin/csmith"),
    ("libcsmith-dev", "/usr/include/csmith/csmith.h"),
    ("musl-tools", "/usr/bin/musl-gcc"),
    ("gdb", "/usr/bin/gdb"),
    ("valgrind", "/usr/bin/valgrind"),
    ("lua5.4", "/usr/bin/lua5.4"),
    ("sqlite3", "/usr/bin/sqlite3"),
    ("jq", "/usr/bin/jq"),
    ("bc", "/usr/bin/bc"),
    ("dc", "/usr/bin/dc"),
    ("zstd", "/usr/bin/zstd"),
    ("xz-utils", "/usr/bin/xz"),
    ("bzip2", "/usr/bin/bzip2"),
    ("gzip", "/bin/gzip"),
    ("gawk", "/usr/bin/gawk"),
    ("mawk", "/usr/bin/mawk"),
    ("openssl", "/usr/bin/openssl"),
    ("perl", "/usr/bin/perl"),
    ("python3", "/usr/bin/python3"),
    ("time", "/usr/bin/time"),
    ("make", "/usr/bin/make"),
    ("git", "/usr/bin/git"),
    ("curl", "/usr/bin/curl"),
    ("openssh-client", "/usr/bin/ssh-keygen"),
    ("rsync", "/usr/bin/rsync"),
    ("tmux", "/usr/bin/tmux"),
    ("vim", "/usr/bin/vim"),
    ("bsdutils", "/usr/bin/script"),
    ("golang-go", "/usr/bin/go"),
    ("luajit", "/usr/bin/luajit"),
    ("nodejs", "/usr/bin/node"),
    ("default-jdk-headless", "/usr/bin/javac"),
    ("libclang-rt-14-dev", "/usr/lib/clang/14/lib/linux/libclang_rt.asan-x86_64.a"),
    ("redis-server", "/usr/bin/redis-server"),
    ("redis-tools", "/usr/bin/redis-cli"),
    ("nginx-light", "/usr/sbin/nginx"),
    ("less", "/usr/bin/less"),
    ("procps", "/usr/bin/top"),
    ("chromium", "/usr/bin/chromium"),
    ("util-linux", "/usr/bin/setpriv"),
];

/// Installs what is missing.
pub fn run(options: &Options) -> Result<bool> {
    let missing = missing();
    if missing.is_empty() {
        println!("setup: all {} packages are here", PACKAGES.len());
        return Ok(true);
    }
    println!("setup: missing: {}", missing.join(" "));
    if options.check {
        return Ok(false);
    }
    apt_get(&["update"])?;
    let mut install = vec!["install", "--yes", "--no-install-recommends"];
    install.extend(&missing);
    apt_get(&install)?;
    println!("setup: installed: {}", missing.join(" "));
    Ok(self::missing().is_empty())
}

fn missing() -> Vec<&'static str> {
    PACKAGES
        .iter()
        .filter(|(_, file)| !Path::new(file).exists())
        .map(|(package, _)| *package)
        .collect()
}

/// Runs apt-get as root, by sudo if need be, with its output shown.
fn apt_get(arguments: &[&str]) -> Result<()> {
    if !Path::new("/usr/bin/apt-get").exists() {
        bail!(
            "this is not Debian or Ubuntu (no apt-get); please install by hand: {}",
            missing().join(" ")
        );
    }
    let mut command = if rustix::process::geteuid().is_root() {
        Command::new("apt-get")
    } else if Path::new("/usr/bin/sudo").exists() {
        let mut sudo = Command::new("sudo");
        sudo.arg("apt-get");
        sudo
    } else {
        bail!(
            "installing needs root and there is no sudo; please run as root: apt-get install {}",
            missing().join(" ")
        );
    };
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    println!("+ {} {}", command.get_program().to_string_lossy(), arguments.join(" "));
    let status = command.status().context("cannot run apt-get")?;
    if !status.success() {
        bail!(
            "apt-get {} failed ({status}); without network or root, please install by hand: {}",
            arguments.join(" "),
            missing().join(" ")
        );
    }
    Ok(())
}
