//! What a panel with a list shows and does: its entries, its keys, and the way from a load to the panel.

use std::sync::mpsc::Sender;

use ollm_app::{AppContext, FileFollower, WakeSignal};
use ratatui::text::Line;

use super::super::form::Form;
use super::super::panel::Binding;
use super::super::screen::Screen;
use super::super::theme::Theme;
use crate::arguments::Command;
use crate::error::Failure;
use crate::output::Output;

/// What is listed, and what the keys do with it.
pub(crate) trait ListContent: Default + 'static {
    type Item: ListItem;
    type Key: Copy + 'static;
    /// The purpose of a form.
    type Purpose;

    /// What one entry is called.
    const NOUN: &'static str;
    /// The job that loads them.
    const LOAD: &'static str;
    /// The text for an empty list, beside the row that leaves the panel.
    const EMPTY: &'static str;
    const KEYS: &'static [Binding<Self::Key>];
    /// How much of the width the list takes, in percent.
    const LIST_SHARE: u16 = 30;
    /// Whether entries are added as long as the panel is in front; the newest is the last one then.
    const IS_LIVE: bool = false;

    /// Loads all entries, and again what changes, until the list is no longer looked at.
    fn load(context: &AppContext, feed: &Feed<Self::Item>, output: &mut Output) -> Result<(), Failure>;

    fn command(&mut self, key: Self::Key, chosen: Option<&Self::Item>) -> KeyAction<Self::Purpose>;

    /// Does what a form was filled in for.
    fn save(&mut self, _purpose: &Self::Purpose, _values: &[String]) -> KeyAction<Self::Purpose> {
        KeyAction::None
    }

    /// Whether an entry is listed at all, and what the title says of that.
    fn shows(&self, _item: &Self::Item) -> bool {
        true
    }

    fn selection(&self) -> &'static str {
        ""
    }
}

/// An entry of a list.
pub(crate) trait ListItem: Send + 'static {
    /// Its unique id.
    fn id(&self) -> &str;
    /// Its name for people, unchanged.
    fn name(&self) -> &str;
    /// The text that a filter searches.
    fn search_text(&self) -> String {
        format!("{} {}", self.name(), self.id())
    }
    /// The heading it stands below; empty without one.
    fn category(&self) -> &'static str {
        ""
    }
    /// Its row of the list, escaped.
    fn row(&self, width: usize, theme: &Theme) -> Line<'static>;
    /// Everything about it, escaped.
    fn details(&self, theme: &Theme) -> Vec<Line<'static>>;
}

/// The result of a key.
pub(crate) enum KeyAction<P> {
    None,
    /// A command of the program runs; the text says what it does.
    Run(String, Command),
    /// It runs if the person answers this question with yes.
    Confirm(String, String, Command),
    /// The person is told something, below a title.
    Say(String, String),
    /// A form is filled in.
    Fill(P, Form),
    /// Other entries are listed.
    Arrange,
}

/// The channel from a load to its panel.
pub(crate) struct Feed<I> {
    pub(super) sender: Sender<Batch<I>>,
    /// The screen that is told that something came.
    pub(super) screen: Option<Screen>,
    /// Ended when the list is no longer looked at.
    pub(super) looking: WakeSignal,
}

/// The results of a load.
pub(crate) enum Batch<I> {
    /// All entries, and what else the title says of them.
    All(Vec<I>, String),
    /// More of them.
    More(Vec<I>),
}

impl<I> Feed<I> {
    pub(crate) fn send(&self, batch: Batch<I>) {
        // After the end of the panels there is no receiver.
        let _ = self.sender.send(batch);
        if let Some(screen) = &self.screen {
            screen.loaded();
        }
    }

    /// Waits until one of these files has changed; false once the list is no longer looked at.
    pub(crate) fn waits_for(&self, files: &mut FileFollower<'_>) -> bool {
        files.has_changed(&self.looking)
    }
}
