"""Formats the file of a file event in place.

JSON is formatted here; for everything else the first formatter that is installed is started, without a shell. A file
that cannot be formatted stays as it is, and the reason is told.
"""

import json
import os
import shutil
import subprocess
import sys

FORMATTERS = {
    ".py": [["ruff", "format", "--quiet"], ["black", "--quiet"]],
    ".rs": [["rustfmt", "--edition", "2024"]],
    ".go": [["gofmt", "-w"]],
}
PRETTIER = [["prettier", "--write", "--log-level", "warn"]]


def format_json(path):
    with open(path, encoding="utf-8") as file:
        before = file.read()
    indent = int(os.environ.get("EXTENSION_FORMAT_ON_SAVE_JSON_INDENT", "2"))
    after = json.dumps(json.loads(before), indent=indent, ensure_ascii=False) + "\n"
    if after == before:
        return False
    with open(path, "w", encoding="utf-8") as file:
        file.write(after)
    return True


def format_with(formatters, path):
    for command in formatters:
        if shutil.which(command[0]):
            with open(path, "rb") as file:
                before = file.read()
            run = subprocess.run([*command, path], capture_output=True, text=True, timeout=25)
            if run.returncode != 0:
                raise ValueError(run.stderr.strip() or f"{command[0]} failed")
            with open(path, "rb") as file:
                return file.read() != before
    return False


def main():
    data = json.load(sys.stdin).get("data", {})
    path = os.path.join(data.get("cwd") or os.getcwd(), data.get("path") or "")
    answer = {"continue": True}
    # A link may lead anywhere: only the file itself was written.
    if os.path.isfile(path) and not os.path.islink(path):
        suffix = os.path.splitext(path)[1]
        try:
            changed = format_json(path) if suffix == ".json" else format_with(FORMATTERS.get(suffix, PRETTIER), path)
            if changed:
                answer["systemMessage"] = f"{data['path']} was formatted; read it again before you edit it."
        except (ValueError, OSError, subprocess.SubprocessError) as error:
            answer["systemMessage"] = f"{data['path']} could not be formatted: {error}"
    print(json.dumps(answer))


main()
