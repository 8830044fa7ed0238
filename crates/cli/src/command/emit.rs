//! `ollm emit`: sends an event of the person's own, or any other, for people and scripts.

use ollm_app::dispatch::{DispatchOptions, dispatch};
use ollm_app::outcome::to_json;
use ollm_app::{AppContext, refuse_too_deep, sent_by_hook};
use ollm_protocol::Code;
use ollm_protocol::dialect::{self, OLLM};
use serde_json::json;

use crate::arguments::EmitArguments;
use crate::error::{BLOCKED, Failure, OK};
use crate::output::Output;
use crate::problem::json_input;
use crate::timeline::timeline;

pub(super) fn run(arguments: &EmitArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let data = json_input("--data", &arguments.data, Code::InvalidEvent).map_err(|failure| {
        failure.hint("--data takes one JSON value, for instance --data '{\"target\": \"staging\"}'")
    })?;
    let request = match dialect::event_named(&arguments.name) {
        Ok(_) => json!({"event": arguments.name, "data": data}),
        // Any other name is a custom event, though the person may have misspelled one of ours.
        Err(unknown) => {
            if let Some(nearest) = unknown.nearest {
                let name = &arguments.name;
                output.tell(&format!(
                    "`{name}` is sent as an event of your own; did you mean `{nearest}`? (`custom:{name}` is always your own)"
                ));
            }
            json!({"event": "custom", "data": {"eventName": arguments.name, "data": data}})
        }
    };
    let request = OLLM.read_event(request.to_string().as_bytes());
    let request = request.map_err(|error| Failure::new(Code::InvalidEvent, error.to_string()))?;
    refuse_too_deep("the event is not sent", context)?;
    let event = sent_by_hook(request.event, context);
    output.busy("running hooks");
    let outcome = dispatch(&event, DispatchOptions::default(), context, output)?;
    if arguments.json {
        output.json(&to_json(&outcome))?;
    } else {
        output.text(timeline(&arguments.name, &outcome).trim_start())?;
    }
    Ok(if outcome.continues() { OK } else { BLOCKED })
}
