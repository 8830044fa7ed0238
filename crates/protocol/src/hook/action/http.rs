//! `http`: posts the event to an address.

use serde::{Deserialize, Serialize};

use super::{Action, ActionDescriptor, ActionSpec, ActionText, ActionType, HttpTarget, Needs, short};
use crate::event::EventKind;
use crate::hook::key::{HookKey, KeyKind, ROW, TextForm, text};
use crate::hook::{Endpoint, Header, HookError, HookSpec, Rules};

/// An address that the event is posted to, as declared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HttpSpec {
    /// The address.
    pub url: String,
    /// Headers in addition to our own.
    pub headers: Vec<(String, String)>,
}

impl HttpSpec {
    pub(super) const TYPE: &ActionType = &ActionType {
        name: "http",
        about: "Posts the event to an address",
        keys: &[
            HookKey {
                name: "url",
                about: "The address",
                required: true,
                kind: KeyKind::Text(text("text that is not empty", TextForm::Word), field!(Http.url)),
                approved: part!(Http.url),
                ..ROW
            },
            HookKey {
                name: "headers",
                about: "Headers beside our own; a value may name a variable as ${NAME}",
                kind: KeyKind::Headers(field!(Http.headers)),
                approved: part!(Http.headers),
                ..ROW
            },
        ],
        blank: Some(|| ActionSpec::Http(HttpSpec::default())),
    };
}

impl ActionDescriptor for HttpSpec {
    fn kind(&self) -> &'static ActionType {
        HttpSpec::TYPE
    }

    fn check(&self, hook: &HookSpec, _: &[EventKind], _: &Rules) -> Result<Action, HookError> {
        let headers = self.headers.iter().map(|(name, value)| Header::parse(name, value, &hook.pass_env));
        let endpoint = Endpoint::parse(&self.url)?;
        Ok(Action::Post(HttpTarget { endpoint, headers: headers.collect::<Result<_, _>>()? }))
    }

    fn needs(&self) -> Needs<'_> {
        Needs::Address(&self.url)
    }

    fn words(&self) -> Vec<&str> {
        vec![HttpSpec::TYPE.name, &self.url]
    }

    fn title(&self) -> String {
        short(&self.url)
    }

    fn summary(&self) -> String {
        format!("POST {}", self.url)
    }

    fn shown(&self) -> ActionText<'_> {
        ActionText::Text(self.summary())
    }

    fn headers(&self) -> &[(String, String)] {
        &self.headers
    }
}
