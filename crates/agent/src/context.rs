//! How much of what the model can look at a conversation fills, in tokens.
//!
//! The provider's own count of the last question is the truth. What came since is estimated from bytes, by the ratio
//! that the counts so far have shown.

/// What a token is taken for in bytes, before anything was counted.
const BYTES_PER_TOKEN: f64 = 3.5;
/// Counts beyond these ratios say that something else was counted.
const PLAUSIBLE: std::ops::RangeInclusive<f64> = 1.0..=12.0;
/// What is taken for the window where nobody tells it.
const ASSUMED: u64 = 100_000;
/// The part of the window, in percent, at which room is made. The rest is for the answer and the next results.
const FULL: u64 = 80;

/// Knows the window, and measures a conversation against it.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    /// What the person or the server says.
    told: Option<u64>,
    /// What a refusal or a silent loss has shown.
    learnt: Option<u64>,
    bytes_per_token: f64,
    counted: Option<Counted>,
    /// Whether the model reads the tools on offer; some templates leave them out.
    reads_tools: bool,
}

/// A question as the provider counted it.
#[derive(Clone, Copy, Debug)]
struct Counted {
    bytes: usize,
    tokens: u64,
    /// The tokens of the question alone.
    read: u64,
}

/// How large a conversation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) tokens: u64,
    /// Whether a part of it is an estimate.
    pub(crate) estimated: bool,
}

impl Default for Meter {
    fn default() -> Meter {
        Meter { told: None, learnt: None, bytes_per_token: BYTES_PER_TOKEN, counted: None, reads_tools: true }
    }
}

impl Meter {
    /// Takes what the person or the server says about the window.
    pub(crate) fn tell(&mut self, window: Option<u64>) {
        self.told = window.filter(|window| *window > 0);
    }

    /// Takes what a refusal or a loss says about it.
    pub(crate) fn learn(&mut self, window: u64) {
        self.learnt = Some(self.learnt.map_or(window, |known| known.min(window)));
    }

    /// Takes a refusal of a conversation of this many bytes: it has more tokens than the window, whatever we took it for.
    pub(crate) fn refuse(&mut self, bytes: usize, window: Option<u64>, sent: Option<u64>) {
        let taken = self.size(bytes).tokens;
        let window = window.unwrap_or_else(|| taken.saturating_mul(4) / 5);
        self.learn(window);
        let tokens = sent.unwrap_or(taken).max(window.saturating_add(1));
        self.bytes_per_token = plausible(bytes, tokens).unwrap_or(self.bytes_per_token);
        self.counted = None;
    }

    /// Another model counts otherwise.
    pub(crate) fn reset(&mut self) {
        *self = Meter::default();
    }

    /// The tokens the model can look at, as far as that is known.
    pub(crate) fn known_window(&self) -> Option<u64> {
        match (self.told, self.learnt) {
            (Some(told), Some(learnt)) => Some(told.min(learnt)),
            (told, learnt) => told.or(learnt),
        }
    }

    /// The tokens the model can look at, or what is taken for them.
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

    /// How much of the window a size takes, from 0 to 1.
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

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate"
    )]
    fn tokens(&self, bytes: usize) -> u64 {
        (bytes as f64 / self.bytes_per_token).ceil() as u64
    }

    /// The bytes of a question that the model reads: the conversation, and the tools if it reads them.
    pub(crate) fn read_bytes(&self, talk: usize, tools: usize) -> usize {
        if self.reads_tools { talk + tools } else { talk }
    }

    /// Takes the provider's count of a question and of its answer; says how many tokens got lost on the way, if the
    /// server dropped some.
    pub(crate) fn count(&mut self, asked: Asked, (answer, written): (usize, u64)) -> Option<u64> {
        let Asked { talk, tools, read } = asked;
        let expected = self.size(self.read_bytes(talk, tools));
        let lost = self.lost(expected, read);
        if lost.is_some() {
            self.learn(read.saturating_add(written));
            self.counted = None;
            return lost;
        }
        let with_tools = plausible(talk + tools, read);
        let ratio = with_tools.or_else(|| plausible(talk, read))?;
        self.reads_tools = with_tools.is_some();
        self.bytes_per_token = ratio;
        let bytes = self.read_bytes(talk, tools) + answer;
        self.counted = Some(Counted { bytes, tokens: read.saturating_add(written), read });
        None
    }

    /// A server that drops the oldest messages counts less than it counted before, and less than its window; or it counts
    /// the same again and again, while the conversation grows.
    fn lost(&self, expected: Size, read: u64) -> Option<u64> {
        let Counted { tokens: before, read: last, .. } = self.counted?;
        // Some servers count only what they had not read before; that is far less than any window.
        let window = self.known_window();
        let plausible = window.is_none_or(|window| read <= window && read >= window / 4);
        let stays = read.abs_diff(last) <= last / 100 && expected.tokens > read.saturating_add(read / 25);
        let shrank = read < before.saturating_mul(9) / 10;
        (plausible && read >= 512 && (shrank || stays)).then(|| expected.tokens.saturating_sub(read))
    }

    /// Goes on with the count of another moment.
    pub(crate) fn recall_count(&mut self, then: &Meter) {
        self.counted = then.counted;
    }

    /// The conversation was made shorter, so the count is of another one.
    pub(crate) fn forget_count(&mut self) {
        self.counted = None;
    }
}

/// A question as the provider counted it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// The bytes of the conversation.
    pub(crate) talk: usize,
    /// The bytes of the tools on offer.
    pub(crate) tools: usize,
    /// The tokens that the provider counted.
    pub(crate) read: u64,
}

/// The bytes that a token has, if that can be true.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn plausible(bytes: usize, tokens: u64) -> Option<f64> {
    Some(bytes as f64 / tokens.max(1) as f64).filter(|ratio| PLAUSIBLE.contains(ratio))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(talk: usize, read: u64) -> Asked {
        Asked { talk, tools: 0, read }
    }

    #[test]
    fn tools_that_a_template_leaves_out_do_not_count() {
        let mut meter = Meter::default();
        assert_eq!(meter.read_bytes(400, 5000), 5400);
        meter.count(Asked { talk: 400, tools: 5000, read: 100 }, (40, 10));
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
        meter.forget_count();
        assert_eq!(meter.size(4800), Size { tokens: 1200, estimated: true }, "the ratio stays");
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
}
