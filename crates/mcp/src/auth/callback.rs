//! The local port that the browser returns to. It serves one page on this machine only, and rejects requests without
//! our `state`.

use std::io;
use std::time::Duration;

use reqwest::Url;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// How long one wait for a browser takes before the caller checks other things.
const GLANCE: Duration = Duration::from_millis(200);
/// How long a browser may take to send its request.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest request.
const LONGEST: usize = 16 << 10;
/// The path of the page, unless a redirect address is registered with the issuer.
const PATH: &str = "/callback";

const DONE: &str = "You can close this page and go back to the terminal.";
const NOT_OURS: &str = "This is not what was asked for. Nothing happened.";

pub(super) struct Callback {
    listener: TcpListener,
    port: u16,
    redirect: String,
    path: String,
}

/// What the browser's request contains.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CallbackQuery {
    pub(super) state: String,
    pub(super) code: Option<String>,
    pub(super) issuer: Option<String>,
    pub(super) error: Option<String>,
}

impl CallbackQuery {
    /// Reads the query of an address that the browser was sent to.
    pub(super) fn of(address: &str) -> Option<CallbackQuery> {
        let url = Url::parse(address.trim()).ok()?;
        let find = |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
        let error = find("error").map(|error| match find("error_description") {
            Some(about) => format!("{error}: {about}"),
            None => error,
        });
        Some(CallbackQuery { state: find("state").unwrap_or_default(), code: find("code"), issuer: find("iss"), error })
    }
}

impl Callback {
    /// Listens on a port, or on the port of the address that is registered with the issuer.
    pub(super) async fn listen(port: Option<u16>, known: Option<&str>) -> io::Result<Callback> {
        let known = known.and_then(|known| Some((known, Url::parse(known).ok()?)));
        let port = known.as_ref().and_then(|(_, url)| url.port_or_known_default()).or(port);
        let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(0))).await?;
        let port = listener.local_addr()?.port();
        let (redirect, path) = match known {
            Some((known, url)) => (known.to_owned(), url.path().to_owned()),
            None => (format!("http://127.0.0.1:{port}{PATH}"), PATH.to_owned()),
        };
        Ok(Callback { listener, port, redirect, path })
    }

    /// The address that the issuer redirects the browser to.
    pub(super) fn redirect(&self) -> String {
        self.redirect.clone()
    }

    /// The next request for the page, if one comes soon.
    pub(super) async fn next(&self, state: &str) -> Option<CallbackQuery> {
        let (mut stream, _) = timeout(GLANCE, self.listener.accept()).await.ok()?.ok()?;
        let request = timeout(PATIENCE, head(&mut stream)).await.ok()?.ok()?;
        let heard = self.read(&request);
        let (status, text) = match &heard {
            None => ("404 Not Found", NOT_OURS),
            Some(heard) if heard.state != state => ("400 Bad Request", NOT_OURS),
            Some(_) => ("200 OK", DONE),
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
             Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{text}",
            text.len()
        );
        let _ = timeout(PATIENCE, stream.write_all(answer.as_bytes())).await;
        let _ = stream.shutdown().await;
        heard
    }

    /// Reads a request. Returns `None` for another page, and for another host name that was made to resolve to this
    /// machine.
    fn read(&self, request: &str) -> Option<CallbackQuery> {
        let mut lines = request.lines();
        let mut words = lines.next()?.split(' ');
        let target = (words.next() == Some("GET")).then(|| words.next()).flatten()?;
        let host = lines.filter_map(|line| line.split_once(':')).find(|(name, _)| name.eq_ignore_ascii_case("host"));
        let host = host.map(|(_, value)| value.trim().to_owned())?;
        let ours = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        let path = target.split('?').next().unwrap_or_default();
        (ours.contains(&host) && path == self.path)
            .then(|| CallbackQuery::of(&format!("http://{host}{target}")))
            .flatten()
    }
}

async fn head(stream: &mut TcpStream) -> io::Result<String> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") && bytes.len() < LONGEST {
        match stream.read(&mut chunk).await? {
            0 => break,
            count => bytes.extend_from_slice(chunk.get(..count).unwrap_or_default()),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_our_page_on_our_host_is_heard() {
        let callback = Callback::listen(None, None).await.unwrap();
        let port = callback.port;
        let request = |line: &str, host: &str| format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let here = format!("127.0.0.1:{port}");
        let heard = callback.read(&request("GET /callback?code=c%20d&state=s&iss=i", &here)).unwrap();
        let wanted =
            CallbackQuery { state: "s".into(), code: Some("c d".into()), issuer: Some("i".into()), error: None };
        assert_eq!(heard, wanted);
        for (line, host) in [
            ("GET /favicon.ico", here.as_str()),
            ("POST /callback?code=c&state=s", &here),
            ("GET /callback?code=c&state=s", "evil.example"),
            ("GET /callback?code=c&state=s", "127.0.0.1:1"),
            ("GET http://evil/callback?code=c", &here),
            ("", &here),
        ] {
            assert_eq!(callback.read(&request(line, host)), None, "{line} {host}");
        }
    }

    #[tokio::test]
    async fn the_page_an_issuer_knows_is_listened_for() {
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let known = format!("http://localhost:{port}/oauth/back");
        let callback = Callback::listen(Some(1), Some(&known)).await.unwrap();
        assert_eq!((callback.redirect(), callback.port), (known, port));
        let heard =
            |path: &str| callback.read(&format!("GET {path}?state=s HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n"));
        assert!(heard("/oauth/back").is_some() && heard("/callback").is_none());
    }
}
