#!__SHELL__
# Tells the agent which branch is checked out, before it begins.
#
# The event comes as JSON on standard input; the answer is JSON on standard output.
cat >/dev/null
# What goes into JSON text must not hold quotes or backslashes.
branch=$(git branch --show-current 2>/dev/null | tr -d '"\\')
if [ -n "$branch" ]; then
  printf '{"continue": true, "systemMessage": "The branch that is checked out is %s."}\n' "$branch"
else
  printf '%s\n' '{"continue": true, "systemMessage": "This folder is under no branch of git."}'
fi
