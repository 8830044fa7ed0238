//! The program of a stdio server: start, streams, exit, stop.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use ollm_process::{BoxError, End, Job, ProcessBox, Resident, SpawnError};
use ollm_trust::ProgramBox;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncBufReadExt, BufReader, Interest};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::line_transport::LineTransport;
use crate::log::Log;
use crate::ready::Endpoint;
use crate::shared::ServerShared;

/// How often the exit is checked where no file descriptor signals it.
const ASKING: Duration = Duration::from_millis(50);
/// How long a killed program may take to exit.
const SETTLE: Duration = Duration::from_secs(1);
/// How long its last lines may take to arrive after its exit.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// Bytes kept of one line of standard error; the rest of the line is skipped.
const LINE: usize = 8 * 1024;

/// A running program. Dropped, its group is killed.
#[derive(Debug)]
pub(crate) struct Program {
    resident: Resident,
    /// A file descriptor that becomes readable at the exit.
    exit: Option<AsyncFd<OwnedFd>>,
    stderr: JoinHandle<()>,
    grace: Duration,
    end: Option<End>,
    /// The declared box, and the box that runs it.
    running_box: Option<(Box<ProgramBox>, Arc<ProcessBox>)>,
    log: Arc<Log>,
    /// The first line of the log that may come from this program.
    mark: u64,
}

/// The streams of a program as a transport.
pub(crate) type Streams = LineTransport<Receiver, Sender>;

impl Program {
    /// Starts the program of a server.
    pub(crate) async fn start(shared: &ServerShared, endpoint: &Endpoint) -> Result<(Self, Streams), StartError> {
        let Endpoint::Stdio { program, args, env, cwd, limits, program_box } = endpoint else {
            return Err(io::Error::from(io::ErrorKind::Unsupported).into());
        };
        let job = Job {
            args: args.iter().map(Into::into).collect(),
            env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            cwd: cwd.clone(),
            limits: limits.clone(),
            ..Job::new(program)
        };
        if let Some(why) = shared.context.ports.admit.as_ref().and_then(|admit| admit.refusal(&shared.ready.name)) {
            return Err(StartError::Barred(why));
        }
        let job = match program_box {
            Some(own) => own.hold(job).map_err(|error| StartError::Barred(cannot_hold(&error)))?,
            None => job,
        };
        let running_box = program_box.clone().zip(job.process_box.clone());
        let mark = shared.log.mark();
        let mut resident = shared.launch(job).await?;
        let streams = resident.streams().ok_or(io::ErrorKind::BrokenPipe)?;
        let exit = resident.exit_file().map(|file| file.try_clone_to_owned()).transpose()?;
        let exit = exit.map(async_file).transpose()?;
        let stderr = tokio::spawn(drain(Receiver::from_owned_fd(streams.stderr)?, Arc::clone(&shared.log)));
        let (reader, writer) = (Receiver::from_owned_fd(streams.stdout)?, Sender::from_owned_fd(streams.stdin)?);
        let transport =
            LineTransport::new(reader, writer, shared.context.settings.bounds.message, Arc::clone(&shared.log));
        let log = Arc::clone(&shared.log);
        Ok((Self { resident, exit, stderr, grace: limits.grace, end: None, running_box, log, mark }, transport))
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.resident.id()
    }

    /// Waits until it exits by itself. Then no process of its group is left.
    pub(crate) async fn exited(&mut self) {
        while self.end.is_none() {
            match &self.exit {
                Some(exit) => {
                    let _ = exit.readable().await;
                }
                None => sleep(ASKING).await,
            }
            self.end = self.resident.reap();
            if self.end.is_none() && self.exit.is_some() {
                // The descriptor became readable before the exit: pause, to avoid a busy loop.
                sleep(ASKING).await;
            }
        }
    }

    /// Stops the program: its input is closed, so it may exit by itself; then it gets the polite signal, then it is
    /// killed. Says how it ended, if we did not end it.
    pub(crate) async fn stop(mut self, parting: Duration) -> Option<String> {
        let itself = timeout(parting, self.exited()).await.is_ok();
        if !itself {
            self.resident.ask();
            if timeout(self.grace, self.exited()).await.is_err() {
                self.resident.kill();
                let _ = timeout(SETTLE, self.exited()).await;
            }
        }
        let _ = timeout(LAST_WORDS, &mut self.stderr).await;
        let refused = self.refusals();
        if let Some(refused) = &refused {
            self.log.add(refused);
        }
        let end = self.end.as_ref().filter(|_| itself).map(describe)?;
        Some(refused.map_or_else(|| end.clone(), |refused| format!("{end}; {refused}")))
    }

    /// What its box refused, and which setting would allow it.
    fn refusals(&self) -> Option<String> {
        let (program_box, made) = self.running_box.as_ref()?;
        let said = self.log.since(self.mark).0.join("\n");
        program_box.refusals(&made.accesses(), &said)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.stderr.abort();
    }
}

/// Why a program did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error(transparent)]
    Streams(#[from] io::Error),
    #[error("{0}")]
    Barred(String),
}

impl From<io::ErrorKind> for StartError {
    fn from(kind: io::ErrorKind) -> Self {
        Self::Streams(kind.into())
    }
}

impl From<StartError> for crate::error::ConnectError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Spawn(error) => error.into(),
            StartError::Streams(error) => Self::Streams(error.to_string()),
            StartError::Barred(why) => Self::Barred(why),
        }
    }
}

/// Reads standard error to its end, so that the program never blocks on writing it.
async fn drain(stderr: Receiver, log: Arc<Log>) {
    let mut reader = BufReader::with_capacity(LINE, stderr);
    let mut line = Vec::new();
    while let Ok(chunk) = reader.fill_buf().await {
        if chunk.is_empty() {
            break;
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(chunk.len(), |end| end + 1);
        let room = LINE.saturating_sub(line.len());
        line.extend(chunk.iter().take(end.unwrap_or(chunk.len())).take(room));
        reader.consume(taken);
        if end.is_some() {
            log.add(String::from_utf8_lossy(&line).trim_end());
            line.clear();
        }
    }
    if !line.is_empty() {
        log.add(&String::from_utf8_lossy(&line));
    }
}

/// A file for the runtime to wait on.
#[expect(deprecated, reason = "its unsafe successor only asks that the file stays open, and this one is owned")]
fn async_file(file: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(file, Interest::READABLE)
}

fn cannot_hold(error: &BoxError) -> String {
    format!("it cannot be held to its `permissions`: {error}")
}

fn describe(end: &End) -> String {
    match end {
        End::Exited(code) => format!("it exited with code {code}"),
        End::Signalled(signal) => format!("it was ended by signal {signal}"),
        _ => "how it ended is unknown".to_owned(),
    }
}
