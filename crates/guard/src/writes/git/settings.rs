//! What `git config` changes: a file, and what `git` runs by itself later.

mod settings_file;

use super::super::{Touch, each, options, values};
use crate::{
    field::{Field, Fields},
    program::{self, Files, Program},
    walk::Run,
};

/// Sections of which every key names a program or a file of settings.
const SECTIONS: &[&str] = &["alias", "browser", "hook", "include", "includeif", "man", "pager"];

/// Keys of `core`, and those with a section of their own, that name a program or a folder of programs.
#[rustfmt::skip]
const KEYS: &[&str] = &[
    "core.alternaterefscommand", "core.askpass", "core.editor", "core.fsmonitor", "core.gitproxy", "core.pager",
    "core.sshcommand", "core.worktree", "diff.external", "extensions.worktreeconfig", "gc.recentobjectshook",
    "imap.tunnel", "init.templatedir", "instaweb.httpd", "interactive.difffilter", "sequence.editor", "svn.authorsprog",
    "uploadpack.packobjectshook", "web.browser",
];

/// The last parts of keys that name a program, after any other parts.
#[rustfmt::skip]
const LAST_PARTS: &[&str] = &[
    "allow", "clean", "cmd", "command", "defaultkeycommand", "driver", "headercmd", "helper", "insteadof", "path", "process",
    "program", "pushinsteadof", "receivepack", "sendmailcmd", "smtpserver", "smudge", "textconv", "tocmd", "cccmd", "update", "uploadpack",
    "vcs",
];

/// The file that it writes, the hooks if it says where they are, and the settings if one of them runs a program.
pub(super) fn touches(run: &Run, rest: &[Field]) -> Vec<Touch> {
    let mut files: Fields = values(&run.args, &["--file"]);
    files.extend(run.args.windows(2).filter_map(|pair| match pair {
        [option, file] if option.text == "-f" => Some(file.clone()),
        _ => None,
    }));
    // Others have settings in its form as well.
    let is_gits = files.is_empty() || files.iter().any(is_settings_file);
    let mut touches = each(files, Touch::Content);
    let rest = match rest {
        [verb, ..] if matches!(verb.text.as_str(), "get" | "list") => return touches,
        [verb, rest @ ..] if verb.text == "set" => rest,
        rest => rest,
    };
    let reads = options(&run.args).any(|option| option.starts_with("--get") || matches!(option, "--list" | "-l"));
    if reads || !is_gits {
        return touches;
    }
    // Where hooks are is said by one key, and is forgotten with it or with its section.
    let forgets = options(&run.args).any(|option| option.starts_with("--un") || option.starts_with("--re"));
    let says_where_hooks_are = |key: &Field| match key.text.to_ascii_lowercase().as_str() {
        "core.hookspath" => true,
        "core" => forgets || rest.first().is_some_and(|verb| verb.text.ends_with("-section")),
        _ => false,
    };
    if (rest.len() > 1 || forgets) && rest.iter().any(says_where_hooks_are) {
        touches.push(Touch::Content(Field::literal(".git/hooks")));
    }
    let edits = options(&run.args).any(|option| matches!(option, "-e" | "--edit"));
    if edits || matches!(rest, [key, value, ..] if runs(key, value)) {
        touches.push(Touch::Perhaps(Field::literal(".git/config")));
    }
    touches
}

/// Whether `git` reads its settings in this file.
fn is_settings_file(file: &Field) -> bool {
    let name = file.tail.as_deref().unwrap_or(&file.text).rsplit('/').next().unwrap_or_default();
    matches!(name, "" | ".gitconfig" | "config" | "config.worktree" | "gitconfig")
}

/// What settings for one command change: `-c NAME=VALUE`, also those that a clone keeps.
pub(super) fn for_once(args: &[Field]) -> Vec<Touch> {
    let verb = program::verb("git", args).unwrap_or(args.len());
    let (before, behind) = args.split_at_checked(verb).unwrap_or((args, &[]));
    let given = before.windows(2).filter_map(|pair| match pair {
        [option, setting] if option.text == "-c" => Some(setting.clone()),
        _ => None,
    });
    let is_clone = behind.first().is_some_and(|verb| verb.text == "clone");
    let kept = if is_clone { values(behind, &["-c", "--config"]) } else { Fields::new() };
    // A folder of programs that it runs, and a setting whose value a variable holds.
    let is_other = |arg: &&Field| arg.text.starts_with("--exec-path=") || arg.text.starts_with("--config-env");
    let others = before.iter().filter(is_other).map(|_| Touch::Perhaps(Field::literal(".git/config")));
    let mut touches: Vec<Touch> = others.collect();
    for setting in given.chain(kept) {
        let Some((name, value)) = setting.text.split_once('=') else { continue };
        if name.eq_ignore_ascii_case("core.hookspath") {
            touches.push(Touch::Perhaps(Field::literal(".git/hooks")));
        } else if runs(&Field::literal(name), &Field::literal(value)) {
            touches.push(Touch::Perhaps(Field::literal(".git/config")));
        }
    }
    touches
}

/// The settings of one file of `git` that are new in another text of it and have `git` run something.
///
/// ```
/// use ollm_guard::harmful_git_settings;
///
/// let before = "[core]\n\tbare = false\n";
/// let remote = format!("{before}[remote \"origin\"]\n\turl = /srv/x.git\n");
/// assert!(harmful_git_settings(before, &remote).is_empty());
/// let evil = format!("{before}[core]\n\tfsmonitor = ./evil\n");
/// assert_eq!(harmful_git_settings(before, &evil), ["core.fsmonitor"]);
/// ```
pub fn harmful_git_settings(before: &str, after: &str) -> Vec<String> {
    let known = settings_file::pairs(before);
    let new = settings_file::pairs(after).into_iter().filter(|pair| !known.contains(pair));
    let harmful = new.filter(|(key, value)| {
        let name = key.to_ascii_lowercase();
        // An alias of a repository takes the place of the person's own. Other readers than `git` may make something of
        // what is no setting.
        name.starts_with("alias.")
            || matches!(name.as_str(), "core.hookspath" | settings_file::UNREADABLE)
            || runs(&Field::literal(key.as_str()), &Field::literal(value.as_str()))
    });
    harmful.map(|(key, _)| key).collect()
}

/// Whether `git` would run what this key is set to, and it is more than a program that reads.
fn runs(key: &Field, value: &Field) -> bool {
    let name = key.text.to_ascii_lowercase();
    let Some((section, _)) = name.split_once('.') else { return key.open() };
    let last = name.rsplit('.').next().unwrap_or_default();
    let named = SECTIONS.contains(&section) || KEYS.contains(&name.as_str()) || LAST_PARTS.contains(&last);
    let plain = value.known().is_some_and(|value| match section {
        "alias" => !value.trim_start().starts_with('!'),
        "include" | "includeif" => false,
        _ => is_usual(value),
    });
    key.open() || named && !plain
}

/// Whether a value switches something, or is a pager or an editor as people set it.
fn is_usual(value: &str) -> bool {
    const EDITORS: &[&str] = &["code", "emacs", "nano", "nvim", "subl", "vi", "vim"];
    let first = value.split_whitespace().next().unwrap_or_default();
    let program = Program::of(first);
    let known = program.only_reads && program.files == Files::Known || EDITORS.contains(&first);
    let simple = !value.contains([';', '|', '&', '$', '`', '>', '<', '(', '/', '\n']);
    simple && (known || matches!(value, "" | "true" | "false" | "cache" | "store" | "osxkeychain" | "manager"))
}
