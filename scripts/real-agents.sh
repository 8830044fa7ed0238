#!/usr/bin/env bash
# Connects real agents, and has each of them run, be refused, and be given another command.
#
#   scripts/real-agents.sh [AGENT...]      # gemini codex claude qwen opencode copilot droid cline; all without an argument
#
# Each agent is installed from npm into target/real-agents, once for each version. Its model is a server of ours on the
# loopback, so that no account is needed. Where this machine lets us, the agents have no other network. Needs Node, npm, and
# the network for the first time. Exit status 75: an agent could not be installed, or the deadline passed, so nothing is known.
set -euo pipefail
cd "$(dirname "$0")/.."

folder="$PWD/target/real-agents"
[ $# -gt 0 ] || set -- gemini codex claude qwen opencode copilot droid cline
# Seconds that the installation of one agent may take, and all of them together to run.
install_deadline=120
run_deadline=$((60 + 60 * $#))

packages() {
    case "$1" in
        gemini) echo @google/gemini-cli@0.61.0 ;;
        codex) echo @openai/codex@0.169.0 ;;
        claude) echo @anthropic-ai/claude-code@2.1.328 ;;
        # It needs a newer Node than others.
        qwen) echo @qwen-code/qwen-code@0.24.4 node@22 ;;
        # It loads plugins only beside this package.
        opencode) echo opencode-ai@1.18.33 @opencode-ai/plugin@1.18.33 ;;
        copilot) echo @github/copilot@1.0.102 ;;
        droid) echo droid@0.215.0 ;;
        cline) echo cline@3.0.65 ;;
        *)
            echo "no agent is called \`$1\`; there are gemini, codex, claude, qwen, opencode, copilot, droid and cline" >&2
            exit 64
            ;;
    esac
}

not_tried() {
    echo "real agents are not tried: $1" >&2
    exit 75
}

install() {
    local wanted
    wanted="$(packages "$1")"
    echo "$1: $wanted"
    if [ "$(cat "$folder/$1/installed" 2>/dev/null)" != "$wanted" ]; then
        rm -rf "${folder:?}/$1"
        mkdir -p "$folder/$1"
        # shellcheck disable=SC2086 # one word for each package
        timeout "$install_deadline" npm install --prefix "$folder/$1" --no-audit --no-fund --loglevel=error $wanted ||
            not_tried "$1 could not be installed within $install_deadline s"
        echo "$wanted" >"$folder/$1/installed"
    fi
}

for agent in "$@"; do install "$agent"; done

# With the features of `cargo test --workspace`, so that nothing is built again.
cargo test --workspace --test it --no-run

scratch="$(mktemp -d)"
clean() {
    # An agent that was cut off at the deadline may have left a helper behind.
    for process in /proc/[0-9]*; do
        ! grep -qsF "HOME=$scratch/" "$process/environ" || kill -KILL "${process#/proc/}" 2>/dev/null || true
    done
    rm -rf "$scratch"
}
trap clean EXIT

fence=(env)
# In a user namespace no command may connect agents, so without root there is no fence.
if [ "$(id -u)" = 0 ] && unshare --net ip link set lo up 2>/dev/null; then
    fence=(unshare --net sh -c 'ip link set lo up && exec "$@"' sh)
else
    echo "the agents keep the network of this machine: only root can take it from them, with unshare and ip" >&2
fi
status=0
TMPDIR="$scratch" OLLM_REAL_AGENTS="$folder" timeout --kill-after=10 "$run_deadline" \
    "${fence[@]}" cargo test --workspace --offline --test it -- "${@/#/real_agents::}" || status=$?
case "$status" in
    # What `timeout` says when it ended them, politely or not.
    124 | 137) not_tried "they did not end within $run_deadline s" ;;
    *) exit "$status" ;;
esac
