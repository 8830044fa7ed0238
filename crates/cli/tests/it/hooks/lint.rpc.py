#!/usr/bin/env python3
import json
import sys

request = json.load(sys.stdin)
assert request["jsonrpc"] == "2.0" and request["method"] == "execute", request
event = request["params"]["event"]
assert isinstance(event["timestamp"], int), event
assert request["params"]["context"]["agent"] == {"mode": "developer"}, request
if event["data"]["path"].endswith(".ts"):
    answer = {"result": {"action": "askAgent", "prompt": "Run linting on the edited file",
                         "metadata": {"executionTime": 123, "success": True}}}
else:
    answer = {"error": {"code": -32603, "message": "Hook execution failed",
                        "data": {"reason": "Command not found", "details": event["type"]}}}
print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}))
