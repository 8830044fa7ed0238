//! How servers are reached: models, http hooks and MCP servers trust the same authorities and take the same proxies.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::json;
use testkit::{ModelReply, ModelServer, RemoteServer, answer_events};
use tokio_rustls::TlsAcceptor;

use crate::lab::{Lab, Ran};

/// Those who are reached.
const ALL: [&str; 3] = ["model", "hook", "mcp"];

/// A model, a hook and an MCP server behind TLS, with certificates of an authority that only the test knows.
struct Servers {
    authority: String,
    /// Where each of [`ALL`] is.
    fronts: [SocketAddr; 3],
    _mcp: RemoteServer,
}

impl Servers {
    fn start() -> Servers {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "the authority of the test");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = ["127.0.0.1", "model.invalid", "hook.invalid", "mcp.invalid"].map(str::to_owned);
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let tls = TlsAcceptor::from(Arc::new(config));
        let reply = ModelReply::stream(&answer_events("hello", &[], 5), 99);
        let model = ModelServer::start(vec![reply; 4]).unwrap();
        let mcp = RemoteServer::start(&["--http"]).unwrap();
        let hook = answering(r#"{"continue": true, "systemMessage": "hello"}"#);
        let behind = [host(model.url()), hook.to_string(), host(&mcp.url)];
        let fronts = behind.map(|server| front(tls.clone(), server));
        Servers { authority: issuer.pem(), fronts, _mcp: mcp }
    }

    /// The address of one of [`ALL`].
    fn url(&self, name: &str) -> String {
        format!("https://{}", self.front(name))
    }

    fn front(&self, name: &str) -> SocketAddr {
        self.fronts[ALL.iter().position(|known| *known == name).unwrap()]
    }

    /// The file with the authority's certificate.
    fn authority(&self, lab: &Lab) -> PathBuf {
        lab.write("authority.pem", &self.authority)
    }
}

/// The host and port of an address.
fn host(url: &str) -> String {
    url.trim_start_matches("http://").split('/').next().unwrap().to_owned()
}

/// A server that takes every request and says this.
fn answering(body: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut reader = BufReader::new(client.try_clone().unwrap());
            let length = head(&mut reader).iter().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
            });
            let _ = reader.read_exact(&mut vec![0; length.unwrap_or(0)]);
            let _ = write!(client, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        }
    });
    address
}

/// The lines of a request before its body.
fn head(reader: &mut impl BufRead) -> Vec<String> {
    reader.lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect()
}

/// Takes TLS off what comes, and passes it on.
fn front(tls: TlsAcceptor, server: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((client, _)) = listener.accept().await {
                let (tls, server) = (tls.clone(), server.clone());
                tokio::spawn(async move {
                    let mut client = tls.accept(client).await?;
                    let mut server = tokio::net::TcpStream::connect(server).await?;
                    tokio::io::copy_bidirectional(&mut client, &mut server).await
                });
            }
        });
    });
    address
}

/// A proxy that carries what it is asked for to where `target` says, and writes down the first line of each request.
pub(crate) fn proxy(target: impl Fn(&str) -> String + Send + 'static) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, asked) = channel();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let mut reader = BufReader::new(client.try_clone().unwrap());
            let line = head(&mut reader).into_iter().next().unwrap_or_default();
            sender.send(line.clone()).unwrap();
            let server = TcpStream::connect(target(line.split(' ').nth(1).unwrap_or_default())).unwrap();
            (&client).write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
            let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut from, &mut to));
            thread::spawn(move || std::io::copy(&mut reader.by_ref(), &mut &server));
        }
    });
    (address, asked)
}

/// Reaches one of [`ALL`] at an address.
fn reach(lab: &Lab, name: &str, url: &str) -> Ran {
    match name {
        "model" => lab.run(&["run", "go", "--model", &format!("openai:m@{url}/v1")]),
        "hook" => {
            lab.write("home/.ollm/config.yaml", "hooks:\n  http:\n    allow: [\"127.0.0.1\"]\n");
            let hook = json!({"name": "post", "action": {"type": "http", "url": url}});
            lab.user("post.json", json!({"hooks": {"before_agent": [hook]}}).to_string());
            lab.event(r#"{"event": "before_agent", "data": {"prompt": "go"}}"#)
        }
        _ => {
            let declared = json!({"mcpServers": {"s": {"url": format!("{url}/mcp")}}});
            lab.write("home/.ollm/settings/mcp.json", declared.to_string());
            lab.run(&["mcp", "call", "s", "echo", "--args", r#"{"text": "hello"}"#])
        }
    }
}

/// Everything that was said.
fn said(ran: &Ran) -> String {
    format!("{}{}", ran.stdout, ran.stderr)
}

/// Whether one of [`ALL`] was reached.
fn reached(ran: &Ran) -> bool {
    ran.code == 0 && said(ran).contains("hello")
}

#[test]
fn a_private_authority_vouches_for_models_hooks_and_mcp_servers_alike() {
    let (servers, others) = (Servers::start(), rcgen::generate_simple_self_signed(["x".to_owned()]).unwrap());
    for name in ALL {
        let lab = Lab::new();
        let file = servers.authority(&lab);
        let ran = reach(&lab.set("SSL_CERT_FILE", file.to_str().unwrap()), name, &servers.url(name));
        assert!(reached(&ran), "{name}: {ran:?}");

        let lab = Lab::new();
        let folder = servers.authority(&lab).parent().unwrap().to_owned();
        let ran = reach(&lab.set("SSL_CERT_DIR", folder.to_str().unwrap()), name, &servers.url(name));
        assert!(reached(&ran), "{name}: {ran:?}");

        let ran = reach(&Lab::new(), name, &servers.url(name));
        assert!(!reached(&ran) && said(&ran).contains("certificate"), "{name}: {ran:?}");

        let lab = Lab::new();
        let file = lab.write("others.pem", others.cert.pem()).display().to_string();
        let ran = reach(&lab.set("SSL_CERT_FILE", &file), name, &servers.url(name));
        let expected = format!(
            "the server's certificate comes from an authority that SSL_CERT_FILE ({file}) does not hold; if you trust"
        );
        assert!(!reached(&ran) && said(&ran).contains(&expected), "{name}: {ran:?}");

        let lab = Lab::new();
        let file = lab.root.join("missing.pem").display().to_string();
        let ran = reach(&lab.set("SSL_CERT_FILE", &file), name, &servers.url(name));
        let expected = format!("SSL_CERT_FILE names {file}, which cannot be read: No such file");
        assert!(!reached(&ran) && said(&ran).contains(&expected), "{name}: {ran:?}");
    }
}

#[test]
fn one_proxy_serves_models_hooks_and_mcp_servers_and_no_proxy_excludes_all_of_them() {
    let servers = Servers::start();
    let fronts = servers.fronts;
    let (address, asked) = proxy(move |target| {
        let at = ALL.iter().position(|name| target == format!("{name}.invalid:443")).unwrap();
        fronts[at].to_string()
    });
    for name in ALL {
        let url = format!("https://{name}.invalid");
        let lab = || {
            let lab = Lab::new();
            let file = servers.authority(&lab).display().to_string();
            lab.set("SSL_CERT_FILE", &file).set("HTTPS_PROXY", &format!("http://me:hush-hush@{address}"))
        };
        let ran = reach(&lab(), name, &url);
        assert!(reached(&ran), "{name}: {ran:?}");
        let lines: Vec<String> = asked.try_iter().collect();
        assert!(!lines.is_empty(), "{name} took another way");
        assert!(lines.iter().all(|line| *line == format!("CONNECT {name}.invalid:443 HTTP/1.1")), "{lines:?}");

        let ran = reach(&lab().set("no_proxy", "example.com, .invalid:443"), name, &url);
        assert!(!reached(&ran), "{name}: {ran:?}");
        assert_eq!(asked.try_iter().collect::<Vec<_>>(), Vec::<String>::new(), "{name} was excluded");

        // This machine is reached without it.
        let ran = reach(&lab(), name, &servers.url(name));
        assert!(reached(&ran), "{name}: {ran:?}");
        assert_eq!(asked.try_iter().collect::<Vec<_>>(), Vec::<String>::new(), "{name} is here");

        let wrong = lab().set("https_proxy", "http://me:hush-hush@no such place");
        let ran = reach(&wrong, name, &url);
        let expected = "the variable https_proxy names no proxy; write for instance http://HOST:PORT, or unset it";
        assert!(!reached(&ran) && said(&ran).contains(expected), "{name}: {ran:?}");
        assert!(!said(&ran).contains("hush"), "{name}: {ran:?}");
    }
}

#[test]
fn a_hook_that_is_a_program_meets_neither_certificates_nor_proxies() {
    let lab = Lab::with_hook("before_agent", "quiet", "echo '{\"continue\": true}'")
        .set("SSL_CERT_FILE", "/nowhere/at/all.pem")
        .set("all_proxy", "nonsense of its own");
    let ran = lab.event(r#"{"event": "before_agent", "data": {"prompt": "go"}}"#);
    assert_eq!((ran.hook("quiet")["status"].as_str(), ran.stderr.as_str(), ran.code), (Some("ok"), "", 0), "{ran:?}");
}
