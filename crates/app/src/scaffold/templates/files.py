#!/usr/bin/env python3
"""Refuses calls that name a file which matches one of the patterns.

The first argument holds the files that the call names, one per line; the second the commands of its shell text, one per
line, as plain words. Both are the same for every agent. The answer is JSON on standard output. A failure of this script
refuses the call too, because `onFailure` is `block` in the hook file.
"""

import re
import sys

# `*` stands for any text, `?` for one character. Case does not count.
PATTERNS = __PATTERNS__
ANSWER = __ANSWER__
WILD = {"*": ".*", "?": "."}


def matches(pattern, name):
    expression = "".join(WILD.get(char, re.escape(char)) for char in pattern)
    return re.search(f"/{expression}/", f"/{name.lower()}/", re.DOTALL) is not None


files, commands = sys.argv[1:3]
# Blanks within a word are tabs: it may name a file as a whole, and in its parts.
words = re.split(r"[ \n=@:,]", commands)
parts = re.split(r"[\s=@:,]", commands)
names = files.split("\n") + [word.replace("\t", " ") for word in words] + parts
found = any(matches(pattern, name) for pattern in PATTERNS for name in names if name)
print(ANSWER if found else '{"continue": true}')
