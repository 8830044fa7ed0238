//! Asks the application whether a tool call may happen.

#![expect(clippy::print_stdout, reason = "the point of the program")]

use ollm_app::App;
use ollm_protocol::Event;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let app = App::builder(home.path(), home.path()).build()?;
    app.problems.iter().for_each(|problem| println!("{problem}"));
    let outcome = app.dispatch(&Event::before_tool("shell", [("command", "rm -rf ~".into())]));
    println!("{:?}", outcome.verdict);
    assert!(!outcome.continues(), "the guards are on by default");
    Ok(())
}
