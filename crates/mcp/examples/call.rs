//! Starts an MCP server, calls one of its tools, and ends the server.

#![expect(clippy::print_stdout, reason = "the point of the program")]

use std::sync::Arc;

use ollm_mcp::{BlockingClient, Call, ClientContext, Endpoint, Ports, ReadyServer, ServerMemory, Settings};
use ollm_process::{Children, Limits};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = ClientContext::new(Settings::default(), Ports::default(), Arc::new(Children::new()));
    let client = BlockingClient::new(Arc::new(context))?;
    // Any program that speaks MCP on its standard streams.
    let program = testkit::mcp_server().into();
    let endpoint =
        Endpoint::Stdio { program, args: vec![], env: vec![], cwd: None, limits: Limits::default(), program_box: None };
    client.add(ReadyServer::new("trial", endpoint), ServerMemory::default());
    client.start("trial")?;
    let args = [("text".to_owned(), "hello".into())].into_iter().collect();
    let result = client.call("trial", Call { tool: "echo".into(), args, ..Call::default() })?.wait()?;
    println!("{result}");
    assert_eq!(result.pointer("/content/0/text"), Some(&json!("hello")));
    client.close();
    Ok(())
}
