//! Tests that the table of limits in `docs/mcp.md` matches the code.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ollm_process::Limits;

use crate::error::{bytes, seconds};
use crate::settings::{Bounds, Timings};
use crate::{
    auth, batch, cache, client_handler, connect, depth_limit, events, health, line_transport, log, name, requester,
    result, tool, web,
};

fn size(count: usize) -> String {
    if count < 1 << 20 && count.is_multiple_of(1 << 10) { format!("{} KiB", count >> 10) } else { bytes(count) }
}

fn time(time: Duration) -> String {
    match time.as_secs() {
        60 => "1 minute".to_owned(),
        count if count > 60 && count % 60 == 0 => format!("{} minutes", count / 60),
        _ => seconds(time),
    }
}

/// Every limited thing with its limit.
fn limits() -> Vec<(&'static str, String)> {
    let (bounds, timings) = (Bounds::default(), Timings::default());
    let spill = result::Spill::new("", Arc::default());
    assert_eq!(line_transport::LARGEST_SKIPS, events::PATIENCE);
    vec![
        ("one message, on every transport", size(bounds.message)),
        ("values in one message", depth_limit::MOST_VALUES.to_string()),
        ("messages sent as one", batch::MOST.to_string()),
        ("no messages, or too large ones, in a row", size(bounds.message * line_transport::LARGEST_SKIPS)),
        ("text of a result that is shown", size(result::LARGEST_RESULT)),
        ("pictures and sounds of a result", size(result::LARGEST_MEDIA)),
        ("beginning of a larger result", size(result::SHOWN)),
        ("parts of a result", result::MOST_PARTS.to_string()),
        ("a result in a file", size(spill.largest)),
        (
            "all results in files",
            format!("{} files, {}", spill.most_files, size(usize::try_from(spill.most_bytes).unwrap())),
        ),
        ("tools, prompts, resources or templates of a server", bounds.items.to_string()),
        ("all of one kind together", size(bounds.list)),
        ("pages of a list", bounds.pages.to_string()),
        ("the word for the next page", size(bounds.cursor)),
        ("time to list", time(bounds.listing)),
        ("levels of a tool's entry", depth_limit::DEEPEST.to_string()),
        ("the server's own name of a tool", size(name::LONGEST_TOOL)),
        ("the name that a model sees", format!("{} characters", name::LONGEST_NAME)),
        ("description of a tool", size(tool::LONGEST_DESCRIPTION)),
        ("lists that are remembered", format!("{} servers, {}", cache::MOST_ENTRIES, size(cache::MOST_BYTES))),
        ("a call at all, whatever progress it reports", time(timings.ceiling)),
        ("questions during one call", requester::ROUNDS.to_string()),
        ("questions of a server at once", client_handler::QUESTIONS.to_string()),
        ("requests to one server on the web at once", connect::AT_ONCE.to_string()),
        ("redirects within an origin", web::HOPS.to_string()),
        ("tries to start", timings.tries.to_string()),
        ("pauses between them", format!("{} to {}", time(timings.pause), time(timings.longest_pause))),
        ("an answer to `server/discover`", time(timings.probe)),
        ("silence before a ping", time(timings.health.unwrap())),
        ("an answer to a ping", time(timings.ping)),
        ("pings in a row without one", health::MISSES.to_string()),
        ("crashes in a row", format!("{} in {}", timings.crashes, time(timings.window))),
        ("end after its input is closed", time(timings.parting)),
        ("end while it owes an answer", time(timings.haste)),
        ("end after the polite signal", time(Limits::default().grace)),
        ("lines of a log", format!("{} of {}", bounds.lines, size(log::SHOWN))),
        ("last words in a message", size(log::TAIL)),
        ("one request of a login", format!("{}, {}", time(auth::net::PATIENCE), size(auth::net::LARGEST))),
    ]
}

#[test]
fn the_table_of_limits_says_what_holds() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/mcp.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, section) = text.split_once("\n## Limits\n").unwrap();
    let rows = section.split("\n## ").next().unwrap().lines().filter(|line| line.starts_with("| ")).skip(1);
    let told: Vec<String> = rows.map(|row| row.split('|').skip(1).take(2).collect::<Vec<_>>().join("|")).collect();
    let held: Vec<String> = limits().iter().map(|(what, most)| format!(" {what} | {most} ")).collect();
    assert_eq!(told.join("\n"), held.join("\n"));
}
