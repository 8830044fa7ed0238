//! The behaviour of the server, from the command line.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

/// What to do, and what to do wrong.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Plan {
    /// Speak streamable HTTP.
    pub(crate) http: bool,
    /// Speak the older transport with events.
    pub(crate) sse: bool,
    /// The port to listen on; any without one.
    pub(crate) port: u16,
    /// Each request's method is appended to this file.
    pub(crate) log: Option<PathBuf>,
    /// So many further tools.
    pub(crate) tools: usize,
    /// So many entries per page.
    pub(crate) page: usize,
    /// Speak the revision without a handshake, beside the others.
    pub(crate) modern: bool,
    /// Refuse the handshake.
    pub(crate) only_modern: bool,
    /// Insist on this revision.
    pub(crate) revision: Option<String>,
    /// Wait so many milliseconds before every answer.
    pub(crate) slow: u64,
    /// Wait so many milliseconds before the first answer.
    pub(crate) slow_start: u64,
    /// Write these lines to standard error at the start.
    pub(crate) stderr: Vec<String>,

    /// End at once.
    pub(crate) exit: Option<u8>,
    /// End after so many requests.
    pub(crate) die_after: Option<usize>,
    /// End in the middle of every call.
    pub(crate) die_in_call: bool,
    /// Answer nothing.
    pub(crate) mute: bool,
    /// Answer with nonsense.
    pub(crate) garbage: bool,
    /// Write a banner and other lines that are no messages.
    pub(crate) noise: bool,
    /// Write without end to `stdout` or `stderr`.
    pub(crate) flood: Option<String>,
    /// Begin with one line of so many bytes.
    pub(crate) long_line: usize,
    /// Send every message as the only one of many.
    pub(crate) batch: bool,
    /// Start a child, and go on.
    pub(crate) child: bool,
    /// Start a child that keeps the streams, and end.
    pub(crate) fork: bool,
    /// Ignore the end of the input and polite signals.
    pub(crate) stubborn: bool,
    pub(crate) hardened: bool,
    /// Answer every call with an error of the protocol.
    pub(crate) refuse: bool,
    /// Give the same cursor again and again.
    pub(crate) same_cursor: bool,
    /// Give a new cursor again and again.
    pub(crate) endless: bool,
    /// List two tools with one name.
    pub(crate) twice: bool,
    /// List a tool with control characters in its name.
    pub(crate) hidden: bool,
    /// List tools whose entries make no sense.
    pub(crate) bad_tools: bool,
    /// List a tool whose schema has so many levels.
    pub(crate) deep: usize,
    /// Send every request to this address.
    pub(crate) redirect: Option<String>,
    /// Demand a login.
    pub(crate) unauthorized: bool,
    /// Demand a token, and give one to every client that asks in the right way.
    pub(crate) oauth: bool,
    /// What the issuer of tokens does wrong.
    pub(crate) oauth_fault: Option<String>,
    /// The secret of the client `known-client`; it has none without this option.
    pub(crate) client_secret: Option<String>,
    /// Let only those call `add` who were granted this.
    pub(crate) step_up: Option<String>,
    /// So many seconds a token is said to be good for.
    pub(crate) token_life: Option<u64>,
    /// So many requests a token is good for.
    pub(crate) token_uses: Option<usize>,
    /// Forget every session after so many requests.
    pub(crate) forget: Option<usize>,
    /// Name this address for messages, in the older transport.
    pub(crate) endpoint: Option<String>,
}

impl Plan {
    /// Whether the issuer of tokens is to do this wrong.
    pub(crate) fn fault(&self, name: &str) -> bool {
        self.oauth_fault.as_deref() == Some(name)
    }

    /// Writes a request's method to the log.
    pub(crate) fn note(&self, what: &str) {
        let Some(path) = &self.log else { return };
        if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) {
            let _ = writeln!(file, "{what}");
        }
    }

    pub(crate) fn read(words: &[String]) -> Result<Plan, String> {
        let mut plan = Plan::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if plan.flag(word) {
                continue;
            }
            let value = words.next().ok_or_else(|| format!("{word} is not known, or needs a value"))?;
            plan.value(word, value)?;
        }
        Ok(plan)
    }

    fn flag(&mut self, word: &str) -> bool {
        let flag = match word {
            "--http" => &mut self.http,
            "--sse" => &mut self.sse,
            "--modern" => &mut self.modern,
            "--only-modern" => &mut self.only_modern,
            "--die-in-call" => &mut self.die_in_call,
            "--mute" => &mut self.mute,
            "--garbage" => &mut self.garbage,
            "--noise" => &mut self.noise,
            "--batch" => &mut self.batch,
            "--child" => &mut self.child,
            "--fork" => &mut self.fork,
            "--stubborn" => &mut self.stubborn,
            "--hardened" => &mut self.hardened,
            "--refuse" => &mut self.refuse,
            "--same-cursor" => &mut self.same_cursor,
            "--endless" => &mut self.endless,
            "--twice" => &mut self.twice,
            "--hidden" => &mut self.hidden,
            "--bad-tools" => &mut self.bad_tools,
            "--unauthorized" => &mut self.unauthorized,
            "--oauth" => &mut self.oauth,
            _ => return false,
        };
        *flag = true;
        true
    }

    fn value(&mut self, word: &str, value: &str) -> Result<(), String> {
        match word {
            "--port" => self.port = number(word, value)?,
            "--log" => self.log = Some(value.into()),
            "--deep" => self.deep = number(word, value)?,
            "--tools" => self.tools = number(word, value)?,
            "--page" => self.page = number(word, value)?,
            "--revision" => self.revision = Some(value.to_owned()),
            "--slow" => self.slow = number(word, value)?,
            "--slow-start" => self.slow_start = number(word, value)?,
            "--stderr" => self.stderr.push(value.to_owned()),
            "--exit" => self.exit = Some(number(word, value)?),
            "--die-after" => self.die_after = Some(number(word, value)?),
            "--flood" => self.flood = Some(value.to_owned()),
            "--long-line" => self.long_line = number(word, value)?,
            "--redirect" => self.redirect = Some(value.to_owned()),
            "--forget" => self.forget = Some(number(word, value)?),
            "--oauth-fault" => self.oauth_fault = Some(value.to_owned()),
            "--client-secret" => self.client_secret = Some(value.to_owned()),
            "--step-up" => self.step_up = Some(value.to_owned()),
            "--token-life" => self.token_life = Some(number(word, value)?),
            "--token-uses" => self.token_uses = Some(number(word, value)?),
            "--endpoint" => self.endpoint = Some(value.to_owned()),
            _ => return Err(format!("{word} is not known")),
        }
        Ok(())
    }
}

fn number<T: std::str::FromStr>(word: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{word} needs a number, not {value}"))
}
