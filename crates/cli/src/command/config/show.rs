//! `ollm config show`: shows every setting with its origin, and ignored values with the reason.

use ollm_app::AppContext;
use ollm_catalog::{Config, IgnoredValue, Origin, Problem, Setting};
use ollm_protocol::Code;
use ollm_store::one_line;
use serde_json::{Value, json};

use super::{applying, discreet, entry, is_fatal, load_migrated, origin, plain, problem_entry};
use crate::error::{ErrorKind, Failure, OK};
use crate::output::Output;
use crate::table;

pub(super) fn run(
    section: Option<&str>,
    context: &AppContext,
    as_json: bool,
    output: &mut Output,
) -> Result<u8, Failure> {
    let (mut config, mut problems) = load_migrated(context, output);
    let (mut settings, idle) = applying(&mut config, context, &mut problems);
    if let Some(section) = section {
        settings.retain(|setting| {
            setting.path.strip_prefix(section).is_some_and(|rest| matches!(rest.chars().next(), None | Some('.')))
        });
        if settings.is_empty() {
            return Err(Failure::new(Code::UnknownSetting, format!("there is no setting or section `{section}`"))
                .hint("`ollm config show` lists the settings there are"));
        }
    }
    let shown = Shown { config: &config, settings: &settings, idle: &idle };
    let code = if is_fatal(&problems) { ErrorKind::Configuration as u8 } else { OK };
    if as_json {
        output.pretty_json(&details(&shown, &problems))?;
        return Ok(code);
    }
    output.text(&table(&shown, context))?;
    for problem in problems.iter().filter(|problem| !is_listed(problem, &config)) {
        output.problem(problem);
    }
    Ok(code)
}

/// The data to show.
struct Shown<'a> {
    config: &'a Config,
    settings: &'a [Setting],
    /// Settings of extensions that are not on.
    idle: &'a [String],
}

impl Shown<'_> {
    fn is_idle(&self, setting: &Setting) -> bool {
        self.idle.contains(&setting.path)
    }
}

fn details(all: &Shown<'_>, problems: &[Problem]) -> Value {
    let config = all.config;
    let shown = |setting: &Setting| entry(setting, &discreet(setting));
    let marked = |setting: &Setting| {
        let mut value = shown(setting);
        if let Some(map) = value.as_object_mut().filter(|_| all.is_idle(setting)) {
            map.insert("extensionOn".to_owned(), false.into());
        }
        value
    };
    json!({
        "settings": all.settings.iter().map(marked).collect::<Vec<_>>(),
        "projectHooks": config.own().iter().map(shown).collect::<Vec<_>>(),
        "ignored": config.ignored.iter().map(without_effect).collect::<Vec<_>>(),
        "problems": problems.iter().map(problem_entry).collect::<Vec<_>>(),
    })
}

fn without_effect(ignored: &IgnoredValue) -> Value {
    let mut value = entry(&ignored.setting, &discreet(&ignored.setting));
    if let Some(map) = value.as_object_mut() {
        map.insert("why".to_owned(), json!(ignored.why));
    }
    value
}

fn table(all: &Shown<'_>, context: &AppContext) -> String {
    let config = all.config;
    let row = |setting: &Setting| [setting.path.clone(), shown(setting), origin(setting, context)];
    let own = |setting: &Setting| {
        let [path, value, from] = row(setting);
        [path, value, format!("{from}, for the project's own hooks")]
    };
    let marked = |setting: &Setting| {
        let [path, value, from] = row(setting);
        let from = if all.is_idle(setting) { format!("{from}, but the extension is not on") } else { from };
        [path, value, from]
    };
    let rows = all.settings.iter().map(marked).chain(config.own().iter().map(own));
    let mut text = table::table(["KEY", "VALUE", "FROM"], rows);
    if !config.ignored.is_empty() {
        let rows: Vec<[String; 4]> = config
            .ignored
            .iter()
            .map(|ignored| {
                let [path, value, from] = row(&ignored.setting);
                [path, value, from, one_line(&ignored.why)]
            })
            .collect();
        text.push_str("\nIgnored:\n");
        text.push_str(&table::columns(&rows));
    }
    text
}

fn shown(setting: &Setting) -> String {
    if setting.value.is_null() { "(not set)".to_owned() } else { plain(&discreet(setting)) }
}

/// Whether the list of ignored values already names the value of this problem.
fn is_listed(problem: &Problem, config: &Config) -> bool {
    config.ignored.iter().any(|ignored| match &ignored.setting.origin {
        Origin::File { file, line, column, .. } => {
            (file, *line, *column) == (&problem.file, problem.line, problem.column)
        }
        _ => false,
    })
}
