//! Questions of servers during a call of one of their tools: to the person, and to the model.
//!
//! Only the thread that waits for the call takes up a question. At any other time questions are declined, because the
//! terminal then belongs to the conversation. A server's words are shown escaped, in full, and under its name.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ollm_mcp::{Elicit, ElicitAnswer, Ports, Reply, Sample};
use ollm_store::{cut, one_line};
use serde_json::Value;

use crate::app_context::AppContext;
use crate::port::Person;

mod form;
mod page;
mod sampling;

pub use sampling::Sampler;

/// The longest server text that a person is asked about. A longer one is declined: a yes counts only for the text that
/// was shown.
const LONGEST: usize = 512 << 10;

/// The waiting questions.
#[derive(Debug)]
pub struct Questions {
    context: AppContext,
    /// Answers questions to the model, if there is one.
    sampler: Option<Sampler>,
    sender: Mutex<Sender<PendingQuestion>>,
    waiting: Mutex<Receiver<PendingQuestion>>,
    /// The servers of the calls in progress: only they may ask.
    called: Mutex<Vec<String>>,
}

/// A question and the channel for its reply.
enum PendingQuestion {
    Person(String, Value, Reply<ElicitAnswer>),
    Model(String, Value, Reply<Result<Value, String>>),
}

/// The time of a call; dropping it declines the questions that are left.
#[derive(Debug)]
pub struct QuestionWindow<'a> {
    questions: &'a Questions,
    servers: Vec<String>,
}

impl Questions {
    /// Answers questions by the person at the terminal, if there is one, and by the model, if servers may use it.
    pub fn new(context: &AppContext, sampler: Option<Sampler>) -> Option<Arc<Questions>> {
        let (sender, waiting) = channel();
        let asks = context.person.is_some();
        let sampler = sampler.filter(|sampler| asks || sampler.needs_nobody());
        (asks || sampler.is_some()).then(|| {
            Arc::new(Questions {
                context: context.clone(),
                sampler,
                sender: Mutex::new(sender),
                waiting: Mutex::new(waiting),
                called: Mutex::default(),
            })
        })
    }

    /// The ports for servers.
    pub fn ports(self: &Arc<Self>) -> Ports {
        Ports {
            elicit: self.context.person.is_some().then(|| Arc::clone(self) as Arc<dyn Elicit>),
            sample: self.sampler.is_some().then(|| Arc::clone(self) as Arc<dyn Sample>),
            ..Ports::default()
        }
    }

    /// Accepts questions of these servers until the returned value is dropped.
    pub fn open(&self, servers: Vec<String>) -> QuestionWindow<'_> {
        self.called().extend(servers.iter().cloned());
        QuestionWindow { questions: self, servers }
    }

    /// Uses another model for answers from now on.
    pub fn set_model(&self, name: &str) {
        if let Some(sampler) = &self.sampler {
            sampler.set_model(name);
        }
    }

    /// Answers the next question, if there is one; `over` says that the caller no longer waits for the call.
    pub fn attend(&self, over: &dyn Fn() -> bool) {
        // The thread with the lock is asking the person; one question at a time is enough.
        let Ok(waiting) = self.waiting.try_lock() else { return };
        match waiting.try_recv() {
            Ok(PendingQuestion::Person(server, question, reply)) => {
                let over = || over() || !reply.is_awaited();
                let answer = match &self.context.person {
                    None => ElicitAnswer::Decline,
                    Some(person) if question.get("url").is_some() => page::ask(&server, &question, &**person, &over),
                    Some(person) => form::ask(&server, &question, &**person, &over),
                };
                reply.send(answer);
            }
            Ok(PendingQuestion::Model(server, request, reply)) => {
                let over = || over() || !reply.is_awaited();
                let nobody = || Err("no person answers for the model here".to_owned());
                let answer = self
                    .sampler
                    .as_ref()
                    .map_or_else(nobody, |sampler| sampler.answer(&server, &request, &self.context, &over));
                reply.send(answer);
            }
            Err(_) => {}
        }
    }

    fn called(&self) -> MutexGuard<'_, Vec<String>> {
        self.called.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, server: &str, asked: PendingQuestion) {
        // A dropped reply declines.
        if self.called().iter().any(|called| called == server) {
            let _ = self.sender.lock().unwrap_or_else(PoisonError::into_inner).send(asked);
        }
    }
}

impl Drop for QuestionWindow<'_> {
    fn drop(&mut self) {
        let mut called = self.questions.called();
        for server in &self.servers {
            if let Some(at) = called.iter().position(|one| one == server) {
                called.swap_remove(at);
            }
        }
        if called.is_empty()
            && let Ok(waiting) = self.questions.waiting.try_lock()
        {
            waiting.try_iter().for_each(drop);
        }
    }
}

impl Elicit for Questions {
    fn elicit(&self, server: &str, question: Value, reply: Reply<ElicitAnswer>) {
        self.ask(server, PendingQuestion::Person(server.to_owned(), question, reply));
    }
}

impl Sample for Questions {
    fn sample(&self, server: &str, request: Value, reply: Reply<Result<Value, String>>) {
        self.ask(server, PendingQuestion::Model(server.to_owned(), request, reply));
    }
}

/// A server's text, each line after a bar so that it cannot pass for ours. An error if the text is too long.
fn quoted(text: &str) -> Result<String, String> {
    if text.len() > LONGEST {
        return Err(format!("it has {} bytes, and {LONGEST} is the most that is shown", text.len()));
    }
    Ok(text.lines().fold(String::new(), |all, line| all + "  | " + &one_line(line) + "\n"))
}

/// Tells the person that a server's question is too long to be asked.
fn too_long(server: &str, why: &str, person: &dyn Person) -> ElicitAnswer {
    person.say(&format!("\nServer `{}` asks for too much at once; it was declined: {why}\n", word(server)));
    ElicitAnswer::Decline
}

/// A server's word inside a line of ours.
fn word(text: &str) -> String {
    one_line(&cut(text, 200))
}

/// Asks the person a question with three choices.
fn consent(question: &str, person: &dyn Person, over: &dyn Fn() -> bool) -> Option<ElicitAnswer> {
    match person.ask(question, over)?.to_lowercase().as_str() {
        "y" | "yes" => Some(ElicitAnswer::Accept(None)),
        "n" | "no" => Some(ElicitAnswer::Decline),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_server_are_shown_whole_or_not_at_all() {
        let words = "word \u{1b}[2J\n".repeat(1000);
        assert_eq!(quoted(&words), Ok("  | word \\u{1b}[2J\n".repeat(1000)));
        assert!(quoted(&"x".repeat(LONGEST + 1)).unwrap_err().contains("is the most"));
    }
}
