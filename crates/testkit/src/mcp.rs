//! Builds and starts the MCP server of the test kit.

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// Where the server is; it is built at the first call. Its flags are those in `src/bin/mcp-server/plan.rs`.
///
/// # Panics
/// When it cannot be built: no test that needs it could go on.
#[expect(clippy::panic, reason = "no test that needs it could go on")]
pub fn mcp_server() -> &'static Path {
    static SERVER: OnceLock<PathBuf> = OnceLock::new();
    SERVER.get_or_init(|| {
        build("mcp-server").unwrap_or_else(|why| panic!("the MCP server for tests cannot be built: {why}"))
    })
}

/// The program that only takes the terminal and draws one frame.
///
/// # Panics
/// When it cannot be built: no measurement that needs it could go on.
#[expect(clippy::panic, reason = "no measurement that needs it could go on")]
pub fn bare_screen() -> PathBuf {
    build("bare-screen").unwrap_or_else(|why| panic!("the bare screen cannot be built: {why}"))
}

/// Cargo makes programs of one package for the tests of that package only; for others we ask it.
fn build(program: &str) -> Result<PathBuf, String> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // A benchmark is not to measure a server that was not made for speed.
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--offline", "--locked", "--message-format=json", "--bin", program])
        .args(["--profile", profile])
        .arg("--manifest-path")
        .arg(manifest)
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages.filter_map(|message| message.get("executable")?.as_str().map(PathBuf::from));
    programs.next_back().ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A server on the network of this machine, ended when dropped.
#[derive(Debug)]
pub struct RemoteServer {
    /// Its address.
    pub url: String,
    child: Child,
}

impl RemoteServer {
    /// Starts the server with these flags, `--http` or `--sse` among them.
    pub fn start(flags: &[&str]) -> io::Result<RemoteServer> {
        let mut child = Command::new(mcp_server()).args(flags).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let told: Option<Value> = serde_json::from_str(&line).ok();
        let url = told.as_ref().and_then(|told| told.get("url")?.as_str()).map(str::to_owned);
        url.map(|url| RemoteServer { url, child }).ok_or_else(|| io::Error::other("the server did not start"))
    }
}

impl Drop for RemoteServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
