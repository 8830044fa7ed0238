//! A conversation on a thread of its own, shown in the panel of the chat.

use std::sync::mpsc::{Receiver, TryRecvError};

use ollm_agent::{Cancel, Message, News, Show};
use ollm_app::{SharedPort, WakeSignal};
use ollm_engine::bus::Bus;
use ollm_store::{escape_for_people, one_line};

use super::super::screen::Screen;
use super::log::Speaker;
use crate::command::chat::front::{ChatFront, ChatStatus, Input, Upcoming, on_hooks};
use crate::command::chat::last_words;
use crate::display::told;
use crate::output::Output;

/// News of the conversation for the panel. All text in it is escaped.
#[derive(Debug)]
pub(crate) enum ChatNews {
    /// A complete entry.
    Entry(Speaker, String),
    /// More of the model's words or thoughts.
    More(Speaker, String),
    /// The model's words are complete.
    Whole,
    /// The running tool, if there is one.
    Tool(Option<String>),
    /// The running hook, if there is one.
    Hook(Option<String>),
    /// This input of the person is handled now.
    Begins(String),
    /// Whether an input is being handled.
    Working(bool),
    Status(ChatStatus),
    /// The conversation is over, and another one begins.
    Renewed,
}

pub(crate) struct PanelFront {
    pub(crate) screen: Screen,
    pub(crate) lines: Receiver<String>,
    /// Woken with each line, and at the end.
    pub(crate) wake: WakeSignal,
    pub(crate) cancel: Cancel,
}

impl ChatFront for PanelFront {
    fn show<'a, 'o: 'a>(&mut self, _: &'a SharedPort<&'o mut Output>, _: &Cancel) -> Box<dyn Show + 'a> {
        Box::new(PanelShow { screen: self.screen.clone() })
    }

    fn listen(&mut self, bus: &Bus) {
        let screen = self.screen.clone();
        on_hooks(bus, move |hook| screen.chat(ChatNews::Hook(hook)));
    }

    fn wake(&self) -> WakeSignal {
        self.wake.clone()
    }

    fn next(&mut self, upcoming: &mut dyn FnMut() -> Upcoming) -> Input {
        loop {
            match self.lines.try_recv() {
                // Waiting inputs are not begun when the conversation ends.
                _ if self.cancel.is_final() => return Input::End,
                Ok(line) => {
                    self.screen.chat(ChatNews::Begins(escape_for_people(&line).into_owned()));
                    return Input::Text(line);
                }
                Err(TryRecvError::Disconnected) => return Input::End,
                Err(TryRecvError::Empty) => {}
            }
            self.wake.wait(match upcoming() {
                Upcoming::Now => return Input::Other,
                Upcoming::Within(pause) => Some(pause),
                Upcoming::OnWake => None,
            });
        }
    }

    fn renew(&mut self) {
        self.screen.chat(ChatNews::Renewed);
    }

    fn work(&mut self, is_working: bool) {
        self.screen.chat(ChatNews::Working(is_working));
    }

    fn status(&mut self, status: &ChatStatus) {
        self.screen.chat(ChatNews::Status(status.clone()));
    }

    fn recap(&mut self, messages: &[Message], _: &SharedPort<&mut Output>) {
        for (who, words) in last_words(messages) {
            let speaker = if who == "you" { Speaker::You } else { Speaker::Model };
            self.screen.chat(ChatNews::Entry(speaker, words));
        }
    }
}

/// Shows a session in the panel as it happens.
struct PanelShow {
    screen: Screen,
}

impl Show for PanelShow {
    fn show(&mut self, news: &News<'_>) {
        match news {
            News::Text(text) => self.more(Speaker::Model, text),
            News::Thought(text) => self.more(Speaker::Thought, text),
            // The status line counts.
            News::Waiting { .. } => {}
            News::Answered { .. } => self.screen.chat(ChatNews::Whole),
            news => self.entry(news),
        }
    }
}

impl PanelShow {
    fn more(&self, speaker: Speaker, text: &str) {
        self.screen.chat(ChatNews::More(speaker, escape_for_people(text).into_owned()));
    }

    fn entry(&self, news: &News<'_>) {
        match news {
            News::Calling { name, .. } => self.screen.chat(ChatNews::Tool(Some(one_line(name)))),
            News::Called { .. } => self.screen.chat(ChatNews::Tool(None)),
            _ => {}
        }
        if let Some(told) = told(news) {
            let speaker = if told.is_failure { Speaker::Failure } else { Speaker::Note };
            self.screen.chat(ChatNews::Entry(speaker, one_line(&told.text)));
        }
        if let News::Called { diff: Some(diff), failed: false, .. } = news {
            self.screen.chat(ChatNews::Entry(Speaker::Difference, escape_for_people(diff).into_owned()));
        }
    }
}
