#!/usr/bin/env bash
# Has the agent talk to a server that renders every question with a genuine chat template, as llama-server does.
#
#   scripts/real-templates.sh [WORD]    # only templates whose model's name has WORD in it
#
# Templates and renderer come from npm (@huggingface/ollama-utils, @huggingface/jinja) and are kept in the user's cache
# folder. Each template is asked for its rules, which must be those that crates/agent/src/provider/shape/templates.json
# records (UPDATE_TEMPLATES=1 writes it anew). Then for each of them a session with a hook's message, a tool call and a
# second prompt must end well; what a template refuses is told to the agent as llama-server tells it. Needs Node with npm, and the network for the first run. Exit
# status 75: the packages could not be fetched, so nothing was tried.
set -euo pipefail
cd "$(dirname "$0")/.."

folder="${XDG_CACHE_HOME:-$HOME/.cache}/ollm-real-templates"
mkdir -p "$folder"
if [ ! -e "$folder/.whole" ]; then
    (cd "$folder" && timeout 300 npm install --silent --no-audit --no-fund --ignore-scripts --prefix . \
        @huggingface/ollama-utils@0.0.18 @huggingface/jinja@0.5.10) ||
        { echo "real templates are not tried: they could not be fetched" >&2; exit 75; }
    touch "$folder/.whole"
fi
cargo build --quiet --workspace --bin ollm
exec node scripts/real_templates.mjs "$folder" "${CARGO_TARGET_DIR:-target}/debug/ollm" "${1:-}"
