"""Warns when a prompt holds a secret: it has been seen by then, so it should be replaced, not refused."""

import json
import sys

from secrets_guard import find

event = json.load(sys.stdin)
found = find(event.get("data", {}).get("prompt"))
answer = {"continue": True}
if found:
    answer["systemMessage"] = f"The prompt holds {found[0]}. Do not repeat it anywhere, and advise to replace it."
print(json.dumps(answer))
