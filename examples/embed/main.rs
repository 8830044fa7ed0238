//! One prompt with hooks, MCP tools and approval, in a program of one's own:
//!
//!     embed MODEL PROMPT, for instance: embed ollama:llama3.2 "Which files are here?"

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the door of this program")]

use std::error::Error;
use std::io::{IsTerminal, Write, stdin, stdout};

use ollm_agent::{Approve, Consent, News, Request, Show};
use ollm_app::session::{PromptPorts, SessionOptions, run_prompt};
use ollm_app::{App, SharedPort};
use ollm_store::escape_for_people;
use ollm_trust::{Approver, Choice, Question};

/// The person at the terminal.
#[derive(Debug)]
struct Terminal;

/// Without a terminal the answer is no.
fn yes(question: &str) -> bool {
    print!("{question} [y/N] ");
    let mut answer = String::new();
    stdin().is_terminal() && stdout().flush().is_ok() && stdin().read_line(&mut answer).is_ok() && answer.trim() == "y"
}

/// Tool calls that need consent.
impl Approve for Terminal {
    fn ask(&mut self, request: &Request) -> Consent {
        let args = request.details.get("args").map(ToString::to_string).unwrap_or_default();
        if yes(&format!("{} {args}: may it run?", request.operation)) { Consent::Yes } else { Consent::No }
    }
}

/// Hooks that lack an approval.
impl Approver for Terminal {
    fn ask(&self, question: &Question<'_>) -> Choice {
        let review = question.review;
        println!("{}", escape_for_people(&review.to_string()));
        let asked = format!("hook {} is not approved: may it run this time?", question.id);
        // A yes does not count for content that could not be shown.
        if review.unshown.is_empty() && yes(&asked) { Choice::Once } else { Choice::No }
    }
}

impl Show for Terminal {
    fn show(&mut self, news: &News<'_>) {
        match news {
            News::Answered { content } => println!("{content}"),
            News::Calling { name, .. } => println!("-> {name}"),
            News::Refused { event, hook, reason, .. } => println!("refused at {}: {hook}: {reason}", event.name()),
            News::Note(note) => println!("{}: {}", note.hook, note.text),
            News::Error(text) => println!("error: {text}"),
            _ => {}
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(model), Some(prompt)) = (words.next(), words.next()) else {
        return Err("embed MODEL PROMPT".into());
    };
    let home = std::env::home_dir().ok_or("there is no home")?;
    let app = App::builder(home, std::env::current_dir()?)
        .variables(std::env::vars_os())
        .approver(Box::new(Terminal))
        .build()?;
    app.problems.iter().for_each(|problem| eprintln!("{problem}"));
    let mut options = SessionOptions::default();
    options.model = Some(model);
    let mut ports = PromptPorts::default();
    (ports.approve, ports.show) = (Box::new(Terminal), Box::new(Terminal));
    let notices = SharedPort::new(Vec::<String>::new());
    let ran = run_prompt(app, &options, (&prompt, None), ports, &notices)?;
    notices.into_inner().iter().for_each(|notice| eprintln!("{notice}"));
    println!("ended: {:?}", ran.turns?.first().map(|turn| &turn.end));
    Ok(())
}
