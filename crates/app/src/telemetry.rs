//! What long-running commands tell programs that watch them: spans to a collector of OpenTelemetry, numbers to Prometheus.
//!
//! Both are off unless the user configured them. Events are told by name, tool and session, never by their data. Nothing here
//! holds up an event: what cannot be sent in time is dropped and counted.

use std::sync::Arc;

use ollm_catalog::TelemetrySettings;
use ollm_engine::Outcome;
use ollm_net::Network;
use ollm_protocol::Event;

mod exporter;
mod metrics;
mod prometheus;
mod span;

use exporter::Exporter;
use metrics::Metrics;
use prometheus::Endpoint;

/// What is told to other programs, as long as this lives. Dropping it sends what is left, within a deadline.
#[derive(Debug)]
pub struct Telemetry {
    exporter: Option<Exporter>,
    metrics: Arc<Metrics>,
    endpoint: Option<Endpoint>,
}

impl Telemetry {
    /// Starts what is configured; nothing where nothing is. What cannot be started is a line for the person.
    pub fn start(
        settings: &TelemetrySettings,
        network: &Network,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> (Option<Telemetry>, Vec<String>) {
        let TelemetrySettings { otlp_endpoint, otlp_headers, prometheus_listen } = settings;
        let headers = otlp_headers.as_deref().and_then(|name| Some((name, variable(name)?)));
        let mut troubles = Vec::new();
        let metrics = Arc::new(Metrics::default());
        let headers = || headers.as_ref().map_or(Ok(Vec::new()), |(name, text)| exporter::headers(name, text));
        let start = |endpoint: &str| Exporter::start(endpoint, headers()?, network, &metrics);
        let exporter = otlp_endpoint.as_deref().map(start);
        let endpoint = prometheus_listen.as_deref().map(|address| Endpoint::open(address, &metrics));
        let exporter = exporter.and_then(|started| started.map_err(|why| troubles.push(why)).ok());
        let endpoint = endpoint.and_then(|opened| opened.map_err(|why| troubles.push(why)).ok());
        let any = exporter.is_some() || endpoint.is_some();
        (any.then_some(Telemetry { exporter, metrics, endpoint }), troubles)
    }

    /// Counts what came of an event, and sends its spans.
    pub fn observe(&self, event: &Event, outcome: &Outcome) {
        self.metrics.count(event, outcome);
        if let Some(exporter) = &self.exporter {
            exporter.send(span::of(event, outcome));
        }
    }

    /// Where Prometheus can ask, if it can.
    pub fn address(&self) -> Option<std::net::SocketAddr> {
        self.endpoint.as_ref().map(Endpoint::address)
    }
}
