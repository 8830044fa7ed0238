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
    /// What a form is filled in for.
    type Purpose;

    /// What one entry is called.
    const NOUN: &'static str;
    /// The job that loads them.
    const LOAD: &'static str;
    /// What is said beside the row that leaves the panel.
    const EMPTY: &'static str;
    const KEYS: &'static [Binding<Self::Key>];
    /// How much of the width the list takes, in percent.
    const LIST_SHARE: u16 = 30;
    /// Whether entries are added as long as the panel is in front; the newest is the last one then.
    const IS_LIVE: bool = false;

    /// Loads all entries, and again what changes, until nobody looks any more.
    fn load(context: &AppContext, feed: &Feed<Self::Item>, output: &mut Output) -> Result<(), Failure>;

    fn command(&mut self, key: Self::Key, chosen: Option<&Self::Item>) -> Deed<Self::Purpose>;

    /// Does what a form was filled in for.
    fn save(&mut self, _purpose: &Self::Purpose, _values: &[String]) -> Deed<Self::Purpose> {
        Deed::None
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
    /// What tells it from the others.
    fn id(&self) -> &str;
    /// Its name for people, as it is.
    fn name(&self) -> &str;
    /// What a filter is compared with.
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

/// What a key of a content has done.
pub(crate) enum Deed<P> {
    None,
    /// A command of the program runs; the text says what it does.
    Run(String, Command),
    /// It runs if the person answers this question with yes.
    Confirm(String, String, Command),
    /// The person is told something.
    Say(String),
    /// A form is filled in.
    Fill(P, Form),
    /// Other entries are listed.
    Arrange,
}

/// The way from a load to its panel.
pub(crate) struct Feed<I> {
    pub(super) sender: Sender<Batch<I>>,
    /// Who is told that something came.
    pub(super) screen: Option<Screen>,
    /// Ended where nobody looks any more.
    pub(super) looking: WakeSignal,
}

/// What a load brings.
pub(crate) enum Batch<I> {
    /// All entries, and what else the title says of them.
    All(Vec<I>, String),
    /// More of them.
    More(Vec<I>),
}

impl<I> Feed<I> {
    pub(crate) fn send(&self, batch: Batch<I>) {
        // Nobody waits where the panels are gone.
        let _ = self.sender.send(batch);
        if let Some(screen) = &self.screen {
            screen.loaded();
        }
    }

    /// Waits until one of these files has changed; false where nobody looks any more.
    pub(crate) fn waits_for(&self, files: &mut FileFollower<'_>) -> bool {
        files.has_changed(&self.looking)
    }
}
