//! A program whose answer is its exit status: nothing it prints is read, but it is reported.

use ollm_protocol::hook::action::RunCommand;
use ollm_protocol::{Answer, Output, Verdict};
use ollm_store::cut;
use serde_json::Map;

use super::{ActionContext, Prepared, Run};

/// More of its output is not reported.
const LONGEST: usize = 10 << 10;

impl Run for RunCommand {
    fn prepare(&self, context: &ActionContext<'_>) -> Prepared {
        self.0.prepare(context)
    }

    fn answers_by_status(&self) -> bool {
        true
    }
}

pub(super) fn read(output: &Output<'_>) -> Answer {
    let texts = [("stdout", output.stdout), ("stderr", output.stderr)];
    let printed = texts.iter().filter(|(_, bytes)| !bytes.is_empty());
    let metadata = printed.map(|(name, bytes)| {
        let text = cut(&String::from_utf8_lossy(bytes), LONGEST).into_owned();
        ((*name).to_owned(), text.into())
    });
    let verdict = Verdict { metadata: metadata.collect::<Map<_, _>>(), ..Verdict::default() };
    Answer { verdict, failure: output.end.failure(output.stderr), warnings: Vec::new() }
}
