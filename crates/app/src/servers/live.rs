//! The servers of one command. While the person waits, they are told what the servers do.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ollm_agent::Cancel;
use ollm_mcp::{
    BlockingClient, CallError, PendingAnswer, Ports, ServerNotice, ServerState, ServerStatus, Spill, Watch,
};
use serde_json::Value;

use super::server_set::ServerSet;
use super::wait::wait;
use super::{DeclaredServer, Servers};
use crate::app_context::AppContext;
use crate::error::AppError;
use crate::port::Notices;
use crate::questions::Questions;

/// After this time, a waiting person is told which servers are slow.
const SILENCE: Duration = Duration::from_secs(2);

/// The servers of one command; dropping it ends them.
pub struct LiveServers {
    server_set: ServerSet,
    news: Receiver<(String, ServerState)>,
    /// Answers the questions of servers, if questions are answered.
    questions: Option<Arc<Questions>>,
    cancel: Cancel,
}

/// Passes news to the thread that may print.
struct Messenger(Mutex<Sender<(String, ServerState)>>);

impl Watch for Messenger {
    fn notice(&self, server: &str, notice: &ServerNotice) {
        if let ServerNotice::State(state) = notice {
            let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = sender.send((server.to_owned(), state.clone()));
        }
    }
}

impl LiveServers {
    /// Prepares these servers for their start; all of them may be started. A cancel ends them.
    pub fn new(
        servers: &Servers<'_>,
        chosen: &[&DeclaredServer],
        cancel: &Cancel,
        notices: &mut dyn Notices,
    ) -> Result<LiveServers, AppError> {
        let (sender, news) = channel();
        let questions = Questions::new(servers.context, None);
        let ports = questions.as_ref().map(Questions::ports).unwrap_or_default();
        let watch: Arc<dyn Watch> = Arc::new(Messenger(Mutex::new(sender)));
        let (server_set, problems) = ServerSet::gather(servers, chosen, Ports { watch: Some(watch), ..ports })?;
        for problem in problems {
            notices.tell(&problem.to_string());
        }
        chosen.iter().filter_map(|known| known.download_note(servers.context)).for_each(|note| notices.tell(&note));
        Ok(LiveServers { server_set, news, questions, cancel: cancel.clone() })
    }

    /// Starts all of them at the same time, and tells the person which are slow.
    pub fn start(&self, notices: &mut dyn Notices) -> Vec<(ServerStatus, Result<(), CallError>)> {
        let fleet = self.fleet();
        let outcomes = fleet.start_all().and_then(|starts| self.wait_and_tell(starts, None, |_| (), notices));
        if self.cancel.is_set() {
            fleet.hurry();
            fleet.stop_all();
            return Vec::new();
        }
        fleet.statuses().into_iter().zip(outcomes.unwrap_or_default()).collect()
    }

    /// Waits for an answer, and tells the person the news meanwhile.
    pub fn wait<T: Send>(
        &self,
        pending: Result<PendingAnswer<T>, CallError>,
        meanwhile: impl FnMut(&mut dyn Notices),
        notices: &mut dyn Notices,
    ) -> Result<T, CallError> {
        let all = self.fleet().servers().iter().map(|server| server.name().to_owned()).collect();
        let _floor = self.questions.as_ref().map(|questions| questions.open(all));
        self.wait_and_tell(pending?, self.questions.as_ref(), meanwhile, notices)
    }

    /// Waits for an answer until a cancel, and tells the person the news and which servers are slow.
    fn wait_and_tell<T: Send>(
        &self,
        pending: PendingAnswer<T>,
        questions: Option<&Arc<Questions>>,
        mut meanwhile: impl FnMut(&mut dyn Notices),
        notices: &mut dyn Notices,
    ) -> Result<T, CallError> {
        let mut quiet = Instant::now();
        wait(pending, questions, &|| self.cancel.is_set(), || {
            self.tell_news(notices);
            meanwhile(notices);
            if quiet.elapsed() > SILENCE {
                quiet = Instant::now();
                self.waiting().into_iter().for_each(|text| notices.tell(&text));
            }
        })
    }

    /// The client of the running servers.
    pub fn fleet(&self) -> &BlockingClient {
        self.server_set.fleet()
    }

    /// The tools that a server lists, unchanged.
    pub fn listed(&self, name: &str) -> Vec<Value> {
        self.fleet().server(name).map(|server| server.memory().tools.unwrap_or_default()).unwrap_or_default()
    }

    /// The files for results of a server that are too large to show.
    pub fn spill(&self, context: &AppContext, name: &str) -> Spill {
        self.server_set.spill(context, name)
    }

    /// Saves the servers' data and ends them; after an interruption only with a short deadline.
    pub fn close(self, notices: &mut dyn Notices) {
        self.server_set.keep().iter().for_each(|trouble| notices.tell(trouble));
        if self.cancel.is_set() {
            self.fleet().hurry();
        }
        self.server_set.close();
    }

    /// Tells the news since the last call.
    fn tell_news(&self, notices: &mut dyn Notices) {
        for (server, state) in self.news.try_iter() {
            if let ServerState::Starting(number @ 2..) = state {
                notices.tell(&format!("server `{server}` is started once more (try {number})"));
            }
        }
    }

    /// The servers that we are waiting for, if there are any.
    fn waiting(&self) -> Option<String> {
        let statuses = self.fleet().statuses();
        let starting = statuses.iter().filter(|status| matches!(status.state, ServerState::Starting(_)));
        let names: Vec<&str> = starting.map(|status| status.name.as_str()).collect();
        (!names.is_empty()).then(|| format!("still starting: {}", names.join(", ")))
    }
}
