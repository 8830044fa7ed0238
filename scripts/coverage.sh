#!/usr/bin/env bash
# Which lines of the critical path no test reaches: hooks that run and fail, trust, extensions that load, servers that connect.
#
#   scripts/coverage.sh            # runs the tests of these crates, and prints the lines
#   scripts/coverage.sh --check    # fails where docs/coverage.md does not explain one of them
#
# The compiler counts (-C instrument-coverage); LLVM's tools read what it counted. They are those of the toolchain, of the machine,
# or Debian's, which are fetched into target/coverage once. docs/coverage.md explains each line that is left. Exit status 75: there
# are no tools for this compiler, so nothing is known.
set -euo pipefail
cd "$(dirname "$0")/.."

work="$PWD/target/coverage"
# The critical path, as docs/coverage.md names it.
critical=(
    crates/engine/src/{registry,run,merge,clear,plan,select,limit}.rs
    crates/engine/src/action/{program,shell,verdict}.rs
    crates/process/src/{job,unix}.rs
    crates/process/src/unix/{child,supervise,leader,pipes}.rs
    crates/process/src/unix/linux/spawn.rs
    crates/trust/src/{trust,proposal,approvals,identity}.rs
    crates/catalog/src/extension/{find,read,resolve,manifest,depend}.rs
    crates/mcp/src/{lifecycle,handshake,requester,connect,list,tool}.rs
)
# Examples in comments count nothing, so they are left out.
packages=(-p ollm-engine -p ollm-process -p ollm-trust -p ollm-catalog -p ollm-mcp --lib --tests)

unknown() {
    echo "nothing is known of the coverage: $1" >&2
    exit 75
}

# Whether these tools understand what this compiler writes.
understands() {
    [ -x "$1/llvm-profdata" ] && [ -x "$1/llvm-cov" ] || return 1
    "$1/llvm-profdata" merge -sparse "$work/probe.profraw" -o "$work/probe.profdata" 2>/dev/null &&
        "$1/llvm-cov" export "$work/probe" -instr-profile="$work/probe.profdata" -format=lcov >/dev/null 2>&1
}

# Debian's tools, unpacked and not installed.
fetch() {
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || return 1
    local version
    for version in 22 21 20 19; do
        rm -rf "$work/debian" && mkdir -p "$work/debian"
        (cd "$work/debian" && timeout 300 apt-get download "llvm-$version" "libllvm$version" >/dev/null 2>&1) || continue
        for package in "$work/debian"/*.deb; do dpkg -x "$package" "$work/debian/root"; done
        export LD_LIBRARY_PATH="$work/debian/root/usr/lib/x86_64-linux-gnu:$work/debian/root/usr/lib/llvm-$version/lib"
        tools="$work/debian/root/usr/lib/llvm-$version/bin"
        understands "$tools" && return 0
    done
    return 1
}

find_tools() {
    echo 'fn main() { println!("{}", std::env::args().count()); }' >"$work/probe.rs"
    rustc -C instrument-coverage "$work/probe.rs" -o "$work/probe"
    LLVM_PROFILE_FILE="$work/probe.profraw" "$work/probe" >/dev/null
    local own
    own="$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin"
    for tools in "$own" /usr/lib/llvm-*/bin /usr/bin; do understands "$tools" && return; done
    for tools in "$work"/debian/root/usr/lib/llvm-*/bin; do
        export LD_LIBRARY_PATH="$work/debian/root/usr/lib/x86_64-linux-gnu:${tools%/bin}/lib"
        understands "$tools" && return
    done
    fetch || unknown "no llvm-profdata and llvm-cov read what $(rustc -V) counts"
}

mkdir -p "$work"
find_tools

# Only our own crates count, beside what `cargo test` has built of the others. Property tests reach the same lines with fewer
# cases.
printf '#!/bin/sh\nexec "$@" -C instrument-coverage\n' >"$work/rustc" && chmod +x "$work/rustc"
export RUSTC_WORKSPACE_WRAPPER="$work/rustc" PROPTEST_CASES=16 CARGO_INCREMENTAL=0
rm -rf "$work/profiles" && mkdir -p "$work/profiles"
# What is built counts nothing.
objects=()
while read -r program; do objects+=(-object "$program"); done < <(
    LLVM_PROFILE_FILE=/dev/null cargo test "${packages[@]}" --no-run --message-format=json-render-diagnostics |
        python3 -c 'import json, sys
for line in sys.stdin:
    built = json.loads(line)
    if built.get("executable"): print(built["executable"])'
)
[ "${#objects[@]}" -gt 0 ] || exit 1
failed=0
LLVM_PROFILE_FILE="$work/profiles/%p-%m.profraw" cargo test "${packages[@]}" --no-fail-fast --quiet >"$work/tests.log" 2>&1 || failed=1
"$tools/llvm-profdata" merge -sparse "$work"/profiles/*.profraw -o "$work/all.profdata"

"$tools/llvm-cov" export "${objects[@]}" -instr-profile="$work/all.profdata" -format=lcov -sources "${critical[@]}" >"$work/critical.lcov"
# Programs that tests start without our variables count into the folder they run in.
find crates -name 'default_*.profraw' -delete
python3 scripts/coverage.py "$work/critical.lcov" docs/coverage.md "$@" || failed=1
[ "$failed" -eq 0 ] || { grep -E '^test .* FAILED|panicked at' "$work/tests.log" >&2; exit 1; }
