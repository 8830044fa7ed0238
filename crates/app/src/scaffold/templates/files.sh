#!__SHELL__
# Refuses calls that name a file which matches one of the patterns.
#
# $1 holds the files that the call names, one per line; $2 the commands of its shell text, one per line, as plain words.
# Both are the same for every agent. The answer is JSON on standard output. A failure of this script refuses the call too,
# because `onFailure` is `block` in the hook file.
#
# `*` stands for any text, `?` for one character. Case does not count.
set -fu

# Blanks within a word are tabs: it may name a file as a whole, and in its parts.
words=$(printf '%s\n' "${2?}" | tr ' =@:,' '\n\n\n\n\n') || exit 1
parts=$(printf '%s\n' "$words" | tr '\t' '\n') || exit 1
whole=$(printf '%s\n' "$words" | tr '\t' ' ') || exit 1
names=$(printf '%s\n' "${1?}" "$whole" "$parts" | tr '[:upper:]' '[:lower:]') || exit 1
while IFS= read -r name; do
  case /$name/ in
  //) ;;
  __PATTERNS__)
    printf '%s\n' __ANSWER__
    exit 0
    ;;
  esac
done <<END
$names
END
printf '%s\n' '{"continue": true}'
