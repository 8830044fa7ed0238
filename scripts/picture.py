#!/usr/bin/env python3
"""Records a session of the program in a throwaway home, and draws it as docs/picture.svg.

    picture.py [PROGRAM]      # target/debug/ollm, if none is named

All output in the picture is what the program printed on a terminal of its own; only the home is called /home/you. The picture is text
with the colours of the terminal, in two palettes. It needs no font and nothing else from elsewhere. Exit status 1: a command
ended otherwise than it should, and the picture is left as it was.
"""

import fcntl
import html
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/picture.svg"
COLUMNS, ROWS = 100, 60
# Seconds and bytes that one command may take.
DEADLINE, LIMIT = 60, 1 << 20

# What is typed, and the exit status that it ends with.
SESSION = [
    ("ollm hook new no-force --deny-commands 'git push --force*' --in sh", 0),
    ("ollm hook test no-force --all", 0),
    ("ollm connect claude", 0),
    ("ollm hook run --from claude < push.json", 0),
    ("ollm hook run --from claude < forced-push.json", 0),
    ("ollm trace", 0),
]
# Two calls as Claude Code sends them.
CALLS = {"push.json": "git push", "forced-push.json": "cd app && git push origin --force"}

# Cells of the picture, in pixels.
CELL_WIDTH, CELL_HEIGHT, MARGIN = 8.4, 19, 18
STYLE = """
  .back { fill: #0d1117 } text { fill: #e6edf3 } .dim { fill: #8b949e } .prompt { fill: #7ee787 }
  .red { fill: #ff7b72 } .green { fill: #7ee787 } .yellow { fill: #e3b341 } .blue { fill: #79c0ff } .bold { font-weight: 600 }
  @media (prefers-color-scheme: light) {
    .back { fill: #f6f8fa } text { fill: #1f2328 } .dim { fill: #59636e } .prompt { fill: #116329 }
    .red { fill: #b31d28 } .green { fill: #116329 } .yellow { fill: #7d4e00 } .blue { fill: #0550ae }
  }
  text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; white-space: pre }
"""
# The classes of the codes that terminals know; 31 is red, 91 is bright red.
CLASSES = {1: "bold", 2: "dim", 31: "red", 32: "green", 33: "yellow", 34: "blue", 35: "blue", 36: "blue"}
CLASSES |= {code + 60: name for code, name in CLASSES.items() if code > 30}
ESCAPE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]")


def call(command):
    return {
        "hook_event_name": "PreToolUse",
        "session_id": "fix-greeting",
        "cwd": "/tmp",
        "tool_name": "Bash",
        "tool_input": {"command": command},
    }


def run(command, home, path):
    """What a command prints on a terminal, and its exit status."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {"HOME": str(home), "PATH": path, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    child = subprocess.Popen(
        ["sh", "-c", command],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=home / "project",
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        printed = read_all(ours)
        return printed.decode(errors="replace").replace(str(home), "/home/you"), child.wait(timeout=DEADLINE)
    finally:
        os.close(ours)
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def read_all(terminal):
    printed, end = b"", time.monotonic() + DEADLINE
    while len(printed) < LIMIT:
        ready, _, _ = select.select([terminal], [], [], max(0, end - time.monotonic()))
        if not ready:
            sys.exit(f"a command did not end within {DEADLINE} s")
        try:
            part = os.read(terminal, 65536)
        except OSError:  # The other side is closed.
            part = b""
        if not part:
            return printed
        printed += part
    sys.exit(f"a command printed more than {LIMIT} bytes")


def lines(printed):
    """Lines of (text, classes), as wide as the terminal at most."""
    row, rows, classes = [], [], frozenset()
    for piece in re.split(r"(\x1b\[[0-9;?]*[A-Za-z]|\r?\n)", printed):
        escape = ESCAPE.fullmatch(piece)
        if escape and escape[2] == "m":
            classes = styled(classes, escape[1])
        elif piece in ("\n", "\r\n"):
            rows.append(row)
            row = []
        else:
            row.append((ESCAPE.sub("", piece), classes))
    rows.append(row)
    return [part for row in rows[: -1 if not any(text for text, _ in rows[-1]) else None] for part in wrapped(row)]


def styled(classes, codes):
    for code in (int(code or 0) for code in codes.split(";")):
        name = CLASSES.get(code)
        classes = frozenset() if code == 0 else classes | {name} if name else classes
    return classes


def wrapped(row):
    parts, width = [[]], 0
    for text, classes in row:
        while text:
            if width == COLUMNS:
                parts.append([])
                width = 0
            head, text = text[: COLUMNS - width], text[COLUMNS - width :]
            parts[-1].append((head, classes))
            width += len(head)
    return parts


def draw(rows):
    width = round(COLUMNS * CELL_WIDTH + 2 * MARGIN)
    height = len(rows) * CELL_HEIGHT + 2 * MARGIN
    texts = "\n".join(drawn for index, row in enumerate(rows) for drawn in draw_row(index, row))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">
<title>A hook is written, tried and connected, and refuses a forced push</title>
<style>{STYLE}</style>
<rect class="back" width="{width}" height="{height}" rx="8"/>
{texts}
</svg>
"""


def draw_row(index, row):
    column, baseline = 0, MARGIN + index * CELL_HEIGHT + 14
    for text, classes in row:
        if text.strip():
            # With every font, each part begins and ends at its column.
            left, length = MARGIN + column * CELL_WIDTH, len(text) * CELL_WIDTH
            names = f' class="{" ".join(sorted(classes))}"' if classes else ""
            place = f'x="{left:.1f}" y="{baseline}" textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs"'
            yield f'<text {place}{names} xml:space="preserve">{html.escape(text, quote=False)}</text>'
        column += len(text)


def record(program):
    home = pathlib.Path(tempfile.mkdtemp(prefix="ollm-picture-"))
    try:
        (home / "project/.git").mkdir(parents=True)
        for name, command in CALLS.items():
            (home / "project" / name).write_text(json.dumps(call(command)))
        rows = []
        for command, expected in SESSION:
            printed, status = run(command, home, f"{program.parent}:/usr/local/bin:/usr/bin:/bin")
            if status != expected:
                sys.exit(f"`{command}` ended with {status}:\n{printed}")
            rows += [[]] if rows else []
            rows.append([("$ ", frozenset({"prompt"})), (command, frozenset({"bold"}))])
            rows += lines(printed)
        return rows
    finally:
        shutil.rmtree(home, ignore_errors=True)


def main():
    program = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/debug/ollm").absolute()
    if program.name != "ollm" or not program.exists():
        sys.exit(f"{program} is no `ollm`; `cargo build` makes one")
    PICTURE.write_text(draw(record(program)))


main()
