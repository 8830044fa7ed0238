//! Sends the messages of one dispatch to the bus. A message is built only if there is a listener.

use std::sync::Arc;

use ollm_protocol::{Event, Hook};

use super::{Bus, Message, MessageBody};
use crate::report::{Report, Status};
use ollm_trust::Trust;

/// Sends the messages of one dispatch to the bus.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire<'a> {
    pub(crate) bus: &'a Bus,
    /// The clock for the times of messages.
    pub(crate) clock: &'a Trust,
    pub(crate) trace_id: &'a str,
}

impl Wire<'_> {
    pub(crate) fn listened(&self) -> bool {
        self.bus.is_listened()
    }

    pub(crate) fn event(&self, event: &Event) {
        // Events may hold a whole conversation, so only a wanted one is copied.
        if self.bus.wants(event) {
            self.tell(event, MessageBody::Event(event.clone()));
        }
    }

    pub(crate) fn starts(&self, hook: &Arc<Hook>, event: &Event) {
        if self.listened() {
            let body = MessageBody::HookStart {
                hook: Arc::clone(hook),
                hook_type: hook.dialect.spell(event.kind),
                hook_command: hook.spec.action.descriptor().summary(),
                context: event.clone(),
            };
            self.tell(event, body);
        }
    }

    pub(crate) fn ends(&self, report: &Report, event: &Event) {
        if self.listened() {
            self.tell(event, ended(report, event));
        }
    }

    fn tell(&self, event: &Event, body: MessageBody) {
        self.bus.emit(Message {
            sequence: 0,
            timestamp: self.clock.now(),
            session_id: event.session_id().map(str::to_owned),
            trace_id: Some(self.trace_id.to_owned()),
            body,
        });
    }
}

fn ended(report: &Report, event: &Event) -> MessageBody {
    let hook = Arc::clone(&report.hook);
    let (hook_type, hook_command) = (hook.dialect.spell(event.kind), hook.spec.action.descriptor().summary());
    let result = Box::new(report.clone());
    match report.status {
        Status::Ok | Status::Blocked => MessageBody::HookComplete { hook, hook_type, hook_command, result },
        Status::Failed | Status::Timeout => {
            let error = report.error.clone().unwrap_or_else(|| report.status.name().to_owned());
            MessageBody::HookError { hook, hook_type, hook_command, error, result }
        }
    }
}
