//! Blocking clients, with `ureq`: they need no runtime, keep hard deadlines, and connect only where they are told to.
//!
//! `ureq` accepts no `rustls` configuration from its users, so the last connector in its chain is ours.

use std::fmt;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use ureq::config::{Config, ConfigBuilder};
use ureq::http::Uri;
use ureq::typestate::AgentScope;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::time::{Duration, Instant};
use ureq::unversioned::transport::{
    Buffers, ConnectProxyConnector, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, TcpConnector,
    Transport, TransportAdapter,
};
use ureq::{Agent, Proxy};

use crate::roots::Verifier;
use crate::{NetError, Network};

/// The most addresses per name that `ureq` keeps.
const MOST_ADDRESSES: usize = 16;

impl Network {
    /// A client for one address, through its proxy if it has one.
    pub fn agent(&self, config: ConfigBuilder<AgentScope>, url: &str) -> Result<Agent, NetError> {
        let proxy = self.proxies.find(url)?;
        let proxy = proxy.map(|proxy| Proxy::new(&proxy.text).map_err(|_| proxy.refused())).transpose()?;
        self.with_parts(config.proxy(proxy).build(), DefaultResolver::default())
    }

    /// A client that connects to one of these addresses, for any host, and never through a proxy.
    pub fn pinned_agent(
        &self,
        config: ConfigBuilder<AgentScope>,
        addresses: Vec<SocketAddr>,
    ) -> Result<Agent, NetError> {
        self.with_parts(config.proxy(None).build(), PinnedResolver(addresses))
    }

    fn with_parts(&self, config: Config, resolver: impl Resolver) -> Result<Agent, NetError> {
        let tls = Arc::new(Verifier::client_config(Arc::clone(&self.verifier))?);
        let connector = ().chain(ConnectProxyConnector::default()).chain(TcpConnector::default()).chain(Tls(tls));
        Ok(Agent::with_parts(config, connector, resolver))
    }
}

/// A resolver that returns only the addresses it was given.
#[derive(Debug)]
struct PinnedResolver(Vec<SocketAddr>);

impl Resolver for PinnedResolver {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut addresses = self.empty();
        self.0.iter().take(MOST_ADDRESSES).for_each(|address| addresses.push(*address));
        Ok(addresses)
    }
}

/// Wraps a connection in TLS where the address wants it.
#[derive(Debug)]
struct Tls(Arc<ClientConfig>);

impl<In: Transport> Connector<In> for Tls {
    type Out = Either<In, TlsTransport>;

    fn connect(&self, details: &ConnectionDetails<'_>, chained: Option<In>) -> Result<Option<Self::Out>, ureq::Error> {
        let Some(transport) = chained else { return Ok(None) };
        if !details.needs_tls() || transport.is_tls() {
            return Ok(Some(Either::A(transport)));
        }
        let host = details.uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let name = ServerName::try_from(host.to_owned()).map_err(|_| ureq::Error::Tls("the host has no valid name"))?;
        let mut connection = ClientConnection::new(Arc::clone(&self.0), name).map_err(std::io::Error::other)?;
        let mut socket = TransportAdapter::new(transport.boxed(), details.current_time.clone());
        socket.set_timeout(remaining(details));
        connection.complete_io(&mut socket)?;
        let config = &details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(Either::B(TlsTransport { buffers, stream: StreamOwned::new(connection, socket) })))
    }
}

/// The time to connect that the earlier steps have left.
fn remaining(details: &ConnectionDetails<'_>) -> NextTimeout {
    let mut timeout = details.timeout;
    if let (Duration::Exact(whole), Instant::Exact(began), Instant::Exact(now)) =
        (timeout.after, details.now, (details.current_time)())
    {
        timeout.after = Duration::Exact(whole.saturating_sub(now.saturating_duration_since(began)));
    }
    timeout
}

struct TlsTransport {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl Transport for TlsTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.sock.set_timeout(timeout);
        Ok(self.stream.write_all(self.buffers.output().get(..amount).unwrap_or_default())?)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.sock.set_timeout(timeout);
        let amount = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.sock.get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

impl fmt::Debug for TlsTransport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TlsTransport").finish_non_exhaustive()
    }
}
