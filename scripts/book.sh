#!/usr/bin/env bash
# Builds the pages of docs/ as a book, with mdBook and without a network.
#
#   scripts/book.sh [FOLDER]       # into FOLDER, or into target/book
#
# Fails where mdBook warns, and where a link of the book leads nowhere. Exit status 75: mdBook is not installed, so nothing was built.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v mdbook >/dev/null || {
    echo "the book is not built: mdbook is not installed; \`cargo install mdbook --locked\` installs it" >&2
    exit 75
}

folder="$(realpath -m "${1:-target/book}")"
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
mdbook build --dest-dir "$folder" 2>&1 | tee "$log"
if grep -qE '\b(WARN|ERROR)\b' "$log"; then exit 1; fi
python3 scripts/book_links.py "$folder"
