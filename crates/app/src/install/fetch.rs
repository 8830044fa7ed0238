//! Fetches a file from a server, with limits on its size and on every wait.

use std::io::Read;
use std::ops::ControlFlow;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use ollm_net::{Network, tls_failure};
use ollm_protocol::Code;
use ureq::http::Response;
use ureq::http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, DATE, ETAG, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, LOCATION,
};
use ureq::{Agent, Body};

use super::source::{check_address, shown};
use crate::app_context::AppContext;
use crate::error::AppError;

const CONNECT: Duration = Duration::from_secs(15);
/// How long a server may be silent.
const SILENCE: Duration = Duration::from_secs(30);
const WHOLE: Duration = Duration::from_mins(10);
/// How often the waiting caller is asked whether to continue.
const PERIOD: Duration = Duration::from_millis(50);
const MOST_REDIRECTS: usize = 5;
const LONGEST_HEAD: usize = 64 << 10;

/// Receives the progress of a fetch several times a second: the file, the bytes so far, and all bytes (zero if
/// unknown). Returns whether to continue.
pub type Progress<'a> = &'a mut dyn FnMut(&str, u64, u64) -> ControlFlow<()>;

/// The values by which a server tells whether a file has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Validators {
    pub(super) etag: Option<String>,
    pub(super) modified: Option<String>,
}

/// Whether to follow a server's redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Redirects {
    /// Refuse them: the file must come from the address that the person named.
    Refused,
    /// Follow them to other encrypted addresses, which the person is told.
    Followed,
}

/// A request for a file.
#[derive(Clone, Debug)]
pub(super) struct FetchRequest<'a> {
    pub(super) url: &'a str,
    pub(super) most: u64,
    pub(super) redirects: Redirects,
    /// The validators of our present copy.
    pub(super) known: Option<&'a Validators>,
}

/// The request with owned data, for its thread.
struct OwnedWanted {
    url: String,
    most: u64,
    redirects: Redirects,
    known: Option<Validators>,
}

impl FetchRequest<'_> {
    fn into_owned(self) -> OwnedWanted {
        let FetchRequest { url, most, redirects, known } = self;
        OwnedWanted { url: url.to_owned(), most, redirects, known: known.cloned() }
    }
}

impl OwnedWanted {
    fn borrowed(&self) -> FetchRequest<'_> {
        FetchRequest { url: &self.url, most: self.most, redirects: self.redirects, known: self.known.as_ref() }
    }
}

/// A message of the thread.
enum FetchMessage {
    Step(String, u64, u64),
    Done(Result<FetchResult, AppError>),
}

/// The result of a fetch.
#[derive(Debug)]
pub(super) enum FetchResult {
    /// The file has not changed.
    Unchanged,
    /// The file, and the address that it finally came from.
    File { bytes: Vec<u8>, validators: Validators, from: String },
}

/// Fetches a file on a thread. After an interruption the thread is abandoned, so that a silent server delays no caller.
pub(super) fn fetch(
    wanted: &FetchRequest<'_>,
    context: &AppContext,
    progress: Progress<'_>,
) -> Result<FetchResult, AppError> {
    let (sender, steps) = channel();
    let (owned, network) = (wanted.clone().into_owned(), context.network.clone());
    thread::spawn(move || {
        let mut tell = |what: &str, done, total| drop(sender.send(FetchMessage::Step(what.to_owned(), done, total)));
        let fetched = fetch_from(&owned.borrowed(), &network, &mut tell);
        // An interrupted caller no longer receives the result.
        let _ = sender.send(FetchMessage::Done(fetched));
    });
    let mut step = (format!("fetching {}", shown(wanted.url)), 0, 0);
    loop {
        if progress(&step.0, step.1, step.2).is_break() {
            return Err(failed(wanted.url, "it was interrupted"));
        }
        match steps.recv_timeout(PERIOD) {
            Ok(FetchMessage::Step(what, done, total)) => step = (what, done, total),
            Ok(FetchMessage::Done(fetched)) => return fetched,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(failed(wanted.url, "its thread ended early")),
        }
    }
}

type Tell<'a> = &'a mut dyn FnMut(&str, u64, u64);

fn fetch_from(wanted: &FetchRequest<'_>, network: &Network, tell: Tell<'_>) -> Result<FetchResult, AppError> {
    let mut url = wanted.url.to_owned();
    for _ in 0..=MOST_REDIRECTS {
        check_address(&url).map_err(|why| {
            if url == wanted.url {
                AppError::usage(format!("`{}` {why}", shown(&url)))
            } else {
                failed(wanted.url, &format!("it leads to `{}`, which {why}", shown(&url)))
            }
        })?;
        let mut response = ask(&url, wanted.known, network)?;
        match response.status().as_u16() {
            200 => return receive(&mut response, &url, wanted.most, tell),
            304 if wanted.known.is_some() => return Ok(FetchResult::Unchanged),
            301 | 302 | 303 | 307 | 308 => {
                let place = header(&response, &LOCATION).unwrap_or_default();
                let next = joined(&url, &place);
                if wanted.redirects == Redirects::Refused {
                    let message = format!("{} sends us to {}", shown(&url), shown(&next));
                    return Err(AppError::new(Code::NotFetched, message).hint("name that address if you trust it"));
                }
                if url.starts_with("https://") && !next.starts_with("https://") {
                    let message = format!("{} sends us to {}, which is not encrypted", shown(&url), shown(&next));
                    return Err(AppError::new(Code::NotFetched, message));
                }
                url = next;
            }
            code => return Err(failed(&url, &format!("the server answered with status {code}"))),
        }
    }
    Err(failed(wanted.url, "the server sends us from one address to the next"))
}

/// An address that is relative to the file that contains it.
pub(super) fn joined(base: &str, place: &str) -> String {
    let scheme = place.split(['/', '?', '#']).next().unwrap_or_default();
    if scheme.ends_with(':') {
        return place.to_owned();
    }
    if let (true, Some((scheme, _))) = (place.starts_with("//"), base.split_once("//")) {
        return format!("{scheme}{place}");
    }
    let start = base.find("://").map_or(0, |at| at + 3);
    let path = base.get(start..).and_then(|rest| rest.find('/')).map_or(base.len(), |at| start + at);
    if place.starts_with('/') {
        return format!("{}{place}", base.get(..path).unwrap_or(base));
    }
    let plain = base.split(['?', '#']).next().unwrap_or(base);
    let folder = plain.rfind('/').filter(|end| *end >= path).map_or(plain.len(), |end| end);
    format!("{}/{place}", plain.get(..folder).unwrap_or(plain))
}

fn ask(url: &str, known: Option<&Validators>, network: &Network) -> Result<Response<Body>, AppError> {
    let config = Agent::config_builder()
        .timeout_global(Some(WHOLE))
        .timeout_connect(Some(CONNECT))
        .timeout_resolve(Some(CONNECT))
        .timeout_per_read(Some(SILENCE))
        .timeout_per_write(Some(SILENCE))
        .max_redirects(0)
        .http_status_as_error(false)
        .max_response_header_size(LONGEST_HEAD)
        .max_idle_connections(0)
        .user_agent(concat!("ollm/", env!("CARGO_PKG_VERSION")))
        .accept("*/*")
        .accept_encoding("identity");
    let agent = network.agent(config, url).map_err(|error| failed(url, &error.to_string()))?;
    let mut request = agent.get(url);
    let marks = known.map(|known| [(IF_NONE_MATCH, &known.etag), (IF_MODIFIED_SINCE, &known.modified)]);
    for (name, value) in marks.into_iter().flatten() {
        if let Some(value) = value {
            request = request.header(name, value);
        }
    }
    request.call().map_err(|error| unreached(url, &error))
}

fn receive(response: &mut Response<Body>, url: &str, most: u64, tell: Tell<'_>) -> Result<FetchResult, AppError> {
    if let Some(packed) = header(response, &CONTENT_ENCODING).filter(|kind| !kind.eq_ignore_ascii_case("identity")) {
        return Err(failed(url, &format!("the answer is packed as `{packed}`, which was not asked for")));
    }
    let said = header(response, &CONTENT_LENGTH).and_then(|length| length.trim().parse::<u64>().ok());
    let too_large = || failed(url, &format!("it has more than {} MiB", most >> 20));
    if said.is_some_and(|said| said > most) {
        return Err(too_large());
    }
    let modified =
        header(response, &LAST_MODIFIED).filter(|modified| is_lasting(modified, header(response, &DATE).as_deref()));
    let validators = Validators { etag: header(response, &ETAG), modified };
    let mut body = response.body_mut().as_reader();
    let (mut bytes, mut room) = (Vec::new(), vec![0; 64 << 10]);
    let what = url.rsplit('/').next().unwrap_or_default().to_owned();
    loop {
        let count = body.read(&mut room).map_err(|error| failed(url, &format!("the answer was cut: {error}")))?;
        if count == 0 {
            break;
        }
        bytes.extend_from_slice(room.get(..count).unwrap_or_default());
        if bytes.len() as u64 > most {
            return Err(too_large());
        }
        tell(&what, bytes.len() as u64, said.unwrap_or_default());
    }
    if let Some(said) = said.filter(|said| *said != bytes.len() as u64) {
        return Err(failed(url, &format!("the answer was cut: {} of {said} bytes came", bytes.len())));
    }
    Ok(FetchResult::File { bytes, validators, from: url.to_owned() })
}

/// Whether a modification time identifies the file that was sent. Within the same second the file may have been written
/// again.
fn is_lasting(modified: &str, sent: Option<&str>) -> bool {
    const TICK: i64 = 2;
    let seconds = |text: &str| jiff::fmt::rfc2822::parse(text).ok().map(|time| time.timestamp().as_second());
    let (modified, sent) = (seconds(modified), sent.and_then(seconds));
    modified.zip(sent).is_some_and(|(modified, sent)| sent.saturating_sub(modified) >= TICK)
}

fn header(response: &Response<Body>, name: &HeaderName) -> Option<String> {
    response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

fn unreached(url: &str, error: &ureq::Error) -> AppError {
    failed(url, &tls_failure(error).unwrap_or_else(|| error.to_string()))
}

fn failed(url: &str, why: &str) -> AppError {
    AppError::new(Code::NotFetched, format!("{} was not fetched: {why}", shown(url)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_stands_for_a_file_only_if_it_was_over_when_the_file_was_sent() {
        let modified = "Wed, 18 Nov 2026 06:20:45 GMT";
        for (sent, lasting) in [
            (Some("Wed, 18 Nov 2026 06:20:47 GMT"), true),
            (Some("Thu, 19 Nov 2026 00:00:00 GMT"), true),
            (Some("Wed, 18 Nov 2026 06:20:45 GMT"), false),
            (Some("Wed, 18 Nov 2026 06:20:40 GMT"), false),
            (Some("today"), false),
            (None, false),
        ] {
            assert_eq!(is_lasting(modified, sent), lasting, "{sent:?}");
        }
        assert!(!is_lasting("yesterday", Some(modified)));
    }

    #[test]
    fn places_are_joined_as_in_pages() {
        for (base, place, whole) in [
            ("https://e.org/a/index.json", "x.zip", "https://e.org/a/x.zip"),
            ("https://e.org/a/index.json?x=/y", "x.zip", "https://e.org/a/x.zip"),
            ("https://e.org", "x.zip", "https://e.org/x.zip"),
            ("https://e.org/a/", "b/x.zip", "https://e.org/a/b/x.zip"),
            ("https://e.org/a/b", "/x.zip", "https://e.org/x.zip"),
            ("https://e.org/a", "https://f.org/x", "https://f.org/x"),
            ("https://e.org/a", "//f.org/x", "https://f.org/x"),
            ("https://e.org/a", "/y.zip?from=https://f.org/x", "https://e.org/y.zip?from=https://f.org/x"),
        ] {
            assert_eq!(joined(base, place), whole, "{base} {place}");
        }
    }
}
