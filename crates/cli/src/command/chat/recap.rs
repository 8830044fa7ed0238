//! Earlier conversations: picks one to resume, and shows its last messages.

use std::fmt::Write as _;

use ollm_agent::{Message, Summary};
use ollm_app::AppContext;
use ollm_app::session::sessions;
use ollm_store::{cut, escape_for_people, one_line};

use crate::ask::Asker;
use crate::display::broken;
use crate::error::Failure;
use crate::timeline::{BOLD, DIM, PLAIN};
use ollm_protocol::Code;

/// How many messages are shown again.
const MOST: usize = 6;
/// The longest part of a message that is shown again.
const LONGEST: usize = 600;
/// How many conversations are offered.
const MOST_OFFERED: usize = 50;

/// The last words of the person and of the model, in their order.
pub(crate) fn last_words(messages: &[Message]) -> Vec<(&'static str, String)> {
    let said = messages.iter().filter_map(|message| match message {
        Message::User(text) => Some(("you", text)),
        Message::Assistant { content, .. } if !content.trim().is_empty() => Some(("model", content)),
        _ => None,
    });
    let said: Vec<_> = said.collect();
    let last = said.get(said.len().saturating_sub(MOST)..).unwrap_or_default();
    last.iter().map(|(who, text)| (*who, escape_for_people(&cut(text.trim(), LONGEST)).into_owned())).collect()
}

/// The last messages for the plain terminal.
pub(super) fn text(messages: &[Message]) -> String {
    last_words(messages).into_iter().fold(String::new(), |mut text, (who, words)| {
        let style = if who == "you" { BOLD } else { DIM };
        let said = broken(&format!("{who}: {words}"));
        let said = said.strip_prefix(who).unwrap_or(&said);
        let _ = writeln!(text, "{style}{who}{PLAIN}{said}");
        text
    })
}

/// Asks the person to pick an earlier conversation; those of this folder come first.
pub(crate) fn pick_session(asker: &Asker, context: &AppContext) -> Result<Option<String>, Failure> {
    let listed = ollm_agent::list(&sessions(context));
    let (mut list, _) = listed.map_err(|error| Failure::new(Code::Environment, error.to_string()))?;
    let here = context.cwd.display().to_string();
    list.sort_by_key(|one| one.header.cwd != here);
    list.retain(|one| one.first.is_some());
    list.truncate(MOST_OFFERED);
    if list.is_empty() {
        return Err(Failure::usage("there is no earlier conversation").hint("`ollm chat` begins one"));
    }
    let rows: Vec<String> = list.iter().map(|one| row(one, &here)).collect();
    let picked = asker.pick("Which conversation goes on?", &rows);
    Ok(picked.and_then(|at| list.get(at)).map(|one| one.header.id.clone()))
}

fn row(one: &Summary, here: &str) -> String {
    let when: String = one.header.started.replace('T', " ").chars().take(16).collect();
    let place = if one.header.cwd == here { String::new() } else { format!("{}  ", one_line(&one.header.cwd)) };
    let first = one_line(&cut(one.first.as_deref().unwrap_or_default(), 80));
    format!("{when}  {:>4} messages  {place}{first}", one.messages)
}
