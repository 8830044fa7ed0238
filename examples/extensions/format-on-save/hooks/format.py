"""Formats the file of a file event.

JSON is formatted here, by changing its white space and nothing else; for everything else the first formatter that is installed is started, without a shell. A file
that cannot be formatted stays unchanged, and the reason is told.
"""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile

# A text, a mark, or a number or word: everything but white space, as it is written.
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def layout(text, indent, end):
    """The same JSON with other white space: nothing that is written in it is read and written anew."""
    tokens = TOKEN.findall(text)
    out, depth = [], 0
    for at, token in enumerate(tokens):
        following = tokens[at + 1] if at + 1 < len(tokens) else ""
        if token in ("}", "]") and tokens[at - 1] not in ("{", "["):
            depth -= 1
            out.append(end + " " * (indent * depth))
        out.append(token)
        if token == ":":
            out.append(" ")
        elif token in ("{", "[") and following not in ("}", "]"):
            depth += 1
            out.append(end + " " * (indent * depth))
        elif token == ",":
            out.append(end + " " * (indent * depth))
    return "".join(out) + end


def replace(path, text):
    """Puts a new file in the place of the old one: no reader ever sees half of it."""
    handle, new = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".format-")
    try:
        with open(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), stat.S_IMODE(os.stat(path).st_mode))
            os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException:
        os.unlink(new)
        raise


def format_json(path):
    with open(path, encoding="utf-8", newline="") as file:
        before = file.read()
    # What is no JSON is left alone.
    json.loads(before)
    indent = int(os.environ.get("EXTENSION_FORMAT_ON_SAVE_JSON_INDENT", "2"))
    after = layout(before, indent, "\r\n" if "\r\n" in before else "\n")
    if after == before:
        return False
    replace(path, after)
    return True


def start_formatter(suffix, path):
    """Starts the first formatter that is installed. Its name is written out, so that an approval can be bound to it."""
    options = {"capture_output": True, "text": True, "timeout": 25}
    if suffix == ".py" and shutil.which("ruff"):
        return subprocess.run(["ruff", "format", "--quiet", path], **options)
    if suffix == ".py" and shutil.which("black"):
        return subprocess.run(["black", "--quiet", path], **options)
    if suffix == ".rs" and shutil.which("rustfmt"):
        return subprocess.run(["rustfmt", "--edition", "2024", path], **options)
    if suffix == ".go" and shutil.which("gofmt"):
        return subprocess.run(["gofmt", "-w", path], **options)
    if suffix not in (".py", ".rs", ".go") and shutil.which("prettier"):
        return subprocess.run(["prettier", "--write", "--log-level", "warn", path], **options)
    return None


def format_with_program(suffix, path):
    with open(path, "rb") as file:
        before = file.read()
    run = start_formatter(suffix, path)
    if run is None:
        return False
    if run.returncode != 0:
        raise ValueError(run.stderr.strip() or f"{run.args[0]} failed")
    with open(path, "rb") as file:
        return file.read() != before


def main():
    data = json.load(sys.stdin).get("data", {})
    path = os.path.join(data.get("cwd") or os.getcwd(), data.get("path") or "")
    answer = {"continue": True}
    # A link may lead anywhere: only the file itself was written.
    if os.path.isfile(path) and not os.path.islink(path):
        suffix = os.path.splitext(path)[1]
        try:
            changed = format_json(path) if suffix == ".json" else format_with_program(suffix, path)
            if changed:
                answer["systemMessage"] = f"{data['path']} was formatted; read it again before you edit it."
        except (ValueError, OSError, RecursionError, subprocess.SubprocessError) as error:
            answer["systemMessage"] = f"{data['path']} could not be formatted: {error}"
    print(json.dumps(answer))


main()
