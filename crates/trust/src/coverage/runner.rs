//! Knows programs that run a package, or commands from files of the project.

use std::path::Path;

/// Programs that fetch and run a package.
const PACKAGES: &[&str] = &["npx", "uvx", "bunx", "pipx"];
/// Whether a program fetches what it runs, and so may take long the first time.
///
/// ```
/// assert!(ollm_trust::fetches_packages("/usr/bin/npx") && !ollm_trust::fetches_packages("node"));
/// ```
pub fn fetches_packages(program: &str) -> bool {
    PACKAGES.contains(&program.rsplit('/').next().unwrap_or_default())
}

/// Programs that run commands from files of the project.
const TASKS: &[&str] = &[
    "ansible-playbook",
    "bazel",
    "bundle",
    "cargo",
    "cmake",
    "composer",
    "dotnet",
    "hatch",
    "invoke",
    "lein",
    "mage",
    "meson",
    "mix",
    "pdm",
    "pipenv",
    "poetry",
    "pre-commit",
    "sbt",
    "scons",
    "terraform",
    "vagrant",
    "make",
    "gmake",
    "just",
    "rake",
    "task",
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "gradle",
    "mvn",
    "tox",
    "nox",
    "ninja",
    "ant",
    "docker-compose",
    "run-parts",
    "parallel",
    "entr",
    // These load plugins, settings with code, or tests of the project in addition to the files they check.
    "ava",
    "cypress",
    "eslint",
    "gradlew",
    "jest",
    "karma",
    "mocha",
    "mvnw",
    "mypy",
    "playwright",
    "py.test",
    "pylint",
    "pytest",
    "rspec",
    "rubocop",
    "stylelint",
    "vite",
    "vitest",
    "webpack",
];

/// Python modules that do the same.
const TASK_MODULES: &[&str] =
    &["behave", "invoke", "mypy", "nose", "nox", "pre_commit", "pylint", "pytest", "tox", "unittest"];

/// Programs with a subcommand that runs commands from files of the project, each with such subcommands.
const TASK_VERBS: &[(&str, &[&str])] = &[
    ("deno", &["task"]),
    ("docker", &["bake", "build", "buildx", "compose", "stack"]),
    ("podman", &["build", "compose", "kube", "play"]),
    ("go", &["build", "generate", "install", "run", "test", "tool"]),
    ("pip", &["install", "wheel"]),
    ("pip3", &["install", "wheel"]),
    ("swift", &["build", "run", "test"]),
    ("uv", &["pip", "sync"]),
    ("zig", &["build", "run", "test"]),
];

/// Compilers. The files that their sources include are not searched.
const COMPILERS: &[&str] = &[
    "c++",
    "cc",
    "clang",
    "clang++",
    "crystal",
    "dmd",
    "ecpg",
    "fpc",
    "g++",
    "gcc",
    "gfortran",
    "ghc",
    "go",
    "java",
    "javac",
    "kotlinc",
    "ld",
    "ldc2",
    "nim",
    "ocaml",
    "ocamlc",
    "ocamlfind",
    "runghc",
    "rustc",
    "scalac",
    "swift",
    "swiftc",
    "tcc",
    "tsc",
    "v",
    "valac",
    "zig",
];

/// The last parts of keys by which git starts programs or reads other settings.
const GIT_KEYS: &[&str] = &[
    "hookspath",
    "path",
    "pager",
    "editor",
    "sshcommand",
    "fsmonitor",
    "external",
    "textconv",
    "cmd",
    "command",
    "process",
    "clean",
    "smudge",
    "program",
    "helper",
    "driver",
    "askpass",
    "proxycommand",
    "uploadpack",
    "receivepack",
    "templatedir",
];
/// Git's own commands, which no alias can replace.
const GIT_COMMANDS: &[&str] = &[
    "add",
    "am",
    "annotate",
    "apply",
    "archive",
    "bisect",
    "blame",
    "branch",
    "bugreport",
    "bundle",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-mailmap",
    "check-ref-format",
    "checkout",
    "checkout-index",
    "cherry",
    "cherry-pick",
    "clean",
    "clone",
    "column",
    "commit",
    "commit-graph",
    "commit-tree",
    "config",
    "count-objects",
    "credential",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "difftool",
    "fast-export",
    "fast-import",
    "fetch",
    "fetch-pack",
    "filter-branch",
    "fmt-merge-msg",
    "for-each-ref",
    "for-each-repo",
    "format-patch",
    "fsck",
    "gc",
    "get-tar-commit-id",
    "grep",
    "gui",
    "hash-object",
    "help",
    "hook",
    "index-pack",
    "init",
    "instaweb",
    "interpret-trailers",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "mailinfo",
    "mailsplit",
    "maintenance",
    "merge",
    "merge-base",
    "merge-file",
    "merge-index",
    "merge-tree",
    "mergetool",
    "mktag",
    "mktree",
    "multi-pack-index",
    "mv",
    "name-rev",
    "notes",
    "pack-objects",
    "pack-refs",
    "patch-id",
    "prune",
    "prune-packed",
    "pull",
    "push",
    "range-diff",
    "read-tree",
    "rebase",
    "reflog",
    "remote",
    "repack",
    "replace",
    "request-pull",
    "rerere",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "send-email",
    "send-pack",
    "shortlog",
    "show",
    "show-branch",
    "show-index",
    "show-ref",
    "sparse-checkout",
    "stash",
    "status",
    "stripspace",
    "submodule",
    "switch",
    "symbolic-ref",
    "tag",
    "unpack-file",
    "unpack-objects",
    "update-index",
    "update-ref",
    "update-server-info",
    "var",
    "verify-commit",
    "verify-pack",
    "verify-tag",
    "version",
    "whatchanged",
    "worktree",
    "write-tree",
    "lfs",
];

/// Describes what a program runs that no approval can cover.
pub(super) fn uncovered(command: &str, args: &[String], top: &Path) -> Option<String> {
    let runner = command.rsplit('/').next().unwrap_or_default();
    if TASKS.contains(&runner) {
        let task: Vec<&str> = std::iter::once(runner).chain(args.iter().map(String::as_str)).take(3).collect();
        return Some(format!("`{}` runs what files of the project say at that time", task.join(" ")));
    }
    if runner == "git" {
        return git(args);
    }
    let verb = args.iter().find(|arg| !arg.starts_with('-')).map(String::as_str).unwrap_or_default();
    if TASK_VERBS.iter().any(|(name, verbs)| *name == runner && verbs.contains(&verb)) {
        return Some(format!("`{runner} {verb}` runs what files of the project say at that time"));
    }
    let stem = runner.trim_end_matches(|letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '-'));
    let is_here = |arg: &&String| !arg.starts_with('-') && top.join(arg.as_str()).exists();
    if let Some(source) = args.iter().find(is_here).filter(|_| COMPILERS.contains(&stem)) {
        return Some(format!("`{runner}` compiles `{source}` with whatever that includes"));
    }
    let module = args.iter().position(|arg| arg == "-m").map(|at| args.get(at + 1..).unwrap_or_default());
    match module {
        Some([pip, verb, ..]) if pip == "pip" && verb == "install" => {
            return Some(format!("`{runner} -m pip install` runs what files of the project say at that time"));
        }
        Some([module, ..]) if stem == "python" && TASK_MODULES.contains(&module.as_str()) => {
            return Some(format!("`{runner} -m {module}` runs what files of the project say at that time"));
        }
        _ => {}
    }
    if !PACKAGES.contains(&runner) {
        return None;
    }
    let package = args.iter().find(|arg| !arg.starts_with('-') && *arg != "run")?;
    if top.join(package).is_dir() {
        return Some(format!("`{package}` is a folder, and anything in it may run"));
    }
    let (name, pinned) = pinned(package);
    if !pinned {
        return Some(format!("`{package}` names no version and may change any time"));
    }
    let local = top.join("node_modules").join(name).is_dir();
    local.then(|| format!("`{package}` may run from node_modules of the project, which is not looked through"))
}

/// Describes what `git` may run through a setting or an alias.
fn git(args: &[String]) -> Option<String> {
    let mut words = args.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "-c" | "--config-env" => {
                let setting = words.next()?;
                let key = setting.split('=').next().unwrap_or_default().to_ascii_lowercase();
                let last = key.rsplit('.').next().unwrap_or_default();
                if key.starts_with("alias.") || GIT_KEYS.contains(&last) {
                    return Some(format!("`git -c {setting}` may run any file of the project"));
                }
            }
            "-C" | "--git-dir" | "--work-tree" | "--namespace" | "--exec-path" => drop(words.next()),
            option if option.starts_with('-') => {}
            command if GIT_COMMANDS.contains(&command) || command.contains(['$', '{']) => return None,
            command => return Some(format!("`git {command}` may be an alias that files of the project define")),
        }
    }
    None
}

/// The name of a package, and whether its version is exact.
fn pinned(package: &str) -> (&str, bool) {
    let Some((name, version)) = package.rsplit_once("==").or_else(|| package.rsplit_once('@')) else {
        return (package, false);
    };
    let exact = version.starts_with(|first: char| first.is_ascii_digit()) && !version.contains(['x', '*', ' ']);
    (name, !name.is_empty() && exact)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_exact_version_of_a_package_that_is_not_in_the_project_is_covered() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("node_modules/is-safe")).unwrap();
        std::fs::create_dir_all(folder.path().join("srv")).unwrap();
        for (line, expected) in [
            ("npx -y pkg@1.2.3", false),
            ("uvx pkg==2.0", false),
            ("npx @scope/pkg@1.0.0", false),
            ("npx pkg", true),
            ("npx @scope/pkg", true),
            ("npx pkg@1.x", true),
            ("npx pkg@latest", true),
            ("npx -y is-safe@1.2.3", true),
            ("npx -y ./srv", true),
            ("npm start", true),
            ("make serve", true),
            ("python3 x.py", false),
            ("docker compose run x", true),
            ("docker ps", false),
            ("pip install ./srv", true),
            ("python3 -m pip install srv", true),
            ("go run srv", true),
            ("go version", false),
            ("gcc -x c srv -o z", true),
            ("gcc --version", false),
            ("cargo run", true),
            ("pytest -q", true),
            ("python3.12 -m pytest", true),
            ("python3 -m json.tool", false),
            ("node_modules/.bin/eslint .", true),
            ("./gradlew check", true),
        ] {
            let mut words = line.split(' ').map(str::to_owned);
            let command = words.next().unwrap();
            let found = uncovered(&command, &words.collect::<Vec<_>>(), folder.path());
            assert_eq!(found.is_some(), expected, "{line}: {found:?}");
        }
    }
}
