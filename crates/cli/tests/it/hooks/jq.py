#!/usr/bin/env python3
# As much of jq as the examples use.
import json
import sys

value = json.load(sys.stdin)
if sys.argv[1:] == ['{allow: true, message: "OK"}']:
    print(json.dumps({"allow": True, "message": "OK"}, indent=2))
elif sys.argv[1:] == ["-r", ".context.file"]:
    print(value["context"]["file"])
else:
    sys.exit(3)
