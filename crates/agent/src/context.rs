//! How much of the model's window a conversation fills, in tokens.
//!
//! The provider's count of the last question is exact. Later messages are estimated from their bytes, by the ratio of
//! the earlier counts. What was learnt is saved with each answer, for the program that continues the conversation.

use ollm_store::digest_bytes;
use serde_json::{Value, json};

/// The assumed bytes per token before the first count.
const BYTES_PER_TOKEN: f64 = 3.5;
/// A count outside these ratios cannot be of the same text.
const PLAUSIBLE: std::ops::RangeInclusive<f64> = 1.0..=12.0;
/// The window that is assumed if neither the person nor the server gives one.
const ASSUMED: u64 = 100_000;
/// The fewest tokens to which a server may have cut a question.
const LEAST_READ: u64 = 512;
/// If a server counts fewer tokens than bytes divided by `THIN` in at least this many bytes, it did not read the whole
/// text.
const LARGE: usize = 8 << 10;
const THIN: usize = 8;
/// The percentage of the window at which the conversation is shortened. The rest is for the answer and the next
/// results.
const FULL: u64 = 80;

/// Knows the window, and measures a conversation against it.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    /// The window that the person or the server gives.
    told: Option<u64>,
    /// The window learnt from a refusal or from silently lost messages.
    learnt: Option<u64>,
    bytes_per_token: f64,
    counted: Option<CountedQuestion>,
    /// The provider's last count, trusted or not.
    last_read: Option<u64>,
    /// Whether its counts have turned out to be made up.
    is_doubted: bool,
    /// Whether the person was told that a server may have read only a part of a question.
    has_suspected: bool,
    /// Whether the model reads the offered tools; some templates leave them out.
    reads_tools: bool,
    /// The window that was told when an earlier program learnt this; 0 if none was told.
    told_then: Option<u64>,
}

/// What a program learnt of a model's window and of its server's counts, for the program that continues the
/// conversation.
#[derive(Clone, Debug)]
pub struct SavedCounts {
    /// The model and its server.
    of: String,
    meter: Meter,
}

/// A question as the provider counted it.
#[derive(Clone, Copy, Debug)]
struct CountedQuestion {
    bytes: usize,
    tokens: u64,
    /// The tokens of the question alone.
    read: u64,
}

/// The size of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) tokens: u64,
    /// Whether a part of it is an estimate.
    pub(crate) estimated: bool,
}

impl Default for Meter {
    fn default() -> Meter {
        Meter {
            told: None,
            learnt: None,
            bytes_per_token: BYTES_PER_TOKEN,
            counted: None,
            last_read: None,
            is_doubted: false,
            has_suspected: false,
            reads_tools: true,
            told_then: None,
        }
    }
}

impl SavedCounts {
    /// The saved form; `None` if nothing was learnt.
    fn to_json(&self) -> Option<Value> {
        let Meter { told, learnt, bytes_per_token, counted, last_read, is_doubted, has_suspected, reads_tools, .. } =
            self.meter;
        (learnt.is_some() || last_read.is_some() || is_doubted).then(|| {
            json!({
                "of": self.of,
                "told": told,
                "learnt": learnt,
                "bytesPerToken": bytes_per_token,
                "bytes": counted.map(|counted| counted.bytes),
                "tokens": counted.map(|counted| counted.tokens),
                "read": counted.map(|counted| counted.read),
                "lastRead": last_read,
                "doubted": is_doubted,
                "suspected": has_suspected,
                "readsTools": reads_tools,
            })
        })
    }

    /// Reads the saved form.
    pub(crate) fn from_json(saved: &Value) -> Option<SavedCounts> {
        let number = |name: &str| saved.get(name).and_then(Value::as_u64);
        let is_true = |name: &str| saved.get(name).and_then(Value::as_bool);
        let ratio = saved.get("bytesPerToken")?.as_f64().filter(|ratio| PLAUSIBLE.contains(ratio))?;
        let counted = || {
            let bytes = usize::try_from(number("bytes")?).ok()?;
            Some(CountedQuestion { bytes, tokens: number("tokens")?, read: number("read")? })
        };
        let meter = Meter {
            told: None,
            learnt: number("learnt"),
            bytes_per_token: ratio,
            counted: counted(),
            last_read: number("lastRead"),
            is_doubted: is_true("doubted")?,
            has_suspected: is_true("suspected")?,
            reads_tools: is_true("readsTools")?,
            told_then: Some(number("told").unwrap_or(0)),
        };
        Some(SavedCounts { of: saved.get("of")?.as_str()?.to_owned(), meter })
    }

    /// Forgets the count, because the conversation became shorter afterwards.
    pub(crate) fn forget_count(&mut self) {
        self.meter.forget_count();
    }
}

/// Names a model and its server, without revealing what an address may contain.
fn name_of(model: &str, server: Option<&str>) -> String {
    digest_bytes(format!("{model}\n{}", server.unwrap_or_default()).as_bytes()).hex()
}

impl Meter {
    /// Continues with what an earlier program learnt of the same model at the same server.
    pub(crate) fn recalled(saved: Option<SavedCounts>, model: &str, server: Option<&str>) -> Meter {
        saved.filter(|saved| saved.of == name_of(model, server)).map(|saved| saved.meter).unwrap_or_default()
    }

    /// What was learnt, to be saved; `None` if there is nothing.
    pub(crate) fn to_json(&self, model: &str, server: Option<&str>) -> Option<Value> {
        SavedCounts { of: name_of(model, server), meter: self.clone() }.to_json()
    }

    /// Sets the window that the person or the server gives. If an earlier program was told another one, what it learnt
    /// of the window no longer holds.
    pub(crate) fn tell(&mut self, window: Option<u64>) {
        self.told = window.filter(|window| *window > 0);
        if let (Some(then), Some(now)) = (self.told_then, self.told)
            && then != now
        {
            (self.told_then, self.learnt) = (None, None);
        }
    }

    /// Lowers the window after a refusal or a loss.
    pub(crate) fn learn(&mut self, window: u64) {
        self.learnt = Some(self.learnt.map_or(window, |known| known.min(window)));
    }

    /// Learns from the refusal of a conversation of this many bytes: it has more tokens than the window, even if we
    /// assumed a larger window.
    pub(crate) fn refuse(&mut self, bytes: usize, window: Option<u64>, sent: Option<u64>) {
        let taken = self.size(bytes).tokens;
        let window = window.unwrap_or_else(|| taken.saturating_mul(4) / 5);
        self.learn(window);
        let tokens = sent.unwrap_or(taken).max(window.saturating_add(1));
        self.bytes_per_token = plausible(bytes, tokens).unwrap_or(self.bytes_per_token);
        self.counted = None;
    }

    /// Forgets everything, because another model counts differently.
    pub(crate) fn reset(&mut self) {
        *self = Meter::default();
    }

    /// The window in tokens, if it is known.
    pub(crate) fn known_window(&self) -> Option<u64> {
        match (self.told, self.learnt) {
            (Some(told), Some(learnt)) => Some(told.min(learnt)),
            (told, learnt) => told.or(learnt),
        }
    }

    /// The window in tokens, or the assumed one.
    pub(crate) fn window(&self) -> u64 {
        self.known_window().unwrap_or(ASSUMED)
    }

    /// The size of a conversation of this many bytes.
    pub(crate) fn size(&self, bytes: usize) -> Size {
        match self.counted {
            Some(counted) if bytes == counted.bytes => Size { tokens: counted.tokens, estimated: false },
            Some(counted) if bytes > counted.bytes => {
                let more = self.tokens(bytes - counted.bytes);
                Size { tokens: counted.tokens.saturating_add(more), estimated: true }
            }
            _ => Size { tokens: self.tokens(bytes), estimated: true },
        }
    }

    /// Whether a conversation of this size leaves too little room.
    pub(crate) fn is_full(&self, size: Size) -> bool {
        size.tokens >= self.window().saturating_mul(FULL) / 100
    }

    /// The part of the window that a size takes, from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub(crate) fn utilization(&self, size: Size) -> f64 {
        let ratio = size.tokens as f64 / self.window().max(1) as f64;
        ((ratio * 1000.0).round() / 1000.0).min(1.0)
    }

    /// About how many bytes this many tokens are.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate"
    )]
    pub(crate) fn bytes(&self, tokens: u64) -> usize {
        (tokens as f64 * self.bytes_per_token) as usize
    }

    /// About how many tokens this many bytes are.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate"
    )]
    pub(crate) fn tokens(&self, bytes: usize) -> u64 {
        (bytes as f64 / self.bytes_per_token).ceil() as u64
    }

    /// The bytes of a question that the model reads: the conversation, and the tools if the model reads them.
    pub(crate) fn read_bytes(&self, talk: usize, tools: usize) -> usize {
        if self.reads_tools { talk + tools } else { talk }
    }

    /// Records the provider's count of a question and of its answer. Returns how many tokens were lost, if the server
    /// dropped messages.
    pub(crate) fn count(&mut self, asked: SentQuestion, (answer, written): (usize, u64)) -> Option<u64> {
        if self.is_doubted {
            return None;
        }
        let SentQuestion { talk, tools, read } = asked;
        self.last_read = Some(read);
        let lost = self.lost(self.read_bytes(talk, tools), read);
        if lost.is_some() {
            // Without an earlier count, the loss was found by the server's own window, so nothing new is learnt.
            if self.counted.take().is_some() {
                self.learn(read.saturating_add(written));
            }
            return lost;
        }
        let with_tools = plausible(talk + tools, read);
        let ratio = with_tools.or_else(|| plausible(talk, read))?;
        self.reads_tools = with_tools.is_some();
        self.bytes_per_token = ratio;
        let bytes = self.read_bytes(talk, tools) + answer;
        self.counted = Some(CountedQuestion { bytes, tokens: read.saturating_add(written), read });
        None
    }

    /// How many tokens the server dropped, if it did. A server that drops the oldest messages counts less than before,
    /// and less than its window; or its count stays the same while the conversation grows. For a first question it
    /// counts far less than was sent. If the window is unknown, a far too low count for a large addition also shows a
    /// loss.
    fn lost(&self, bytes: usize, read: u64) -> Option<u64> {
        // Some servers count only new text; that is far less than any window.
        let window = self.known_window();
        if read < LEAST_READ || window.is_some_and(|window| read > window || read < window / 4) {
            return None;
        }
        let expected = self.size(bytes).tokens;
        // With fewer tools on offer, a question is smaller than the one before, and so is its count.
        let is_lost = match self.counted.filter(|counted| bytes >= counted.bytes) {
            None => expected > read.saturating_mul(2) && window.is_some_and(|window| expected > window),
            Some(CountedQuestion { bytes: counted, tokens: before, read: last }) => {
                let stays = read.abs_diff(last) <= last / 100 && expected > read.saturating_add(read / 25);
                let shrank = read < before.saturating_mul(9) / 10;
                let is_thin = is_thin(bytes.saturating_sub(counted), read.saturating_sub(before));
                stays || shrank || (window.is_none() && is_thin && expected > read.saturating_add(read / 2))
            }
        };
        is_lost.then(|| expected.saturating_sub(read))
    }

    /// The expected count of a first question, if the server's count is so low that it may have read only a part, and
    /// the window is unknown. Returned only once.
    pub(crate) fn suspects(&mut self, asked: SentQuestion) -> Option<u64> {
        let bytes = self.read_bytes(asked.talk, asked.tools);
        let is_odd = self.counted.is_none() && self.known_window().is_none() && asked.read >= LEAST_READ;
        let is_odd = is_odd && !self.is_doubted && plausible(bytes, asked.read).is_none();
        let expected = self.size(bytes).tokens;
        (is_odd && expected > asked.read && !std::mem::replace(&mut self.has_suspected, true)).then_some(expected)
    }

    /// Checks the provider's counts with its count of another, short question. If that equals the count of the
    /// conversation, the counts are made up: forgets everything learnt from them, and returns true.
    pub(crate) fn unmasks(&mut self, bytes: usize, read: u64) -> bool {
        let is_same = self.last_read.is_some_and(|last| read.abs_diff(last) <= last / 100);
        let is_made_up = !self.is_doubted && is_same && self.tokens(bytes) < read / 2;
        if is_made_up {
            *self = Meter { told: self.told, is_doubted: true, ..Meter::default() };
        }
        is_made_up
    }

    /// Continues with the count of another moment.
    pub(crate) fn recall_count(&mut self, then: &Meter) {
        self.counted = then.counted;
    }

    /// Prepares for a shorter conversation: the present one has this many bytes, and its count will no longer apply.
    /// The rest is estimated by the same ratio, because it cannot exceed the whole.
    pub(crate) fn settle(&mut self, bytes: usize) {
        self.bytes_per_token = plausible(bytes, self.size(bytes).tokens).unwrap_or(self.bytes_per_token);
        self.counted = None;
    }

    /// Forgets the count, because another conversation continues.
    pub(crate) fn forget_count(&mut self) {
        self.counted = None;
    }
}

/// A question with the provider's count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentQuestion {
    /// The bytes of the conversation.
    pub(crate) talk: usize,
    /// The bytes of the tools on offer.
    pub(crate) tools: usize,
    /// The tokens that the provider counted.
    pub(crate) read: u64,
}

/// Whether a server's count for a text is too low for the whole text.
fn is_thin(bytes: usize, tokens: u64) -> bool {
    bytes >= LARGE && tokens < (bytes / THIN) as u64
}

/// The bytes per token, if the ratio is plausible.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn plausible(bytes: usize, tokens: u64) -> Option<f64> {
    Some(bytes as f64 / tokens.max(1) as f64).filter(|ratio| PLAUSIBLE.contains(ratio))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(talk: usize, read: u64) -> SentQuestion {
        SentQuestion { talk, tools: 0, read }
    }

    #[test]
    fn tools_that_a_template_leaves_out_do_not_count() {
        let mut meter = Meter::default();
        assert_eq!(meter.read_bytes(400, 5000), 5400);
        meter.count(SentQuestion { talk: 400, tools: 5000, read: 100 }, (40, 10));
        assert_eq!(meter.read_bytes(400, 5000), 400);
        assert_eq!(meter.size(440), Size { tokens: 110, estimated: false });
    }

    #[test]
    fn the_providers_count_is_the_truth_and_only_what_came_since_is_estimated() {
        let mut meter = Meter::default();
        assert_eq!(meter.size(3500), Size { tokens: 1000, estimated: true });
        assert_eq!(meter.count(asked(4000, 1000), (400, 100)), None);
        assert_eq!(meter.size(4400), Size { tokens: 1100, estimated: false });
        assert_eq!(meter.size(4800), Size { tokens: 1200, estimated: true });
        meter.settle(4800);
        assert_eq!(meter.size(2400), Size { tokens: 600, estimated: true }, "the ratio stays");
    }

    #[test]
    fn a_provider_that_lies_about_tokens_is_not_believed() {
        let mut meter = Meter::default();
        for read in [1, 1_000_000] {
            meter.count(asked(4000, read), (0, 0));
            assert_eq!(meter.size(3500), Size { tokens: 1000, estimated: true }, "{read}");
        }
    }

    #[test]
    fn room_is_made_before_the_window_is_exceeded() {
        let mut meter = Meter::default();
        meter.tell(Some(2000));
        let size = |tokens| Size { tokens, estimated: true };
        assert!(!meter.is_full(size(1599)) && meter.is_full(size(1600)));
        assert!((meter.utilization(size(1600)) - 0.8).abs() < f64::EPSILON);
        assert!((meter.utilization(size(9000)) - 1.0).abs() < f64::EPSILON);
        meter.learn(1000);
        assert_eq!(meter.window(), 1000, "what a refusal shows is less than what was told");
        meter.learn(1500);
        assert_eq!(meter.window(), 1000);
    }

    #[test]
    fn a_refusal_shows_how_many_tokens_there_really_are() {
        let mut meter = Meter::default();
        meter.refuse(7000, Some(3000), Some(3500));
        assert_eq!((meter.window(), meter.size(7000).tokens), (3000, 3500));
        let mut meter = Meter::default();
        meter.refuse(7000, None, None);
        assert_eq!((meter.window(), meter.size(7000).tokens), (1600, 2000));
    }

    #[test]
    fn a_server_that_drops_messages_is_noticed() {
        let mut meter = Meter::default();
        meter.count(asked(14_000, 4000), (350, 90));
        assert_eq!(meter.count(asked(21_000, 2048), (350, 90)), Some(3942), "it read less than before");
        assert_eq!(meter.known_window(), Some(2138));
        let mut meter = Meter::default();
        meter.count(asked(14_000, 4000), (350, 90));
        assert_eq!(meter.count(asked(21_000, 120), (350, 90)), None, "it counts only what is new");
        let mut meter = Meter::default();
        meter.count(asked(3600, 900), (200, 50));
        assert_eq!(meter.count(asked(4100, 1025), (200, 50)), None, "it reads all of it");
        assert_eq!(meter.count(asked(4600, 1020), (200, 50)), Some(130), "it reads no more than before");
    }

    #[test]
    fn a_question_with_fewer_tools_than_before_is_smaller_and_nothing_of_it_is_lost() {
        let mut meter = Meter::default();
        let count = |meter: &mut Meter, talk, tools| {
            let read = (talk + tools) as u64 / 4;
            meter.count(SentQuestion { talk, tools, read }, (200, 50))
        };
        assert_eq!(count(&mut meter, 4000, 8000), None);
        assert_eq!(count(&mut meter, 4400, 2000), None);
        assert_eq!(meter.known_window(), None);
    }

    #[test]
    fn a_large_addition_of_which_a_server_reads_a_part_is_noticed_where_the_window_is_not_known() {
        let addition = |window, bytes: usize, read| {
            let mut meter = Meter::default();
            meter.tell(window);
            meter.count(asked(6000, 1500), (200, 50));
            (meter.count(asked(6200 + bytes, read), (350, 90)), meter.known_window())
        };
        assert_eq!(addition(None, 57_000, 8000), (Some(7800), Some(8090)));
        assert_eq!(addition(None, 57_000, 12_000), (None, None), "a text may have long tokens");
        assert_eq!(addition(None, 7000, 1600), (None, None), "a small one may have very long ones");
        assert_eq!(addition(Some(32_000), 57_000, 8000), (None, Some(32_000)), "all of it has room");
    }

    #[test]
    fn a_first_question_of_which_a_server_may_have_read_a_part_is_told_once_where_the_window_is_not_known() {
        let mut meter = Meter::default();
        assert_eq!(meter.suspects(asked(35_000, 4000)), None, "our guess may be as wrong as this");
        assert_eq!(meter.suspects(asked(350_000, 300)), None, "it counts only what is new");
        assert_eq!(meter.suspects(asked(1000, 4000)), None, "it counts more than there is");
        assert_eq!(meter.suspects(asked(70_000, 4000)), Some(20_000));
        assert_eq!(meter.suspects(asked(70_000, 4000)), None);
        let mut meter = Meter::default();
        meter.tell(Some(4096));
        assert_eq!(meter.suspects(asked(70_000, 4000)), None, "it is known");
    }

    #[test]
    fn a_provider_that_counts_the_same_whatever_it_reads_is_not_believed_any_more() {
        let mut meter = Meter::default();
        meter.tell(Some(4000));
        assert_eq!(meter.count(asked(4600, 1000), (200, 10)), None);
        assert_eq!(meter.count(asked(5800, 1000), (200, 10)), Some(228));
        assert_eq!(meter.known_window(), Some(1010));
        assert!(!meter.clone().unmasks(5000, 1000), "this may be all that it can read");
        assert!(!meter.clone().unmasks(1200, 300));
        assert!(meter.unmasks(1200, 1000));
        assert_eq!(meter.known_window(), Some(4000));
        assert_eq!(meter.count(asked(9000, 1000), (200, 10)), None);
        assert_eq!(meter.size(3500), Size { tokens: 1000, estimated: true });
    }

    #[test]
    fn a_first_question_of_which_a_server_reads_a_part_is_noticed_where_the_window_is_known() {
        let first = |window, read| {
            let mut meter = Meter::default();
            meter.tell(window);
            (meter.count(asked(35_000, read), (350, 90)), meter.known_window())
        };
        assert_eq!(first(Some(4096), 4000), (Some(6000), Some(4096)));
        assert_eq!(first(Some(32_768), 4000), (None, Some(32_768)), "all of it has room");
        assert_eq!(first(None, 4000), (None, None));
        assert_eq!(first(Some(8192), 7000), (None, Some(8192)), "our guess may be as wrong as this");
        assert_eq!(first(Some(4096), 600), (None, Some(4096)), "it counts only what is new");
    }
}
