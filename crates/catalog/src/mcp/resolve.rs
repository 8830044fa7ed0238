//! The files of an extension that a server's command line names: made absolute, and never outside of the extension.

use std::path::{Path, PathBuf};

use ollm_protocol::{ActionSpec, Rules};

use crate::path::{self, Outside, Refused, Walked};

/// A program, its arguments, and where it runs.
pub(super) type Line = (String, Vec<String>, Option<PathBuf>);

/// The same command line, whose relative files are in `folder`; otherwise the key that is wrong, and why.
pub(super) fn resolve(folder: &Path, (command, args, cwd): Line) -> Result<Line, (&'static str, String)> {
    // What a variable helps to name is known only when the server starts.
    let filled_in = |text: &str| text.contains("${");
    let plain = args.iter().map(|arg| if filled_in(arg) { "-".to_owned() } else { arg.clone() }).collect();
    let (walked, whitelist) = (Walked::default(), Rules::default().whitelist);
    let refused = |refused| match refused {
        Refused::Command(outside) => ("command", leads_out(&outside)),
        Refused::Argument(_, outside) => ("args", leads_out(&outside)),
        Refused::Arguments => ("command", "`command` holds arguments; put them into `args`".to_owned()),
    };
    let (action, _) = path::command(folder, &command, plain, &whitelist, &walked).map_err(refused)?;
    let (command, args) = match action {
        ActionSpec::Command { command, args: resolved, .. } => {
            let kept = args.into_iter().zip(resolved);
            (command, kept.map(|(arg, resolved)| if filled_in(&arg) { arg } else { resolved }).collect())
        }
        _ => (command, args),
    };
    let cwd = match cwd {
        Some(cwd) if cwd.is_relative() && !cwd.to_str().is_some_and(filled_in) => {
            let inside = path::inside(folder, &cwd.to_string_lossy(), &walked);
            Some(inside.map_err(|outside| ("cwd", leads_out(&outside)))?)
        }
        other => other,
    };
    Ok((command, args, cwd))
}

fn leads_out(outside: &Outside) -> String {
    format!("{} leads out of {}", outside.path.display(), outside.folder.display())
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
            assert_eq!(resolve(&root, written), Ok(wanted));
        }
        for (written, key) in [
            (line("../run", &[], None), "command"),
            (line("node", &["../a.js"], None), "args"),
            (line("node", &[], Some("..")), "cwd"),
            (line("servers/run now", &[], None), "command"),
        ] {
            assert_eq!(resolve(&root, written).map_err(|(key, _)| key), Err(key));
        }
    }
}
