"""Refuses git commands that lose work or bypass checks.

The argument holds every command of the call's shell text, one per line, as plain words: quotes are gone, words stand one
space apart, and commands behind `sudo` and the like stand on a line of their own. The answer goes to standard output.
"""

import json
import os
import sys

VALUED = {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"}

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
    protected = os.environ.get("EXTENSION_GIT_GUARD_PROTECTED_BRANCHES", "main,master").split(",")
    allow_no_verify = os.environ.get("EXTENSION_GIT_GUARD_ALLOW_NO_VERIFY", "false") == "true"
    for command in sys.argv[1].split("\n"):
        reason = refusal(command.split(" "), {name for name in protected if name}, allow_no_verify)
        if reason:
            print(json.dumps({"continue": False, "systemMessage": reason}))
            return
    print(json.dumps({"continue": True}))


main()
