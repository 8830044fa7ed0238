//! Servers as things that can be approved.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use ollm_protocol::{Layer, Remedy, Source};
use ollm_trust::{Approvable, CommandLine, Definition, MentionedFiles, Row, StartRefusal, TrustContext};

use super::key::{SERVER_KEYS, definition, review};
use super::{Address, ServerSpec, expand};

impl Approvable for ServerSpec {
    fn source(&self) -> String {
        format!("{}#{}", self.origin.file.display(), self.id())
    }

    fn id(&self) -> Cow<'_, str> {
        format!("mcp:{}", self.name).into()
    }

    fn origin(&self) -> Source {
        self.source
    }

    fn layer(&self) -> Layer {
        if self.source == Source::Workspace { Layer::Workspace } else { Layer::User }
    }

    /// Reading a declaration checks whose its file is.
    fn declared_in(&self) -> Option<&Path> {
        None
    }

    fn definition(&self) -> Option<Definition> {
        Some(Definition::of_fields(definition(self)))
    }

    fn program(&self, context: &TrustContext<'_>) -> Result<PathBuf, StartRefusal> {
        let Address::Command { command, .. } = &self.address else { return Ok(PathBuf::new()) };
        let path = Path::new(command);
        if path.is_absolute() {
            let what = if path.is_dir() { "is a folder, not a program" } else { "does not exist" };
            let why = || StartRefusal::NotProgram(format!("{command} {what}; restore it, or change the declaration"));
            return path.is_file().then(|| path.to_owned()).ok_or_else(why);
        }
        let why =
            || StartRefusal::NotProgram(format!("`{command}` is not on PATH; install it, or give its absolute path"));
        context.find_program(command).ok_or_else(why)
    }

    fn command_line(&self, context: &TrustContext<'_>) -> Option<CommandLine> {
        // As it will be started: `${NONE:-server.py}` is a file of the project as well.
        let (server, _) = expand(self, &|name| variable(context, name));
        let Address::Command { command, args, env, cwd, .. } = server.address else { return None };
        let folders = context.home.map(|home| ("HOME", home.to_owned())).into_iter().collect();
        Some(CommandLine {
            program: command,
            args,
            env: env.0,
            cwd,
            folders,
            shell: None,
            mentioned: MentionedFiles::Any,
        })
    }

    /// The user's own came with nothing, and all files of an extension are approved together.
    fn folder<'a>(&'a self, context: &TrustContext<'a>) -> Option<&'a Path> {
        match self.source {
            Source::Workspace => context.project,
            Source::Extension | Source::Downloaded => self.origin.file.parent(),
            Source::User | Source::Policy | Source::Builtin => None,
        }
    }

    /// Servers of projects are often built among the packages they need.
    fn may_keep_its_place(&self) -> bool {
        true
    }

    fn rows(&self) -> Vec<Row> {
        review(SERVER_KEYS, self)
    }

    fn title(&self) -> String {
        format!("{} server `{}`", self.source.name(), self.name)
    }

    fn remedy(&self) -> Remedy {
        match &self.extension {
            Some(extension) => Remedy::ApproveExtension(extension.clone()),
            None => Remedy::ApproveServer(self.name.clone()),
        }
    }
}

/// What fills in a name in a declaration: a variable, or another program's name for a place.
fn variable(context: &TrustContext<'_>, name: &str) -> Option<String> {
    let place = || match name {
        "workspaceFolder" => context.project.or(context.folder),
        "userHome" => context.home,
        _ => None,
    };
    let text = |value: &std::ffi::OsStr| value.to_str().map(str::to_owned);
    context.get(name).and_then(text).or_else(|| place().and_then(|path| text(path.as_os_str())))
}
