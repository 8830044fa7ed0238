"""An MCP server that behaves as badly as its first argument says."""

import json
import os
import signal
import subprocess
import sys
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else "normal"
TOOLS = ["echo", "die", "error", "failed", "huge", "hang", "steps", "ask", "sample", "roots", "env", "grow", "child"]
EXTRA = []


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tool(name):
    return {"name": name, "description": "the tool " + name, "inputSchema": {"type": "object", "x-own": [1, None]}}


def text(value):
    return {"content": [{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}]}


def ask(method, params):
    """Asks the client, and waits for the answer."""
    send({"id": "q1", "method": method, "params": params})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "q1":
            return message.get("result", message.get("error"))


def call(request):
    name, args = request["params"]["name"], request["params"].get("arguments", {})
    if name == "echo":
        return {**text(args), "structuredContent": args}
    if name == "give":
        for step, message in enumerate(args["steps"]):
            token = request["params"]["_meta"]["progressToken"]
            params = {"progressToken": token, "progress": step, "message": message}
            send({"method": "notifications/progress", "params": params})
        return args["result"]
    if name == "die":
        print("dying now", file=sys.stderr, flush=True)
        os._exit(9)
    if name == "failed":
        return {**text("it did not work"), "isError": True}
    if name == "huge":
        return text("x" * args["size"])
    if name == "steps":
        token = request["params"]["_meta"]["progressToken"]
        for step in range(1, args["count"] + 1):
            time.sleep(args.get("pause", 0))
            params = {"progressToken": token, "progress": step, "total": args["count"], "message": f"step {step}"}
            send({"method": "notifications/progress", "params": params})
        return text("done")
    if name == "ask":
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        return text(ask("elicitation/create", {"message": "Who?", "requestedSchema": schema}))
    if name == "sample":
        message = {"role": "user", "content": {"type": "text", "text": "Hi"}}
        return text(ask("sampling/createMessage", {"messages": [message], "maxTokens": 5}))
    if name == "roots":
        return text(ask("roots/list", {}))
    if name == "env":
        return text(dict(os.environ))
    if name == "grow":
        EXTRA.append("grown")
        send({"method": "notifications/tools/list_changed"})
        return text("grown")
    if name == "stray":
        return text(str(subprocess.Popen(["sleep", "300"], start_new_session=True).pid))
    if name == "child":
        return text(str(subprocess.Popen(["sleep", "300"]).pid))
    return None


def ask_back(request, question=None, state=None):
    """Answers with a question instead of a result."""
    schema = {"type": "object", "properties": {}}
    params = {"mode": "form", "message": question, "requestedSchema": schema}
    asked = {"who": {"method": "elicitation/create", "params": params}} if question else {}
    result = {"resultType": "input_required", "inputRequests": asked, "requestState": state}
    send({"id": request["id"], "result": {key: value for key, value in result.items() if value is not None}})


def list_tools(params):
    if MODE == "many":
        return {"tools": [tool(f"tool{number}") for number in range(10_000)]}
    if MODE == "circle":
        return {"tools": [tool("again")], "nextCursor": "same"}
    if MODE == "odd":
        return {"tools": [tool("good"), {"name": 7}, "what", tool("better")]}
    if MODE == "unlisted":
        return {"what": "is this"}
    page = (params or {}).get("cursor")
    if MODE == "torn":
        return {"what": "is this"} if page else {"tools": [tool("first")], "nextCursor": "1"}
    if MODE == "wordy":
        return {"tools": [tool("first")], "nextCursor": "w" * 100_000}
    if MODE == "unending":
        return {"tools": [tool("first")] if not page else [], "nextCursor": str(int(page or 0) + 1)}
    if MODE == "pages":
        page = int(page or 0)
        return {"tools": [tool(f"page{page}")], **({"nextCursor": str(page + 1)} if page < 2 else {})}
    return {"tools": [tool(name) for name in TOOLS + EXTRA]}


def answer(request):
    method = request["method"]
    able = {"tools": {"listChanged": True}, "prompts": {}, "resources": {}, "logging": {}}
    if method == "server/discover":
        if MODE == "allergic":
            os._exit(1)
        if MODE == "quiet":
            return
        if MODE == "stateless":
            meta = {"io.modelcontextprotocol/serverInfo": {"name": "fake", "version": "1"}}
            able = {"tools": {}}
            return send({"id": request["id"], "result": {
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": able,
                "ttlMs": 0, "cacheScope": "private", "_meta": meta}})
        return send({"id": request["id"], "error": {"code": -32601, "message": "what?"}})
    if method == "initialize":
        if MODE == "stateless":
            return send({"id": request["id"], "error": {"code": -32600, "message": "too old"}})
        send({"method": "notifications/message", "params": {"level": "info", "data": "hello from the log"}})
        return send({"id": request["id"], "result": {
            "protocolVersion": "2099-01-01" if MODE == "future" else request["params"]["protocolVersion"],
            "capabilities": able, "serverInfo": {"name": "fake", "version": "1"}, "instructions": "be kind"}})
    if method == "tools/list":
        if MODE == "listless":
            return None
        return send({"id": request["id"], "result": list_tools(request.get("params"))})
    if method == "tools/call":
        if MODE == "stateless":
            assert request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
            name, state = request["params"]["name"], request["params"].get("requestState")
            if name == "ask" and "inputResponses" not in request["params"]:
                return ask_back(request, "Who?", "s1")
            if name == "again":
                return ask_back(request, "Who?", "s1")
            if name == "nothing":
                return ask_back(request)
            if name == "later":
                return send({"id": request["id"], "result": text("now")}) if state else ask_back(request, state="s2")
            if request["params"]["name"] == "ask":
                assert request["params"]["requestState"] == "s1"
                return send({"id": request["id"], "result": text(request["params"]["inputResponses"]["who"])})
        if request["params"]["name"] == "error":
            error = {"code": -32001, "message": "no such \u001b[31mcity", "data": {"city": "Ys"}}
            return send({"id": request["id"], "error": error})
        if request["params"]["name"] == "raise":
            return send({"id": request["id"], "error": request["params"]["arguments"]})
        if request["params"]["name"] == "hang":
            return
        return send({"id": request["id"], "result": call(request)})
    if method == "prompts/list":
        return send({"id": request["id"], "result": {"prompts": [{"name": "greet"}]}})
    if method in ("prompts/get", "resources/read") and MODE == "stateless" and "inputResponses" not in request["params"]:
        return ask_back(request, "Who?", "s3")
    if method == "prompts/get":
        message = {"role": "user", "content": {"type": "text", "text": "Hello " + request["params"]["arguments"]["who"]}}
        return send({"id": request["id"], "result": {"messages": [message]}})
    if method == "resources/list":
        return send({"id": request["id"], "result": {"resources": [{"uri": "mem:one", "name": "one"}]}})
    if method == "resources/templates/list":
        return send({"id": request["id"], "result": {"resourceTemplates": [{"uriTemplate": "mem:{x}", "name": "any"}]}})
    if method == "resources/read":
        contents = [{"uri": request["params"]["uri"], "text": "its text"}]
        return send({"id": request["id"], "result": {"contents": contents}})
    if method == "ping":
        if MODE == "hung":
            return
        return send({"id": request["id"], "result": {}})
    send({"id": request["id"], "error": {"code": -32601, "message": "what?"}})


def main():
    if MODE == "exit":
        print("cannot find my keys, api_key=" + os.environ.get("API_KEY", ""), file=sys.stderr)
        sys.exit(3)
    if MODE == "mute":
        print("thinking", file=sys.stderr, flush=True)
        time.sleep(300)
    if MODE == "hung":
        print("I shall say no more", file=sys.stderr, flush=True)
    if MODE == "rubbish":
        while True:
            sys.stdout.write("this is no message\n" * 1000)
    if MODE == "endless":
        while True:
            sys.stdout.write("x" * 65536)
    if MODE == "loud":
        for _ in range(200):
            sys.stderr.write(("y" * 1000 + "\n") * 100)
    if MODE == "banner":
        print("Welcome to the server!\n\n{\"half\": ", flush=True)
    if MODE == "daemon":
        parent = os.getpid()
        if os.fork():
            sys.exit(0)
        while os.getppid() == parent:
            time.sleep(0.01)
    if MODE == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "notifications/cancelled":
            print("cancelled", file=sys.stderr, flush=True)
        if "id" in message and "method" in message:
            answer(message)
    while MODE == "deaf":
        time.sleep(300)


main()
