//! Has a conversation with a recorded model.

#![expect(clippy::print_stdout, reason = "the point of the program")]

use std::time::SystemTime;

use ollm_agent::{
    Approval, Cancel, Decision, Events, Limits, NobodyAsked, Opening, Ports, Replay, Session, Settings, ShellSettings,
};

struct NoHooks;
impl Events for NoHooks {
    fn dispatch(&mut self, _: &ollm_protocol::Event) -> Decision {
        Decision::default()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let settings = Settings {
        session_id: ollm_agent::session_id(SystemTime::now()),
        user: None,
        cwd: folder.path().to_owned(),
        allowed: Vec::new(),
        system_prompt: String::new(),
        temperature: None,
        approval: Approval::Ask,
        shell: ShellSettings::new(Vec::new(), folder.path()),
        limits: Limits::default(),
    };
    let (events, approve, show) = (Box::new(NoHooks), Box::new(NobodyAsked), Box::new(ollm_agent::Unseen));
    let ports = Ports { events, approve, show, sources: Vec::new(), clock: SystemTime::now };
    let model = Box::new(Replay::parse("talk".as_ref(), r#"{"content": "Good morning."}"#)?);
    let (messages, cancel) = (Vec::new(), Cancel::default());
    let mut session = Session::start(Opening { settings, ports, model, transcript: None, messages, cancel })?;
    let turns = session.say("Hello", None);
    println!("{turns:?}");
    assert_eq!(turns.first().map(|turn| turn.response.as_str()), Some("Good morning."));
    Ok(())
}
