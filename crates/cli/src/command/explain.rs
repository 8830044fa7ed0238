//! `ollm explain`: shows why each hook does or does not run for an event, why one hook does or does not run at all, or
//! how an earlier verdict came about.

use ollm_app::trace::Record;
use ollm_app::{App, AppContext};
use ollm_protocol::dialect::event_named;
use ollm_protocol::{Code, EventKind, did_you_mean};

use crate::arguments::ExplainArguments;
use crate::error::Failure;
use crate::output::Output;

mod event;
mod fold;
mod hook;
mod place;
mod rules;
mod unloaded;

pub(super) fn run(arguments: &ExplainArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let ExplainArguments { what, data, json } = arguments;
    context.tell_notices(output);
    output.busy("looking at hooks and the trace");
    let app = App::load(context)?;
    let Err(unknown) = event_named(what) else {
        return event::run(what, data.as_deref(), &app, *json, output);
    };
    if let Ok(hook) = app.hook(what) {
        return hook::run(&hook, data.as_deref(), &app, *json, output);
    }
    if data.is_some() {
        return Err(unknown.into());
    }
    if let Some(record) = earlier(what, &app, output)? {
        return fold::run(&record, &app, *json, output);
    }
    let problems = app.unloaded(what);
    if !problems.is_empty() {
        return unloaded::run(what, &problems, *json, output);
    }
    let message = format!("`{what}` is neither an event nor a hook nor a trace");
    let hooks = app.hooks();
    let events: Vec<&str> = EventKind::all().map(EventKind::name).collect();
    let names = events.iter().copied().chain(hooks.iter().map(|hook| hook.spec.name.as_str()));
    let mut failure = Failure::new(Code::UnknownName, message);
    if let Some(near) = did_you_mean(what, names) {
        failure = failure.hint(near);
    }
    Err(failure.hint("`ollm schema` lists the events, `ollm hook list` the hooks, `ollm trace list` the traces"))
}

/// The record with this id, if the text looks like an id.
fn earlier(id: &str, app: &App, output: &mut Output) -> Result<Option<Record>, Failure> {
    let looks_like_one = id.len() >= 4 && id.chars().all(|char| char.is_ascii_hexdigit() || char == '-');
    looks_like_one.then(|| super::trace::named(id, app.context(), output)).transpose()
}
