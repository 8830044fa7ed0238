#!__SHELL__
# Keeps a log of tool calls, one event per line.
#
# $1 is the name of the tool. The event comes as JSON on standard input, too; the answer is JSON on standard output.
set -u
cat >/dev/null
umask 077
folder=${XDG_STATE_HOME:-$HOME/.local/state}/ollm-hooks
# What goes into JSON text must not hold quotes or backslashes.
tool=$(printf '%s' "${1-}" | tr -cd 'A-Za-z0-9_.:/-') || exit 1
line=$(printf '{"time": "%s", "event": "%s", "tool": "%s"}' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$OLLM_EVENT" "$tool")
mkdir -p "$folder" && printf '%s\n' "$line" >>"$folder/__NAME__.log" || exit 1
printf '%s\n' '{"continue": true}'
