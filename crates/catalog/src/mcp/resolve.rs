//! The files of an extension that a server's command line names: made absolute, and never outside of the extension.

use std::path::{Path, PathBuf};

use ollm_protocol::Rules;

use crate::path::{self, CommandRefusal, OutsideFile, PathCache, Trouble};

/// A program, its arguments, and where it runs.
pub(super) type Line = (String, Vec<String>, Option<PathBuf>);

/// What is wrong with a command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CommandFault {
    /// The key.
    pub(super) key: &'static str,
    /// Which item of that, if it is a list.
    pub(super) index: Option<usize>,
    pub(super) why: String,
    pub(super) help: &'static str,
}

/// The same command line, whose relative files are in `folder`; otherwise what is wrong.
pub(super) fn resolve(folder: &Path, walked: &PathCache, (command, args, cwd): Line) -> Result<Line, CommandFault> {
    // What a variable helps to name is known only when the server starts.
    let filled_in = |text: &str| text.contains("${");
    let plain = args.iter().map(|arg| if filled_in(arg) { "-".to_owned() } else { arg.clone() }).collect();
    let whitelist = Rules::default().whitelist;
    let refused = |refused| match refused {
        CommandRefusal::Command(outside) => leads_out("command", None, outside),
        CommandRefusal::Argument(index, outside) => leads_out("args", Some(index), outside),
        CommandRefusal::Arguments => {
            let (why, help) = ("`command` holds arguments".to_owned(), "put them into `args`");
            CommandFault { key: "command", index: None, why, help }
        }
    };
    let (found, _) = path::command(folder, &command, plain, &whitelist, walked).map_err(refused)?;
    let kept = args.into_iter().zip(found.args);
    let args = kept.map(|(arg, resolved)| if filled_in(&arg) { arg } else { resolved }).collect();
    let cwd = match cwd {
        Some(cwd) if cwd.is_relative() && !cwd.to_str().is_some_and(filled_in) => {
            let inside = path::inside(folder, &cwd.to_string_lossy(), walked);
            Some(inside.map_err(|outside| leads_out("cwd", None, outside))?)
        }
        other => other,
    };
    Ok((found.command, args, cwd))
}

fn leads_out(key: &'static str, index: Option<usize>, outside: OutsideFile) -> CommandFault {
    let OutsideFile { path, folder, trouble } = outside;
    let (why, help) = if let Some(Trouble { why, help }) = trouble {
        (format!("{} cannot be looked at: {why}", path.display()), help)
    } else {
        let why = format!("{} leads out of {}", path.display(), folder.display());
        (why, "move it into that folder, or give its absolute path")
    };
    CommandFault { key, index, why, help }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(command: &str, args: &[&str], cwd: Option<&str>) -> Line {
        (command.to_owned(), args.iter().map(|&arg| arg.to_owned()).collect(), cwd.map(PathBuf::from))
    }

    #[test]
    fn relative_files_are_those_of_the_extension_and_all_else_stays_as_written() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("servers")).unwrap();
        for file in ["servers/run", "servers/a.js", "conf.json"] {
            std::fs::write(root.join(file), "").unwrap();
        }
        let at = |file: &str| root.join(file).display().to_string();
        for (written, wanted) in [
            (line("servers/run", &["x"], None), line(&at("servers/run"), &["x"], None)),
            (line("node", &["servers/a.js", "conf.json", "-v", "${X}/b"], Some("servers")), {
                line("node", &[&at("servers/a.js"), &at("conf.json"), "-v", "${X}/b"], Some(&at("servers")))
            }),
            (line("npx", &["conf.json"], Some("/tmp")), line("npx", &["conf.json"], Some("/tmp"))),
            (line("node", &["${X}/../../a.js"], Some("${X}")), line("node", &["${X}/../../a.js"], Some("${X}"))),
        ] {
            assert_eq!(resolve(&root, &PathCache::default(), written), Ok(wanted));
        }
        for (written, key) in [
            (line("../run", &[], None), "command"),
            (line("node", &["../a.js"], None), "args"),
            (line("node", &[], Some("..")), "cwd"),
            (line("servers/run now", &[], None), "command"),
        ] {
            assert_eq!(resolve(&root, &PathCache::default(), written).map_err(|wrong| wrong.key), Err(key));
        }
    }
}
