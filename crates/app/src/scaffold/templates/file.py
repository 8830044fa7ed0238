#!/usr/bin/env python3
"""Tells the agent what a file says, before it begins: at most 32 KiB of it.

The event comes as JSON on standard input; the answer is JSON on standard output.
"""

import json
import os
import pathlib
import sys

FILE = __FILE__

json.load(sys.stdin)
answer = {"continue": True}
path = pathlib.Path(os.environ.get("OLLM_PROJECT_DIR", "."), FILE)
if path.is_file():
    with path.open("rb") as file:
        answer["systemMessage"] = file.read(32 << 10).decode("utf-8", "replace")
json.dump(answer, sys.stdout)
