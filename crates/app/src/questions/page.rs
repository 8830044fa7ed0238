//! A server's request to open an address: we show the whole address, and open it only after a yes.

use ollm_mcp::{ElicitAnswer, web_address};
use serde_json::Value;

use super::{consent, quoted, too_long, word};
use crate::port::Person;

pub(super) fn ask(server: &str, question: &Value, person: &dyn Person, over: &dyn Fn() -> bool) -> ElicitAnswer {
    let text = |key: &str| question.get(key).and_then(Value::as_str).unwrap_or_default();
    let Some(address) = web_address(text("url")) else {
        person.say(&format!(
            "\nServer `{}` wants you to open something that is no web address; it was declined.\n",
            word(server)
        ));
        return ElicitAnswer::Decline;
    };
    let message = match quoted(text("message")) {
        Ok(message) => message,
        Err(why) => return too_long(server, &why, person),
    };
    let shown = format!(
        "\nServer `{}` asks you to open a page of {}:\n{}  {}\n  Open it in a browser? [y]es, [n]o, anything else cancels: ",
        word(server),
        word(&address.host),
        message,
        address.url,
    );
    let answer = consent(&shown, person, over).unwrap_or(ElicitAnswer::Cancel);
    if matches!(answer, ElicitAnswer::Accept(_)) && !person.open_page(&address.url) {
        person.say("  No browser could be opened here: open the address yourself.\n");
    }
    answer
}
