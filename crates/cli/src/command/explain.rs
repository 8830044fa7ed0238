//! `ollm explain`: why each hook does or does not run for an event, why one hook does or does not run at all, and how an
//! earlier verdict came about.

use ollm_app::trace::Record;
use ollm_app::{App, AppContext};
use ollm_protocol::Code;
use ollm_protocol::dialect::event_named;

use crate::arguments::ExplainArguments;
use crate::error::Failure;
use crate::output::Output;

mod event;
mod fold;
mod hook;
mod place;

pub(super) fn run(arguments: &ExplainArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let ExplainArguments { what, data, json } = arguments;
    context.tell_notices(output);
    output.busy("looking at hooks and the trace");
    let app = App::load(context)?;
    let Err(unknown) = event_named(what) else {
        return event::run(what, data.as_deref(), &app, *json, output);
    };
    if data.is_some() {
        return Err(unknown.into());
    }
    if let Ok(hook) = app.hook(what) {
        return hook::run(&hook, &app, *json, output);
    }
    if let Some(record) = earlier(what, &app, output)? {
        return fold::run(&record, &app, *json, output);
    }
    let message = format!("`{what}` is neither an event nor a hook nor a trace");
    Err(Failure::new(Code::UnknownName, message)
        .hint("`ollm schema` lists the events, `ollm hook list` the hooks, `ollm trace list` the traces"))
}

/// The record with this id, where it looks like one.
fn earlier(id: &str, app: &App, output: &mut Output) -> Result<Option<Record>, Failure> {
    let looks_like_one = id.len() >= 4 && id.chars().all(|char| char.is_ascii_hexdigit() || char == '-');
    looks_like_one.then(|| super::trace::named(id, app.context(), output)).transpose()
}
