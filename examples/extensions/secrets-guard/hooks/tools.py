"""Refuses tool calls whose arguments hold a secret."""

import json
import sys

from secrets_guard import find

event = json.load(sys.stdin)
found = find(event.get("data", {}).get("args"))
if found:
    kind, where = found
    reason = f"{where} holds {kind}; name the variable or the file it is kept in instead."
    print(json.dumps({"continue": False, "systemMessage": reason}))
else:
    print(json.dumps({"continue": True}))
