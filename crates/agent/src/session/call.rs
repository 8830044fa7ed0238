//! Makes tool calls: before_tool, the person where needed, the tool, its changes of files, after_tool.

use ollm_protocol::tool::{CallEffect, Effect, effects_of};
use ollm_protocol::{EventKind, FileChange, Flow, Tool, ToolResult, nearest};
use serde_json::{Map, Value, json};

use super::consent::{Asker, Standing};
use super::emit::one_name;
use super::turn::Tally;
use super::{Session, TurnEnd, foreign};
use crate::message::{Arguments, Call, Message};
use crate::port::{Decision, Failure, News};
use crate::registry::{Worker, text_of, value_of};
use crate::time::seconds;
use crate::tool::{Bench, Change, Reach, ToolOutcome, spill};
use ollm_protocol::units::iso;

/// The model is shown at least this much of a result.
const SHORTEST_RESULT: usize = 1 << 10;

/// The text before a server's last lines in its failure message.
const LAST_WORDS: &str = "; its last words:\n";
/// The most of a tool's error text that an error repeats.
const LONGEST_MESSAGE: usize = 2 << 10;

/// The outcome of a tool's work.
struct Work {
    result: ToolResult,
    change: Option<Change>,
    /// Why it failed, if the result contains more than the reason.
    failure: Option<Failure>,
}

impl Work {
    fn of(result: ToolResult) -> Work {
        Work { result, change: None, failure: None }
    }
}

impl Session<'_> {
    /// Makes the calls of an answer. Every call gets a result, because a call without one makes the conversation
    /// invalid.
    pub(super) fn calls(&mut self, calls: &[Call], offered: &[Tool], tally: &mut Tally) -> Result<(), TurnEnd> {
        let most = self.settings.limits.tool_calls;
        let (mut bound, before) = (None, tally.calls.len());
        for (at, call) in calls.iter().enumerate() {
            let content = if bound.is_some() || self.stopping().is_some() {
                "not run: the turn ended before".to_owned()
            } else if at >= most {
                format!("not run: at most {most} calls are made at once; make the rest later")
            } else {
                self.guarded(call, offered, tally, &mut bound)
            };
            self.push(Message::Tool { call_id: call.id.clone(), name: call.name.clone(), content });
        }
        if calls.len() > most {
            let ran = tally.calls.len().saturating_sub(before);
            self.status(&format!("the model made {} calls at once; {ran} of them were run", calls.len()));
        }
        match bound {
            Some(bound) => {
                self.error("turn", "loop", &bound);
                Err(TurnEnd::Bounded(bound))
            }
            None => Ok(()),
        }
    }

    /// Makes a call, unless the model repeats itself in circles.
    fn guarded(&mut self, call: &Call, offered: &[Tool], tally: &mut Tally, bound: &mut Option<String>) -> String {
        let most = self.settings.limits.repeats;
        let cycle = tally.history.next(call);
        if let Some(cycle) = cycle.filter(|cycle| cycle.times > most) {
            if cycle.times > most.saturating_mul(2) {
                let what = cycle.what(call);
                *bound = Some(format!(
                    "the model wanted {what} {} times in a row, of which {most} were made; the turn ends",
                    cycle.times
                ));
            }
            tally.history.add_again(call, cycle);
            return format!(
                "not run: {} {most} times in a row already with the same results, which will not change; do something else",
                cycle.said(call)
            );
        }
        let result = self.call(call, offered, tally);
        tally.history.add(call, &result);
        result
    }

    fn call(&mut self, call: &Call, offered: &[Tool], tally: &mut Tally) -> String {
        let name = call.name.as_str();
        let args = match &call.arguments {
            Arguments::Object(args) => args.clone(),
            Arguments::Broken(text) => {
                let shown = ollm_store::cut(text, 200);
                let why = if tally.truncated {
                    "the call was cut, because the model reached its limit of tokens; write less at once"
                } else {
                    "the arguments are no JSON object"
                };
                return self.impossible(call, &format!("{why}: {shown}"));
            }
        };
        let Some(worker) = self.worker(name, offered, tally) else {
            return self.impossible(call, &unknown(name, offered));
        };
        if let Err(why) = worker.fits(&args, offered.iter().find(|tool| tool.name == name)) {
            return self.impossible(call, &why);
        }
        match self.cleared(call, &worker, args) {
            Err(why) => why,
            Ok(args) => self.perform(call, &worker, &args, tally),
        }
    }

    /// The implementation of a tool that is offered, or that a call can bring back and hooks have not removed.
    fn worker(&self, name: &str, offered: &[Tool], tally: &Tally) -> Option<Worker> {
        let offer = offered.iter().any(|tool| tool.name == name);
        let kept = tally.kept.as_ref().is_none_or(|kept| kept.iter().any(|kept| kept == name));
        let worker = self.registry.worker(name).filter(|_| offer);
        worker.or_else(|| self.registry.recalled(name).filter(|_| kept))
    }

    /// Rejects a call that cannot be tried; hooks are not asked about it.
    fn impossible(&mut self, call: &Call, why: &str) -> String {
        let result = format!("error: {why}");
        let args = match &call.arguments {
            Arguments::Object(args) => Some(args),
            Arguments::Broken(_) => None,
        };
        self.reject(call, args, &result);
        self.told_error("tool", "tool", &format!("the call of {} is impossible: {why}", call.name));
        result
    }

    /// Shows a call that is not made, with its arguments.
    fn reject(&mut self, call: &Call, args: Option<&Map<String, Value>>, result: &str) {
        let args = args.map(one_name);
        self.ports.show.show(&News::Rejected { id: &call.id, name: &call.name, args: args.as_ref(), result });
    }

    /// The arguments of the call after approval, or else the message for the model.
    fn cleared(
        &mut self,
        call: &Call,
        worker: &Worker,
        args: Map<String, Value>,
    ) -> Result<Map<String, Value>, String> {
        let seen = both_paths(args.clone(), worker);
        let decision = self.emit(
            EventKind::BeforeTool,
            [
                ("tool_name", call.name.as_str().into()),
                ("args", seen.clone().into()),
                ("call_id", call.id.as_str().into()),
            ],
        );
        let args = match &decision.args {
            Some(patched) => one_path(patched.clone(), &seen, worker),
            None => args,
        };
        self.consent(call, worker, &args, &decision).map(|()| args)
    }

    fn consent(
        &mut self,
        call: &Call,
        worker: &Worker,
        args: &Map<String, Value>,
        decision: &Decision,
    ) -> Result<(), String> {
        let details = Map::from_iter([
            ("tool_name".to_owned(), call.name.as_str().into()),
            ("args".to_owned(), both_paths(args.clone(), worker).into()),
            ("call_id".to_owned(), call.id.as_str().into()),
        ]);
        let blocked = |reason: &str| format!("Tool execution blocked by hook: {reason}");
        let reach = self.reach(&call.name, worker, args);
        let told = match decision.flow {
            Flow::Block | Flow::Halt => return Err(blocked(&decision.why())),
            Flow::Ask => self.settle(&call.name, details, decision).map_err(|refusal| blocked(&refusal.reason)),
            Flow::Allow => return Ok(()),
            Flow::NoOpinion => {
                let allowed = self.allowed.contains(&Standing::of(&call.name, &details).key);
                if allowed || !self.settings.approval.asks(reach) {
                    return Ok(());
                }
                self.ask(&call.name, details, Asker::Mode(reach)).map_err(|refusal| match refusal.hook {
                    None => format!("Tool execution not approved: {}", refusal.reason),
                    Some(_) => blocked(&refusal.reason),
                })
            }
        };
        told.inspect_err(|told| self.reject(call, Some(args), told))
    }

    /// The reach of this call: a file that other programs run or obey counts as more than an edit.
    fn reach(&self, name: &str, worker: &Worker, args: &Map<String, Value>) -> Reach {
        let effects = effects_of(name, args);
        let mut paths = effects.iter().filter(|found| found.effect.names_path()).filter_map(CallEffect::text);
        let obeyed = paths.any(|path| self.workspace.is_obeyed(path));
        match worker.reach() {
            Reach::Edits if obeyed => Reach::Acts,
            reach => reach,
        }
    }

    /// Runs the tool and tells the hooks about it.
    fn perform(&mut self, call: &Call, worker: &Worker, args: &Map<String, Value>, tally: &mut Tally) -> String {
        self.ports.show.show(&News::Calling { id: &call.id, name: &call.name, args });
        tally.calls.push(json!({"id": call.id, "name": call.name, "arguments": args}));
        self.tell_earlier_change(call, worker, args);
        let began = (self.ports.clock)();
        let Work { result, change, failure } = self.run(call, worker, args, tally);
        let took = seconds(began, (self.ports.clock)());
        // Tools add to a long result where the rest is.
        let most = self.longest_result() + SHORTEST_RESULT;
        let text = spill::fit(&text_of(&result), most, &call.name, &self.settings.shell.spill);
        self.ports.show.show(&News::Called {
            id: &call.id,
            name: &call.name,
            result: &text,
            failed: result.is_error,
            diff: change.as_ref().map(|change| change.diff.as_str()),
        });
        if let Some(change) = change {
            self.tell_change(&change);
        }
        self.follow(&call.name, args);
        let decision = self.emit(
            EventKind::AfterTool,
            [
                ("tool_name", call.name.as_str().into()),
                ("args", both_paths(args.clone(), worker).into()),
                ("call_id", call.id.as_str().into()),
                if result.is_error { ("error", text.clone().into()) } else { ("result", value_of(&result)) },
                ("metrics", json!({"duration": took, "success": !result.is_error})),
                ("execution_time", took.into()),
            ],
        );
        if result.is_error && !self.cancel.is_set() {
            let Failure { message, stack } = failure.unwrap_or_else(|| failure_in(&text));
            let message = format!("the tool {} failed: {}", call.name, ollm_store::cut(&message, LONGEST_MESSAGE));
            self.tell_error("tool", "tool", &Failure { message, stack });
        }
        self.tell_late_failures();
        self.told(text, result.is_error, &decision)
    }

    /// The result that the model finally reads: a hook may replace the result, or refuse it.
    fn told(&mut self, text: String, failed: bool, decision: &Decision) -> String {
        let text = match &decision.result {
            Some(Value::String(replacement)) => replacement.clone(),
            Some(replacement) => replacement.to_string(),
            None if failed => format!("error: {text}"),
            None => text,
        };
        match self.passes(EventKind::AfterTool, decision) {
            Ok(()) => text,
            Err(refusal) => format!("{text}\n\nHook `{}` objects to this result: {}", refusal.who(), refusal.reason),
        }
    }

    fn run(&mut self, call: &Call, worker: &Worker, args: &Map<String, Value>, tally: &mut Tally) -> Work {
        // Hooks and the person take time; after an interruption in between, the tool does not start.
        if self.cancel.is_set() {
            return Work::of(ToolResult::error("interrupted before it began"));
        }
        match worker {
            Worker::BuiltIn(tool) => {
                let most = self.longest_result();
                let mut bench = Bench {
                    workspace: &self.workspace,
                    children: &self.children,
                    shell: &self.settings.shell,
                    todos: &mut self.todos,
                    cancel: &self.cancel,
                    most,
                };
                match tool.run(args, &mut bench) {
                    Ok(ToolOutcome { text, failed, change, notes, failure }) => {
                        for note in &notes {
                            self.ports.show.show(&News::Error(note));
                        }
                        Work { result: ToolResult { is_error: failed, ..ToolResult::text(text) }, change, failure }
                    }
                    Err(why) => Work::of(ToolResult::error(why)),
                }
            }
            Worker::Task => Work::of(self.subagent(args, tally)),
            Worker::Source(source) => {
                let show = &mut self.ports.show;
                let bounds = (self.settings.limits.source_call, &self.cancel);
                let result = foreign::call(source, &call.name, args, bounds, &mut |text| {
                    show.show(&News::Progress { name: &call.name, text });
                });
                Work::of(result)
            }
        }
    }

    /// How many bytes of a result the model is shown: half of the window's rest, because other results need space too.
    fn longest_result(&self) -> usize {
        let left = self.meter.window().saturating_sub(self.size().tokens);
        self.meter.bytes(left / 2).clamp(SHORTEST_RESULT, self.settings.limits.result.max(SHORTEST_RESULT))
    }

    /// Tells hooks how others changed a file, before a tool of ours changes it.
    fn tell_earlier_change(&mut self, call: &Call, worker: &Worker, args: &Map<String, Value>) {
        let effects = effects_of(&call.name, args);
        let is_change = |found: &&CallEffect<'_>| matches!(found.effect, Effect::WritesPath | Effect::RemovesPath);
        let path = effects.iter().find(is_change).and_then(CallEffect::text).filter(|_| worker.has_path());
        let Some(path) = path.and_then(|path| self.workspace.resolve(path).ok()) else { return };
        if let Some(change) = self.ports.events.changed_before(&path) {
            self.emit(change.kind, change.fields());
        }
    }

    fn tell_change(&mut self, change: &Change) {
        let most = self.settings.limits.result;
        let told = FileChange {
            kind: change.kind,
            path: change.path.display().to_string(),
            name: Some(self.workspace.name(&change.path)),
            content: change.content.as_ref().map(|content| ollm_store::cut(content, most).into_owned()),
            diff: Some(change.diff.clone()),
            size: change.size as u64,
            timestamp: iso((self.ports.clock)()),
        };
        self.emit(change.kind, told.fields());
    }
}

/// The failure in the result of a tool. A server's last lines come after the reason.
fn failure_in(text: &str) -> Failure {
    match text.split_once(LAST_WORDS) {
        Some((why, stack)) if stack.contains('\n') => {
            Failure { message: why.to_owned(), stack: Some(stack.to_owned()) }
        }
        _ => Failure { message: text.to_owned(), stack: None },
    }
}

fn unknown(name: &str, offered: &[Tool]) -> String {
    if offered.iter().any(|tool| tool.name == name) {
        return format!("the tool `{name}` was withdrawn meanwhile");
    }
    let akin = offered.iter().map(|tool| tool.name.as_str()).filter(|known| owner(known) == owner(name));
    let names: Vec<&str> = offered.iter().map(|tool| tool.name.as_str()).collect();
    let list = if names.is_empty() { "there are none".to_owned() } else { format!("there are {}", names.join(", ")) };
    match nearest(name, akin) {
        Some(known) => format!("there is no tool `{name}`; did you mean `{known}`?"),
        None => format!("there is no tool `{name}`; {list}"),
    }
}

/// The server in a tool's name: a tool of one server never replaces one of another.
fn owner(name: &str) -> Option<&str> {
    name.strip_prefix("mcp__")?.split("__").next()
}

/// The arguments for hooks: the files of our tools get both names, `path` and `file_path`.
fn both_paths(mut args: Map<String, Value>, worker: &Worker) -> Map<String, Value> {
    if worker.has_path() {
        for (one, other) in [("path", "file_path"), ("file_path", "path")] {
            if let (Some(path), false) = (args.get(one).cloned(), args.contains_key(other)) {
                args.insert(other.to_owned(), path);
            }
        }
    }
    args
}

/// The arguments for the tool. If a hook changed only one of the two names, that change counts.
fn one_path(mut patched: Map<String, Value>, seen: &Map<String, Value>, worker: &Worker) -> Map<String, Value> {
    if !worker.has_path() {
        return patched;
    }
    let renamed = patched.shift_remove("file_path").filter(|path| seen.get("file_path") != Some(path));
    if let Some(path) = renamed
        && patched.get("path") == seen.get("path")
    {
        patched.insert("path".to_owned(), path);
    }
    patched
}
