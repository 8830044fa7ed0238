//! From a declaration to a live connection, or to the reason why there is none.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use reqwest::Url;
use rmcp::RoleClient;
use rmcp::model::{ServerPeerInfo, SubscriptionFilter};
use rmcp::service::{RunningServiceCancellationToken, serve_directly};
use rmcp::transport::Transport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransport, StreamableHttpClientTransportConfig};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::client_handler::ClientHandler;
use crate::clock::after;
use crate::error::ConnectError;
use crate::handshake::{Era, negotiate};
use crate::http::Http;
use crate::line_transport::CloseReason;
use crate::program::Program;
use crate::ready::Endpoint;
use crate::requester::Requester;
use crate::shared::ServerShared;
use crate::sse::Sse;
use crate::web::{Site, WebError};

/// The most requests to one server that may be under way at the same time.
pub(crate) const AT_ONCE: usize = 32;
/// How often a broken event stream is resumed.
const RESUMES: usize = 5;
/// The longest pause before a broken stream is resumed.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How long a program that closed the connection may take to exit. Its exit status explains the failure.
const LAST_BREATH: Duration = Duration::from_millis(500);

/// A live connection and everything that belongs to it. Dropping it ends all of that at once.
pub(crate) struct Connection {
    pub(crate) requester: Arc<Requester>,
    pub(crate) program: Option<Program>,
    /// Completes when the connection has ended.
    pub(crate) service: Service,
    pub(crate) fault: CloseReason,
    /// The first line of the log that belongs to this connection.
    pub(crate) mark: u64,
    /// Whether it uses the HTTP+SSE transport of 2024.
    is_sse: bool,
    cancel: Option<RunningServiceCancellationToken>,
    announcements: Option<JoinHandle<()>>,
}

/// The SDK's part of a connection; it can be awaited any number of times.
pub(crate) struct Service(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl Future for Service {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(running) = &mut self.0 else {
            return Poll::Ready(());
        };
        let polled = running.as_mut().poll(context);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

/// A failed attempt to connect.
pub(crate) struct FailedConnection {
    pub(crate) fault: ConnectError,
    /// How the program ended, if it ended by itself.
    pub(crate) program: Option<String>,
    /// The first line of the log that belongs to this attempt.
    pub(crate) mark: u64,
}

/// Connects to a server; the connect timeout covers the whole attempt.
pub(crate) async fn open_connection(shared: &ServerShared, era: Option<Era>) -> Result<Connection, FailedConnection> {
    let mark = shared.log.mark();
    let end = after(shared.ready.connect_timeout);
    let plain = |fault| FailedConnection { fault, program: None, mark };
    match &shared.ready.endpoint {
        endpoint @ Endpoint::Stdio { .. } => connect_program(shared, endpoint, era, mark, end).await,
        Endpoint::Http { url, headers } => {
            let site = site(shared, url, headers).map_err(plain)?;
            match connect_http(shared, site.clone(), url, era, mark, end).await {
                Err(fault) if fault.suggests_events() => {
                    let events = connect_sse(shared, site, url, mark, end).await;
                    events.map_err(|is_sse| plain(is_sse.or_else_of(fault)))
                }
                connection => connection.map_err(plain),
            }
        }
        Endpoint::Sse { url, headers } => {
            let site = site(shared, url, headers).map_err(plain)?;
            connect_sse(shared, site, url, mark, end).await.map_err(plain)
        }
    }
}

async fn connect_program(
    shared: &ServerShared,
    endpoint: &Endpoint,
    era: Option<Era>,
    mark: u64,
    end: Instant,
) -> Result<Connection, FailedConnection> {
    let started = Program::start(shared, endpoint).await;
    let (mut program, mut transport) =
        started.map_err(|error| FailedConnection { fault: error.into(), program: None, mark })?;
    let fault = transport.close_reason();
    let negotiated = tokio::select! {
        biased;
        negotiated = handshake(shared, &mut transport, era, end) => negotiated,
        () = program.exited() => Err(ConnectError::Closed),
    };
    match negotiated {
        Ok(info) => Ok(Connection::new(shared, transport, info, Some(program), fault, mark)),
        Err(error) => {
            transport.note_rest();
            drop(transport);
            let error = fault.get().map_or(error, |text| ConnectError::Streams(text.clone()));
            let late = matches!(error, ConnectError::Late(_));
            let program = program.stop(if late { Duration::ZERO } else { LAST_BREATH }).await;
            // After a timeout we ended the program; it did not end by itself.
            Err(FailedConnection { fault: error, program: program.filter(|_| !late), mark })
        }
    }
}

async fn connect_http(
    shared: &ServerShared,
    site: Site,
    url: &str,
    era: Option<Era>,
    mark: u64,
    end: Instant,
) -> Result<Connection, ConnectError> {
    let cap = shared.context.settings.bounds.message;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url).max_concurrent_requests(AT_ONCE);
    let mut pauses = ExponentialBackoff::default();
    (pauses.max_times, pauses.max_delay) = (Some(RESUMES), Some(LONGEST_PAUSE));
    config.retry_config = Arc::new(pauses);
    let mut transport = StreamableHttpClientTransport::with_client(Http { site, cap }, config);
    let info = handshake(shared, &mut transport, era, end).await?;
    Ok(Connection::new(shared, transport, info, None, CloseReason::default(), mark))
}

async fn connect_sse(
    shared: &ServerShared,
    site: Site,
    url: &str,
    mark: u64,
    end: Instant,
) -> Result<Connection, ConnectError> {
    let cap = shared.context.settings.bounds.message;
    let limit = shared.ready.connect_timeout;
    let mut transport = timeout_at(end, Sse::open(site, url, cap)).await.map_err(|_| ConnectError::Late(limit))??;
    let info = handshake(shared, &mut transport, Some(Era::Handshake), end).await?;
    let fault = transport.close_reason();
    let mut connection = Connection::new(shared, transport, info, None, fault, mark);
    connection.is_sse = true;
    Ok(connection)
}

async fn handshake<T>(
    shared: &ServerShared,
    transport: &mut T,
    era: Option<Era>,
    end: Instant,
) -> Result<ServerPeerInfo, ConnectError>
where
    T: Transport<RoleClient>,
    T::Error: Into<ConnectError>,
{
    let limit = shared.ready.connect_timeout;
    let probe = shared.context.settings.timings.probe.min(limit / 2);
    let negotiating = negotiate(transport, shared.handler.config(), era, probe, &shared.log);
    timeout_at(end, negotiating).await.unwrap_or(Err(ConnectError::Late(limit)))
}

fn site(shared: &ServerShared, url: &str, headers: &[(String, String)]) -> Result<Site, ConnectError> {
    let known = Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    if !known {
        return Err(ConnectError::Foreign("its `url` is no http or https address".to_owned()));
    }
    let client = shared.context.web().map_err(|error| ConnectError::Web(WebError::Net(error)))?;
    let authorize = shared.context.ports.authorize.clone();
    Ok(Site::new(client, &shared.ready.name, headers, authorize, Arc::clone(&shared.log))?)
}

impl Connection {
    fn new<T>(
        shared: &ServerShared,
        transport: T,
        info: ServerPeerInfo,
        program: Option<Program>,
        fault: CloseReason,
        mark: u64,
    ) -> Self
    where
        T: Transport<RoleClient> + 'static,
    {
        let running = serve_directly(Arc::clone(&shared.handler), transport, Some(info.clone()));
        let (peer, cancel) = (running.peer().clone(), running.cancellation_token());
        let requester =
            Arc::new(Requester::new(peer, Arc::clone(&shared.handler), Arc::new(info), Arc::clone(&shared.log)));
        let announcements = subscription(&requester.info)
            .map(|filter| tokio::spawn(forward_notifications(Arc::clone(&requester), filter)));
        let service = Service(Some(Box::pin(async move {
            let _ = running.waiting().await;
        })));
        Self { requester, program, service, fault, mark, is_sse: false, cancel: Some(cancel), announcements }
    }

    /// The name of the transport.
    pub(crate) fn transport(&self) -> &'static str {
        match (&self.program, self.is_sse) {
            (Some(_), _) => "stdio",
            (None, false) => "http",
            (None, true) => "sse",
        }
    }

    /// Closes the connection and gives its program time to end. Says how the program ended, if it ended by itself.
    pub(crate) async fn close(mut self, parting: Duration) -> Option<String> {
        self.requester.cancels_sent().await;
        if let Some(cancel) = self.cancel.take() {
            cancel.cancel();
        }
        // This ends the session of a web server, and closes the input of a program.
        let _ = tokio::time::timeout(parting, &mut self.service).await;
        match self.program.take() {
            Some(program) => program.stop(parting).await,
            None => None,
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(task) = &self.announcements {
            task.abort();
        }
    }
}

/// The notifications to subscribe to; older servers send theirs without a subscription.
fn subscription(info: &ServerPeerInfo) -> Option<SubscriptionFilter> {
    if info.protocol_version.has_initialize() {
        return None;
    }
    let able = &info.capabilities;
    let mut filter = SubscriptionFilter::default();
    filter.tools_list_changed = able.tools.as_ref().and_then(|able| able.list_changed).filter(|able| *able);
    filter.prompts_list_changed = able.prompts.as_ref().and_then(|able| able.list_changed).filter(|able| *able);
    filter.resources_list_changed = able.resources.as_ref().and_then(|able| able.list_changed).filter(|able| *able);
    (filter != SubscriptionFilter::default()).then_some(filter)
}

/// Forwards notifications until the server ends the subscription.
async fn forward_notifications(requester: Arc<Requester>, filter: SubscriptionFilter) {
    let Ok(mut subscription) = requester.peer.listen(filter).await else {
        return;
    };
    let handler: &ClientHandler = &requester.handler;
    while let Ok(Some(notification)) = subscription.next().await {
        handler.announce(&notification);
    }
}
