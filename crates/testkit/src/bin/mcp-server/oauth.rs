//! Access control: an issuer of tokens on the same port, which follows the rules unless told otherwise.

use std::collections::HashMap;
use std::io;
use std::net::TcpStream;
use std::sync::Mutex;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::http::{Request, plain};
use crate::plan::Plan;
use crate::server::lock;

const JSON: &str = "Content-Type: application/json\r\nCache-Control: no-store\r\n";

/// What was granted so far.
#[derive(Default)]
pub(crate) struct Issuer {
    granted: Mutex<Granted>,
}

#[derive(Default)]
struct Granted {
    next: usize,
    clients: HashMap<String, String>,
    codes: HashMap<String, HashMap<String, String>>,
    /// How often each token was used, and for what it is good.
    access: HashMap<String, (usize, String)>,
    /// What each token that renews is good for.
    refresh: HashMap<String, String>,
}

impl Issuer {
    /// Whether a request may pass; each token is good for so many requests.
    pub(crate) fn admits(&self, request: &Request, plan: &Plan) -> bool {
        let mut granted = lock(&self.granted);
        let Some((uses, _)) = token(request).and_then(|token| granted.access.get_mut(token)) else { return false };
        *uses += 1;
        plan.token_uses.is_none_or(|most| *uses <= most)
    }

    /// The scope that a request lacks, if its sender is known.
    pub(crate) fn lacks(&self, request: &Request, plan: &Plan) -> Option<String> {
        let scope = plan.step_up.as_ref()?;
        let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let asks = message.pointer("/params/name").and_then(Value::as_str) == Some("add");
        let granted = lock(&self.granted);
        let (_, scopes) = granted.access.get(token(request)?)?;
        (asks && !scopes.split(' ').any(|one| one == scope)).then(|| scope.clone())
    }

    /// Answers requests to the issuer; returns whether this was one.
    pub(crate) fn answer(&self, request: &Request, plan: &Plan, stream: &mut TcpStream) -> io::Result<bool> {
        let origin = format!("http://{}", request.headers.get("host").map(String::as_str).unwrap_or_default());
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let body = String::from_utf8_lossy(&request.body);
        match (request.method.as_str(), path) {
            ("GET", path) if plan.fault("no-metadata") && path.starts_with("/.well-known/") => return Ok(false),
            ("GET", path) if path.starts_with("/.well-known/oauth-protected-resource") => {
                plain(stream, "200 OK", JSON, &resource(&origin, plan).to_string())?;
            }
            ("GET", "/.well-known/oauth-authorization-server") => {
                plain(stream, "200 OK", JSON, &metadata(&origin, plan).to_string())?;
            }
            ("POST", "/register") => {
                let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
                plan.note("register");
                plain(stream, "201 Created", JSON, &self.register(&asked).to_string())?;
            }
            ("GET", "/authorize") => self.authorize(&fields(query), &origin, plan, stream)?,
            ("POST", "/token") => {
                let mut asked = fields(&body);
                asked.extend(login(request));
                self.token(&asked, plan, stream)?;
            }
            ("POST", "/revoke") => {
                let token = fields(&body).remove("token").unwrap_or_default();
                let mut granted = lock(&self.granted);
                granted.refresh.remove(&token);
                granted.access.clear();
                plain(stream, "200 OK", JSON, "{}")?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn register(&self, asked: &Value) -> Value {
        let mut granted = lock(&self.granted);
        granted.next += 1;
        let id = format!("client-{}", granted.next);
        let redirect = asked.pointer("/redirect_uris/0").and_then(Value::as_str).unwrap_or_default();
        granted.clients.insert(id.clone(), redirect.to_owned());
        json!({"client_id": id, "redirect_uris": [redirect], "token_endpoint_auth_method": "none"})
    }

    /// Grants every valid request, as a person who agrees.
    fn authorize(
        &self,
        asked: &HashMap<String, String>,
        origin: &str,
        plan: &Plan,
        stream: &mut TcpStream,
    ) -> io::Result<()> {
        let field = |name: &str| asked.get(name).map(String::as_str).unwrap_or_default();
        let mut granted = lock(&self.granted);
        let known = granted.clients.get(field("client_id")).is_some_and(|redirect| redirect == field("redirect_uri"));
        let known = known || field("client_id") == "known-client" || field("client_id").starts_with("https://");
        plan.note(&format!("authorize {} for {}", field("client_id"), field("scope")));
        let sound = known
            && field("response_type") == "code"
            && field("code_challenge_method") == "S256"
            && !field("state").is_empty()
            && field("resource").starts_with(origin);
        if !sound {
            return plain(stream, "400 Bad Request", "", "this makes no sense");
        }
        granted.next += 1;
        let code = format!("code {}", granted.next);
        granted.codes.insert(code.clone(), asked.clone());
        let iss = match () {
            () if plan.fault("iss") => "&iss=https://evil.example".to_owned(),
            // Only metadata could have announced it.
            () if plan.fault("no-metadata") => String::new(),
            () => format!("&iss={origin}"),
        };
        let answer = if plan.fault("denied") {
            "error=access_denied&error_description=not%20today".to_owned()
        } else {
            format!("code={}", code.replace(' ', "%20"))
        };
        let place = format!("{}?{answer}&state={}{iss}", field("redirect_uri"), field("state"));
        plain(stream, "302 Found", &format!("Location: {place}\r\n"), "")
    }

    fn token(&self, asked: &HashMap<String, String>, plan: &Plan, stream: &mut TcpStream) -> io::Result<()> {
        plan.note(&format!("token {}", asked.get("grant_type").map(String::as_str).unwrap_or_default()));
        let mut granted = lock(&self.granted);
        let field = |name: &str| asked.get(name).map(String::as_str).unwrap_or_default();
        if field("client_id") == "known-client" && plan.client_secret.as_ref() != asked.get("client_secret") {
            let why = format!("{} is not the word", field("client_secret"));
            let answer = json!({"error": "invalid_client", "error_description": why});
            return plain(stream, "401 Unauthorized", JSON, &answer.to_string());
        }
        let mut scope = String::new();
        let sound = match field("grant_type") {
            "authorization_code" => granted.codes.remove(field("code")).is_some_and(|wanted| {
                scope = wanted.get("scope").cloned().unwrap_or_default();
                wanted.get("code_challenge").map(String::as_str) == Some(&*challenge(field("code_verifier")))
                    && ["redirect_uri", "client_id", "resource"]
                        .iter()
                        .all(|name| wanted.get(*name) == asked.get(*name))
            }),
            "refresh_token" if plan.fault("down") => return plain(stream, "503 Service Unavailable", "", ""),
            "refresh_token" => granted.refresh.remove(field("refresh_token")).is_some_and(|granted| {
                scope = granted;
                true
            }),
            _ => false,
        };
        if !sound {
            return plain(stream, "400 Bad Request", JSON, &json!({"error": "invalid_grant"}).to_string());
        }
        granted.next += 1;
        let (access, refresh) = (format!("access-secret-{}", granted.next), format!("refresh-secret-{}", granted.next));
        granted.access.insert(access.clone(), (0, scope.clone()));
        granted.refresh.insert(refresh.clone(), scope.clone());
        let life = plan.token_life.unwrap_or(3600);
        let answer = json!({"access_token": access, "token_type": "Bearer", "expires_in": life, "refresh_token": refresh, "scope": scope});
        plain(stream, "200 OK", JSON, &answer.to_string())
    }
}

/// The token of a request.
fn token(request: &Request) -> Option<&str> {
    request.headers.get("authorization")?.strip_prefix("Bearer ")
}

/// The identity that a client claims in the head of its request.
fn login(request: &Request) -> Vec<(String, String)> {
    let words = request.headers.get("authorization").and_then(|value| value.strip_prefix("Basic "));
    let words = words.map(|words| String::from_utf8_lossy(&from_base64(words)).into_owned()).unwrap_or_default();
    let Some((id, secret)) = words.split_once(':') else { return Vec::new() };
    vec![("client_id".to_owned(), decoded(id)), ("client_secret".to_owned(), decoded(secret))]
}

fn from_base64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for value in text.bytes().filter_map(|byte| LETTERS.iter().position(|letter| *letter == byte)) {
        bits = bits << 6 | u32::try_from(value).unwrap_or_default();
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 255).unwrap_or_default());
        }
    }
    bytes
}

/// The header that says what else must be granted.
pub(crate) fn scope_header(scope: &str) -> String {
    format!("WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"{scope}\"\r\n")
}

/// The header that says where to log in.
pub(crate) fn challenge_header(request: &Request) -> String {
    let host = request.headers.get("host").map(String::as_str).unwrap_or_default();
    format!("WWW-Authenticate: Bearer resource_metadata=\"http://{host}/.well-known/oauth-protected-resource/mcp\"\r\n")
}

fn resource(origin: &str, plan: &Plan) -> Value {
    let resource = if plan.fault("resource") { "https://evil.example/mcp".to_owned() } else { format!("{origin}/mcp") };
    let issuer = match () {
        () if plan.fault("private") => "https://10.0.0.1",
        () if plan.fault("plain") => "http://login.example",
        () => origin,
    };
    json!({"resource": resource, "authorization_servers": [issuer], "scopes_supported": ["tools"]})
}

fn metadata(origin: &str, plan: &Plan) -> Value {
    let issuer = if plan.fault("issuer") { "https://evil.example" } else { origin };
    let token = if plan.fault("token") { "http://login.example/token".to_owned() } else { format!("{origin}/token") };
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{origin}/authorize"),
        "token_endpoint": token,
        "registration_endpoint": if plan.fault("unregistered") { Value::Null } else { format!("{origin}/register").into() },
        "revocation_endpoint": format!("{origin}/revoke"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": match () {
            () if plan.fault("no-pkce") => json!(["plain"]),
            () if plan.fault("pkce-unsaid") => Value::Null,
            () if plan.fault("pkce-empty") => json!([]),
            () => json!(["S256"]),
        },
        "authorization_response_iss_parameter_supported": true,
        "client_id_metadata_document_supported": plan.fault("metadata"),
        "token_endpoint_auth_methods_supported": if plan.fault("post") { ["client_secret_post"] } else { ["client_secret_basic"] },
    })
}

fn challenge(verifier: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in Sha256::digest(verifier.as_bytes()).chunks(3) {
        let bits = chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            let index = (bits >> (18 - 6 * place)) & 63;
            text.extend(LETTERS.get(index as usize).map(|letter| char::from(*letter)));
        }
    }
    text
}

fn fields(text: &str) -> HashMap<String, String> {
    text.split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits: String = rest.by_ref().take(2).map(char::from).collect();
                u8::from_str_radix(&digits, 16).unwrap_or(b'?')
            }
            byte => byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
