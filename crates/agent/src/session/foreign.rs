//! Calls tools of other sources on a separate thread, so that a hanging tool delays no turn.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use ollm_protocol::ToolResult;
use serde_json::{Map, Value};

use crate::cancel::Cancel;
use crate::port::{Order, ToolSource};

/// How often we check for an interruption.
const LOOKING: Duration = Duration::from_millis(20);

/// A message from a running call.
enum Word {
    Progress(String),
    Result(ToolResult),
}

/// Calls a tool and waits for it, at most `most` and until an interruption.
pub(super) fn call(
    source: &Arc<dyn ToolSource>,
    name: &str,
    args: &Map<String, Value>,
    (most, cancel): (Duration, &Cancel),
    hear: &mut dyn FnMut(&str),
) -> ToolResult {
    let stop = Cancel::default();
    let words = match begin(source, name, args, &stop) {
        Ok(words) => words,
        Err(error) => return ToolResult::error(format!("the call could not be started: {error}")),
    };
    let began = Instant::now();
    loop {
        let broken = match words.recv_timeout(LOOKING) {
            Ok(Word::Result(result)) => return result,
            Ok(Word::Progress(text)) => {
                hear(&text);
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            // The thread has ended without a result, because the source panicked.
            Err(RecvTimeoutError::Disconnected) => true,
        };
        let why = match (broken, cancel.is_set(), began.elapsed() >= most) {
            (true, _, _) => "the tool broke down".to_owned(),
            (_, true, _) => "interrupted".to_owned(),
            (_, _, true) => format!("no result came within {} seconds", most.as_secs_f64()),
            (false, false, false) => continue,
        };
        stop.interrupt();
        return ToolResult::error(why);
    }
}

/// Starts the call, which sends its messages through the channel.
fn begin(
    source: &Arc<dyn ToolSource>,
    name: &str,
    args: &Map<String, Value>,
    stop: &Cancel,
) -> io::Result<Receiver<Word>> {
    let (sender, words) = channel();
    let news = sender.clone();
    let order = Order {
        name: name.to_owned(),
        args: args.clone(),
        cancel: stop.clone(),
        progress: Box::new(move |text| drop(news.send(Word::Progress(text.to_owned())))),
    };
    let source = Arc::clone(source);
    thread::Builder::new().name("tool".to_owned()).spawn(move || {
        let result = source.call(&order);
        // The receiver may have stopped waiting.
        let _ = sender.send(Word::Result(result));
    })?;
    Ok(words)
}
