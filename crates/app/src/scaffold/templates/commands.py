#!/usr/bin/env python3
"""Answers calls whose commands match one of the patterns.

The argument holds the commands of the shell text, one per line, as plain words; it is the same for every agent. The answer
is JSON on standard output. A failure of this script counts as a match, because of `onFailure` in the hook file.
"""

import re
import sys

# The words of a pattern must stand in one command, in this order. `*` stands for any text, `?` for one character.
PATTERNS = __PATTERNS__
ANSWER = __ANSWER__
WILD = {"*": ".*", "?": "."}


def fits(pattern, word):
    expression = "".join(WILD.get(char, re.escape(char)) for char in pattern)
    return re.fullmatch(expression, word, re.DOTALL) is not None


def matches(pattern, command):
    first, *others = pattern.split()
    words = iter(command.split(" "))
    # A program may be called by its path.
    return any(fits(first, word.rsplit("/", 1)[-1]) for word in words) and all(
        any(fits(part, word) for word in words) for part in others
    )


commands = sys.argv[1].split("\n")
found = any(matches(pattern, command) for pattern in PATTERNS for command in commands)
print(ANSWER if found else '{"continue": true}')
