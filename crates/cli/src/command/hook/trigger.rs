//! `ollm hook trigger`: a hook for `user_triggered`, started by hand.

use ollm_app::dispatch::{DispatchOptions, through};
use ollm_app::outcome::to_json;
use ollm_app::{App, AppContext, refuse_too_deep, sent_by_hook};
use ollm_protocol::{Code, Event, EventKind};

use crate::arguments::hook::TriggerArguments;
use crate::error::{BLOCKED, Failure, OK};
use crate::output::Output;
use crate::problem::json_input;
use crate::timeline::timeline;

pub(super) fn run(arguments: &TriggerArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let data = json_input("--data", &arguments.data, Code::InvalidEvent)?;
    let mut app = App::load(context)?;
    let hook = app.hook(&arguments.id)?;
    if !hook.events.contains(&EventKind::UserTriggered) {
        let events: Vec<&str> = hook.events.iter().map(|kind| kind.name()).collect();
        let message = format!("hook `{}` is for {}, not for user_triggered", hook.spec.name, events.join(", "));
        return Err(
            Failure::new(Code::UnknownHook, message).hint("`ollm hook test ID` tries any hook on a sample event")
        );
    }
    // Only this hook may run at the event.
    app.engine.registry.clear_event(EventKind::UserTriggered);
    app.engine.registry.unregister(hook.id());
    let _ = app.engine.registry.register(hook.as_ref().clone());
    let name = hook.spec.name.as_str();
    let fields = [("eventName", name.into()), ("data", data), ("source", "user".into())];
    refuse_too_deep("the event is not sent", context)?;
    let event = sent_by_hook(Event::unchecked(EventKind::UserTriggered, fields), context);
    output.busy("running the hook");
    let outcome = through(app, &event, DispatchOptions::default(), context, output);
    if arguments.json {
        output.json(&to_json(&outcome))?;
    } else {
        output.text(timeline(name, &outcome).trim_start())?;
    }
    Ok(if outcome.continues() { OK } else { BLOCKED })
}
