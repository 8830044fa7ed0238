//! The lifecycle of one server: start, retries, health, end. One task owns it; others send it commands.

use std::sync::Arc;
use std::time::Duration;

use ollm_protocol::Remedy;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep};

use crate::backoff::{Breaker, pause};
use crate::connect::{Connection, FailedConnection, open_connection};
use crate::endpoint;
use crate::error::{CallErrorKind, ConnectError, last_words, seconds};
use crate::handshake::Era;
use crate::health::{HealthFinding, HealthMonitor};
use crate::list::{ListKind, Listing, list};
use crate::requester::{RequestError, Requester};
use crate::settings::Timings;
use crate::shared::{ServerShared, needs_auth};
use crate::status::ServerState;

/// How long a lost connection may take to close.
const CRASH_CLOSE_TIME: Duration = Duration::from_millis(500);

/// A command to the task.
#[derive(Debug)]
pub(crate) enum ServerCommand {
    /// Start the server, unless it runs. A manual start also ends a stop, a failure or a crash loop.
    Start { manual: bool, reply: Option<oneshot::Sender<()>> },
    /// Stop the server.
    Stop(oneshot::Sender<()>),
    /// Stop the server and start it again.
    Restart(oneshot::Sender<()>),
    /// Offer the tools of the crashed server again.
    Offer(oneshot::Sender<()>),
    /// A call found that the server may be gone.
    Suspect,
    /// A call found that the server wants authorization.
    Denied(String),
}

/// Why a connection ends.
#[derive(Debug)]
enum ConnectionEnd {
    /// The connection ended, or the program did.
    Lost,
    /// The health monitor found a reason to end it.
    Found(HealthFinding),
    Stop(oneshot::Sender<()>),
    Restart(oneshot::Sender<()>),
    /// The handle was dropped.
    Gone,
}

/// What to do next.
enum NextStep {
    Rest,
    Start,
    End,
}

struct Lifecycle {
    shared: Arc<ServerShared>,
    commands: mpsc::UnboundedReceiver<ServerCommand>,
    /// Callers that wait for the outcome of a start.
    waiting: Vec<oneshot::Sender<()>>,
    breaker: Breaker,
    /// When the last try of the last start failed.
    failed: Option<Instant>,
    era: Option<Era>,
}

/// Runs the lifecycle of a server until its handle is dropped.
pub(crate) async fn run_lifecycle(
    shared: Arc<ServerShared>,
    commands: mpsc::UnboundedReceiver<ServerCommand>,
    era: Option<Era>,
) {
    let mut lifecycle =
        Lifecycle { shared, commands, waiting: Vec::new(), breaker: Breaker::default(), failed: None, era };
    let mut next = NextStep::Rest;
    loop {
        next = match next {
            NextStep::Rest => lifecycle.wait_for_start().await,
            NextStep::Start => match Box::pin(lifecycle.connect()).await {
                Ok(mut connection) => {
                    let end = lifecycle.serve(&mut connection).await;
                    lifecycle.close_connection(connection, end).await
                }
                Err(next) => {
                    // A program that is still starting must end before we report that no program runs.
                    lifecycle.shared.finish_starts().await;
                    next
                }
            },
            NextStep::End => return,
        };
    }
}

impl Lifecycle {
    fn timings(&self) -> &Timings {
        &self.shared.context.settings.timings
    }

    /// Waits for a command that starts the server.
    async fn wait_for_start(&mut self) -> NextStep {
        self.reply_to_starts();
        while let Some(command) = self.commands.recv().await {
            match command {
                ServerCommand::Start { manual, reply } => {
                    self.waiting.extend(reply);
                    if manual {
                        self.breaker.reset();
                    }
                    if self.may_start(manual) {
                        return NextStep::Start;
                    }
                    self.reply_to_starts();
                }
                ServerCommand::Restart(reply) => {
                    self.waiting.push(reply);
                    self.breaker.reset();
                    return NextStep::Start;
                }
                ServerCommand::Stop(reply) => {
                    self.shared.withdraw(ServerState::Stopped);
                    let _ = reply.send(());
                }
                ServerCommand::Offer(reply) => {
                    if !self.breaker.is_open(self.timings()) {
                        self.shared.offer();
                    }
                    let _ = reply.send(());
                }
                ServerCommand::Suspect | ServerCommand::Denied(_) => {}
            }
        }
        NextStep::End
    }

    fn may_start(&self, manual: bool) -> bool {
        let open = match self.shared.now().state {
            ServerState::Stopped | ServerState::NeedsAuth(_) => manual,
            ServerState::Failed(_) => manual || self.may_recover(),
            _ => true,
        };
        open && !self.breaker.is_open(self.timings())
    }

    /// Whether to try again after a failed start: a network may recover by itself, a program does not.
    fn may_recover(&self) -> bool {
        let rested = self.failed.is_none_or(|moment| moment.elapsed() >= self.timings().longest_pause);
        rested && endpoint::is_remote(&self.shared.ready.endpoint)
    }

    /// Tells all waiting callers that the outcome is known.
    fn reply_to_starts(&mut self) {
        for reply in self.waiting.drain(..) {
            let _ = reply.send(());
        }
    }

    /// Connects, with a few tries.
    async fn connect(&mut self) -> Result<Connection, NextStep> {
        let tries = self.timings().tries.max(1);
        for attempt in 1..=tries {
            self.shared.change(|now| {
                now.state = ServerState::Starting(attempt);
                now.requester = None;
            });
            let shared = Arc::clone(&self.shared);
            let era = self.era_for_attempt(attempt);
            let failed = match self.unless_commanded(Box::pin(attempt_once(&shared, era))).await? {
                Ok((connection, listing)) => {
                    self.era = Some(Era::of(connection.requester.info.protocol_version.as_str()));
                    self.announce(&connection, listing);
                    return Ok(connection);
                }
                Err(failed) => failed,
            };
            let (closed, last) =
                (matches!(failed.fault, ConnectError::Closed), failed.fault.is_final() || attempt == tries);
            let final_state = last.then(|| final_state(&shared, &failed, attempt));
            self.shared.log.add(&format!("start {attempt} failed: {}", failed.fault));
            if let Some(state) = final_state {
                self.failed = Some(Instant::now());
                self.shared.withdraw(state);
                return Err(NextStep::Rest);
            }
            if !(attempt == 1 && closed && self.era.is_none()) {
                let pause = pause(self.timings(), attempt);
                self.unless_commanded(sleep(pause)).await?;
            }
        }
        Err(NextStep::Rest)
    }

    /// The era that this attempt tries first. Every other attempt tries the other era: some servers fail on the newer
    /// request, and some have been updated since.
    fn era_for_attempt(&self, attempt: u32) -> Option<Era> {
        match self.era {
            era if attempt % 2 == 1 => era,
            Some(Era::Handshake) => None,
            Some(Era::Stateless) | None => Some(Era::Handshake),
        }
    }

    /// Runs work until a command interrupts it.
    async fn unless_commanded<T>(&mut self, work: impl Future<Output = T>) -> Result<T, NextStep> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done),
                command = self.commands.recv() => match command {
                    None => return Err(NextStep::End),
                    Some(ServerCommand::Start { reply, .. }) => self.waiting.extend(reply),
                    Some(ServerCommand::Restart(reply)) => self.waiting.push(reply),
                    Some(ServerCommand::Stop(reply)) => {
                        self.shared.withdraw(ServerState::Stopped);
                        self.waiting.push(reply);
                        return Err(NextStep::Rest);
                    }
                    // The server is about to start anyway.
                    Some(ServerCommand::Offer(reply)) => drop(reply.send(())),
                    Some(ServerCommand::Suspect | ServerCommand::Denied(_)) => {}
                },
            }
        }
    }

    fn announce(&mut self, connection: &Connection, listing: Result<Listing, String>) {
        let (listing, state) = match listing {
            Ok(listing) => (listing, ServerState::Ready),
            Err(why) => {
                let (why, said) = (self.shared.log.clean(&why), self.shared.log.tail(connection.mark));
                (Listing::default(), ServerState::Degraded(format!("{why}{}", last_words(&said))))
            }
        };
        for warning in &listing.warnings {
            self.shared.log.add(warning);
        }
        self.shared.change(|now| {
            now.state = state;
            now.tools = listing.items.into();
            now.lapsed = Arc::new([]);
            now.warnings = listing.warnings;
            now.info = Some(Arc::clone(&connection.requester.info));
            now.mark = connection.mark;
            now.transport = Some(connection.transport());
            now.process = connection.program.as_ref().map(crate::program::Program::id);
            now.requester = Some(Arc::clone(&connection.requester));
        });
        self.reply_to_starts();
    }

    /// Serves a connection until there is a reason to end it.
    async fn serve(&mut self, connection: &mut Connection) -> ConnectionEnd {
        let requester = Arc::clone(&connection.requester);
        let mut monitor = HealthMonitor::new(Arc::clone(&self.shared), Arc::clone(&requester));
        loop {
            let exited = async {
                match &mut connection.program {
                    Some(program) => program.exited().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = &mut connection.service => return ConnectionEnd::Lost,
                () = exited => return ConnectionEnd::Lost,
                command = self.commands.recv() => match command {
                    None => return ConnectionEnd::Gone,
                    Some(ServerCommand::Start { reply, .. }) => drop(reply.map(|reply| reply.send(()))),
                    Some(ServerCommand::Stop(reply)) => return ConnectionEnd::Stop(reply),
                    Some(ServerCommand::Restart(reply)) => return ConnectionEnd::Restart(reply),
                    Some(ServerCommand::Offer(reply)) => drop(reply.send(())),
                    Some(ServerCommand::Suspect) => monitor.suspect(),
                    Some(ServerCommand::Denied(why)) => return ConnectionEnd::Found(HealthFinding::Denied(why)),
                },
                finding = monitor.round() => if let Some(finding) = finding {
                    return ConnectionEnd::Found(finding);
                },
            }
        }
    }

    /// Closes a connection, and returns what to do next.
    async fn close_connection(&mut self, connection: Connection, end: ConnectionEnd) -> NextStep {
        let parting = self.parting(&connection);
        match end {
            ConnectionEnd::Gone => NextStep::End,
            ConnectionEnd::Stop(reply) => {
                self.shared.withdraw(ServerState::Stopped);
                connection.close(parting).await;
                self.waiting.push(reply);
                NextStep::Rest
            }
            ConnectionEnd::Restart(reply) => {
                self.waiting.push(reply);
                self.breaker.reset();
                self.shared.withdraw(ServerState::Starting(1));
                connection.close(parting).await;
                NextStep::Start
            }
            ConnectionEnd::Found(HealthFinding::Idle) => {
                self.shared.change(|now| {
                    now.state = ServerState::Configured;
                    (now.requester, now.process) = (None, None);
                });
                connection.close(parting).await;
                NextStep::Rest
            }
            ConnectionEnd::Found(HealthFinding::Denied(why)) => {
                self.shared.withdraw(ServerState::NeedsAuth(why));
                connection.close(parting).await;
                NextStep::Rest
            }
            ConnectionEnd::Found(HealthFinding::Hung) => self.crashed(connection, true).await,
            ConnectionEnd::Lost => self.crashed(connection, false).await,
        }
    }

    /// How long a server may take to end by itself; less if it still owes an answer.
    fn parting(&self, connection: &Connection) -> Duration {
        let Timings { parting, haste, .. } = *self.timings();
        let hurried = connection.requester.owes_answer() || self.shared.context.is_hurried();
        if hurried { haste.min(parting) } else { parting }
    }

    async fn crashed(&mut self, connection: Connection, hung: bool) -> NextStep {
        // No call may reach the server during the cleanup.
        self.shared.withdraw(ServerState::Degraded("it ended; what is left of it is being cleared away".to_owned()));
        let (mark, fault) = (connection.mark, connection.fault.get().cloned());
        let how = connection.close(CRASH_CLOSE_TIME).await.filter(|_| !hung);
        let what = if hung { "it does not answer any more" } else { "it ended the connection" };
        let text = fault.unwrap_or_else(|| how.unwrap_or_else(|| what.to_owned()));
        let mut text = format!("{}{}", self.shared.log.clean(&text), last_words(&self.shared.log.tail(mark)));
        self.breaker.crashed(&self.shared.context.settings.timings);
        let stuck = self.breaker.is_open(self.timings());
        if stuck {
            let again = self.shared.tell(&Remedy::RestartServer(self.shared.ready.name.clone()));
            let (count, window) = (self.breaker.count(), seconds(self.timings().window));
            text = format!("it crashed {count} times within {window}; {again}; {text}");
        }
        self.shared.withdraw(ServerState::Crashed(text));
        let ready = &self.shared.ready;
        if stuck || !(ready.auto_restart || endpoint::is_remote(&ready.endpoint)) {
            return NextStep::Rest;
        }
        let pause = pause(self.timings(), self.breaker.count());
        match self.unless_commanded(sleep(pause)).await {
            Ok(()) => NextStep::Start,
            Err(next) => next,
        }
    }
}

/// One attempt to connect and to list the tools. It succeeds even if the list cannot be read.
async fn attempt_once(
    shared: &ServerShared,
    era: Option<Era>,
) -> Result<(Connection, Result<Listing, String>), FailedConnection> {
    let connection = open_connection(shared, era).await?;
    let change = shared.handler.changes.announced();
    let listed = tools(shared, &connection.requester).await;
    let (fault, mark) = match listed {
        Ok(listing) => {
            // The list includes changes that were announced on an earlier connection.
            shared.handler.changes.see(change);
            return Ok((connection, Ok(listing)));
        }
        Err(RequestError::Denied(challenge)) => (ConnectError::Denied(challenge), connection.mark),
        Err(RequestError::Unsent | RequestError::Failed(CallErrorKind::Lost(_))) => {
            (ConnectError::Closed, connection.mark)
        }
        Err(RequestError::Failed(trouble)) => {
            return Ok((connection, Err(format!("its tools cannot be listed: {trouble}"))));
        }
    };
    let program = connection.close(CRASH_CLOSE_TIME).await;
    Err(FailedConnection { fault, program, mark })
}

pub(crate) async fn tools(shared: &ServerShared, requester: &Requester) -> Result<Listing, RequestError> {
    if requester.info.capabilities.tools.is_none() {
        return Ok(Listing::default());
    }
    list(requester, ListKind::Tools, &shared.context.settings.bounds).await.map(|listing| shared.cleaned(listing))
}

/// The state after the last try, with its cause.
fn final_state(shared: &ServerShared, failed: &FailedConnection, tries: u32) -> ServerState {
    if let ConnectError::Denied(challenge) = &failed.fault {
        return ServerState::NeedsAuth(needs_auth(shared, challenge));
    }
    let times = if tries > 1 { format!(" ({tries} tries)") } else { String::new() };
    let mut text = format!("it did not start{times}: {}; {}", failed.fault, endpoint::describe(&shared.ready.endpoint));
    if let Some(program) = &failed.program {
        text = format!("{text}; {program}");
    }
    ServerState::Failed(format!("{}{}", shared.log.clean(&text), last_words(&shared.log.tail(failed.mark))))
}
