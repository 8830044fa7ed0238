//! `ollm replay`: replays recorded events with the present hooks, or with changed ones.

use std::fmt::Write;

use ollm_app::replay::{Difference, Replay, ReplayResult};
use ollm_app::trace::Record;
use ollm_app::{AppContext, refuse_agents};
use ollm_store::one_line;
use serde_json::{Value, json};

use super::trace::{chosen, named};
use crate::arguments::ReplayArguments;
use crate::error::{FINDING, Failure, OK};
use crate::interrupt::Stop;
use crate::output::Output;
use crate::timeline::{DIM, PLAIN, RED};

pub(super) fn run(arguments: &ReplayArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    if arguments.hooks.is_some() {
        // These hooks have no approval; a person must name them.
        refuse_agents(context, "run hooks from files of its choice")?;
    }
    context.tell_notices(output);
    let records = match &arguments.id {
        Some(id) => vec![named(id, context, output)?],
        None => chosen(&arguments.filters, context, output)?,
    };
    let mut replay = Replay::new(context, arguments.hooks.as_deref())?;
    let stop = Stop::listen_beside(output.asker());
    let mut results = Vec::new();
    output.busy("passing events through the hooks again");
    for record in &records {
        if let Some(failure) = stop.failure() {
            return Err(failure);
        }
        results.push((record, replay.replay(record)));
    }
    if arguments.json {
        output.pretty_json(&to_json(&results, &replay))?;
    } else {
        output.text(&text(&results, &replay))?;
    }
    let differs = results.iter().any(|(_, result)| matches!(result, ReplayResult::Different(_)));
    Ok(if differs { FINDING } else { OK })
}

fn text(results: &[(&Record, ReplayResult)], replay: &Replay) -> String {
    let mut text = String::new();
    let (mut same, mut different) = (0, 0);
    // Many events mostly share one reason, which is reported once.
    let mut missing: Vec<(&str, usize, &Record)> = Vec::new();
    for (record, result) in results {
        match result {
            ReplayResult::Same => same += 1,
            ReplayResult::Different(differences) => {
                different += 1;
                let _ = writeln!(text, "{}", headline(record));
                for difference in differences {
                    line(difference, &mut text);
                }
            }
            ReplayResult::Not(why) => match missing.iter_mut().find(|(known, ..)| known == why) {
                Some((_, count, _)) => *count += 1,
                None => missing.push((why, 1, record)),
            },
        }
    }
    for (why, count, first) in &missing {
        let which = if *count == 1 { headline(first) } else { format!("{count} events") };
        let _ = writeln!(text, "{DIM}not replayed{PLAIN}  {which}: {}", one_line(why));
    }
    for (hook, why) in &replay.left_out {
        let _ = writeln!(text, "{DIM}not run{PLAIN}       {}: {why}", one_line(hook));
    }
    let not = results.len() - same - different;
    let _ = writeln!(text, "{same} same, {different} different, {not} not replayed");
    text
}

fn headline(record: &Record) -> String {
    let subject = record.text("subject");
    let parts = [record.text("time"), record.text("event"), subject, record.id()];
    one_line(&parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  "))
}

fn line(difference: &Difference, text: &mut String) {
    let who = difference.hook.as_deref().unwrap_or("decision");
    let (who, before, now) = (one_line(who), one_line(&difference.before), one_line(&difference.now));
    let _ = writeln!(text, "  {who}  {before} {RED}→ {now}{PLAIN}");
}

fn to_json(results: &[(&Record, ReplayResult)], replay: &Replay) -> Value {
    let events = results.iter().map(|(record, result)| {
        let (word, differences, why) = match result {
            ReplayResult::Same => ("same", Vec::new(), None),
            ReplayResult::Different(differences) => ("different", differences.iter().map(entry).collect(), None),
            ReplayResult::Not(why) => ("not_replayed", Vec::new(), Some(why)),
        };
        json!({
            "traceId": record.id(),
            "time": record.text("time"),
            "event": record.text("event"),
            "subject": record.value.get("subject"),
            "redacted": record.is_redacted(),
            "result": word,
            "differences": differences,
            "why": why,
        })
    });
    let left_out = replay.left_out.iter().map(|(id, why)| json!({"id": id, "why": why}));
    json!({"events": events.collect::<Vec<_>>(), "hooksNotRun": left_out.collect::<Vec<_>>()})
}

fn entry(difference: &Difference) -> Value {
    json!({"hook": difference.hook, "before": difference.before, "now": difference.now})
}
