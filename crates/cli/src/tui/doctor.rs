//! The panel of the doctor: problems and their fixes, with keys for `ollm doctor`.

use ollm_app::AppContext;
use ollm_app::doctor::{Area, Examination, Finding, Weight, examine};
use ollm_protocol::units::counted;
use ollm_store::{escape_for_people, one_line};
use ratatui::crossterm::event::KeyCode;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::list_panel::{Batch, Feed, KeyAction, ListContent, ListItem};
use super::panel::{Binding, Key};
use super::text::{fitted, plain};
use super::theme::Theme;
use crate::arguments::{Command, DoctorArguments};
use crate::error::Failure;
use crate::output::Output;
use crate::table::pairs;

/// The commands of this panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DoctorKey {
    Explain,
    Fix,
}

const KEYS: &[Binding<DoctorKey>] = &[
    Binding {
        keys: &[Key::Plain(KeyCode::Enter), Key::Plain(KeyCode::Char('e'))],
        shown: "Enter, E",
        help: "explain its code",
        command: DoctorKey::Explain,
    },
    Binding { keys: &[Key::Plain(KeyCode::Char('f'))], shown: "F", help: "fix what is safe", command: DoctorKey::Fix },
];

/// A finding, or an area without findings.
pub(crate) enum DoctorItem {
    Finding(Finding),
    Fine { area: Area, what: String },
}

impl DoctorItem {
    fn area(&self) -> Area {
        match self {
            DoctorItem::Finding(finding) => finding.area,
            DoctorItem::Fine { area, .. } => *area,
        }
    }

    fn what(&self) -> &str {
        match self {
            DoctorItem::Finding(finding) => &finding.what,
            DoctorItem::Fine { what, .. } => what,
        }
    }
}

impl ListItem for DoctorItem {
    fn id(&self) -> &str {
        match self {
            DoctorItem::Finding(finding) => &finding.what,
            DoctorItem::Fine { area, .. } => area.name(),
        }
    }

    fn name(&self) -> &str {
        self.area().name()
    }

    fn search_text(&self) -> String {
        format!("{} {}", self.area().name(), self.what())
    }

    fn row(&self, width: usize, theme: &Theme) -> Line<'static> {
        let (mark, style) = match self {
            DoctorItem::Finding(Finding { weight: Weight::Fault, .. }) => ("! ", theme.bad),
            DoctorItem::Finding(Finding { weight: Weight::Note, .. }) => ("· ", theme.attention),
            DoctorItem::Fine { .. } => ("✓ ", theme.good),
        };
        let text = format!("{}: {}", self.area().name(), one_line(self.what()));
        Line::from(vec![Span::styled(mark, style), Span::raw(fitted(&text, width.saturating_sub(2)))])
    }

    fn details(&self, _: &Theme) -> Vec<Line<'static>> {
        let mut rows = vec![("area", self.area().name().to_owned())];
        match self {
            DoctorItem::Finding(Finding { weight, code, what, way_out, fix, .. }) => {
                rows.push((weight.name(), what.clone()));
                rows.extend(code.map(|code| ("code", code.id().to_owned())));
                rows.extend(way_out.clone().map(|way_out| ("way out", way_out)));
                rows.extend(fix.is_some().then(|| ("safe fix", "F mends it, as `ollm doctor --fix` does".to_owned())));
            }
            DoctorItem::Fine { what, .. } => rows.push(("there is", what.clone())),
        }
        plain(&escape_for_people(&pairs(&rows)), Style::new())
    }
}

#[derive(Default)]
pub(crate) struct Findings;

impl ListContent for Findings {
    type Item = DoctorItem;
    type Key = DoctorKey;
    type Purpose = ();

    const NOUN: &'static str = "row";
    const LOAD: &'static str = "looking over what is set up";
    const EMPTY: &'static str = "Enter leaves this panel. F fixes what is safe to fix.";
    const KEYS: &'static [Binding<DoctorKey>] = KEYS;
    const LIST_SHARE: u16 = 50;

    fn load(context: &AppContext, feed: &Feed<DoctorItem>, _: &mut Output) -> Result<(), Failure> {
        let found = examine(context);
        feed.send(Batch::All(items(&found), summary(&found)));
        Ok(())
    }

    fn command(&mut self, key: DoctorKey, chosen: Option<&DoctorItem>) -> KeyAction<()> {
        match (key, chosen) {
            (DoctorKey::Fix, _) => {
                let arguments = DoctorArguments { json: false, fix: true };
                KeyAction::Run("fixing what is safe".to_owned(), Command::Doctor(arguments))
            }
            (DoctorKey::Explain, Some(DoctorItem::Finding(Finding { code: Some(code), .. }))) => {
                KeyAction::Run(format!("help {}", code.id()), Command::Help { words: vec![code.id().to_owned()] })
            }
            (DoctorKey::Explain, Some(item)) => {
                KeyAction::Say(item.area().name().to_owned(), "This row has no code to explain.".to_owned())
            }
            (DoctorKey::Explain, None) => KeyAction::None,
        }
    }
}

/// What was found, area by area.
pub(super) fn items(found: &Examination) -> Vec<DoctorItem> {
    let of_area = |area: Area| {
        let findings: Vec<DoctorItem> =
            found.findings.iter().filter(|one| one.area == area).cloned().map(DoctorItem::Finding).collect();
        let looked_at = found.looked_at.iter().find(|(known, _)| *known == area);
        match (findings.is_empty(), looked_at) {
            (true, Some((_, what))) => vec![DoctorItem::Fine { area, what: what.clone() }],
            (true, None) => Vec::new(),
            (false, _) => findings,
        }
    };
    Area::ALL.into_iter().flat_map(of_area).collect()
}

fn summary(found: &Examination) -> String {
    let faults = found.findings.iter().filter(|finding| finding.weight == Weight::Fault).count();
    format!(", {}, {}", counted(faults, "fault"), counted(found.findings.len() - faults, "note"))
}
