#!/bin/sh
# Installs ollm from a release archive, after comparing its checksum.
#
#   sh install.sh FILE.tar.gz            # an archive beside its SHA256SUMS
#   sh install.sh https://…/FILE.tar.gz  # the same, from a web server
#   sh install.sh https://…/FOLDER/      # the archive for this machine
#
# OLLM_INSTALL_DIR names another folder for the program than ~/.local/bin. Nothing else on the machine is changed but the manual
# pages in ~/.local/share/man.
set -eu

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

[ "$#" -eq 1 ] || fail "name an archive, its address, or the address of a folder with archives"
source="$1"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# Fetches an address or a file into a file.
fetch() {
    case "$1" in
        http://*@*) fail "$1: only https is fetched" ;;
        https://* | http://127.0.0.1:* | http://localhost:*)
            if command -v curl >/dev/null 2>&1; then
                # Encrypted once, encrypted all the way.
                case "$1" in https://*) only='=https' ;; *) only='=https,http' ;; esac
                curl -fsSL --proto "$only" -o "$2" "$1" || fail "$1 cannot be fetched"
            elif command -v wget >/dev/null 2>&1; then
                # It would follow a redirect to an address that is not encrypted.
                wget -q --max-redirect=0 -O "$2" "$1" || fail "$1 cannot be fetched; with curl, redirects are followed"
            else
                fail "neither curl nor wget is installed"
            fi
            ;;
        http://*) fail "$1: only https is fetched" ;;
        *) cp -- "$1" "$2" 2>/dev/null || fail "$1 cannot be read" ;;
    esac
}

# Takes the line of one file out of the list of checksums.
sum_of() {
    awk -v name="$1" '$2 == name || $2 == "*" name { print $1 }' "$work/SHA256SUMS"
}

machine="$(uname -m)"
case "$machine" in arm64) machine=aarch64 ;; esac
[ "$(uname -s)" = Linux ] || fail "there are archives for Linux only; elsewhere: cargo install --locked --path crates/cli"

case "$source" in
    */*.tar.gz) folder="${source%/*}" name="${source##*/}" ;;
    *.tar.gz) folder=. name="$source" ;;
    *) folder="${source%/}" name="" ;;
esac
fetch "$folder/SHA256SUMS" "$work/SHA256SUMS"
if [ -z "$name" ]; then
    name="$(awk -v machine="$machine-unknown-linux" 'index($2, machine) { print $2 }' "$work/SHA256SUMS" | sort -V | tail -n 1)"
    [ -n "$name" ] || fail "$folder has no archive for $machine"
fi
case "$name" in */* | .* | -*) fail "$name is no name of an archive" ;; esac
wanted="$(sum_of "$name")"
[ -n "$wanted" ] || fail "$folder/SHA256SUMS has no line for $name"
fetch "$folder/$name" "$work/archive"
if command -v sha256sum >/dev/null 2>&1; then
    found="$(sha256sum "$work/archive" | cut -d' ' -f1)"
else
    found="$(shasum -a 256 "$work/archive" | cut -d' ' -f1)"
fi
[ "$found" = "$wanted" ] || fail "$name is not what SHA256SUMS says: it has $found, not $wanted; nothing was installed"

mkdir "$work/inside"
tar -xzf "$work/archive" -C "$work/inside" || fail "$name cannot be unpacked"
program="$(echo "$work"/inside/*/ollm)"
[ -f "$program" ] && [ ! -L "$program" ] || fail "$name holds no program"
version="$("$program" --version)" || fail "the program of $name does not run on this machine"

bin="${OLLM_INSTALL_DIR:-$HOME/.local/bin}"
mkdir -p "$bin"
# Renamed into place, so that one that runs is not disturbed.
cp "$program" "$bin/.ollm.new.$$"
chmod 755 "$bin/.ollm.new.$$"
mv -f "$bin/.ollm.new.$$" "$bin/ollm"
pages="${XDG_DATA_HOME:-$HOME/.local/share}/man/man1"
mkdir -p "$pages" && cp "${program%/*}"/man/*.1 "$pages/" 2>/dev/null || echo "install.sh: the manual is not installed" >&2

echo "$version is in $bin/ollm; \`ollm completions install\` lets your shell complete its commands"
case ":$PATH:" in
    *":$bin:"*) ;;
    *) echo "put $bin into your PATH, then run: ollm" ;;
esac
