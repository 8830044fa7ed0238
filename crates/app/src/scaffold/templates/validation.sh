#!/bin/sh
# Refuses shell commands that force a push.
#
# The event comes as JSON on standard input; the answer is JSON on standard output. A shell cannot read JSON, so this
# looks for words in the text of the event; for anything finer use Python, Node or Rust.
event=$(cat)
case $event in
*"git push"*--force* | *"git push"*" -f"*)
  printf '%s\n' '{"continue": false, "systemMessage": "A forced push rewrites what others rely on; push without force."}'
  ;;
*)
  printf '%s\n' '{"continue": true}'
  ;;
esac
