//! What a server is: everything that decides what happens when it is started, as one digest. An approval is bound to it.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use ollm_store::{Digest, FileError, Hasher};

use super::{Address, Pairs, ServerSpec, server_files};

/// Larger files are not hashed for a server.
const LARGEST_FILE: u64 = 64 << 20;

/// Why it cannot be said what a server is.
#[derive(Debug, thiserror::Error)]
pub enum Unclear {
    /// A file that it runs cannot be read.
    #[error(transparent)]
    Unreadable(#[from] FileError),
    /// What it runs is a folder.
    #[error("`{}` is a folder, and anything in it may run; name the file itself in `args`", .0.display())]
    Folder(PathBuf),
    /// It names more than anybody looks through.
    #[error("its arguments and variables hold too many words to look for files among them; put the code into a file")]
    Long,
}

/// The digest of a declaration: every key as written, the program that was found, and the content of those of its files
/// that came with the folder it came from, which variables may help to name. Values of variables and headers go in as
/// they are declared, and cannot be read back.
pub fn server_digest(
    server: &ServerSpec,
    program: Option<&Path>,
    folder: Option<&Path>,
    get: &dyn Fn(&str) -> Option<String>,
) -> Result<Digest, Unclear> {
    let mut hasher = Hasher::new().field("mcp server", server.name.as_bytes());
    hasher = shown(hasher, "limits of time", &(server.timeout, server.tool_timeout));
    hasher = shown(hasher, "switches", &(server.enabled, server.lazy, server.auto_restart));
    hasher = shown(hasher, "tools", &(&server.allow, &server.deny));
    hasher = shown(hasher, "extension", &server.extension);
    if let Some(idle) = &server.idle_timeout {
        hasher = shown(hasher, "idle timeout", idle);
    }
    if let Some(oauth) = &server.oauth {
        hasher = shown(hasher, "oauth", oauth);
        if let Some(secret) = &oauth.client_secret {
            hasher = hasher.field("client secret", secret.as_bytes());
        }
    }
    match &server.address {
        Address::Url { url, headers, transport } => {
            hasher = shown(hasher.field("url", url.as_bytes()), "transport", transport);
            Ok(pairs(hasher, "header", headers).finish())
        }
        Address::Command { command, args, env, cwd, limits } => {
            hasher = hasher.field("command", command.as_bytes());
            for arg in args {
                hasher = hasher.field("argument", arg.as_bytes());
            }
            hasher = pairs(shown(shown(hasher, "cwd", cwd), "limits", limits), "variable", env);
            if let Some(program) = program {
                hasher = hasher.field("program", program.as_os_str().as_encoded_bytes());
            }
            if let Some(real) = led_out(program, folder) {
                hasher = hasher.field("leads to", real.as_os_str().as_encoded_bytes());
            }
            for file in server_files(server, program, folder, get)? {
                hasher =
                    hasher.field("file", file.as_os_str().as_encoded_bytes()).file("content", &file, LARGEST_FILE)?;
            }
            Ok(hasher.finish())
        }
    }
}

/// Where a program leads that stands in the folder as a link out of it.
fn led_out(program: Option<&Path>, folder: Option<&Path>) -> Option<PathBuf> {
    let (program, folder) = (program?, folder?.canonicalize().ok()?);
    let real = program.canonicalize().ok()?;
    let place = program.parent()?.canonicalize().ok()?;
    (place.starts_with(&folder) && !real.starts_with(&folder)).then_some(real)
}

fn shown(hasher: Hasher, label: &str, value: &dyn Debug) -> Hasher {
    hasher.field(label, format!("{value:?}").as_bytes())
}

fn pairs(mut hasher: Hasher, label: &str, pairs: &Pairs) -> Hasher {
    for (name, value) in &pairs.0 {
        hasher = hasher.field(label, name.as_bytes()).field("value", value.as_bytes());
    }
    hasher
}
