//! The servers of one command, and a person who is told what they do.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ollm_mcp::{BlockingClient, CallError, Pending, Ports, ServerNotice, ServerState, ServerStatus, Spill, Watch};
use serde_json::Value;

use super::crew::Crew;
use super::{Known, Servers};
use crate::error::Failure;
use crate::interrupt::Stop;
use crate::output::Output;
use crate::questions::Questions;
use crate::world::World;

/// Whoever waits longer is told for what.
const SILENCE: Duration = Duration::from_secs(2);

/// The servers of one command; gone with it.
pub(crate) struct Live {
    crew: Crew,
    news: Receiver<(String, ServerState)>,
    /// Who answers the questions of servers, if anybody does.
    questions: Option<Arc<Questions>>,
    stop: Stop,
}

/// Passes news on to whoever may print.
struct Messenger(Mutex<Sender<(String, ServerState)>>);

impl Watch for Messenger {
    fn notice(&self, server: &str, notice: &ServerNotice) {
        if let ServerNotice::State(state) = notice {
            let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = sender.send((server.to_owned(), state.clone()));
        }
    }
}

impl Live {
    /// Makes these servers ready to be started; all of them may be.
    pub(crate) fn new(servers: &Servers<'_>, chosen: &[&Known], output: &mut Output) -> Result<Live, Failure> {
        let (sender, news) = channel();
        let questions = Questions::new(servers.world, None);
        let ports = questions.as_ref().map(Questions::ports).unwrap_or_default();
        let watch: Arc<dyn Watch> = Arc::new(Messenger(Mutex::new(sender)));
        let (crew, problems) = Crew::gather(servers, chosen, Ports { watch: Some(watch), ..ports })?;
        for problem in problems {
            output.tell(&problem.to_string());
        }
        Ok(Live { crew, news, questions, stop: Stop::listen() })
    }

    /// Starts all of them at once, and tells the person what takes long.
    pub(crate) fn start(&self, output: &mut Output) -> Vec<(ServerStatus, Result<(), CallError>)> {
        let fleet = self.fleet();
        let outcomes = fleet.start_all().and_then(|starts| self.wait_and_tell(starts, |_| (), output));
        if self.stop.is_set() {
            fleet.hurry();
            fleet.stop_all();
            return Vec::new();
        }
        fleet.statuses().into_iter().zip(outcomes.unwrap_or_default()).collect()
    }

    /// Waits for an answer, and tells the person what happens meanwhile.
    pub(crate) fn wait<T: Send>(
        &self,
        pending: Result<Pending<T>, CallError>,
        mut meanwhile: impl FnMut(&mut Output),
        output: &mut Output,
    ) -> Result<T, CallError> {
        let pending = pending?;
        let all = self.fleet().servers().iter().map(|server| server.name().to_owned()).collect();
        let _floor = self.questions.as_ref().map(|questions| questions.open(all));
        let attend = |output: &mut Output| {
            meanwhile(output);
            if let Some(questions) = &self.questions {
                questions.attend(&|| self.stop.is_set());
            }
        };
        self.wait_and_tell(pending, attend, output)
    }

    /// Waits for an answer until somebody wants us to end, and tells the person what happens and what takes long.
    fn wait_and_tell<T: Send>(
        &self,
        pending: Pending<T>,
        mut meanwhile: impl FnMut(&mut Output),
        output: &mut Output,
    ) -> Result<T, CallError> {
        let mut quiet = Instant::now();
        pending.wait_until(
            || self.stop.is_set(),
            || {
                self.tell_news(output);
                meanwhile(output);
                if quiet.elapsed() > SILENCE {
                    quiet = Instant::now();
                    self.waiting().into_iter().for_each(|text| output.tell(&text));
                }
            },
        )
    }

    /// The live servers themselves.
    pub(crate) fn fleet(&self) -> &BlockingClient {
        self.crew.fleet()
    }

    /// The tools a server lists, as it wrote them.
    pub(crate) fn listed(&self, name: &str) -> Vec<Value> {
        self.fleet().server(name).map(|server| server.memory().tools.unwrap_or_default()).unwrap_or_default()
    }

    /// Where results of a server are kept that are too large to show.
    pub(crate) fn spill(&self, world: &World, name: &str) -> Spill {
        self.crew.spill(world, name)
    }

    /// Remembers what the servers said, and ends them; with little time where somebody wants us to end.
    pub(crate) fn close(self, output: &mut Output) -> Result<(), Failure> {
        self.crew.keep().iter().for_each(|trouble| output.tell(trouble));
        if self.stop.is_set() {
            self.fleet().hurry();
        }
        self.crew.close();
        self.stop.failure().map_or(Ok(()), Err)
    }

    /// Tells what has happened since.
    fn tell_news(&self, output: &mut Output) {
        for (server, state) in self.news.try_iter() {
            if let ServerState::Starting(number @ 2..) = state {
                output.tell(&format!("server `{server}` is started once more (try {number})"));
            }
        }
    }

    /// Who keeps us waiting, if anybody does.
    fn waiting(&self) -> Option<String> {
        let statuses = self.fleet().statuses();
        let starting = statuses.iter().filter(|status| matches!(status.state, ServerState::Starting(_)));
        let names: Vec<&str> = starting.map(|status| status.name.as_str()).collect();
        (!names.is_empty()).then(|| format!("still starting: {}", names.join(", ")))
    }
}
