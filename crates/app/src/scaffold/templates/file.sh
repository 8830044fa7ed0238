#!__SHELL__
# Tells the agent what a file says, before it begins: whole lines, at most 32 KiB of them.
#
# The event comes as JSON on standard input; the answer is JSON on standard output.
set -u
cat >/dev/null
cd "${OLLM_PROJECT_DIR:-.}" || exit 1
file=__FILE__
if [ ! -r "$file" ]; then
  printf '%s\n' '{"continue": true}'
  exit 0
fi
# JSON text holds no control characters, and quotes and backslashes only behind a backslash.
text=$(tr -d '\000-\010\013-\037\177' <"$file" |
  sed 's/\\/\\\\/g; s/"/\\"/g; s/	/\\t/g' |
  awk '{ size += length($0) + 1; if (size > 32768) exit; printf "%s\\n", $0 }') || exit 1
printf '{"continue": true, "systemMessage": "%s"}\n' "$text"
