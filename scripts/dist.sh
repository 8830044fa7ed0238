#!/usr/bin/env bash
# Builds release archives: one static program for each target, with its manual, completions and checksums, in target/archives.
#
#   scripts/dist.sh                          # every Linux target that this toolchain can build
#   scripts/dist.sh TARGET…                  # these
#   scripts/dist.sh --pack PROGRAM TARGET    # packs a program that is built already
#
# A target is missing where `rustup target add` was not run for it, or where there is no linker for it; that is said. Exit status 75:
# none could be built. OLLM_DIST_PROFILE names another profile than `dist`, which takes long.
set -euo pipefail
cd "$(dirname "$0")/.."

# Not target/dist: there Cargo keeps what it builds for the profile of that name.
out="$PWD/${CARGO_TARGET_DIR:-target}/archives"
case "${CARGO_TARGET_DIR:-}" in /*) out="$CARGO_TARGET_DIR/archives" ;; esac
profile="${OLLM_DIST_PROFILE:-dist}"
known=(x86_64-unknown-linux-musl aarch64-unknown-linux-musl)

# The C compiler of a target. Rust links by itself: it brings what a static program of musl begins with.
compiler() {
    local machine
    machine="$(uname -m)"
    case "$1" in
        "$machine"-*-musl) command -v musl-gcc || true ;;
        aarch64-*) command -v aarch64-linux-musl-gcc || command -v aarch64-linux-gnu-gcc || true ;;
        x86_64-*) command -v x86_64-linux-musl-gcc || true ;;
    esac
}

# Whether this machine can build a target; says why not.
is_possible() {
    local target="$1"
    if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
        echo "$target is left out: \`rustup target add $target\` brings it" >&2
        return 1
    fi
    if [ -z "$(compiler "$target")" ]; then
        echo "$target is left out: there is no C compiler for it (musl-tools has one for this machine)" >&2
        return 1
    fi
}

build() {
    local target="$1" cc name
    cc="$(compiler "$target")"
    name="${target//-/_}"
    local linking=()
    case "$target" in "$(uname -m)"-*) ;; *) linking=("CARGO_TARGET_${name^^}_LINKER=rust-lld") ;; esac
    env "CC_$name=$cc" "${linking[@]}" \
        cargo build --locked --profile "$profile" --package ollm --bin ollm --target "$target"
}

# Packs a program. What it prints itself comes from one that runs here.
pack() {
    local program="$1" target="$2" runs="$3" version stage name
    version="$("$runs" --version | cut -d' ' -f2)"
    name="ollm-$version-$target"
    stage="$(mktemp -d)"
    mkdir -p "$stage/$name/completions" "$stage/$name/man" "$out"
    install -m 755 "$program" "$stage/$name/ollm"
    cp README.md LICENSE* CHANGELOG.md install.sh "$stage/$name/"
    for shell in bash elvish fish powershell zsh; do "$runs" completions "$shell" > "$stage/$name/completions/ollm.$shell"; done
    # The builder's own log gets no entry of it.
    OLLM_LOG_LEVEL=off "$runs" man --out "$stage/$name/man" 2> /dev/null
    # The same program makes the same archive, on every machine and at any time.
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime='2020-01-01 00:00Z' -C "$stage" -cf - "$name" | gzip -n9 > "$out/$name.tar.gz"
    rm -rf "$stage"
    (cd "$out" && sha256sum -- *.tar.gz > SHA256SUMS)
    echo "$out/$name.tar.gz"
}

if [ "${1:-}" = --pack ]; then
    pack "$2" "$3" "$2"
    exit
fi
folder="$profile"
[ "$profile" != dev ] || folder=debug
targets=("$@")
[ "${#targets[@]}" -gt 0 ] || targets=("${known[@]}")
runs=""
for target in "${targets[@]}"; do
    is_possible "$target" || continue
    build "$target"
    program="${CARGO_TARGET_DIR:-target}/$target/$folder/ollm"
    case "$target" in "$(uname -m)"-*) runs="$program" ;; esac
    [ -n "$runs" ] || { echo "$target is left out: build one that runs here before it" >&2; continue; }
    pack "$program" "$target" "$runs"
done
[ -n "$runs" ] || exit 75
