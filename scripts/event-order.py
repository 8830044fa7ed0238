#!/usr/bin/env python3
"""Writes crates/cli/event-order.txt: the functions and constants that usual events touch, for the linker to put side by side.

    scripts/event-order.py

Builds the release with the linker's map, has valgrind note each address that an event executes or reads, and finds in the map
what lies there. Wanted after a larger change of what `ollm hook run` does: what is not in the list costs a page fault. Build
the release again afterwards.
"""

import bisect
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "crates/cli/event-order.txt"
# What can be put elsewhere: code, constants, and constants with addresses in them.
KINDS = (".text.", ".rodata.", ".data.rel.ro.")
# The linker merges constants of these sections by their content, whatever their order.
MERGED = (".rodata.cst", ".rodata.str")
# As another one of us would start the program: valgrind does not know a guard that begins in the memory of the program.
MARK = "0" * 32 + "-0,"

PLAIN = {"event": "before_tool", "data": {"tool_name": "shell", "args": {"command": "ls"}}}
CALL = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "git status"}, "tool_use_id": "1"}
CHANGE = {
    "hook_event_name": "PostToolUse",
    "tool_name": "Write",
    "tool_input": {"file_path": "a", "content": "b"},
    "tool_response": {},
    "tool_use_id": "2",
}


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        sections = Sections(build(folder))
        homes(folder)
        events = [
            ("miss", ".", [], PLAIN),
            ("hit", ".", [], PLAIN),
            ("hit", ".", ["--from", "claude"], claude(folder, CALL)),
            ("hit", ".", ["--from", "claude"], claude(folder, CHANGE)),
            ("project", "inner", [], PLAIN),
        ]
        # Files are remembered once they have been quiet for two seconds; then events are what they usually are.
        time.sleep(3)
        first = [touched(folder, *event) for event in events]
        usual = [touched(folder, *event) for event in events]
        # Last comes what only a first event does, which reads all files.
        lines = list(dict.fromkeys(line for addresses in usual + first[-1:] for line in sections.at(addresses)))
    LIST.write_text("".join(f"{line}\n" for line in lines))
    print(f"{len(lines)} sections are in {LIST.relative_to(ROOT)}")


def build(folder):
    """Builds the release, copies it to where the events find it, and returns the linker's map."""
    subprocess.run(
        ["cargo", "build", "--release", "--locked", "--package", "ollm", "--bin", "ollm"],
        cwd=ROOT,
        env=os.environ | {"OLLM_LINK_MAP": str(folder / "map")},
        check=True,
    )
    target = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
    shutil.copy(target / "release/ollm", folder / "ollm")
    return (folder / "map").read_text()


class Sections:
    """What lies where in the program."""

    def __init__(self, link_map):
        # A line has place, place in the file, size and alignment, then the file and in parentheses the section.
        line = re.compile(r"^ *([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+) +\d+ +(\S.*):\((\.[^)]*)\)$", re.MULTILINE)
        found = []
        for place, size, file, section in line.findall(link_map):
            crate = re.match(r"^(?:.*[/(])?([^/()]+?)-[0-9a-f]+\.", file)
            if section.startswith(KINDS) and not section.startswith(MERGED) and crate:
                start = int(place, 16)
                found.append((start, start + int(size, 16), f"{crate[1]} {re.sub(r'[.]llvm[.][0-9]+$', '', section)}"))
        found.sort()
        self.starts = [start for start, _, _ in found]
        self.found = found

    def at(self, addresses):
        """What lies at these addresses, in their order."""
        for address in addresses:
            index = bisect.bisect_right(self.starts, address) - 1
            if index >= 0 and address < self.found[index][1]:
                yield self.found[index][2]


def homes(folder):
    """Homes with a hook that does not fit, and with one that does, and a project in a project."""
    for home, matcher in (("miss", "other_tool"), ("hit", "*"), ("project", "*"), ("project/inner", "*")):
        hooks = folder / home / ".ollm/hooks"
        hooks.mkdir(parents=True)
        entry = {"name": "no-op", "command": "/bin/true", "matcher": matcher}
        (hooks / "hooks.json").write_text(json.dumps({"hooks": {"before_tool": [entry]}}))
    (folder / "project/.ollm/config.yaml").write_text("hooks:\n  timeout: 20000\n")


def claude(folder, event):
    return {"session_id": "s", "cwd": str(folder / "hit"), **event}


def touched(folder, home, inner, arguments, event):
    """The addresses that an event executes and reads, each once, in order."""
    read, write = os.pipe()
    run = subprocess.Popen(
        ["valgrind", "--tool=lackey", "--trace-mem=yes", f"--log-fd={write}", folder / "ollm", "hook", "run", *arguments],
        cwd=folder / home / inner,
        env={"HOME": str(folder / home), "PATH": "/usr/bin:/bin", "OLLM_LIFELINE": MARK},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[write],
        text=True,
    )
    os.close(write)
    run.stdin.write(json.dumps(event))
    run.stdin.close()
    addresses = {}
    with open(read) as log:
        for line in log:
            # A line has the kind of access, then address and size.
            if line[:2] in ("I ", " L", " S", " M"):
                addresses.setdefault(int(line[3:].partition(",")[0], 16))
    if run.wait() not in (0, 2) or not addresses:
        sys.exit("valgrind could not run an event; is it installed?")
    return list(addresses)


if __name__ == "__main__":
    main()
