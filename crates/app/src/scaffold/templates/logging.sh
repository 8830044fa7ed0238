#!/bin/sh
# Keeps a log of tool calls, one event per line.
#
# The event comes as JSON on standard input; the answer is JSON on standard output.
umask 077
folder=${XDG_STATE_HOME:-$HOME/.local/state}/ollm-hooks
mkdir -p "$folder" && cat >>"$folder/__NAME__.log" || exit 1
printf '%s\n' '{"continue": true}'
