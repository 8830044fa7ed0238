//! Writes a task for another process. There, it runs the task within its limits and reports the result.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ollm_process::{Children, Job, Limits};
use ollm_protocol::{End, Event, EventKind, Hook, Output, dialect};
use ollm_store::{Redactor, cut, looks_secret};
use serde_json::{Map, Value, json};

use crate::action::{REMOTE_TASKS, Task, answers_by_status};
use crate::boxed_job::BoxedJob;
use crate::report::{Process, Status};
use crate::run::{remains, stack};

mod program_box;

/// The longest error, in bytes; a longer one is cut.
const LONGEST_TEXT: usize = 10 << 10;

/// The fields that an event about a hook's failure copies from the event at which the hook failed.
pub const FAILURE_FIELDS: [&str; 5] = ["session_id", "cwd", "session", "agent_id", "agent_type"];

/// The result of a task that another process ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskResult {
    /// The hook's id, without secrets.
    pub hook: String,
    /// The hook's name for people, without secrets.
    pub label: String,
    /// The fields of its event that an event about its failure needs.
    pub about: Map<String, Value>,
    /// The dispatch it belongs to.
    pub trace_id: String,
    /// The event.
    pub event: EventKind,
    /// How it went.
    pub status: Status,
    /// What went wrong, without secrets.
    pub error: Option<String>,
    /// The output of its program before its end, if it has more than the error says; without secrets.
    pub stack: Option<String>,
    /// How long it took.
    pub duration: Duration,
    /// The data of its process, if it started one.
    pub process: Option<Process>,
}

/// Writes a task for the process that runs it. The error says why that is not possible.
pub(super) fn write(
    hook: &Hook,
    [id, label]: &[String; 2],
    event: &Event,
    task: &Task,
    trace_id: &str,
) -> Result<Vec<u8>, String> {
    let task = match task {
        Task::Job(boxed) => {
            json!({"job": write_job(&boxed.job), "box": boxed.program_box.as_ref().map(program_box::write)})
        }
        Task::Remote(task) => task.hand_over()?,
    };
    let reads = !answers_by_status(hook);
    let secret = hook.settings.iter().filter(|setting| setting.secret).map(|setting| &setting.name);
    let hides: Vec<&String> = hook.spec.pass_env.iter().chain(secret).collect();
    let payload = json!({
        "hook": id,
        "label": label,
        "about": about(event),
        "traceId": trace_id,
        "event": event.kind.name(),
        "dialect": hook.dialect.name(),
        "reads": reads,
        "hides": hides,
        "task": task,
    });
    Ok(payload.to_string().into_bytes())
}

fn about(event: &Event) -> Map<String, Value> {
    let field = |name: &str| Some((name.to_owned(), event.data.get(name)?.clone()));
    FAILURE_FIELDS.into_iter().filter_map(field).collect()
}

/// Runs a task that another process handed over. The error says why the task cannot be read.
pub fn run(payload: &[u8], children: &Children) -> Result<TaskResult, String> {
    let payload: Value = serde_json::from_slice(payload).map_err(|error| format!("not a task: {error}"))?;
    read_and_run(&payload, children).ok_or_else(|| "not a task of this version".to_owned())
}

fn read_and_run(payload: &Value, children: &Children) -> Option<TaskResult> {
    let text = |field: &str| payload.get(field)?.as_str();
    let (dialect, event) = (dialect::by_name(text("dialect")?)?, EventKind::from_name(text("event")?)?);
    let hides: Vec<&str> = payload.get("hides")?.as_array()?.iter().filter_map(Value::as_str).collect();
    let reads = payload.get("reads")?.as_bool()?;
    let started = Instant::now();
    let task = payload.get("task")?;
    let mut wrote = None;
    let (end, failure, secrets, process) = if let Some(job) = task.get("job") {
        let program_box = match task.get("box") {
            None | Some(Value::Null) => None,
            Some(value) => Some(program_box::read(value)?),
        };
        let job = read_job(job)?;
        let secrets = secrets(&job.env, &hides);
        let (limits, bytes) = (job.limits.clone(), job.stdin.len());
        match (BoxedJob { job, program_box }).held() {
            Ok((job, running)) => {
                let outcome = children.run(job);
                let (end, broken) = end(&outcome.end, &limits);
                let output = Output { end, stdout: &outcome.stdout, stderr: &outcome.stderr };
                let failure =
                    if reads { dialect.read_verdict(event, &output).failure } else { end.failure(output.stderr) };
                wrote = stack(&outcome.stderr);
                let failure = broken.or(failure).map(|error| running.with_refusals(error, &outcome.stderr));
                (end, failure, secrets, remains(&outcome, bytes))
            }
            Err(why) => (End::Exited(1), Some(why), secrets, None),
        }
    } else {
        let task = REMOTE_TASKS.iter().find_map(|(name, read)| read(task.get(name)?))?;
        let secrets = task.secrets();
        let said = task.run();
        (said.end(), said.read(dialect, event).failure, secrets, None)
    };
    let redactor = Redactor::new(secrets);
    Some(TaskResult {
        hook: text("hook")?.to_owned(),
        label: text("label")?.to_owned(),
        about: payload.get("about")?.as_object()?.clone(),
        trace_id: text("traceId")?.to_owned(),
        event,
        status: match (end, &failure) {
            (End::TimedOut(_), _) => Status::Timeout,
            (_, Some(_)) => Status::Failed,
            (_, None) => Status::Ok,
        },
        stack: wrote.filter(|_| failure.is_some()).map(|text| redactor.redact_str(&text).into_owned()),
        error: failure.map(|text| cut(&redactor.redact_str(&text), LONGEST_TEXT).into_owned()),
        duration: started.elapsed(),
        process,
    })
}

fn secrets(env: &[(OsString, OsString)], hides: &[&str]) -> Vec<(String, String)> {
    let readable = env.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
    let hidden = readable.filter(|(name, _)| looks_secret(name) || hides.contains(name));
    hidden.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// How a process ended, in the protocol's terms, with a text for ends that the protocol has no term for.
fn end(end: &ollm_process::End, limits: &Limits) -> (End, Option<String>) {
    match end {
        ollm_process::End::Exited(status) => (End::Exited(*status), None),
        ollm_process::End::Signalled(signal) => (End::Signalled(*signal), None),
        ollm_process::End::TimedOut => (End::TimedOut(limits.timeout), None),
        ollm_process::End::Overflowed(_) => (End::Overflowed(limits.output), None),
        ollm_process::End::Interrupted => (End::Exited(1), Some("was interrupted".to_owned())),
        ollm_process::End::Lost => (End::Exited(1), Some("its end could not be observed".to_owned())),
        ollm_process::End::NotStarted(error) => (End::Exited(1), Some(error.to_string())),
    }
}

fn write_job(job: &Job) -> Value {
    let limits = &job.limits;
    json!({
        "program": bytes(job.program.as_os_str()),
        "arg0": job.arg0.as_deref().map(bytes),
        "args": job.args.iter().map(|arg| bytes(arg)).collect::<Vec<_>>(),
        "env": job.env.iter().map(|(name, value)| [bytes(name), bytes(value)]).collect::<Vec<_>>(),
        "cwd": job.cwd.as_deref().map(Path::as_os_str).map(bytes),
        "stdin": bytes(OsStr::from_bytes(&job.stdin)),
        "limits": {
            "timeout": limits.timeout.as_secs_f64(),
            "output": limits.output,
            "cpu": limits.cpu.map(|cpu| cpu.as_secs_f64()),
            "memory": limits.memory,
            "processes": limits.processes,
            "files": limits.files,
            "fileSize": limits.file_size,
        },
    })
}

fn read_job(value: &Value) -> Option<Job> {
    let limits = value.get("limits")?.as_object()?;
    let pair = |pair: &Value| Some((unbytes(pair.get(0)?)?, unbytes(pair.get(1)?)?));
    Some(Job {
        program: PathBuf::from(unbytes(value.get("program")?)?),
        arg0: unbytes(value.get("arg0")?),
        args: value.get("args")?.as_array()?.iter().map(unbytes).collect::<Option<_>>()?,
        env: value.get("env")?.as_array()?.iter().map(pair).collect::<Option<_>>()?,
        cwd: unbytes(value.get("cwd")?).map(PathBuf::from),
        stdin: unbytes(value.get("stdin")?)?.into_vec(),
        limits: read_limits(limits)?,
        process_box: None,
    })
}

fn read_limits(limits: &Map<String, Value>) -> Option<Limits> {
    let number = |field: &str| limits.get(field).and_then(Value::as_u64);
    let seconds = |field: &str| limits.get(field)?.as_f64().and_then(|time| Duration::try_from_secs_f64(time).ok());
    Some(Limits {
        timeout: seconds("timeout")?,
        output: usize::try_from(number("output")?).ok()?,
        cpu: seconds("cpu"),
        memory: number("memory"),
        processes: number("processes"),
        files: number("files"),
        file_size: number("fileSize"),
        ..Limits::default()
    })
}

/// Bytes as text, or as a list of numbers if they are not UTF-8.
pub(crate) fn bytes(text: &OsStr) -> Value {
    text.to_str().map_or_else(|| text.as_bytes().into(), Value::from)
}

pub(crate) fn unbytes(value: &Value) -> Option<OsString> {
    match value {
        Value::String(text) => Some(text.into()),
        Value::Array(numbers) => {
            let byte = |number: &Value| number.as_u64().and_then(|number| u8::try_from(number).ok());
            numbers.iter().map(byte).collect::<Option<Vec<u8>>>().map(OsString::from_vec)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_survives_the_way() {
        let job = Job {
            arg0: Some("sh".into()),
            args: vec!["-c".into(), OsString::from_vec(vec![0xff, b'a'])],
            env: vec![("A".into(), OsString::from_vec(vec![0xfe]))],
            cwd: Some("/tmp".into()),
            stdin: b"\xffx".to_vec(),
            limits: Limits { cpu: Some(Duration::from_secs(2)), files: Some(9), ..Limits::default() },
            ..Job::new("/bin/sh")
        };
        let back = read_job(&write_job(&job)).unwrap();
        assert_eq!(format!("{back:?}"), format!("{job:?}"));
    }

    #[test]
    fn what_is_no_task_is_refused() {
        for payload in ["", "{}", "[]", r#"{"hook":"a","task":{}}"#] {
            assert!(run(payload.as_bytes(), &Children::new()).is_err(), "{payload}");
        }
    }
}
