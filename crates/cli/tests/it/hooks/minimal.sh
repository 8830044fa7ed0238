#!/bin/bash
cat | python3 -c 'import json, sys; json.load(sys.stdin); print(json.dumps({"allow": True, "message": "OK"}, indent=2))'
