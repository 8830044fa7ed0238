#!/usr/bin/env bash
# Commits in repositories of real hook managers: husky, lefthook, pre-commit and prek, beside our own line.
#
#   scripts/real-git-hooks.sh
#
# They are installed from npm and PyPI into target/real-git-hooks, once for each version. Their install scripts do not run, because
# lefthook's would put itself into this repository. Needs Node, Python 3 with venv, git, and the
# network for the first time. Exit status 75: they could not be installed within the deadline, so nothing was tried.
set -euo pipefail
cd "$(dirname "$0")/.."

folder="$PWD/target/real-git-hooks"
npm_packages="husky@9.1.7 lefthook@2.1.10"
pypi_packages="pre-commit==4.7.0 prek==0.5.10"
# Seconds that one registry may take.
deadline=120

not_installed() {
    echo "real hook managers are not tried: $1 could not be installed within $deadline s" >&2
    exit 75
}

if [ "$(cat "$folder/installed" 2>/dev/null)" != "$npm_packages $pypi_packages" ]; then
    rm -rf "$folder"
    mkdir -p "$folder"
    # shellcheck disable=SC2086 # one word for each package
    timeout "$deadline" npm install --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error $npm_packages ||
        not_installed "those from npm"
    python3 -m venv "$folder/python" || not_installed "a Python environment"
    # shellcheck disable=SC2086
    timeout "$deadline" "$folder/python/bin/pip" install --quiet --disable-pip-version-check $pypi_packages ||
        not_installed "those from PyPI"
    echo "$npm_packages $pypi_packages" >"$folder/installed"
fi

# With the features of `cargo test --workspace`, so that nothing is built again.
OLLM_REAL_GIT_HOOKS="$folder" cargo test --workspace --test it -- --nocapture real_git_hooks
