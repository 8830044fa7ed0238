"""Refuses shell commands that force a push.

The event comes as JSON on standard input; the answer is JSON on standard output.
"""

import json
import shlex
import sys


def words(command):
    try:
        return shlex.split(command)
    except ValueError:  # an unfinished quote: judge what can be seen
        return command.split()


def forces_a_push(command):
    found = words(command)
    return "git" in found and "push" in found and any(
        word in ("-f", "--force") or word.startswith("--force-with-lease") for word in found
    )


event = json.load(sys.stdin)
command = event["data"].get("args", {}).get("command", "")
if forces_a_push(command):
    answer = {"continue": False, "systemMessage": "A forced push rewrites what others rely on; push without force."}
else:
    answer = {"continue": True}
json.dump(answer, sys.stdout)
