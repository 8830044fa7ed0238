//! A conversation that grew too long is made shorter, and hooks hear of it.

use ollm_protocol::EventKind;
use serde_json::{Value, json};

use super::Session;
use super::turn::Tally;

/// The share of the conversation that one result may keep when room is made.
const SHARE: usize = 8;

impl Session<'_> {
    /// Makes room if there is none, unless a hook objects.
    pub(super) fn make_room(&mut self, tally: &mut Tally) {
        let (size, most) = (self.talk.size(), self.settings.limits.context);
        if size <= most || tally.keep_all {
            return;
        }
        let (size, most): (Value, Value) = (size.into(), most.into());
        let utilization = self.utilization();
        self.emit(
            EventKind::ContextOverflow,
            [("size", size.clone()), ("maxSize", most.clone()), ("utilization", utilization.into())],
        );
        let fields = [("trigger", "auto".into()), ("size", size), ("maxSize", most)];
        let decision = self.emit(EventKind::PreCompress, fields);
        if self.passes(EventKind::PreCompress, &decision).is_err() {
            tally.keep_all = true;
            return;
        }
        let summary = self.shorten();
        let now = self.talk.size();
        // What is left cannot be made shorter: trying again at every step would only make noise.
        tally.keep_all = now > self.settings.limits.context;
        self.emit(
            EventKind::PostCompress,
            [
                ("trigger", "auto".into()),
                ("size", now.into()),
                ("maxSize", self.settings.limits.context.into()),
                ("summary", summary.clone().into()),
            ],
        );
        self.status(&format!("the conversation was made shorter: {summary}"));
    }

    fn shorten(&mut self) -> String {
        let most = self.settings.limits.context;
        let squeeze = self.talk.squeeze(most);
        if let Some(squeeze) = &squeeze {
            self.talk.apply(squeeze);
            self.note(json!({"compressed": squeeze.to_json()}));
        }
        if self.talk.size() > most {
            self.talk.shorten(most / SHARE);
        }
        squeeze.map_or_else(|| "long results were cut".to_owned(), |squeeze| squeeze.summary)
    }

    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    fn utilization(&self) -> f64 {
        let ratio = self.talk.size() as f64 / self.settings.limits.context.max(1) as f64;
        (ratio * 1000.0).round() / 1000.0
    }
}
