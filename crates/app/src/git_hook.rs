//! The line in a repository's `commit-msg` hook by which commits become events: where it stands, putting it there beside what
//! is there already, and taking it out again.
//!
//! Git is asked, never imitated, but only for what it reads: nothing that the repository's own configuration names (a pager,
//! a file system monitor, an external diff) is run.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ollm_process::find_program;
use ollm_protocol::{Code, CodeClass, Event, EventKind, Remedy};
use ollm_shell::shell_word;
use ollm_store::{read_bounded, replace_through_links};
use serde_json::Value;

use crate::app_context::AppContext;
use crate::error::AppError;
use crate::git::{git, git_path};

/// What our line begins with.
const LOOK: &str = "if command -v ";
/// By this our line is known; nothing else is ours.
const MARK: &str = "# ollm git-hook";
/// What stands behind it in a script that was not there before.
const MADE: &str = " made this file";
/// What git calls the hook that may refuse a commit and knows its message.
const HOOK: &str = "commit-msg";
/// A longer script or message is nobody's.
const LONGEST: u64 = 1 << 20;
/// From here on an editor shows what is not part of the message.
const SCISSORS: &str = " ------------------------ >8 ------------------------";

/// Where a repository's `commit-msg` hook is.
#[derive(Clone, Debug)]
pub struct Place {
    /// The script.
    pub file: PathBuf,
    /// Whether it is part of what is committed, so that others have it too.
    pub is_shared: bool,
}

/// What is there of our line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It is not there.
    Missing,
    /// It is, and git runs it.
    Works,
    /// It is, but the program it names is gone.
    Gone(PathBuf),
    /// It is, but git does not run scripts that are not executable.
    NotExecutable,
}

impl Entry {
    /// The word for it.
    pub fn name(&self) -> &'static str {
        match self {
            Entry::Missing => "missing",
            Entry::Works => "installed",
            Entry::Gone(_) => "broken",
            Entry::NotExecutable => "not executable",
        }
    }
}

impl Place {
    /// The place in the repository that we stand in. One that the user's own configuration names for all repositories at once is
    /// refused: this command is about one of them.
    pub fn find(context: &AppContext) -> Result<Place, AppError> {
        let root = git_path(context, &context.cwd, &["rev-parse", "--show-toplevel"])?;
        let scoped = git(context, &root, &["config", "--show-scope", "--get", "core.hooksPath"]).unwrap_or_default();
        let scope = String::from_utf8_lossy(&scoped).split_whitespace().next().map(str::to_owned);
        if let Some(scope) = scope.filter(|scope| scope != "local" && scope != "worktree") {
            let message =
                format!("core.hooksPath of your {scope} git configuration names one folder for all repositories");
            return Err(AppError::new(Code::ForeignFile, message)
                .hint("set it for this repository alone: git config --local core.hooksPath FOLDER"));
        }
        let hooks = git_path(context, &root, &["rev-parse", "--git-path", "hooks"])?;
        let hooks = root.join(hooks);
        // Husky writes its folder anew at each installation, and runs what lies beside it.
        let is_huskys = hooks.file_name() == Some(OsStr::new("_")) && hooks.join("h").exists();
        let hooks = hooks.parent().filter(|_| is_huskys).map_or(hooks.clone(), Path::to_owned);
        let own = root.join(git_path(context, &root, &["rev-parse", "--git-common-dir"])?);
        let is_shared = hooks.starts_with(&root) && !hooks.starts_with(own);
        Ok(Place { file: hooks.join(HOOK), is_shared })
    }

    /// What is there of our line.
    pub fn entry(&self, context: &AppContext) -> Result<Entry, AppError> {
        let Some(text) = self.text()? else { return Ok(Entry::Missing) };
        let Some(line) = text.lines().find(|line| is_ours(line)) else { return Ok(Entry::Missing) };
        let program = line.strip_prefix(LOOK).and_then(|rest| rest.split(" >/dev/null").next());
        let program = program.map(unquoted).unwrap_or_default();
        let found = match Path::new(&program) {
            path if path.is_absolute() => path.is_file(),
            _ => find_program(&program, context.search_path().unwrap_or_default()).is_some(),
        };
        Ok(match found {
            _ if !self.is_run() => Entry::NotExecutable,
            true => Entry::Works,
            false => Entry::Gone(program.into()),
        })
    }

    /// Puts our line in, before what is there, so that nothing there can end the script first; says whether anything changed.
    pub fn install(&self, program: &Path) -> Result<bool, AppError> {
        let before = self.text()?;
        if self.file.is_symlink() {
            let target = self.file.canonicalize().unwrap_or_else(|_| self.file.clone());
            let message =
                format!("{} is a link to {}, which is not ours to change", self.file.display(), target.display());
            let way_out = format!("add this line there yourself: {}", self.line(program));
            return Err(AppError::new(Code::ForeignFile, message).hint(way_out));
        }
        let text = before.as_deref().map_or_else(|| "#!/bin/sh\n".to_owned(), without_ours);
        // Husky runs a file without a first line of that kind by the shell.
        let (first, rest) = match text.find('\n').map_or(text.len(), |end| end + 1) {
            end if text.starts_with("#!") => text.split_at(end),
            _ => ("", text.as_str()),
        };
        if first.ends_with("\r\n") {
            let message = format!("{} has line ends of Windows, so nothing can run it", self.file.display());
            return Err(AppError::new(Code::ForeignFile, message).hint("save it with plain line ends"));
        }
        if !first.is_empty() && !is_shell(first) {
            let message = format!("{} is no shell script: it begins with `{}`", self.file.display(), first.trim_end());
            let way_out =
                format!("have it run `{} git-hook run \"$1\"`, and refuse where that fails", program.display());
            return Err(AppError::new(Code::ForeignFile, message).hint(way_out));
        }
        if before.is_some() && !self.is_run() {
            let message = format!("{} is not executable, so git does not run it", self.file.display());
            return Err(AppError::new(Code::ForeignFile, message)
                .hint("make it executable if it should run (chmod +x), or move it away, and install again"));
        }
        let made = if before.as_deref().is_none_or(|text| text.contains(MADE)) { MADE } else { "" };
        let ours = format!("{}{made}", self.line(program));
        // A script whose first line has no end keeps it so.
        let has_end = first.is_empty() || first.ends_with('\n');
        let after = if has_end { format!("{first}{ours}\n{rest}") } else { format!("{first}\n{ours}") };
        if before.as_deref() == Some(after.as_str()) {
            return Ok(false);
        }
        self.write(&after)?;
        Ok(true)
    }

    /// Takes our line out. A script that has nothing else in it was made by us, and goes. Says whether anything changed.
    pub fn uninstall(&self) -> Result<bool, AppError> {
        let Some(before) = self.text()? else { return Ok(false) };
        let after = without_ours(&before);
        if after == before {
            return Ok(false);
        }
        if after == "#!/bin/sh\n" && before.contains(MADE) {
            fs::remove_file(&self.file).map_err(|error| AppError::unwritten(&self.file, &error))?;
        } else {
            self.write(&after)?;
        }
        Ok(true)
    }

    /// Who has the script without us is told so, and the commit goes on.
    fn line(&self, program: &Path) -> String {
        let program = if self.is_shared { "ollm".to_owned() } else { program.display().to_string() };
        let program = shell_word(&program);
        format!(
            "{LOOK}{program} >/dev/null 2>&1; then {program} git-hook run \"$1\" || exit 1; \
             else echo 'ollm is not here: its hooks did not look at this commit' >&2; fi {MARK}"
        )
    }

    fn text(&self) -> Result<Option<String>, AppError> {
        let unread = |why: String| {
            AppError::new(Code::ForeignFile, format!("{} cannot be read: {why}", self.file.display()))
                .hint("mend it, or move it away")
        };
        let bytes = read_bounded(&self.file, LONGEST).map_err(|error| unread(error.to_string()))?;
        bytes.map(String::from_utf8).transpose().map_err(|_| unread("it is not UTF-8 text".to_owned()))
    }

    fn write(&self, text: &str) -> Result<(), AppError> {
        replace_through_links(&self.file, text.as_bytes(), 0o755)
            .map_err(|error| AppError::unwritten(&self.file, &error))
    }

    /// Whether somebody runs it: git what is executable, husky whatever is there.
    fn is_run(&self) -> bool {
        let is_huskys = self.file.with_file_name("_").join("h").exists();
        is_huskys || self.file.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0)
    }
}

/// Why nothing sends commits here, if that is so.
pub(crate) fn why_unsent(context: &AppContext) -> Option<String> {
    let why = match Place::find(context).and_then(|place| place.entry(context)) {
        Ok(Entry::Works) => return None,
        Ok(_) => format!("; {}", context.tell(&Remedy::InstallGitHook)),
        Err(error) if error.code.class() == CodeClass::Configuration => format!(": {error}"),
        Err(_) => return Some("nothing sends `git_commit` here, for this folder is in no repository".to_owned()),
    };
    Some(format!("nothing sends `git_commit` in this repository{why}"))
}

/// The commit that is about to be made, as an event; `message` is the file that git wrote it to.
pub fn event(message: &Path, context: &AppContext) -> Result<Event, AppError> {
    let unread = |why: String| AppError::new(Code::UnreadableFile, format!("{}: {why}", message.display()));
    let text = read_bounded(message, LONGEST).map_err(|error| unread(error.to_string()))?;
    let text = text.ok_or_else(|| unread("there is no such file".to_owned()))?;
    let text = String::from_utf8_lossy(&text);
    // Git says in this way that nobody wrote the message in an editor: then every line of it counts.
    let is_edited = context.variable("GIT_EDITOR").as_deref() != Some(":");
    let message = if is_edited { said(&text, &Cleanup::of(&text, context)) } else { text.trim().to_owned() };
    // The first commit has nothing before it: all that is in the index is new.
    let names =
        &["diff-index", "--cached", "--name-only", "--no-ext-diff", "--no-textconv", "--no-renames", "-z", "HEAD"];
    let is_first = git(context, &context.cwd, &["rev-parse", "-q", "--verify", "HEAD"]).is_err();
    let files = git(context, &context.cwd, if is_first { &["ls-files", "-z"] } else { names })?;
    let branch = git(context, &context.cwd, &["symbolic-ref", "--short", "-q", "HEAD"]).ok();
    let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    let files = files.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let files: Vec<Value> = files.map(|name| String::from_utf8_lossy(name).into_owned().into()).collect();
    let mut event = Event::unchecked(EventKind::GitCommit, [("message", message.into()), ("files", files.into())]);
    if let Some(branch) = branch {
        event.data.insert("branch".to_owned(), text_of(&branch).into());
    }
    Ok(event)
}

/// What git takes out of a message that was written in an editor, as far as its configuration says.
struct Cleanup {
    /// What lines begin with that are no part of it; nothing where all lines are.
    sign: Option<String>,
    /// What the line begins with below which nothing is.
    cut: String,
    /// Whether such a line is one whatever stands below it.
    cuts: bool,
}

impl Cleanup {
    fn of(text: &str, context: &AppContext) -> Cleanup {
        let setting = |name: &str| {
            let value = git(context, &context.cwd, &["config", "--get", name]).ok()?;
            Some(String::from_utf8_lossy(&value).trim().to_owned()).filter(|value| !value.is_empty())
        };
        let sign = match setting("core.commentString").or_else(|| setting("core.commentChar")) {
            // Git has chosen one that begins no line of the message; its own lines are the last ones.
            Some(sign) if sign == "auto" => text.lines().last().and_then(|line| line.chars().next()).map(String::from),
            sign => sign,
        };
        let sign = sign.unwrap_or_else(|| "#".to_owned());
        let mode = setting("commit.cleanup").unwrap_or_default();
        let keeps = matches!(mode.as_str(), "whitespace" | "verbatim" | "scissors");
        Cleanup { cut: sign.clone(), sign: Some(sign).filter(|_| !keeps), cuts: mode == "scissors" }
    }
}

/// A message without what an editor only shows.
fn said(text: &str, cleanup: &Cleanup) -> String {
    let is_cut = |line: &str| line.strip_prefix(cleanup.cut.as_str()) == Some(SCISSORS);
    let lines: Vec<&str> = text.lines().collect();
    // Below it git shows the changes, where it was told to; anything else there is part of the message.
    let ends = |at: &usize| {
        let mut below = lines.iter().skip(at + 1);
        let shown = below.find(|line| !line.starts_with(cleanup.cut.as_str()));
        cleanup.cuts || shown.is_none_or(|line| line.starts_with("diff --git "))
    };
    let end = lines.iter().position(|line| is_cut(line)).filter(ends).unwrap_or(lines.len());
    let is_part = |line: &&&str| cleanup.sign.as_ref().is_none_or(|sign| !line.starts_with(sign.as_str()));
    let kept: Vec<&str> = lines.iter().take(end).filter(is_part).copied().collect();
    kept.join("\n").trim().to_owned()
}

/// A word without the quotes that `shell_word` puts around it.
fn unquoted(word: &str) -> String {
    let inner = word.strip_prefix('\'').and_then(|word| word.strip_suffix('\''));
    inner.map_or_else(|| word.to_owned(), |inner| inner.replace("'\\''", "'"))
}

fn is_ours(line: &str) -> bool {
    let end = line.trim_end();
    line.starts_with(LOOK) && end.strip_suffix(MADE).unwrap_or(end).ends_with(MARK)
}

fn without_ours(text: &str) -> String {
    let kept: String = text.split_inclusive('\n').filter(|line| !is_ours(line)).collect();
    let was_last = kept.len() < text.len() && !text.ends_with('\n');
    if was_last && text.lines().last().is_some_and(is_ours) { kept.trim_end_matches('\n').to_owned() } else { kept }
}

fn is_shell(first: &str) -> bool {
    const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash"];
    let words = first.trim_start_matches("#!").split_whitespace().filter(|word| !word.starts_with('-'));
    let names = words.map(|word| word.rsplit('/').next().unwrap_or_default());
    names.into_iter().find(|name| *name != "env").is_some_and(|name| SHELLS.contains(&name))
}
