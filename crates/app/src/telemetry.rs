//! Telemetry of long-running commands: spans to an OpenTelemetry collector, metrics to Prometheus.
//!
//! Both are off unless the user configured them. They contain the name, tool and session of events, and the data only
//! if the user wants that. Nothing here delays an event: data that cannot be sent in time is dropped and counted.

use std::sync::Arc;

use ollm_catalog::TelemetrySettings;
use ollm_engine::{LateResult, Outcome};
use ollm_net::Network;
use ollm_protocol::Event;

mod exporter;
mod metrics;
mod prometheus;
mod span;

use exporter::Exporter;
use metrics::Metrics;
use prometheus::Endpoint;

/// The running telemetry. Dropping it sends the remaining data, within a deadline.
#[derive(Debug)]
pub struct Telemetry {
    exporter: Option<Exporter>,
    /// Whether spans contain the data of their events.
    with_data: bool,
    metrics: Arc<Metrics>,
    endpoint: Option<Endpoint>,
}

impl Telemetry {
    /// Starts the configured exporters; `None` if none is configured. An exporter that cannot be started gives a line
    /// for the person.
    pub fn start(
        settings: &TelemetrySettings,
        network: &Network,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> (Option<Telemetry>, Vec<String>) {
        let TelemetrySettings { otlp_endpoint, otlp_headers, otlp_data, prometheus_listen } = settings;
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
        (any.then_some(Telemetry { exporter, with_data: *otlp_data, metrics, endpoint }), troubles)
    }

    /// Counts the outcome of an event and sends its spans. It computes the data only if spans contain data.
    pub fn observe(&self, event: &Event, outcome: &Outcome, data: impl FnOnce() -> Option<String>) {
        self.metrics.count(event, outcome);
        if let Some(exporter) = &self.exporter {
            exporter.send(span::of(event, outcome, self.with_data.then(data).flatten()));
        }
    }

    /// Counts a background hook that has ended, and sends its span.
    pub fn observe_late(&self, late: &LateResult) {
        self.metrics.count_late(late);
        if let Some(exporter) = &self.exporter {
            exporter.send(vec![span::late(late)]);
        }
    }

    /// The address that Prometheus can query, if there is one.
    pub fn address(&self) -> Option<std::net::SocketAddr> {
        self.endpoint.as_ref().map(Endpoint::address)
    }
}
