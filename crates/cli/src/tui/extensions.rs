//! The panel of extensions: what each brings and whether it is on and approved, with keys for `ollm ext`.

use ollm_app::{App, AppContext, FileFollower};
use ollm_protocol::units::counted;
use ollm_store::{escape_for_people, one_line};
use ratatui::crossterm::event::KeyCode;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::form::{Field, Form};
use super::list_panel::{Batch, Feed, KeyAction, ListContent, ListItem, dotted};
use super::panel::{Binding, Key};
use super::text::{fitted, plain};
use super::theme::Theme;
use crate::arguments::Command;
use crate::arguments::ext::{Acceptance, ExtCommand, InstallArguments, SetArguments, UpdateArguments};
use crate::command::ext::{ExtensionOverview, SettingOverview, overview};
use crate::error::Failure;
use crate::output::Output;

/// The commands of this panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExtensionKey {
    Toggle,
    Settings,
    Approve,
    Install,
    Update,
    Uninstall,
    Reload,
    Validate,
    Test,
}

const KEYS: &[Binding<ExtensionKey>] = &[
    Binding {
        keys: &[Key::Plain(KeyCode::Enter), Key::Plain(KeyCode::Char(' '))],
        shown: "Enter",
        help: "on/off",
        command: ExtensionKey::Toggle,
    },
    Binding { keys: &[Key::Plain(KeyCode::Char('s'))], shown: "S", help: "settings", command: ExtensionKey::Settings },
    Binding {
        keys: &[Key::Plain(KeyCode::Char('v'))],
        shown: "V",
        help: "review, approve",
        command: ExtensionKey::Approve,
    },
    Binding { keys: &[Key::Plain(KeyCode::Char('i'))], shown: "I", help: "install", command: ExtensionKey::Install },
    Binding { keys: &[Key::Plain(KeyCode::Char('u'))], shown: "U", help: "update", command: ExtensionKey::Update },
    Binding {
        keys: &[Key::Plain(KeyCode::Char('d'))],
        shown: "D",
        help: "uninstall",
        command: ExtensionKey::Uninstall,
    },
    Binding {
        keys: &[Key::Plain(KeyCode::Char('r'))],
        shown: "R",
        help: "what changed",
        command: ExtensionKey::Reload,
    },
    Binding { keys: &[Key::Plain(KeyCode::Char('c'))], shown: "C", help: "check", command: ExtensionKey::Validate },
    Binding { keys: &[Key::Plain(KeyCode::Char('t'))], shown: "T", help: "test", command: ExtensionKey::Test },
];

/// The choices for a secret in the form.
const SECRET: &[&str] = &["leave it", "ask me", "forget it"];

/// One extension.
pub(crate) struct ExtensionItem {
    name: String,
    overview: ExtensionOverview,
}

impl ExtensionItem {
    pub(super) fn new(overview: ExtensionOverview) -> ExtensionItem {
        let name = overview.entry.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        ExtensionItem { name, overview }
    }

    fn text(&self, key: &str) -> &str {
        self.overview.entry.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn is_on(&self) -> bool {
        self.overview.entry.get("enabled") == Some(&Value::Bool(true))
    }
}

impl ListItem for ExtensionItem {
    fn id(&self) -> &str {
        &self.name
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn row(&self, width: usize, theme: &Theme) -> Line<'static> {
        let waits = !self.text("error").is_empty() || self.text("trust") != "trusted";
        let mut line = dotted(&self.name, self.is_on(), waits, width, theme);
        let version = format!(" {}", one_line(self.text("version")));
        line.push_span(Span::styled(fitted(&version, width.saturating_sub(line.width())), theme.faint));
        line
    }

    fn details(&self, _: &Theme) -> Vec<Line<'static>> {
        plain(&escape_for_people(&self.overview.text), Style::new())
    }
}

/// The purpose of a form.
pub(crate) enum ExtensionForm {
    Install,
    /// The extension and its settings: the name, the earlier value, and whether it is a secret.
    Settings(String, Vec<(String, String, bool)>),
}

#[derive(Default)]
pub(crate) struct Extensions;

impl ListContent for Extensions {
    type Item = ExtensionItem;
    type Key = ExtensionKey;
    type Purpose = ExtensionForm;

    const NOUN: &'static str = "extension";
    const LOAD: &'static str = "reading extensions";
    const EMPTY: &'static str = "Enter leaves this panel. I installs an extension.";
    const KEYS: &'static [Binding<ExtensionKey>] = KEYS;

    fn load(context: &AppContext, feed: &Feed<ExtensionItem>, _: &mut Output) -> Result<(), Failure> {
        let (mut shown, mut files) = (None, FileFollower::before_load(context));
        loop {
            let app = App::load_as_is(context)?;
            files.follow_app(&app, context);
            let (extensions, problems) = overview(&app, context);
            let note = if problems > 0 { format!(", {}", counted(problems, "problem")) } else { String::new() };
            let now = Some((extensions.clone(), note.clone()));
            if std::mem::replace(&mut shown, now.clone()) != now {
                feed.send(Batch::All(extensions.into_iter().map(ExtensionItem::new).collect(), note));
            }
            if !feed.waits_for(&mut files) {
                return Ok(());
            }
        }
    }

    fn command(&mut self, key: ExtensionKey, chosen: Option<&ExtensionItem>) -> KeyAction<ExtensionForm> {
        if key == ExtensionKey::Install {
            return KeyAction::Fill(ExtensionForm::Install, install_form());
        }
        let Some(extension) = chosen else { return KeyAction::None };
        let name = extension.name.clone();
        let (title, command) = match key {
            ExtensionKey::Install => return KeyAction::None,
            ExtensionKey::Settings => return settings(extension),
            ExtensionKey::Toggle if extension.is_on() => ("switching off", ExtCommand::Disable { names: vec![name] }),
            ExtensionKey::Toggle => ("switching on", ExtCommand::Enable { names: vec![name] }),
            ExtensionKey::Approve => ("reviewing", ExtCommand::Trust { name, digest: None, uncovered: false }),
            ExtensionKey::Update => ("updating", ExtCommand::Update(update_of(name))),
            ExtensionKey::Uninstall => ("uninstalling", ExtCommand::Uninstall { name, yes: false }),
            ExtensionKey::Reload => ("what changed in", ExtCommand::Reload { name: Some(name) }),
            ExtensionKey::Validate => ("checking", ExtCommand::Validate { target: name, json: false }),
            ExtensionKey::Test => ("testing", ExtCommand::Test { name, json: false }),
        };
        run(title, &extension.name, command)
    }

    fn save(&mut self, purpose: &ExtensionForm, values: &[String]) -> KeyAction<ExtensionForm> {
        match purpose {
            ExtensionForm::Install => {
                let value = |at: usize| values.get(at).filter(|value| !value.is_empty()).cloned();
                let source = value(0).unwrap_or_default();
                let arguments = InstallArguments {
                    source: source.clone(),
                    reference: value(1),
                    to: value(2),
                    checksum: None,
                    offline: false,
                    acceptance: Acceptance { yes: false, dry_run: false },
                };
                run("installing", &source, ExtCommand::Install(arguments))
            }
            ExtensionForm::Settings(name, before) => set(name.clone(), before, values),
        }
    }
}

fn run(title: &str, name: &str, command: ExtCommand) -> KeyAction<ExtensionForm> {
    KeyAction::Run(format!("{title} {}", one_line(name)), Command::Ext { command })
}

fn update_of(name: String) -> UpdateArguments {
    let acceptance = Acceptance { yes: false, dry_run: false };
    UpdateArguments { names: vec![name], to: None, rollback: false, offline: false, acceptance }
}

fn install_form() -> Form {
    Form::new(
        "Install an extension",
        vec![
            Field::text("source", "a folder, an archive, an address, or a name that an index has", ""),
            Field::text("ref", "the branch, tag or commit of a repository; may be empty", ""),
            Field::text("version", "the version it must have; may be empty", ""),
        ],
    )
}

/// The form with all settings of an extension.
fn settings(extension: &ExtensionItem) -> KeyAction<ExtensionForm> {
    let all = &extension.overview.settings;
    let (name, error) = (one_line(&extension.name), extension.text("error"));
    let title = format!("settings of {name}");
    if all.is_empty() && !error.is_empty() {
        let text = format!("the settings of extension `{name}` cannot be read: {}", one_line(error));
        return KeyAction::Say(title, text);
    }
    if all.is_empty() {
        return KeyAction::Say(title, format!("extension `{name}` has no settings"));
    }
    let field = |one: &SettingOverview| {
        let (label, hint) = (one_line(&one.name), one_line(&one.description));
        if one.is_sensitive { Field::choice(label, hint, SECRET, "") } else { Field::text(label, hint, &one.value) }
    };
    let before = all.iter().map(|one| (one.name.clone(), one.value.clone(), one.is_sensitive)).collect();
    let form = Form::new(format!("Settings of {}", one_line(&extension.name)), all.iter().map(field).collect());
    KeyAction::Fill(ExtensionForm::Settings(extension.name.clone(), before), form)
}

/// Saves changed values; a secret is asked for in a dialog that does not show it.
fn set(name: String, before: &[(String, String, bool)], values: &[String]) -> KeyAction<ExtensionForm> {
    let (mut set, mut unset) = (Vec::new(), Vec::new());
    for ((key, old, is_sensitive), new) in before.iter().zip(values) {
        match (is_sensitive, new.as_str()) {
            (true, "ask me") => set.push(key.clone()),
            (true, "forget it") => unset.push(key.clone()),
            (true, _) => {}
            (false, new) if new == old => {}
            (false, "") => unset.push(key.clone()),
            (false, new) => set.push(format!("{key}={new}")),
        }
    }
    if set.is_empty() && unset.is_empty() {
        return KeyAction::None;
    }
    let title = name.clone();
    run("settings of", &title, ExtCommand::Set(SetArguments { name, set, unset }))
}
