//! Calls of tools that others provide: on a thread of their own, so that one that hangs holds nobody up.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use ollm_protocol::ToolResult;
use serde_json::{Map, Value};

use crate::cancel::Cancel;
use crate::port::{Order, ToolSource};

/// How often we look whether the person still waits.
const LOOKING: Duration = Duration::from_millis(20);

/// What a call sends back.
enum Word {
    Progress(String),
    Result(ToolResult),
}

/// Calls a tool and waits for it, but not longer than `most` and not after an interruption.
pub(super) fn call(
    source: &Arc<dyn ToolSource>,
    name: &str,
    args: &Map<String, Value>,
    (most, cancel): (Duration, &Cancel),
    hear: &mut dyn FnMut(&str),
) -> ToolResult {
    let (sender, words) = channel();
    let stop = Cancel::default();
    let news = sender.clone();
    let order = Order {
        name: name.to_owned(),
        args: args.clone(),
        cancel: stop.clone(),
        progress: Box::new(move |text| drop(news.send(Word::Progress(text.to_owned())))),
    };
    let source = Arc::clone(source);
    let spawned = thread::Builder::new().name("tool".to_owned()).spawn(move || {
        let result = source.call(&order);
        // The order holds a sender too; without it nobody waits for more.
        let _ = sender.send(Word::Result(result));
    });
    if let Err(error) = spawned {
        return ToolResult::error(format!("the call could not be started: {error}"));
    }
    let began = Instant::now();
    loop {
        let why = match words.recv_timeout(LOOKING) {
            Ok(Word::Result(result)) => return result,
            Ok(Word::Progress(text)) => {
                hear(&text);
                None
            }
            Err(RecvTimeoutError::Timeout) => None,
            // The thread is gone without a result: the source panicked.
            Err(RecvTimeoutError::Disconnected) => Some("the tool broke down".to_owned()),
        };
        let why = why.or_else(|| cancel.is_set().then(|| "interrupted".to_owned()));
        let late = || format!("no result came within {} seconds", most.as_secs_f64());
        if let Some(why) = why.or_else(|| (began.elapsed() >= most).then(late)) {
            stop.interrupt();
            return ToolResult::error(why);
        }
    }
}
