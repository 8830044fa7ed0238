//! What long-running commands tell collectors and Prometheus.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::lab::{Lab, eventually};
use crate::watch::Watch;

/// A collector that keeps what it is sent: heads and bodies of requests.
fn collector() -> (String, Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, kept) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut lines = Vec::new();
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
                    break;
                }
                lines.push(line);
            }
            let header = |name: &str| {
                let found = lines.iter().find(|line| line.to_lowercase().starts_with(name));
                found.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
            };
            let length: usize = header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let mut stream = stream;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}").unwrap();
            if sender.send((lines.concat(), serde_json::from_slice(&body).unwrap())).is_err() {
                return;
            }
        }
    });
    (address, kept)
}

/// A port that is free now.
fn free() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

fn get(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let all = span["attributes"].as_array().unwrap();
    all.iter().find(|one| one["key"] == key).map_or(&Value::Null, |one| &one["value"])
}

#[test]
fn every_event_and_every_hook_is_a_span_and_never_with_its_data() {
    let (address, kept) = collector();
    let lab = Lab::new()
        .set("OLLM_TELEMETRY_OTLP_ENDPOINT", &address)
        .set("OTEL_EXPORTER_OTLP_HEADERS", "X-Key=some%20key,x-other=1");
    lab.user_hook("file_created", "sees", "cat > /dev/null; echo '{\"continue\": true}'", "");
    let mut watch = Watch::new(&lab);
    lab.write("project/telling-name.txt", "telling content");
    watch.events();
    let mut spans: Vec<Value> = Vec::new();
    let is_ours = |spans: &[Value]| spans.iter().any(|span| span["name"] == "hook sees");
    let mut numbers = 0;
    while !is_ours(&spans) || numbers == 0 {
        let (line, body) = kept.recv_timeout(Duration::from_mins(1)).unwrap();
        assert!(!body.to_string().contains("telling"), "{body}");
        assert!(line.contains("x-key: some key\r\n") && line.contains("x-other: 1\r\n"), "{line}");
        if line.starts_with("POST /v1/metrics ") {
            let metrics = &body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
            assert_eq!((&metrics[0]["name"], &metrics[0]["sum"]["isMonotonic"]), (&json!("ollm.events"), &json!(true)));
            numbers += 1;
            continue;
        }
        assert!(line.starts_with("POST /v1/traces "), "{line}");
        let resource = &body["resourceSpans"][0];
        assert_eq!(resource["resource"]["attributes"][0]["value"], json!({"stringValue": "ollm"}));
        spans.extend(resource["scopeSpans"][0]["spans"].as_array().unwrap().clone());
    }
    let hook = spans.iter().find(|span| span["name"] == "hook sees").unwrap();
    let event = spans.iter().find(|span| span["spanId"] == hook["parentSpanId"]).unwrap();
    assert_eq!((&event["name"], &event["traceId"]), (&json!("file_created"), &hook["traceId"]));
    assert_eq!(attribute(hook, "ollm.hook.status"), &json!({"stringValue": "ok"}));
    assert_eq!(attribute(event, "ollm.flow"), &json!({"stringValue": "no_opinion"}));
    assert_eq!((hook["traceId"].as_str().unwrap().len(), hook["spanId"].as_str().unwrap().len()), (32, 16));
}

/// The events that a collector was told of: how many spans of them it has, and how many the last numbers count.
#[derive(Debug, Default, PartialEq)]
struct Told {
    spans: u64,
    counted: u64,
}

impl Told {
    fn hear(&mut self, (line, body): &(String, Value)) {
        if line.starts_with("POST /v1/traces ") {
            let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
            self.spans += spans.iter().filter(|span| span["name"] == "file_created").count() as u64;
        } else {
            let points = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]["sum"]["dataPoints"].clone();
            let counts = points.as_array().unwrap().iter().map(|point| point["asInt"].as_str().unwrap().parse::<u64>());
            self.counted = counts.map(Result::unwrap).sum();
        }
    }
}

#[test]
fn the_numbers_of_the_last_events_arrive_too() {
    let (address, kept) = collector();
    let lab = Lab::new().set("OLLM_TELEMETRY_OTLP_ENDPOINT", &address);
    lab.user_hook("file_created", "sees", "cat > /dev/null; echo '{\"continue\": true}'", "");
    let mut watch = Watch::new(&lab);
    let mut told = Told::default();
    lab.write("project/one.txt", "x");
    watch.events();
    while told.counted == 0 {
        told.hear(&kept.recv_timeout(Duration::from_mins(1)).unwrap());
    }
    let first = told.spans;
    lab.write("project/two.txt", "x");
    watch.events();
    watch.end();
    while told.spans == first || told.counted != told.spans {
        told.hear(&kept.recv_timeout(Duration::from_mins(1)).unwrap_or_else(|_| panic!("{told:?}")));
    }
}

#[test]
fn an_async_hook_is_told_by_how_it_ended() {
    let (address, kept) = collector();
    let prometheus = free();
    let lab =
        Lab::new().set("OLLM_TELEMETRY_OTLP_ENDPOINT", &address).set("OLLM_TELEMETRY_PROMETHEUS_LISTEN", &prometheus);
    lab.user_hook("file_created", "sees", "cat > /dev/null; exit 3", r#", "async": true"#);
    let mut watch = Watch::new(&lab);
    lab.write("project/one.txt", "x");
    watch.events();
    let is_ours = |span: &Value| span["name"] == "hook sees";
    let hook = loop {
        let (_, body) = kept.recv_timeout(Duration::from_mins(1)).unwrap();
        let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned().unwrap_or_default();
        if let Some(span) = spans.into_iter().find(is_ours) {
            break span;
        }
    };
    assert_eq!(attribute(&hook, "ollm.hook.status"), &json!({"stringValue": "failed"}));
    assert_eq!(attribute(&hook, "process.exit.code"), &json!({"intValue": "3"}));
    let numbers = get(&prometheus, "GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(numbers.contains("status=\"failed\"}") && !numbers.contains("status=\"ok\"}"), "{numbers}");
}

#[test]
fn data_of_events_is_told_where_the_user_wants_that_and_never_with_secrets() {
    let (address, kept) = collector();
    let lab = Lab::new()
        .set("OLLM_TELEMETRY_OTLP_ENDPOINT", &address)
        .set("OLLM_TELEMETRY_OTLP_DATA", "true")
        .set("SOME_TOKEN", "sesame-open-4711");
    lab.user_hook("file_created", "sees", "cat > /dev/null; echo '{\"continue\": true}'", "");
    let mut watch = Watch::new(&lab);
    lab.write("project/telling-sesame-open-4711.txt", "x");
    watch.events();
    loop {
        let (_, body) = kept.recv_timeout(Duration::from_mins(1)).unwrap();
        assert!(!body.to_string().contains("sesame-open"), "{body}");
        let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned().unwrap_or_default();
        let mut data = spans.iter().filter_map(|span| attribute(span, "ollm.data")["stringValue"].as_str());
        if data.any(|data| data.contains("telling-[redacted:SOME_TOKEN].txt")) {
            return;
        }
    }
}

#[test]
fn prometheus_gets_numbers_and_nonsense_gets_no_more_than_an_answer() {
    let address = free();
    let lab = Lab::new().set("OLLM_TELEMETRY_PROMETHEUS_LISTEN", &address);
    lab.user_hook("file_created", "sees", "cat > /dev/null; echo '{\"continue\": true}'", "");
    let mut watch = Watch::new(&lab);
    lab.write("project/telling-name.txt", "x");
    watch.events();
    let ask = || get(&address, "GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n");
    eventually("the numbers", || {
        ask().contains(
            "ollm_hook_runs_total{hook=\"user:sees.json:file_created:sees\",event=\"file_created\",status=\"ok\"}",
        )
    });
    let answer = ask();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && !answer.contains("telling"), "{answer}");
    assert!(answer.contains("# TYPE ollm_hook_duration_seconds histogram"), "{answer}");
    assert!(get(&address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(get(&address, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    drop(TcpStream::connect(&address).unwrap());
    assert!(ask().starts_with("HTTP/1.1 200"));
}

#[test]
fn what_cannot_be_told_is_said_once_and_holds_nothing_up() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let lab = Lab::new()
        .set("OLLM_TELEMETRY_PROMETHEUS_LISTEN", &address)
        .set("OLLM_TELEMETRY_OTLP_ENDPOINT", "127.0.0.1:4318");
    let mut watch = Watch::new(&lab);
    watch.was_told(&format!("Prometheus cannot ask at {address}"));
    watch.was_told("an address begins with http:// or https://");
    watch.events();
    let lab = Lab::new()
        .set("OLLM_TELEMETRY_OTLP_ENDPOINT", "http://127.0.0.1:4318")
        .set("OTEL_EXPORTER_OTLP_HEADERS", "secret");
    Watch::new(&lab).was_told("OTEL_EXPORTER_OTLP_HEADERS must be name=value,name=value");
    // There is no listener at the address: spans are dropped, and the end does not wait for them.
    let lab = Lab::new().set("OLLM_TELEMETRY_OTLP_ENDPOINT", &format!("http://{}", free()));
    let mut watch = Watch::new(&lab);
    watch.events();
    assert_eq!(watch.end(), 130);
}
