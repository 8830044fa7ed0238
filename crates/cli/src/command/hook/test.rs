//! `ollm hook test`: one hook and one event, with everything that passed between them; or golden cases.

use std::sync::Arc;

use ollm_app::rehearsal::{Rehearsal, sample, sample_named};
use ollm_app::{App, AppContext};
use ollm_engine::{Reason, Status};
use ollm_protocol::dialect::event_named;
use ollm_protocol::{Code, DialectError, Event, Hook};

use crate::arguments::hook::TestArguments;
use crate::ask::Asker;
use crate::error::{FINDING, Failure, OK};
use crate::output::Output;
use crate::problem::json_input;

mod exchange;
mod golden;
mod touched;
mod watch;

pub(crate) use golden::text as cases_text;
pub(crate) use watch::stamps;

pub(super) fn run(arguments: &TestArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    if arguments.watch { watch::run(arguments, context, output) } else { once(arguments, context, output) }
}

/// Runs the golden cases of the hooks that `choose` picks.
pub(crate) fn cases(
    context: &AppContext,
    choose: impl FnOnce(&App) -> Result<Vec<Arc<Hook>>, Failure>,
    as_json: bool,
    output: &mut Output,
) -> Result<u8, Failure> {
    let mut stage = stage(context, output)?;
    let hooks = choose(&stage.app)?;
    golden::run(&mut stage, &hooks, as_json, output)
}

/// Where hooks are tried; a key of the panels interrupts them, elsewhere a signal does.
fn stage(context: &AppContext, output: &Output) -> Result<Rehearsal, Failure> {
    let mut stage = Rehearsal::new(context)?;
    if let Asker::Dialog(screen) = output.asker() {
        let cancel = screen.cancel().clone();
        stage.stop_when(move || cancel.is_set());
    }
    Ok(stage)
}

fn once(arguments: &TestArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let mut stage = stage(context, output)?;
    context.tell_notices(output);
    let hooks = chosen(&stage.app, arguments)?;
    match hooks.as_slice() {
        [hook] if !arguments.all => {
            let event = event(hook, arguments, context, output)?;
            output.busy("running the hook");
            let outcome =
                if arguments.in_box { stage.rehearse_in_box(hook, &event)? } else { stage.rehearse(hook, &event)? };
            exchange::show(hook, &event, &outcome, arguments.json, output)?;
            let failed = outcome.reports.iter().any(|report| matches!(report.status, Status::Failed | Status::Timeout));
            let cannot = outcome.skipped.iter().any(|skip| matches!(skip.reason, Reason::Missing | Reason::Unsafe));
            Ok(if failed || cannot { FINDING } else { OK })
        }
        hooks => golden::run(&mut stage, hooks, arguments.json, output),
    }
}

/// The hooks that were asked for.
fn chosen(app: &App, arguments: &TestArguments) -> Result<Vec<Arc<Hook>>, Failure> {
    match &arguments.id {
        Some(id) => Ok(vec![app.hook(id)?]),
        None => Ok(app.hooks()),
    }
}

/// The event to try a hook on: one it is for, with what the person wants different.
fn event(hook: &Hook, arguments: &TestArguments, context: &AppContext, output: &mut Output) -> Result<Event, Failure> {
    let folder = &context.cwd;
    let data = json_input("--data", arguments.data.as_deref().unwrap_or("{}"), Code::InvalidEvent)?;
    let mut event = match (&arguments.event, &arguments.from_trace) {
        (_, Some(id)) => recorded(id, context, output)?,
        (Some(name), None) => {
            event_named(name)?;
            let unread = |error: DialectError| Failure::new(Code::BrokenCase, error.to_string());
            sample_named(name, folder).map_err(unread)?
        }
        (None, None) => sample(hook, folder),
    };
    event.data.extend(Event::from_loose(event.kind, data).data);
    Ok(event)
}

/// A recorded event, in the folder where it happened.
fn recorded(id: &str, context: &AppContext, output: &mut Output) -> Result<Event, Failure> {
    let record = crate::command::trace::named(id, context, output)?;
    if record.is_redacted() {
        output.tell("the record is without the secrets of its event");
    }
    let mut event = record
        .event()
        .map_err(|why| Failure::new(Code::InvalidEvent, format!("{} cannot be tried: {why}", record.id())))?;
    event.data.entry("cwd").or_insert_with(|| record.text("cwd").into());
    Ok(event)
}
