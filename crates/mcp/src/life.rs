//! The life of one server: started, tried again, watched, ended. One task owns it; others send it orders.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep};

use crate::backoff::{Breaker, pause};
use crate::connect::{Connection, Failed, connect};
use crate::error::{Fault, Trouble, last_words, seconds};
use crate::handshake::Era;
use crate::health::{Finding, Watchman};
use crate::link::{Failure, Link};
use crate::list::{Kind, Listing, list};
use crate::place;
use crate::settings::Pace;
use crate::shared::{Shared, needs_auth};
use crate::status::State;

/// How long what is left of a lost connection may take to end.
const REMAINS: Duration = Duration::from_millis(500);

/// An order to the task.
#[derive(Debug)]
pub(crate) enum Control {
    /// Start it, unless it runs. A person's order goes where a call does not: beyond stops, failures and crash loops.
    Start { manual: bool, reply: Option<oneshot::Sender<()>> },
    /// End it.
    Stop(oneshot::Sender<()>),
    /// End it and start it again.
    Restart(oneshot::Sender<()>),
    /// Offer again what it offered until it crashed.
    Offer(oneshot::Sender<()>),
    /// A call found that it may be gone.
    Doubt,
    /// A call found that it wants to know who we are.
    Denied(String),
}

/// Why a live server is one no more.
#[derive(Debug)]
enum Ending {
    /// The connection ended, or the program did.
    Lost,
    /// There is a reason to end it.
    Found(Finding),
    Stop(oneshot::Sender<()>),
    Restart(oneshot::Sender<()>),
    /// The handle is gone.
    Gone,
}

/// What to do next.
enum Next {
    Rest,
    Start,
    End,
}

struct Life {
    shared: Arc<Shared>,
    orders: mpsc::UnboundedReceiver<Control>,
    /// Those who wait for the outcome of a start.
    waiting: Vec<oneshot::Sender<()>>,
    breaker: Breaker,
    /// When the last try of the last start failed.
    failed: Option<Instant>,
    era: Option<Era>,
}

/// Leads the life of a server until its handle is gone.
pub(crate) async fn live(shared: Arc<Shared>, orders: mpsc::UnboundedReceiver<Control>, era: Option<Era>) {
    let mut life = Life { shared, orders, waiting: Vec::new(), breaker: Breaker::default(), failed: None, era };
    let mut next = Next::Rest;
    loop {
        next = match next {
            Next::Rest => life.rest().await,
            Next::Start => match Box::pin(life.bring_up()).await {
                Ok(mut connection) => {
                    let ending = life.serve(&mut connection).await;
                    life.wind_up(connection, ending).await
                }
                Err(next) => {
                    // A program that was just being started is gone before anyone hears that nothing runs.
                    life.shared.finish_starts().await;
                    next
                }
            },
            Next::End => return,
        };
    }
}

impl Life {
    fn pace(&self) -> &Pace {
        &self.shared.context.settings.pace
    }

    /// Waits for an order to start.
    async fn rest(&mut self) -> Next {
        self.settle();
        while let Some(order) = self.orders.recv().await {
            match order {
                Control::Start { manual, reply } => {
                    self.waiting.extend(reply);
                    if manual {
                        self.breaker.reset();
                    }
                    if self.may_start(manual) {
                        return Next::Start;
                    }
                    self.settle();
                }
                Control::Restart(reply) => {
                    self.waiting.push(reply);
                    self.breaker.reset();
                    return Next::Start;
                }
                Control::Stop(reply) => {
                    self.shared.withdraw(State::Stopped);
                    let _ = reply.send(());
                }
                Control::Offer(reply) => {
                    if !self.breaker.is_open(self.pace()) {
                        self.shared.offer();
                    }
                    let _ = reply.send(());
                }
                Control::Doubt | Control::Denied(_) => {}
            }
        }
        Next::End
    }

    fn may_start(&self, manual: bool) -> bool {
        let open = match self.shared.now().state {
            State::Stopped | State::NeedsAuth(_) => manual,
            State::Failed(_) => manual || self.may_recover(),
            _ => true,
        };
        open && !self.breaker.is_open(self.pace())
    }

    /// Whether a server that could not be started may be tried again: a network heals by itself, a program does not.
    fn may_recover(&self) -> bool {
        let rested = self.failed.is_none_or(|moment| moment.elapsed() >= self.pace().longest_pause);
        rested && place::is_remote(&self.shared.declaration.endpoint)
    }

    /// Tells those who wait that the outcome is known.
    fn settle(&mut self) {
        for reply in self.waiting.drain(..) {
            let _ = reply.send(());
        }
    }

    /// Tries to connect, a few times.
    async fn bring_up(&mut self) -> Result<Connection, Next> {
        let tries = self.pace().tries.max(1);
        for attempt in 1..=tries {
            self.shared.change(|now| {
                now.state = State::Starting(attempt);
                now.link = None;
            });
            let shared = Arc::clone(&self.shared);
            let era = self.era_of(attempt);
            let failed = match self.unless_ordered(Box::pin(attempt_once(&shared, era))).await? {
                Ok((connection, listing)) => {
                    self.era = Some(Era::of(connection.link.info.protocol_version.as_str()));
                    self.announce(&connection, listing);
                    return Ok(connection);
                }
                Err(failed) => failed,
            };
            let (closed, last) = (matches!(failed.fault, Fault::Closed), failed.fault.is_final() || attempt == tries);
            let verdict = last.then(|| verdict(&shared, &failed, attempt));
            self.shared.log.add(&format!("start {attempt} failed: {}", failed.fault));
            if let Some(state) = verdict {
                self.failed = Some(Instant::now());
                self.shared.withdraw(state);
                return Err(Next::Rest);
            }
            if !(attempt == 1 && closed && self.era.is_none()) {
                let pause = pause(self.pace(), attempt);
                self.unless_ordered(sleep(pause)).await?;
            }
        }
        Err(Next::Rest)
    }

    /// How to ask this time. Every other time it is not the way that was remembered or tried before: some servers cannot
    /// stand the newer question, and some have learnt it since.
    fn era_of(&self, attempt: u32) -> Option<Era> {
        match self.era {
            era if attempt % 2 == 1 => era,
            Some(Era::Handshake) => None,
            Some(Era::Stateless) | None => Some(Era::Handshake),
        }
    }

    /// Works until an order ends that.
    async fn unless_ordered<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Next> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done),
                order = self.orders.recv() => match order {
                    None => return Err(Next::End),
                    Some(Control::Start { reply, .. }) => self.waiting.extend(reply),
                    Some(Control::Restart(reply)) => self.waiting.push(reply),
                    Some(Control::Stop(reply)) => {
                        self.shared.withdraw(State::Stopped);
                        self.waiting.push(reply);
                        return Err(Next::Rest);
                    }
                    // It is about to be started anyway.
                    Some(Control::Offer(reply)) => drop(reply.send(())),
                    Some(Control::Doubt | Control::Denied(_)) => {}
                },
            }
        }
    }

    fn announce(&mut self, connection: &Connection, listing: Result<Listing, String>) {
        let (listing, state) = match listing {
            Ok(listing) => (listing, State::Ready),
            Err(why) => {
                let (why, said) = (self.shared.log.clean(&why), self.shared.log.tail(connection.mark));
                (Listing::default(), State::Degraded(format!("{why}{}", last_words(&said))))
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
            now.info = Some(Arc::clone(&connection.link.info));
            now.mark = connection.mark;
            now.transport = Some(connection.transport());
            now.process = connection.program.as_ref().map(crate::program::Program::id);
            now.link = Some(Arc::clone(&connection.link));
        });
        self.settle();
    }

    /// Watches over a live server until there is a reason to end it.
    async fn serve(&mut self, connection: &mut Connection) -> Ending {
        let link = Arc::clone(&connection.link);
        let mut watch = Watchman::new(Arc::clone(&self.shared), Arc::clone(&link));
        loop {
            let exited = async {
                match &mut connection.program {
                    Some(program) => program.exited().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = &mut connection.service => return Ending::Lost,
                () = exited => return Ending::Lost,
                order = self.orders.recv() => match order {
                    None => return Ending::Gone,
                    Some(Control::Start { reply, .. }) => drop(reply.map(|reply| reply.send(()))),
                    Some(Control::Stop(reply)) => return Ending::Stop(reply),
                    Some(Control::Restart(reply)) => return Ending::Restart(reply),
                    Some(Control::Offer(reply)) => drop(reply.send(())),
                    Some(Control::Doubt) => watch.doubt(),
                    Some(Control::Denied(why)) => return Ending::Found(Finding::Denied(why)),
                },
                finding = watch.round() => if let Some(finding) = finding {
                    return Ending::Found(finding);
                },
            }
        }
    }

    /// Ends a server that is one no more, and says what is next.
    async fn wind_up(&mut self, connection: Connection, ending: Ending) -> Next {
        let parting = self.parting(&connection);
        match ending {
            Ending::Gone => Next::End,
            Ending::Stop(reply) => {
                self.shared.withdraw(State::Stopped);
                connection.close(parting).await;
                self.waiting.push(reply);
                Next::Rest
            }
            Ending::Restart(reply) => {
                self.waiting.push(reply);
                self.breaker.reset();
                self.shared.withdraw(State::Starting(1));
                connection.close(parting).await;
                Next::Start
            }
            Ending::Found(Finding::Idle) => {
                self.shared.change(|now| {
                    now.state = State::Configured;
                    (now.link, now.process) = (None, None);
                });
                connection.close(parting).await;
                Next::Rest
            }
            Ending::Found(Finding::Denied(why)) => {
                self.shared.withdraw(State::NeedsAuth(why));
                connection.close(parting).await;
                Next::Rest
            }
            Ending::Found(Finding::Hung) => self.crashed(connection, true).await,
            Ending::Lost => self.crashed(connection, false).await,
        }
    }

    /// How long a server may take to end by itself. Nobody counts on one that leaves its callers waiting.
    fn parting(&self, connection: &Connection) -> Duration {
        let Pace { parting, haste, .. } = *self.pace();
        let hurried = connection.link.owes() || self.shared.context.is_hurried();
        if hurried { haste.min(parting) } else { parting }
    }

    async fn crashed(&mut self, connection: Connection, hung: bool) -> Next {
        // Nobody is to call, or to count on, what is gone while its remains are cleared away.
        self.shared.withdraw(State::Degraded("it ended; what is left of it is being cleared away".to_owned()));
        let (mark, fault) = (connection.mark, connection.fault.get().cloned());
        let how = connection.close(REMAINS).await.filter(|_| !hung);
        let what = if hung { "it does not answer any more" } else { "it ended the connection" };
        let text = fault.unwrap_or_else(|| how.unwrap_or_else(|| what.to_owned()));
        let mut text = format!("{}{}", self.shared.log.clean(&text), last_words(&self.shared.log.tail(mark)));
        self.breaker.crashed(&self.shared.context.settings.pace);
        let stuck = self.breaker.is_open(self.pace());
        if stuck {
            let name = ollm_protocol::shell_word(&self.shared.declaration.name).into_owned();
            let (count, window) = (self.breaker.count(), seconds(self.pace().window));
            text = format!("it crashed {count} times within {window}; `ollm mcp restart {name}` tries again; {text}");
        }
        self.shared.withdraw(State::Crashed(text));
        let declaration = &self.shared.declaration;
        if stuck || !(declaration.auto_restart || place::is_remote(&declaration.endpoint)) {
            return Next::Rest;
        }
        let pause = pause(self.pace(), self.breaker.count());
        match self.unless_ordered(sleep(pause)).await {
            Ok(()) => Next::Start,
            Err(next) => next,
        }
    }
}

/// One try to connect and to list the tools. A list that cannot be read is no reason to give up.
async fn attempt_once(shared: &Shared, era: Option<Era>) -> Result<(Connection, Result<Listing, String>), Failed> {
    let connection = connect(shared, era).await?;
    let change = shared.desk.changes.announced();
    let listed = tools(shared, &connection.link).await;
    let (fault, mark) = match listed {
        Ok(listing) => {
            // What was announced to a connection before is among them.
            shared.desk.changes.see(change);
            return Ok((connection, Ok(listing)));
        }
        Err(Failure::Denied(challenge)) => (Fault::Denied(challenge), connection.mark),
        Err(Failure::Unsent | Failure::Trouble(Trouble::Lost(_))) => (Fault::Closed, connection.mark),
        Err(Failure::Trouble(trouble)) => {
            return Ok((connection, Err(format!("its tools cannot be listed: {trouble}"))));
        }
    };
    let program = connection.close(REMAINS).await;
    Err(Failed { fault, program, mark })
}

pub(crate) async fn tools(shared: &Shared, link: &Link) -> Result<Listing, Failure> {
    if link.info.capabilities.tools.is_none() {
        return Ok(Listing::default());
    }
    list(link, Kind::Tools, &shared.context.settings.bounds).await.map(|listing| shared.cleaned(listing))
}

/// The state after the last try, with all that helps to understand it.
fn verdict(shared: &Shared, failed: &Failed, tries: u32) -> State {
    if let Fault::Denied(challenge) = &failed.fault {
        return State::NeedsAuth(needs_auth(shared, challenge));
    }
    let times = if tries > 1 { format!(" ({tries} tries)") } else { String::new() };
    let mut text =
        format!("it did not start{times}: {}; {}", failed.fault, place::describe(&shared.declaration.endpoint));
    if let Some(program) = &failed.program {
        text = format!("{text}; {program}");
    }
    State::Failed(format!("{}{}", shared.log.clean(&text), last_words(&shared.log.tail(failed.mark))))
}
