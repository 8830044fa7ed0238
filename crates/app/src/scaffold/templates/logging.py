#!/usr/bin/env python3
"""Keeps a log of tool calls, one event per line.

The event comes as JSON on standard input; the answer is JSON on standard output.
"""

import json
import os
import pathlib
import sys

event = json.load(sys.stdin)
state = os.environ.get("XDG_STATE_HOME") or pathlib.Path.home() / ".local/state"
folder = pathlib.Path(state) / "ollm-hooks"
folder.mkdir(mode=0o700, parents=True, exist_ok=True)
data = event["data"]
line = {"time": data.get("timestamp"), "session": data.get("session_id"), "tool": data.get("tool_name")}
with open(folder / "__NAME__.log", "a", opener=lambda path, flags: os.open(path, flags, 0o600)) as log:
    log.write(json.dumps(line) + "\n")
json.dump({"continue": True}, sys.stdout)
