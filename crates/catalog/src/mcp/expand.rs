//! `${NAME}` in a declaration, filled in from variables and settings. A missing one is empty and named; no value is shown.

use std::path::PathBuf;

use super::{Address, Oauth, Pairs, ServerSpec};
use crate::problem::{Problem, Severity};

/// The server with every variable filled in, and a warning for each that is not set. `${NAME:-TEXT}` has a text of its
/// own for that case.
///
/// ```
/// use ollm_catalog::{Address, Places, expand, load_servers};
/// # let folder = tempfile::tempdir().unwrap();
/// # let home = folder.path().join(".ollm");
/// # std::fs::create_dir_all(home.join("settings")).unwrap();
/// # let text = r#"{"mcpServers": {"s": {"command": "server", "env": {"TOKEN": "${TOKEN}", "MODE": "${MODE}"}}}}"#;
/// # std::fs::write(home.join("settings/mcp.json"), text).unwrap();
/// # let (servers, _) = load_servers(&Places { home, ..Places::default() });
/// // declared with {"TOKEN": "${TOKEN}", "MODE": "${MODE}"}
/// let (server, warnings) = expand(&servers[0], &|name| (name == "TOKEN").then(|| "t0".to_owned()));
/// let Address::Command { env, .. } = server.address else { unreachable!() };
/// assert_eq!(env.0, [("TOKEN".to_owned(), "t0".to_owned()), ("MODE".to_owned(), String::new())]);
/// assert!(warnings[0].message.contains("`MODE`"));
/// ```
pub fn expand(server: &ServerSpec, get: &dyn Fn(&str) -> Option<String>) -> (ServerSpec, Vec<Problem>) {
    let mut filling = Filling { server, get, warnings: Vec::new() };
    let address = match &server.address {
        Address::Command { command, args, env, cwd, limits } => Address::Command {
            command: command.clone(),
            args: args.iter().enumerate().map(|(index, arg)| filling.text(arg, &format!("args[{index}]"))).collect(),
            env: filling.pairs(env, "env"),
            cwd: cwd.as_ref().map(|cwd| match cwd.to_str() {
                Some(text) => PathBuf::from(filling.text(text, "cwd")),
                None => cwd.clone(),
            }),
            limits: *limits,
        },
        Address::Url { url, headers, transport } => Address::Url {
            url: filling.text(url, "url"),
            headers: filling.pairs(headers, "headers"),
            transport: *transport,
        },
    };
    let oauth = server.oauth.clone().map(|oauth| Oauth {
        client_id: oauth.client_id.map(|text| filling.text(&text, "oauth.clientId")),
        client_secret: oauth.client_secret.map(|text| filling.text(&text, "oauth.clientSecret")),
        ..oauth
    });
    let warnings = filling.warnings;
    (ServerSpec { address, oauth, ..server.clone() }, warnings)
}

struct Filling<'a> {
    server: &'a ServerSpec,
    get: &'a dyn Fn(&str) -> Option<String>,
    warnings: Vec<Problem>,
}

impl Filling<'_> {
    fn pairs(&mut self, pairs: &Pairs, key: &str) -> Pairs {
        let filled = pairs.0.iter().map(|(name, value)| (name.clone(), self.text(value, &format!("{key}.{name}"))));
        Pairs(filled.collect())
    }

    /// What a variable holds is never looked through for further ones.
    fn text(&mut self, text: &str, field: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            filled.push_str(before);
            let Some((inside, behind)) = after.split_once('}').filter(|(inside, _)| is_reference(inside)) else {
                filled.push_str("${");
                rest = after;
                continue;
            };
            let (name, usual) = inside.split_once(":-").map_or((inside, None), |(name, usual)| (name, Some(usual)));
            let value = (self.get)(name).filter(|value| usual.is_none() || !value.is_empty());
            match (value, usual) {
                (Some(value), _) => filled.push_str(&value),
                (None, Some(usual)) => filled.push_str(usual),
                (None, None) => self.missing(name, field),
            }
            rest = behind;
        }
        filled.push_str(rest);
        filled
    }

    fn missing(&mut self, name: &str, field: &str) {
        let origin = &self.server.origin;
        self.warnings.push(Problem {
            severity: Severity::Warning,
            file: origin.file.clone(),
            line: origin.line,
            column: origin.column,
            field: format!("{}.{field}", self.server.name),
            value: None,
            message: format!(
                "server `{}` wants the variable `{name}`, which is not set; it is empty",
                self.server.name
            ),
            help: Some(format!("set {name}, or write ${{{name}:-TEXT}}")),
            snippet: None,
        });
    }
}

fn is_reference(inside: &str) -> bool {
    let name = inside.split(":-").next().unwrap_or_default();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    !name.is_empty() && name.chars().all(plain) && !name.starts_with(|first: char| first.is_ascii_digit())
}
