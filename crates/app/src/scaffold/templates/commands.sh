#!__SHELL__
# Answers calls whose commands match one of the patterns.
#
# $1 holds the commands of the shell text, one per line, as plain words; it is the same for every agent. The answer is
# JSON on standard output. A failure of this script counts as a match, because of `onFailure` in the hook file.
#
# The words of a pattern must stand in one command, in this order. `*` stands for any text, `?` for one character.
set -fu

# Two spaces between words, so that the patterns below can each take their own.
lines=$(printf '%s\n' "${1?}" | sed 's/ /  /g; s/^/ /; s/$/ /') || exit 1
while IFS= read -r line; do
  case $line in
  __PATTERNS__)
    printf '%s\n' __ANSWER__
    exit 0
    ;;
  esac
done <<END
$lines
END
printf '%s\n' '{"continue": true}'
