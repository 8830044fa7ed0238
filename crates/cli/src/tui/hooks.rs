//! The panel of hooks: every hook by its category, its details, and keys for `ollm hook`.

use std::sync::Arc;

use ollm_app::{App, AppContext, FileFollower};
use ollm_protocol::Hook;
use ratatui::crossterm::event::KeyCode;
use ratatui::style::Style;
use ratatui::text::Line;

use super::list_panel::{Batch, Feed, KeyAction, ListContent, ListItem, dotted};
use super::panel::{Binding, Key};
use super::text::plain;
use super::theme::Theme;
use crate::command::hook::{HookState, hook_states, hook_text};
use crate::error::Failure;
use crate::output::Output;

mod actions;
mod category;

use actions::FormPurpose;

/// The commands of this panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookKey {
    Toggle,
    Add,
    Edit,
    OpenEditor,
    Delete,
    Test,
    Trust,
    Withdraw,
}

const KEYS: &[Binding<HookKey>] = &[
    Binding {
        keys: &[
            Key::Plain(KeyCode::Enter),
            Key::Plain(KeyCode::Left),
            Key::Plain(KeyCode::Right),
            Key::Plain(KeyCode::Char(' ')),
        ],
        shown: "Enter",
        help: "on/off",
        command: HookKey::Toggle,
    },
    Binding { keys: &[Key::Plain(KeyCode::Char('a'))], shown: "A", help: "add", command: HookKey::Add },
    Binding { keys: &[Key::Plain(KeyCode::Char('e'))], shown: "E", help: "edit", command: HookKey::Edit },
    Binding { keys: &[Key::Plain(KeyCode::Char('d'))], shown: "D", help: "delete", command: HookKey::Delete },
    Binding { keys: &[Key::Plain(KeyCode::Char('t'))], shown: "T", help: "test", command: HookKey::Test },
    Binding { keys: &[Key::Plain(KeyCode::Char('r'))], shown: "R", help: "review, trust", command: HookKey::Trust },
    Binding { keys: &[Key::Plain(KeyCode::Char('w'))], shown: "W", help: "withdraw trust", command: HookKey::Withdraw },
    Binding {
        keys: &[Key::Plain(KeyCode::Char('o'))],
        shown: "O",
        help: "open in your editor",
        command: HookKey::OpenEditor,
    },
];

/// A hook and its state.
pub(crate) struct HookItem {
    pub(super) hook: Arc<Hook>,
    pub(super) state: HookState,
}

impl ListItem for HookItem {
    fn id(&self) -> &str {
        self.hook.id()
    }

    fn name(&self) -> &str {
        &self.hook.spec.name
    }

    fn category(&self) -> &'static str {
        category::category(&self.hook)
    }

    fn row(&self, width: usize, theme: &Theme) -> Line<'static> {
        let waits = matches!(self.state.trust, "untrusted" | "modified") || self.state.unready.is_some();
        dotted(self.name(), category::is_on(&self.hook, &self.state), waits, width, theme)
    }

    fn details(&self, _: &Theme) -> Vec<Line<'static>> {
        plain(&ollm_store::escape_for_people(&hook_text(&self.hook, &self.state)), Style::new())
    }
}

#[derive(Default)]
pub(crate) struct Hooks;

impl ListContent for Hooks {
    type Item = HookItem;
    type Key = HookKey;
    type Purpose = FormPurpose;

    const NOUN: &'static str = "hook";
    const LOAD: &'static str = "reading hooks";
    const EMPTY: &'static str = "Enter leaves this panel. A adds a hook.";
    const KEYS: &'static [Binding<HookKey>] = KEYS;

    fn load(context: &AppContext, feed: &Feed<HookItem>, _: &mut Output) -> Result<(), Failure> {
        let mut files = FileFollower::before_load(context);
        loop {
            let app = App::load(context)?;
            files.follow_app(&app, context);
            let broken = app.problems.iter().filter(|one| one.severity != ollm_catalog::Severity::Warning).count();
            let note = if broken > 0 { format!(", {broken} broken") } else { String::new() };
            let hooks = hook_states(app.hooks(), &app).into_iter();
            feed.send(Batch::All(arranged(hooks.map(|(hook, state)| HookItem { hook, state }).collect()), note));
            if !feed.waits_for(&mut files) {
                return Ok(());
            }
        }
    }

    fn command(&mut self, key: HookKey, chosen: Option<&HookItem>) -> KeyAction<FormPurpose> {
        actions::deed(key, chosen)
    }

    fn save(&mut self, purpose: &FormPurpose, values: &[String]) -> KeyAction<FormPurpose> {
        actions::save(purpose, values)
    }
}

/// Hooks of one category stand together.
pub(super) fn arranged(mut hooks: Vec<HookItem>) -> Vec<HookItem> {
    hooks.sort_by_key(|item| category::order(&item.hook));
    hooks
}
