//! The clients of other SDKs, installed once beside the build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TYPESCRIPT: &str = "@modelcontextprotocol/sdk@1.32.2";
const PYTHON: &str = "mcp==2.3.0";

/// A client of another SDK, or why there is none.
pub(super) struct Peer {
    pub(super) name: &'static str,
    pub(super) program: Result<[PathBuf; 2], String>,
}

/// Installs what is not there yet.
pub(super) fn peers() -> Vec<Peer> {
    let program = std::env::current_exe().unwrap();
    let folder = program.ancestors().nth(3).unwrap().join("mcp-peers");
    fs::create_dir_all(&folder).unwrap();
    vec![
        Peer { name: "TypeScript SDK", program: typescript(&folder) },
        Peer { name: "Python SDK", program: python(&folder) },
    ]
}

fn typescript(folder: &Path) -> Result<[PathBuf; 2], String> {
    if !folder.join("node_modules/@modelcontextprotocol/sdk").exists() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]).arg(folder).arg(TYPESCRIPT);
        done(&mut npm)?;
    }
    // Modules are looked for beside the script.
    let script = folder.join("client.mjs");
    fs::write(&script, include_str!("client.mjs")).unwrap();
    Ok(["node".into(), script])
}

fn python(folder: &Path) -> Result<[PathBuf; 2], String> {
    let home = folder.join("python");
    if !home.join("installed").exists() {
        done(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
        let mut pip = Command::new(home.join("bin/pip"));
        done(pip.args(["install", "--quiet", "--disable-pip-version-check", PYTHON]))?;
        fs::write(home.join("installed"), PYTHON).unwrap();
    }
    let script = folder.join("client.py");
    fs::write(&script, include_str!("client.py")).unwrap();
    Ok([home.join("bin/python"), script])
}

fn done(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{program}: {error}"))?;
    let words = String::from_utf8_lossy(&output.stderr);
    let last = words.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    if output.status.success() { Ok(()) } else { Err(format!("{program}: {last}")) }
}
