//! `xargs` and `parallel`: commands whose arguments come from elsewhere.

use ollm_shell::wrapper::{PARALLEL, XARGS};

use super::{
    Feed, Walker,
    carrier::{carried, is_cluster},
    carry::show,
    feed::Split,
};
use crate::{
    field::{Field, Fields, Tail},
    path,
};

impl Walker {
    /// `xargs`: the command gets more arguments: the words of its input, or unknown ones.
    pub(super) fn xargs(&mut self, fields: &Tail, feed: &Feed, depth: usize) {
        let carried = carried(fields, &XARGS);
        let (own, command) = (fields.head(carried.at), fields.skip(carried.at));
        if command.is_empty() {
            return;
        }
        let mark = replaced_mark(&own);
        let more = feed.arguments(splits(&own, mark.is_some())).unwrap_or_else(|| vec![Field::unknown()]);
        match mark {
            Some(mark) => {
                // Names of files, or what is in one, are one word in the text of a shell as elsewhere.
                let is_data = matches!(feed, Feed::Nothing | Feed::Files(_));
                let code = shell_code(&command).filter(|_| is_data);
                for argument in &more {
                    let fill = |(at, field): (usize, &Field)| match argument.known() {
                        None if code == Some(at) => Field::literal(field.text.replace(&mark, UNKNOWN)),
                        _ => filled(field, &mark, argument),
                    };
                    self.run(command.iter().enumerate().map(fill).collect(), &Feed::Nothing, depth + 1);
                }
            }
            None => self.run(command.iter().cloned().chain(more).collect(), &Feed::Nothing, depth + 1),
        }
        self.guess_run("xargs", if carried.known { &own } else { fields }, &Feed::Nothing, depth + 1);
    }

    pub(super) fn parallel(&mut self, fields: &Tail, depth: usize) {
        let at = carried(fields, &PARALLEL).at;
        self.work("parallel", &fields.head(at), &Feed::Nothing);
        let rest = fields.iter().skip(at);
        let mut command: Fields = rest.take_while(|field| !field.text.starts_with(":::")).cloned().collect();
        if command.is_empty() {
            return self.unclear(format!("which program runs is not written out: {}", show(fields)));
        }
        if let [line] = command.as_slice()
            && let Some(script) = line.known().filter(|line| line.trim().contains(' ')).and_then(filled_line)
        {
            self.script(&script, depth + 1);
            return self.guess_run("parallel", fields, &Feed::Nothing, depth + 1);
        }
        for field in &mut command {
            fill(field, "{}");
        }
        command.push(Field::unknown());
        self.run(command.into(), &Feed::Nothing, depth + 1);
        self.guess_run("parallel", fields, &Feed::Nothing, depth + 1);
    }
}

/// Stands in shell text for a word that is not known.
const UNKNOWN: &str = "\"$(cat)\"";

/// Which word of a command is text for a shell in which a word may be put in place of a mark.
fn shell_code(command: &[Field]) -> Option<usize> {
    let (first, rest) = command.split_first()?;
    let option = rest.first().filter(|option| is_cluster(&option.text, 'c'))?;
    let text = rest.get(1).filter(|text| !option.open() && text.text.contains(' ') && !text.text.contains('\''))?;
    (ollm_shell::is_shell(&path::base_name(&first.text)) && text.known().is_some()).then_some(2)
}

/// The mark for which `xargs -I` puts its input.
fn replaced_mark(fields: &[Field]) -> Option<String> {
    let mut mark = None;
    for (at, field) in fields.iter().enumerate() {
        match field.text.as_str() {
            "-I" | "-J" => mark = fields.get(at + 1).map(|value| value.text.clone()),
            "-i" | "--replace" => mark = Some("{}".to_owned()),
            text => {
                let attached = text.strip_prefix("-I").or_else(|| text.strip_prefix("--replace="));
                mark = attached.map(str::to_owned).or(mark);
            }
        }
    }
    mark.filter(|mark| !mark.is_empty())
}

/// Where `xargs` takes its input apart.
fn splits(own: &[Field], replaces: bool) -> Split {
    let is_zero = |option: &Field| match option.text.strip_prefix('-') {
        Some(long) if long.starts_with('-') => long == "-null",
        // What stands behind a letter that takes a value is the value.
        Some(letters) => {
            letters.split(|next: char| "adeEiIJlLnPRs".contains(next)).next().is_some_and(|own| own.contains('0'))
        }
        None => false,
    };
    let separates = |option: &Field| option.text.starts_with("-d") || option.text.starts_with("--delim");
    if own.iter().any(is_zero) {
        Split::Nowhere
    } else if replaces || own.iter().any(separates) {
        Split::Lines
    } else {
        Split::Words
    }
}

/// A field in which something stands for the mark.
fn filled(field: &Field, mark: &str, argument: &Field) -> Field {
    if field.text == mark {
        return argument.clone();
    }
    let mut field = field.clone();
    match argument.known() {
        Some(text) => field.text = field.text.replace(mark, text),
        None => fill(&mut field, mark),
    }
    field
}

/// A line for `parallel`, with something unknown for its marks: `{}`, `{.}`, `{1}`; behind it, if there is none.
fn filled_line(line: &str) -> Option<String> {
    let mut parts = line.split('{');
    let mut filled = parts.next()?.to_owned();
    let mut marked = false;
    for part in parts {
        let mark =
            part.split_once('}').filter(|(mark, _)| mark.bytes().all(|byte| b"0123456789./#%+-".contains(&byte)));
        marked |= mark.is_some();
        match mark {
            Some((_, behind)) => filled.extend([UNKNOWN, behind]),
            None => filled.extend(["{", part]),
        }
    }
    if !marked {
        filled.extend([" ", UNKNOWN]);
    }
    (!line.contains("{=")).then_some(filled)
}

/// Puts something unknown for a mark.
pub(super) fn fill(field: &mut Field, mark: &str) {
    // Few words have one, and a search for text costs more than one for its first letter.
    if !mark.starts_with(|first| field.text.contains(first)) {
        return;
    }
    if let Some(at) = field.text.find(mark) {
        let behind = field.text.split_off(at);
        field.tail = behind.strip_prefix(mark).map(str::to_owned);
    }
}
