# Sourced by ./demo and ./test: finds cargo, and a C compiler and linker.
# What is missing is installed with apt-get, and shown.

# Signals ignored by whatever started us (nohup, a CI runner) would be ignored by
# every program we test too.
if ! grep -q '^SigIgn:[[:space:]]*0*$' /proc/self/status; then
    exec env --default-signal "$PWD/${0##*/}" "$@"
fi

say() { printf '\n== %s\n' "$*"; }

fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# install PACKAGE...
install() {
    command -v apt-get >/dev/null ||
        fail "there is no apt-get here; please install by hand: $*"
    local root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || fail "please run as root: apt-get install $*"
        root=(sudo)
    fi
    say "installing with apt-get: $*"
    "${root[@]}" apt-get update
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install --yes --no-install-recommends "$@"
}

if [ "$(uname -sm)" != "Linux x86_64" ]; then
    fail "Whydunit runs on x86-64 Linux only; this is $(uname -sm)"
fi

cargo_env=${CARGO_HOME:-${HOME:-/root}/.cargo}/env
if ! command -v cargo >/dev/null && [ -f "$cargo_env" ]; then
    . "$cargo_env"
fi
command -v cargo >/dev/null ||
    fail "cargo is not here; install Rust as https://rustup.rs says"

# Rust links with cc; zstd and BLAKE3 compile C; a static binary needs libc.a.
missing=()
{ command -v cc && command -v gcc; } >/dev/null || missing+=(gcc)
[ -f /usr/lib/x86_64-linux-gnu/libc.a ] || [ -f /usr/lib64/libc.a ] || missing+=(libc6-dev)
if [ "${#missing[@]}" -gt 0 ]; then
    install "${missing[@]}"
fi
