//! `ollm mcp login` and `logout`: logs in to servers on the web that require it, and out of them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ollm_app::servers::{DeclaredServer, Servers, tokens};
use ollm_app::{AppContext, AppError, refuse_agents};
use ollm_catalog::{Address, ServerSpec};
use ollm_mcp::{Grant, Login, LoginError, LoginRequest, Oauth, PersonInput, log_out};
use ollm_protocol::{Code, units};
use ollm_store::{Redactor, one_line};
use serde_json::{Value, json};

use crate::arguments::mcp::LoginArguments;
use crate::ask::{Asker, typed};
use crate::error::{ErrorKind, Failure, OK};
use crate::open;
use crate::output::Output;
use crate::tui::screen::{AnswerKind, Look, OpenQuestion};

/// How long a person may take in the browser.
const PATIENCE: Duration = Duration::from_mins(5);

pub(super) fn run(arguments: &LoginArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(context, "log in to servers")?;
    let patience = match arguments.timeout.as_deref() {
        None => PATIENCE,
        Some(text) => units::duration(text).filter(|time| !time.is_zero()).ok_or_else(|| {
            Failure::new(Code::InvalidValue, format!("--timeout must be a time such as 90s, not {text}"))
        })?,
    };
    let servers = Servers::load(context)?;
    servers.tell_problems(output);
    let known = servers.find(&arguments.name)?;
    // The server names the page for the login, so it needs the same trust as for a start.
    if let Some(error) = servers.refusal(known) {
        return Err(error.into());
    }
    let declared = wanted(known, &servers)?;
    let exact = !arguments.scope.is_empty();
    let scopes = if exact { arguments.scope.clone() } else { declared.oauth.scopes.clone() };
    let wanted = LoginRequest { oauth: Oauth { scopes, ..declared.oauth }, exact, ..declared };
    let failed = |error: LoginError| failed(known, &error, wanted.oauth.client_secret.as_deref());
    let began = Instant::now();
    output.busy("finding out where to log in");
    let login = Login::begin(&wanted, &file(context), patience).map_err(failed)?;
    output.idle();
    show(&login, arguments, context, output);
    let (asker, text) = (output.asker().clone(), question(&login, &arguments.name));
    let mut dialog = opened(&text, &asker);
    let pasted = || match dialog.as_ref().map(OpenQuestion::look) {
        Some(Look::Closed) => PersonInput::GivenUp,
        Some(Look::Answered(address)) => {
            let again = format!("{text}\n\nWas the address that you pasted the wrong one? Then paste another.");
            dialog = opened(&again, &asker);
            PersonInput::Address(address)
        }
        None if asker.is_there() => typed().map_or(PersonInput::Nothing, PersonInput::Address),
        Some(Look::Open) | None => PersonInput::Nothing,
    };
    let left = patience.saturating_sub(began.elapsed());
    let grant = login.finish(left, pasted, |text| output.tell(text)).map_err(failed)?;
    told(known, &grant, arguments.json, output)
}

pub(super) fn out(name: &str, as_json: bool, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(context, "log out of servers")?;
    let servers = Servers::load(context)?;
    let known = servers.find(name)?;
    let forgotten = log_out(&wanted(known, &servers)?, &file(context));
    let said = match &forgotten {
        Ok(Some(grant)) => format!("server `{name}`: logged out at {}", grant.issuer),
        Ok(None) => format!("server `{name}`: no login to remove"),
        Err(LoginError::File(why)) => return Err(Failure::new(Code::NotWritten, format!("server `{name}`: {why}"))),
        Err(why) => {
            format!("server `{name}`: what was granted is forgotten here, but the issuer could not be told: {why}")
        }
    };
    output.tell(&said);
    if as_json {
        output.pretty_json(&json!({"server": name, "loggedOut": !matches!(forgotten, Ok(None))}))?;
    }
    Ok(if forgotten.is_err() { ErrorKind::Environment as u8 } else { OK })
}

fn file(context: &AppContext) -> PathBuf {
    tokens(context)
}

/// The declared address to log in at, and the declared identity.
fn wanted(known: &DeclaredServer, servers: &Servers<'_>) -> Result<LoginRequest, Failure> {
    let (spec, missing) = known.expanded(servers);
    if let Some(problem) = missing.iter().find(|problem| problem.field.contains(".oauth.")) {
        return Err(AppError::from(problem).into());
    }
    let oauth = spec.oauth.clone().unwrap_or_default();
    Ok(LoginRequest { url: address(spec)?, oauth, exact: false, network: servers.context.network.clone() })
}

/// The address of the server. A server that we start ourselves needs no login.
fn address(spec: ServerSpec) -> Result<String, Failure> {
    match spec.address {
        Address::Url { url, headers, .. } => {
            if headers.0.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
                let text = format!("server `{}` has an `Authorization` header in its declaration", spec.name);
                return Err(Failure::new(Code::WrongValue, text).hint("remove the header to log in instead"));
            }
            Ok(url)
        }
        Address::Command { .. } => {
            let text =
                format!("server `{}` is a program that is started here; there is nothing to log in to", spec.name);
            Err(Failure::new(Code::InvalidValue, text).hint("what it needs to know goes into its `env`"))
        }
    }
}

fn show(login: &Login, arguments: &LoginArguments, context: &AppContext, output: &mut Output) {
    let page = login.page();
    output.tell(&format!("server `{}` lets {} say who you are", arguments.name, login.issuer()));
    let opened = !arguments.no_browser && output.asker().is_there() && open::browser(&page.url, context.search_path());
    output.tell(&if opened {
        format!("a browser opens this page of {}; if none does, open it yourself:", page.host)
    } else {
        format!("open this page of {}:", page.host)
    });
    output.explain(&format!("{}\n", page.url));
    if matches!(output.asker(), Asker::Lines(..)) && output.asker().is_there() {
        output.tell("if the browser cannot come back here, paste the address it was sent to; Ctrl-C gives up");
    }
}

/// With the panels, a dialog asks for the address and can be closed.
fn opened(text: &str, asker: &Asker) -> Option<OpenQuestion> {
    match asker {
        Asker::Dialog(screen) => Some(screen.open(text, AnswerKind::Text)),
        Asker::Lines(..) => None,
    }
}

fn question(login: &Login, server: &str) -> String {
    let page = login.page();
    format!(
        "Log in to server `{}` at this page of {}:\n\n{}\n\nThis goes on by itself once you have. If the browser cannot come \
         back here, paste the address it was sent to.",
        one_line(server),
        one_line(&page.host),
        one_line(&page.url)
    )
}

fn told(known: &DeclaredServer, grant: &Grant, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let name = &known.spec.name;
    let scopes = if grant.scopes.is_empty() { String::new() } else { format!(" for {}", grant.scopes.join(", ")) };
    output.tell(&format!("server `{name}`: logged in at {}{scopes}", grant.issuer));
    if as_json {
        return output.pretty_json(&entry(name, grant));
    }
    Ok(OK)
}

fn entry(name: &str, grant: &Grant) -> Value {
    json!({"server": name, "issuer": grant.issuer, "scopes": grant.scopes, "renewable": grant.renewable})
}

/// The failure without the secret that only the issuer should know.
fn failed(known: &DeclaredServer, error: &LoginError, secret: Option<&str>) -> Failure {
    let text = format!("no login to server `{}`: {error}", known.spec.name);
    let redactor = Redactor::new(secret.map(|secret| ("oauth.clientSecret", secret)));
    Failure::new(Code::LoginFailed, redactor.redact_str(&text))
}
