#!/usr/bin/env bash
# Lists and calls the tools of real MCP servers, over every transport they offer, and runs real language servers in the box.
#
#   scripts/real-servers.sh [FOLDER]
#
# The servers are installed from npm and PyPI into FOLDER, or into a temporary one that is removed again. Needs Node,
# Python 3 with venv, git, and the network. Exit status 75: they could not be installed within the deadline, so nothing was
# tried.
set -euo pipefail
cd "$(dirname "$0")/.."

folder="${1:-}"
if [ -z "$folder" ]; then
    folder="$(mktemp -d)"
    trap 'rm -rf "$folder"' EXIT
fi
mkdir -p "$folder"
folder="$(cd "$folder" && pwd)"

# Seconds that one registry may take.
deadline=300

not_installed() {
    echo "real servers are not tried: $1 could not be installed within $deadline s" >&2
    exit 75
}

if [ ! -e "$folder/node_modules/.bin/mcp-server-everything" ] || [ ! -e "$folder/node_modules/.bin/pyright-langserver" ]; then
    timeout "$deadline" npm install --prefix "$folder" --no-audit --no-fund --loglevel=error \
        @modelcontextprotocol/server-everything@2026.8.31 \
        @modelcontextprotocol/server-filesystem@2026.8.31 \
        @modelcontextprotocol/server-memory@2026.8.31 \
        @modelcontextprotocol/server-sequential-thinking@2026.8.31 \
        pyright@1.1.400 typescript-language-server@4.4.1 typescript@5.9.3 || not_installed "servers from npm"
fi
if [ ! -e "$folder/python/bin/mcp-server-fetch" ] || [ ! -e "$folder/python/bin/pylsp" ]; then
    python3 -m venv "$folder/python" || not_installed "a Python environment"
    timeout "$deadline" "$folder/python/bin/pip" install --quiet --disable-pip-version-check \
        mcp-server-time==2026.10.19 mcp-server-git==2026.10.19 mcp-server-fetch==2026.10.24 \
        'python-lsp-server[pyflakes]==1.15.0' || not_installed "servers from PyPI"
fi

# With the features of `cargo test --workspace`, so that nothing is built again.
OLLM_REAL_SERVERS="$folder" cargo test --workspace --test it -- --nocapture real_servers language_servers
