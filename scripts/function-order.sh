#!/usr/bin/env bash
# Writes crates/cli/function-order.txt: the functions that usual events run, for the linker to put side by side.
#
#   scripts/function-order.sh
#
# Builds the program with its symbols, counts what it runs with valgrind, and finds each function in the linker's map. Wanted
# after a larger change of what `ollm hook run` does: a function that is not in the list costs a page fault. Build the release
# again afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."

list="$PWD/crates/cli/function-order.txt"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cargo rustc --release --locked --package ollm --bin ollm -- -C strip=none -C link-arg="-Wl,-Map=$folder/map"
cp "${CARGO_TARGET_DIR:-target}/release/ollm" "$folder/ollm"

mkdir -p "$folder"/{hit,miss,project,project/inner}/.ollm/hooks
hook() { printf '{"hooks": {"before_tool": [{"name": "no-op", "command": "/bin/true", "matcher": "%s"}]}}' "$1"; }
hook other_tool > "$folder/miss/.ollm/hooks/hooks.json"
for home in hit project project/inner; do hook '*' > "$folder/$home/.ollm/hooks/hooks.json"; done
printf 'hooks:\n  timeout: 20000\n' > "$folder/project/.ollm/config.yaml"
call='"tool_name": "Bash", "tool_input": {"command": "git status"}, "tool_use_id": "1"'
change='"tool_name": "Write", "tool_input": {"file_path": "a", "content": "b"}, "tool_response": {}, "tool_use_id": "2"'
claude() { printf '{"session_id": "s", "cwd": "%s", "hook_event_name": "%s", %s}' "$folder/hit" "$1" "$2"; }

# One event: its home, the folder below, the arguments; the event comes on standard input.
cases=0
event() {
    local home="$folder/$1" inner="$2"
    shift 2
    cases=$((cases + 1))
    (
        cd "$home/$inner"
        env -i HOME="$home" PATH=/usr/bin:/bin valgrind --quiet --tool=callgrind --demangle=no \
            --log-file="$folder/log" --callgrind-out-file="$folder/run.$cases" "$folder/ollm" hook run "$@"
    ) > /dev/null
}
plain='{"event": "before_tool", "data": {"tool_name": "shell", "args": {"command": "ls"}}}'
all() {
    cases=0
    event miss . <<< "$plain"
    event hit . <<< "$plain"
    event project inner <<< "$plain" 2> /dev/null
    claude PreToolUse "$call" | event hit . --from claude
    claude PostToolUse "$change" | event hit . --from claude
}
# Files are remembered once they have been quiet for two seconds; then events are what they usually are.
sleep 3
all
mv "$folder/run.3" "$folder/first"
all
mv "$folder/first" "$folder/run.$((cases + 1))"

# The map: a section's size and place, its file, the section in parentheses. The profiles: `fn=(number) name`.
awk -v map="$folder/map" '
    BEGIN {
        while ((getline line < map) > 0) {
            if (line !~ /:\(\.text\.[^)]*\)$/) continue
            at = index(line, ":(.text.")
            section = substr(line, at + 8); sub(/\)$/, "", section); sub(/\.llvm\.[0-9]+$/, "", section)
            file = substr(line, 1, at - 1); sub(/\)$/, "", file); sub(/^.*[\/(]/, "", file)
            if (!sub(/-[0-9a-f]+\..*$/, "", file)) continue
            name = section; sub(/^(unlikely|hot|startup)\./, "", name)
            found[name] = file " " section
        }
    }
    /^c?fn=\([0-9]+\) / {
        name = $2; sub(/\047[0-9]+$/, "", name); sub(/\.llvm\.[0-9]+$/, "", name)
        if (name in found && !(found[name] in told)) { told[found[name]]; print found[name] }
    }
' "$folder"/run.? > "$list"
echo "$(wc -l < "$list") functions are in $list"
