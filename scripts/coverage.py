"""Prints the lines of an lcov file that nothing reached, with their text, and compares them with those that a page explains.

    coverage.py LCOV PAGE [--check]

The page names a line by its file and its text, so that it stays explained when lines move. With --check the exit status is 1 where
a line is not explained, or an explanation is for a line that is gone. Whether some lines are reached depends on time, so that an
explained line is reached is only told.
"""

import pathlib
import re
import sys

ENTRY = re.compile(r"^\| `([^`]+\.rs)` \| `` (.+) `` \|")


def missed(lcov):
    """Per file: how many lines count, and those that nothing reached."""
    found, name = {}, None
    for line in lcov.read_text().splitlines():
        if line.startswith("SF:"):
            name = str(pathlib.Path(line[3:]).resolve().relative_to(pathlib.Path.cwd()))
            found[name] = {}
        elif line.startswith("DA:"):
            number, count = line[3:].split(",")[:2]
            lines = found[name]
            lines[int(number)] = lines.get(int(number), 0) + int(count)
    return found


def stripped(name):
    """The lines of a file, if there is one."""
    path = pathlib.Path(name)
    return {line.strip() for line in path.read_text().splitlines()} if path.is_file() else set()


def main():
    lcov, page = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    explained = {match.groups() for line in page.read_text().splitlines() if (match := ENTRY.match(line))}
    open_lines, used, total, reached = [], set(), 0, 0
    for name, lines in sorted(missed(lcov).items()):
        source = pathlib.Path(name).read_text().splitlines()
        total, reached = total + len(lines), reached + sum(count > 0 for count in lines.values())
        for number in sorted(number for number, count in lines.items() if count == 0):
            text = source[number - 1].strip()
            # What closes a block has no reason of its own.
            if not re.search(r"\w", text):
                continue
            if (name, text) in explained:
                used.add((name, text))
            else:
                open_lines.append((name, number, text))
    print(f"{reached} of {total} lines of the critical path are reached; {len(used)} others are explained in {page}")
    for name, number, text in open_lines:
        print(f"not explained: {name}:{number}: {text}")
    gone = {(name, text) for name, text in explained - used if text not in stripped(name)}
    for name, text in sorted(explained - used):
        print(f"explained, and {'gone' if (name, text) in gone else 'reached'}: {name}: {text}")
    return 1 if "--check" in sys.argv and (open_lines or gone) else 0


sys.exit(main())
