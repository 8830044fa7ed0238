#!/usr/bin/env python3
"""Tells the agent which branch is checked out, before it begins.

The event comes as JSON on standard input; the answer is JSON on standard output.
"""

import json
import subprocess
import sys

json.load(sys.stdin)
try:
    git = subprocess.run(["git", "branch", "--show-current"], capture_output=True, text=True)
    branch = git.stdout.strip()
except FileNotFoundError:  # no git, no branch
    branch = ""
text = f"The branch that is checked out is {branch}." if branch else "This folder is under no branch of git."
json.dump({"continue": True, "systemMessage": text}, sys.stdout)
