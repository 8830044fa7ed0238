"""Refuses git commands that lose work or bypass checks.

The event comes as JSON on standard input, the answer goes to standard output. A shell line is cut at its operators and
split into words much as a shell would; README.md says what this does not see.
"""

import json
import os
import re
import shlex
import sys

VALUED = {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"}

# Programs that start the one named behind them: their options with a value, and how many words come before the program.
WRAPPERS = {
    "sudo": ({"-u", "-g", "-p", "-C", "-D", "-h", "-T", "-R", "-U", "-r", "-t"}, 0),
    "doas": ({"-u", "-C"}, 0),
    "env": ({"-u", "-C"}, 0),
    "timeout": ({"-s", "-k"}, 1),
    "nice": ({"-n"}, 0),
    "ionice": ({"-c", "-n"}, 0),
    "stdbuf": ({"-i", "-o", "-e"}, 0),
    "xargs": ({"-n", "-I", "-P", "-L", "-d", "-a", "-E", "-s"}, 0),
    "exec": ({"-a"}, 0),
    "command": (set(), 0),
    "setsid": (set(), 0),
    "nohup": (set(), 0),
    "time": ({"-f", "-o"}, 0),
}
KEYWORDS = {"{", "!", "if", "then", "else", "elif", "while", "until", "do"}
SHELLS = {"sh", "bash", "dash", "zsh", "ksh"}
# Lines in lines in lines are looked into this far.
DEEPEST = 5

# The options of git's commands that take a value: letters, and long ones.
TAKING = {
    "commit": ("mFCct", {"--message", "--file", "--author", "--date", "--template", "--fixup", "--squash", "--trailer"}),
    "merge": ("mFsX", {"--message", "--file", "--strategy", "--strategy-option"}),
    "push": ("o", {"--push-option", "--receive-pack", "--exec", "--repo"}),
    "clean": ("e", {"--exclude"}),
    "branch": ("u", {"--set-upstream-to"}),
    "checkout": ("bB", set()),
    "restore": ("s", {"--source"}),
}


def split(line):
    """The words of each simple command in a line; what stands in quotes ends no command."""
    found, words, word, quote = [], [], None, ""
    at = 0
    while at < len(line):
        char, before, after = line[at], line[at - 1 : at], line[at + 1 : at + 2]
        at += 1
        if quote:
            if char == quote:
                quote = ""
            elif char == "\\" and quote == '"' and after and after in '"\\$`':
                word += after
                at += 1
            else:
                word += char
        elif char in "'\"":
            quote, word = char, word or ""
        elif char == "\\":
            word = (word or "") + after.replace("\n", "")
            at += 1
        elif char in " \t\r" or (char in ";|()`\n&" and not (char == "&" and ">" in (before, after))):
            if word is not None:
                words.append(word)
            word = None
            if char not in " \t\r":
                found.append(words)
                words = []
        else:
            word = (word or "") + char
    return [*found, words if word is None else [*words, word]]


def program(words):
    """The words from the program on that is started in the end."""
    while words:
        if words[0] in KEYWORDS or re.fullmatch(r"\w+=.*", words[0], re.DOTALL):
            words = words[1:]
            continue
        wrapper = WRAPPERS.get(os.path.basename(words[0]))
        if wrapper is None:
            return words
        valued, skipped = wrapper
        words = words[1:]
        while words and words[0].startswith("-"):
            words = words[2:] if words[0] in valued else words[1:]
        words = words[skipped:]
    return words


def commands(line, depth=0):
    """The words of each simple command in a line, and in the lines that shells in it are given."""
    for words in map(program, split(line)):
        if not words:
            continue
        yield words
        inner = None
        if words[0] == "eval":
            inner = " ".join(words[1:])
        elif os.path.basename(words[0]) in SHELLS:
            given = [at for at, word in enumerate(words) if re.fullmatch(r"-[a-z]*c[a-z]*", word)]
            inner = next(iter(words[given[0] + 1 :]), None) if given else None
        if inner and depth < DEEPEST:
            yield from commands(inner, depth + 1)


def git_words(words):
    """The subcommand of git and what follows it; nothing for other programs."""
    if os.path.basename(words[0]) != "git":
        return []
    rest = words[1:]
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in VALUED else rest[1:]
    return rest


def parse(verb, arguments):
    """The options, each letter by itself and without values, and the other words."""
    letters, long = TAKING.get(verb, ("", set()))
    options, others = [], []
    rest = iter(arguments)
    for word in rest:
        if word == "--":
            others.extend(rest)
        elif word.startswith("--"):
            options.append(word.partition("=")[0])
            if word in long:
                next(rest, None)
        elif word.startswith("-") and len(word) > 1:
            for at, letter in enumerate(word[1:], 1):
                options.append("-" + letter)
                if letter in letters:
                    # What follows, in this word or as the next one, is its value.
                    if at + 1 == len(word):
                        next(rest, None)
                    break
        else:
            others.append(word)
    return options, others


def refusal(words, protected, allow_no_verify):
    git = git_words(words)
    if not git:
        return None
    verb = git[0]
    options, others = parse(verb, git[1:])
    if verb == "push":
        names = others[1:]
        leased = "--force-with-lease" in options and "--force" not in options and "-f" not in options
        forced = "--force" in options or "-f" in options or any(name.startswith("+") for name in names)
        if forced and not leased:
            return "A forced push rewrites what others rely on; use --force-with-lease on a branch of your own."
        for name in names:
            branch = name.rpartition(":")[2].removeprefix("refs/heads/").lstrip("+")
            if branch in protected:
                return f"{branch} is protected; push a branch and open a pull request."
        if "--mirror" in options:
            return "A mirrored push deletes what is not here; push single branches."
    if verb == "reset" and "--hard" in options:
        return "git reset --hard throws uncommitted work away; `git stash` keeps it."
    if verb == "clean" and ("-f" in options or "--force" in options):
        return "git clean deletes files that git does not know; look at `git clean -n` first."
    if verb in ("checkout", "restore") and others[-1:] == ["."]:
        return f"git {verb} . throws uncommitted work away; `git stash` keeps it."
    if verb == "branch" and "-D" in options:
        return "git branch -D deletes commits that are merged nowhere; use -d."
    if verb in ("commit", "push", "merge") and not allow_no_verify:
        if "--no-verify" in options or (verb == "commit" and "-n" in options):
            return "git's own hooks are there to be run; leave --no-verify out."
    return None


def main():
    event = json.load(sys.stdin)
    line = event.get("data", {}).get("args", {}).get("command")
    protected = os.environ.get("EXTENSION_GIT_GUARD_PROTECTED_BRANCHES", "main,master").split(",")
    allow_no_verify = os.environ.get("EXTENSION_GIT_GUARD_ALLOW_NO_VERIFY", "false") == "true"
    if isinstance(line, list):
        line = shlex.join(map(str, line))
    if isinstance(line, str):
        for words in commands(line):
            reason = refusal(words, {name for name in protected if name}, allow_no_verify)
            if reason:
                print(json.dumps({"continue": False, "systemMessage": reason}))
                return
    print(json.dumps({"continue": True}))


main()
