//! The names by which a model calls the tools of servers: `mcp__server__tool`.
//!
//! Model APIs take letters, digits, `_` and `-`, and no more than 64 of them. A server's label depends only on the
//! names of the servers of its rank and of earlier ranks. A tool's name depends only on its server's label and tool
//! list. So no name changes because another server started first. A declaration of a later rank changes no name that
//! guards know. Labels hold no `__` and do not end in `_`, so a name can be split again.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ollm_store::digest_bytes;

/// What every name begins with.
const PREFIX: &str = "mcp__";
const SEPARATOR: &str = "__";
/// The longest name that model APIs take.
pub(crate) const LONGEST_NAME: usize = 64;
/// The longest label; it leaves at least 33 characters for the name of the tool.
const LONGEST_LABEL: usize = 24;
/// The longest name that a tool may have; real tools have shorter names.
pub(crate) const LONGEST_TOOL: usize = 1024;
/// How many digits of a hash distinguish names; longer hashes only where shorter ones clash.
const DIGITS: &[usize] = &[8, 16, 24];

/// The labels of all configured servers.
///
/// ```
/// use ollm_mcp::Labels;
/// let labels = Labels::new(["github", "my server"]);
/// assert_eq!(labels.of("my server"), Some("my_server"));
/// assert_eq!(labels.resolve("mcp__my_server__get_file"), Some(("my server", "get_file")));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    labels: BTreeMap<String, String>,
    servers: BTreeMap<String, String>,
}

/// Why a tool is not offered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// It has no name.
    #[error("it has no name")]
    Empty,
    /// Its name would be displayed as a different one.
    #[error("its name holds control or invisible characters")]
    Hidden,
    /// Its name is far too long.
    #[error("its name has {0} bytes, at most {LONGEST_TOOL} are taken")]
    Long(usize),
    /// The server has another tool of that name.
    #[error("the server lists another tool of that name before it")]
    Twice,
    /// No unique name could be made.
    #[error("its name cannot be told from another tool's")]
    Taken,
}

impl Labels {
    /// Labels for servers of one rank, the same for every order in which they are given.
    pub fn new<'a>(servers: impl IntoIterator<Item = &'a str>) -> Labels {
        Labels::ranked(servers.into_iter().map(|server| ((), server)))
    }

    /// Labels for servers with their ranks, the same for every order in which they are given. Servers of a lower rank
    /// choose first, so servers of higher ranks do not change their labels.
    pub fn ranked<'a, R: Ord>(servers: impl IntoIterator<Item = (R, &'a str)>) -> Labels {
        let mut ranks: BTreeMap<R, BTreeSet<&str>> = BTreeMap::new();
        for (rank, server) in servers {
            ranks.entry(rank).or_default().insert(server);
        }
        let mut all = Labels::default();
        for servers in ranks.into_values() {
            let new: Vec<&str> = servers.into_iter().filter(|server| !all.labels.contains_key(*server)).collect();
            let settled = settle(&new, &|label| all.servers.contains_key(label), &label_form);
            for (server, label) in new.iter().zip(settled).filter_map(|(server, label)| Some((*server, label?))) {
                all.servers.insert(label.clone(), server.to_owned());
                all.labels.insert(server.to_owned(), label);
            }
        }
        all
    }

    /// The label of a server.
    pub fn of(&self, server: &str) -> Option<&str> {
        self.labels.get(server).map(String::as_str)
    }

    /// The server a name belongs to, and the part after the label. [`tool_names`] of the server's list says which tool
    /// that is.
    pub fn resolve<'a>(&'a self, name: &'a str) -> Option<(&'a str, &'a str)> {
        let (label, tool) = split(name)?;
        self.servers.get(label).map(|server| (server.as_str(), tool))
    }
}

/// Splits a name into the label of the server and the part for the tool.
pub fn split(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(PREFIX)?.split_once(SEPARATOR).filter(|(label, tool)| !label.is_empty() && !tool.is_empty())
}

/// The names of a server's tools: one for each tool in the list, or why it has none.
///
/// ```
/// use ollm_mcp::{BadName, tool_names};
/// let names = tool_names("files", &["read", "read", "write file"]);
/// assert_eq!(names[0], Ok("mcp__files__read".to_owned()));
/// assert_eq!(names[1], Err(BadName::Twice));
/// assert_eq!(names[2], Ok("mcp__files__write_file".to_owned()));
/// ```
pub fn tool_names(label: &str, tools: &[&str]) -> Vec<Result<String, BadName>> {
    let mut first: HashMap<&str, usize> = HashMap::with_capacity(tools.len());
    let checked: Vec<Result<(), BadName>> = tools
        .iter()
        .enumerate()
        .map(|(index, tool)| {
            sound(tool)?;
            if *first.entry(tool).or_insert(index) == index { Ok(()) } else { Err(BadName::Twice) }
        })
        .collect();
    let good: Vec<&str> =
        tools.iter().zip(&checked).filter(|(_, sound)| sound.is_ok()).map(|(tool, _)| *tool).collect();
    let start = format!("{PREFIX}{label}{SEPARATOR}");
    let room = LONGEST_NAME.saturating_sub(start.len());
    let mut settled =
        settle(&good, &|_| false, &|tool, digits| shortened(&replaced(tool), tool, room, digits)).into_iter();
    let mut names = Vec::with_capacity(tools.len());
    for sound in checked {
        names.push(sound.and_then(|()| {
            let tool = settled.next().flatten().ok_or(BadName::Taken)?;
            Ok(format!("{start}{tool}"))
        }));
    }
    names
}

fn sound(tool: &str) -> Result<(), BadName> {
    match tool {
        "" => Err(BadName::Empty),
        tool if tool.len() > LONGEST_TOOL => Err(BadName::Long(tool.len())),
        tool if ollm_store::escape_for_people(tool) != tool || tool.contains(['\n', '\t', '\r']) => {
            Err(BadName::Hidden)
        }
        _ => Ok(()),
    }
}

/// Finds a unique, untaken form for each name. Where several names would share a form, those that differ from it get a
/// hash of the full name. The order of the names makes no difference.
fn settle(
    names: &[&str],
    taken: &dyn Fn(&str) -> bool,
    form: &dyn Fn(&str, usize) -> Option<String>,
) -> Vec<Option<String>> {
    let mut levels = vec![0; names.len()];
    let mut forms: Vec<Option<String>> = names.iter().map(|name| form(name, 0)).collect();
    loop {
        let mut counts: HashMap<&str, usize> = HashMap::with_capacity(names.len());
        for form in forms.iter().flatten() {
            *counts.entry(form).or_default() += 1;
        }
        let clashes = |index: usize| match forms.get(index) {
            Some(Some(form)) => {
                let exact = levels.get(index) == Some(&0) && names.get(index) == Some(&form.as_str());
                taken(form) || (!exact && counts.get(form.as_str()).is_some_and(|count| *count > 1))
            }
            _ => levels.get(index).is_some_and(|level| *level <= DIGITS.len()),
        };
        let rising: Vec<usize> = (0..names.len()).filter(|index| clashes(*index)).collect();
        if rising.is_empty() {
            return forms;
        }
        for index in rising {
            if let (Some(level), Some(name), Some(slot)) =
                (levels.get_mut(index), names.get(index), forms.get_mut(index))
            {
                let digits = DIGITS.get(*level).copied();
                *level += 1;
                *slot = digits.and_then(|digits| form(name, digits));
            }
        }
    }
}

/// A server's label with this many digits of its hash. With zero digits, a label only if the name needs no hash.
fn label_form(server: &str, digits: usize) -> Option<String> {
    let mut plain = String::with_capacity(server.len());
    for letter in replaced(server).chars() {
        if letter != '_' || !plain.ends_with('_') {
            plain.push(letter);
        }
    }
    let plain = plain.trim_end_matches('_');
    let label = shortened(plain, server, LONGEST_LABEL, digits)?;
    (!plain.is_empty() || digits > 0).then_some(label)
}

/// At most `room` characters: the whole text, or its start with this many digits of the hash of `whole`.
fn shortened(text: &str, whole: &str, room: usize, digits: usize) -> Option<String> {
    if digits == 0 {
        return (text.len() <= room).then(|| text.to_owned());
    }
    let kept = text.get(..text.len().min(room.checked_sub(digits + 1)?))?.trim_end_matches('_');
    let hash = digest_bytes(whole.as_bytes()).hex();
    Some(format!("{kept}_{}", hash.get(..digits)?))
}

/// The text in the letters that model APIs take.
fn replaced(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    text.chars().map(|letter| if plain(letter) { letter } else { '_' }).collect()
}
