//! Builds the whole of `ollm` for another program: guards, switches, extensions, and servers with their gate.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use ollm_catalog::PolicyFile;
use ollm_protocol::{Code, Commands, Hook};
use ollm_trust::Approver;

use crate::app::App;
use crate::app_context::AppContext;
use crate::error::AppError;
use crate::port::Person;
use crate::session::{self, SessionKind};

/// Makes an [`App`] from values: nothing is read from this process's environment, home or folder.
///
/// ```
/// use ollm_app::App;
/// use ollm_protocol::Event;
///
/// let home = tempfile::tempdir()?;
/// let app = App::builder(home.path(), home.path()).build()?;
/// let outcome = app.dispatch(&Event::before_tool("shell", [("command", "rm -rf ~".into())]));
/// assert!(!outcome.continues(), "the guards are there without being asked for");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct AppBuilder {
    user_home: PathBuf,
    folder: PathBuf,
    variables: Vec<(OsString, OsString)>,
    helper: Option<PathBuf>,
    approver: Option<Box<dyn Approver>>,
    person: Option<Arc<dyn Person>>,
    commands: Commands,
    policy: Option<PolicyFile>,
    hooks: Vec<Hook>,
}

impl App {
    /// Starts a builder for the user with this home, in this folder. The project is found from this folder.
    pub fn builder(user_home: impl Into<PathBuf>, folder: impl Into<PathBuf>) -> AppBuilder {
        AppBuilder {
            user_home: user_home.into(),
            folder: folder.into(),
            variables: Vec::new(),
            helper: None,
            approver: None,
            person: None,
            commands: Commands::default(),
            policy: Some(PolicyFile::of_system()),
            hooks: Vec::new(),
        }
    }
}

impl AppBuilder {
    /// The variables that hooks, servers and settings see; without `PATH` no program is found by its name.
    pub fn variables(mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> AppBuilder {
        self.variables = variables.into_iter().collect();
        self
    }

    /// Sets the approver that is asked about hooks without an approval. Without an approver, or where an agent has
    /// started us, they do not run.
    pub fn approver(mut self, approver: Box<dyn Approver>) -> AppBuilder {
        self.approver = Some(approver);
        self
    }

    /// Sets the person who answers questions of servers. Without one, questions are declined.
    pub fn person(mut self, person: Arc<dyn Person>) -> AppBuilder {
        self.person = Some(person);
        self
    }

    /// Sets the commands that messages name. Without them, messages name no command.
    pub fn commands(mut self, commands: Commands) -> AppBuilder {
        self.commands = commands;
        self
    }

    /// Sets the machine's policy, which no other setting loosens. The default is [`PolicyFile::of_system`], as in the
    /// `ollm` program.
    pub fn policy(mut self, policy: PolicyFile) -> AppBuilder {
        self.policy = Some(policy);
        self
    }

    /// Sets no policy: for a program whose users are responsible themselves, even on a machine with a policy.
    pub fn without_policy(mut self) -> AppBuilder {
        self.policy = None;
        self
    }

    /// Adds a hook of the program itself, beside the declared ones.
    pub fn hook(mut self, hook: Hook) -> AppBuilder {
        self.hooks.push(hook);
        self
    }

    /// Sets an `ollm` program that runs async hooks after this process has ended. Without one, threads run them.
    pub fn helper_program(mut self, program: impl Into<PathBuf>) -> AppBuilder {
        self.helper = Some(program.into());
        self
    }

    /// Loads everything. A problem that makes guards unreliable is an error; all other problems are in [`App::problems`].
    pub fn build(self) -> Result<App, AppError> {
        let mut context = AppContext::new(self.variables, self.folder, Some(self.user_home));
        (context.program, context.person, context.commands) = (self.helper, self.person, self.commands);
        context.places.policy = self.policy;
        let mut app = session::load(&context, SessionKind::Prompt, self.approver)?;
        for hook in self.hooks {
            let taken = |error: ollm_engine::DuplicateId| AppError::new(Code::AlreadyThere, error.to_string());
            app.engine.registry.register(hook).map_err(taken)?;
        }
        Ok(app)
    }
}
