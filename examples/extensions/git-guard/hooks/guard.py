"""Refuses git commands that lose work or bypass checks.

The event comes as JSON on standard input, the answer goes to standard output. A shell line is cut at its operators and
split into words as a shell would; what cannot be split is left to the other guards.
"""

import json
import os
import re
import shlex
import sys

VALUED = {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"}


def commands(line):
    """The words of each simple command in a line."""
    for part in re.split(r"\|\||&&|[;&|\n]", line):
        try:
            words = shlex.split(part)
        except ValueError:
            words = part.split()
        while words and re.fullmatch(r"\w+=.*", words[0]):
            words = words[1:]
        while words and words[0] in ("sudo", "command", "exec", "time", "nohup", "env"):
            words = words[1:]
        if words:
            yield words


def git_words(words):
    """The subcommand of git and what follows it; nothing for other programs."""
    if os.path.basename(words[0]) != "git":
        return []
    rest = words[1:]
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in VALUED else rest[1:]
    return rest


def short(options, letter):
    """Whether a letter stands among the short options, alone or in a bundle."""
    return any(re.fullmatch(r"-[A-Za-z]+", option) and letter in option[1:] for option in options)


def branches(arguments):
    """The branches a push writes to, as far as they are named."""
    names = [word for word in arguments if not word.startswith("-")][1:]
    return [name.rpartition(":")[2].removeprefix("refs/heads/").lstrip("+") for name in names]


def refusal(words, protected, allow_no_verify):
    git = git_words(words)
    if not git:
        return None
    verb, arguments = git[0], git[1:]
    options = [word for word in arguments if word.startswith("-")]
    if verb == "push":
        names = [word for word in arguments if not word.startswith("-")][1:]
        leased = any(option.startswith("--force-with-lease") for option in options)
        forced = "--force" in options or short(options, "f") or any(name.startswith("+") for name in names)
        if forced and not leased:
            return "A forced push rewrites what others rely on; use --force-with-lease on a branch of your own."
        for branch in branches(arguments):
            if branch in protected:
                return f"{branch} is protected; push a branch and open a pull request."
        if "--mirror" in options:
            return "A mirrored push deletes what is not here; push single branches."
    if verb == "reset" and "--hard" in options:
        return "git reset --hard throws uncommitted work away; `git stash` keeps it."
    if verb == "clean" and (short(options, "f") or "--force" in options):
        return "git clean deletes files that git does not know; look at `git clean -n` first."
    if verb in ("checkout", "restore") and arguments[-1:] == ["."]:
        return f"git {verb} . throws uncommitted work away; `git stash` keeps it."
    if verb == "branch" and short(options, "D"):
        return "git branch -D deletes commits that are merged nowhere; use -d."
    if verb in ("commit", "push", "merge") and not allow_no_verify:
        if "--no-verify" in options or (verb == "commit" and short(options, "n")):
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
