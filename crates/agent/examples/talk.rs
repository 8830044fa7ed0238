//! Has a conversation with a recorded model.

#![expect(clippy::print_stdout, reason = "the point of the program")]

use std::time::SystemTime;

use ollm_agent::{Decision, Events, Opening, Ports, Replay, Session, Settings, ShellSettings};

struct NoHooks;
impl Events for NoHooks {
    fn dispatch(&mut self, _: &ollm_protocol::Event) -> Decision {
        Decision::default()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let shell = ShellSettings::new(Vec::new(), folder.path());
    let settings = Settings::new(ollm_agent::session_id(SystemTime::now()), folder.path(), shell);
    let ports = Ports::new(NoHooks, SystemTime::now);
    let model = Replay::parse("talk".as_ref(), r#"{"content": "Good morning."}"#)?;
    let mut session = Session::start(Opening::new(settings, ports, model))?;
    let turns = session.say("Hello", None);
    println!("{turns:?}");
    assert_eq!(turns.first().map(|turn| turn.response.as_str()), Some("Good morning."));
    Ok(())
}
