//! `${NAME}` in a declaration, filled in from variables and settings. A missing one is empty and named; no value is shown.
//! `${env:NAME}` is another program's way to write the same.

use std::path::PathBuf;

use ollm_protocol::{Code, Oauth};

use super::{Address, Pairs, ServerSpec};
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
pub fn expand(server: &ServerSpec, get: Lookup<'_>) -> (ServerSpec, Vec<Problem>) {
    expand_with(server, get, &|_| None)
}

/// What a name stands for.
type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The same. `way` gives the way to set a particular variable, for the warning.
pub fn expand_with(server: &ServerSpec, get: Lookup<'_>, way: Lookup<'_>) -> (ServerSpec, Vec<Problem>) {
    let mut filling = ServerExpansion { server, get, way, warnings: Vec::new() };
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

struct ServerExpansion<'a> {
    server: &'a ServerSpec,
    get: Lookup<'a>,
    way: Lookup<'a>,
    warnings: Vec<Problem>,
}

impl ServerExpansion<'_> {
    fn pairs(&mut self, pairs: &Pairs, key: &str) -> Pairs {
        let filled = pairs.0.iter().map(|(name, value)| (name.clone(), self.text(value, &format!("{key}.{name}"))));
        Pairs(filled.collect())
    }

    /// Fills in a text once: values of variables are not searched for more variables.
    fn text(&mut self, text: &str, field: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            filled.push_str(before);
            let found = after.split_once('}').and_then(|(inside, behind)| Some((reference(inside)?, behind)));
            let Some((reference, behind)) = found else {
                filled.push_str("${");
                rest = after;
                continue;
            };
            filled.push_str(&self.value(&reference, field));
            rest = behind;
        }
        filled.push_str(rest);
        filled
    }

    fn value(&mut self, reference: &Reference<'_>, field: &str) -> String {
        // The reader of the declaration has told that there is no person to ask.
        let Reference::Variable { name, usual } = *reference else { return String::new() };
        let value = (self.get)(name).filter(|value| usual.is_none() || !value.is_empty());
        if value.is_none() && usual.is_none() {
            self.missing(name, field);
        }
        value.or(usual.map(str::to_owned)).unwrap_or_default()
    }

    fn missing(&mut self, name: &str, field: &str) {
        let origin = &self.server.origin;
        self.warnings.push(Problem {
            code: Code::InvalidVariable,
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
            help: (self.way)(name).or_else(|| Some(format!("set {name}, or write ${{{name}:-TEXT}}"))),
            remedy: None,
            snippet: None,
        });
    }
}

/// What stands between `${` and `}`.
#[derive(Debug, PartialEq, Eq)]
enum Reference<'a> {
    Variable {
        name: &'a str,
        /// The text where it is not set.
        usual: Option<&'a str>,
    },
    /// A reference that only the original program can fill in.
    Foreign,
}

fn reference(inside: &str) -> Option<Reference<'_>> {
    let variable = |text| {
        let (name, usual) = split_usual(text);
        is_name(name).then_some(Reference::Variable { name, usual })
    };
    let foreign = || is_foreign(inside).then_some(Reference::Foreign);
    variable(inside).or_else(|| variable(inside.strip_prefix("env:")?)).or_else(foreign)
}

fn split_usual(text: &str) -> (&str, Option<&str>) {
    text.split_once(":-").map_or((text, None), |(name, usual)| (name, Some(usual)))
}

fn is_name(name: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    !name.is_empty() && name.chars().all(plain) && !name.starts_with(|first: char| first.is_ascii_digit())
}

fn is_foreign(inside: &str) -> bool {
    let named = |kind: &&str| inside.strip_prefix(*kind).is_some_and(|id| !id.is_empty() && !id.starts_with('-'));
    ["input:", "command:", "config:"].iter().any(named)
}

/// The first `${input:ID}`, or another of its kind, in a text.
pub(super) fn foreign(text: &str) -> Option<&str> {
    text.split("${").skip(1).filter_map(|rest| rest.split_once('}')).map(|(inside, _)| inside).find(|it| is_foreign(it))
}

/// The variables that a text names.
pub(crate) fn variables_in(text: &str) -> impl Iterator<Item = &str> {
    let insides = text.split("${").skip(1).filter_map(|rest| Some(rest.split_once('}')?.0));
    insides.filter_map(|inside| match reference(inside)? {
        Reference::Variable { name, .. } => Some(name),
        Reference::Foreign => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_other_programs_are_told_from_ours() {
        let variable = |name, usual| Some(Reference::Variable { name, usual });
        for (inside, expected) in [
            ("TOKEN", variable("TOKEN", None)),
            ("TOKEN:-x", variable("TOKEN", Some("x"))),
            ("env:TOKEN", variable("TOKEN", None)),
            ("env:TOKEN:-x", variable("TOKEN", Some("x"))),
            ("env:-x", variable("env", Some("x"))),
            ("input:-x", variable("input", Some("x"))),
            ("input:tk", Some(Reference::Foreign)),
            ("command:ext.pick", Some(Reference::Foreign)),
            ("env:", None),
            ("input:", None),
            ("x:1", None),
            ("", None),
        ] {
            assert_eq!(reference(inside), expected, "{inside}");
        }
        assert_eq!(foreign("a ${X} b ${input:tk} c"), Some("input:tk"));
        assert_eq!(foreign("${X} input:tk} ${input:"), None);
    }
}
