use serde_json::{Map, Value};

use super::*;

/// How real chat templates treat short conversations, recorded by scripts/real-templates.sh.
const RECORD: &str = include_str!("templates.json");

/// The behaviour of one of them.
struct Template {
    /// The model of the template.
    model: String,
    /// A system message at the beginning.
    system: Does,
    /// A system message elsewhere.
    later_system: Does,
    /// Two prompts in a row.
    two_prompts: Does,
    /// A call and its result.
    tools: Does,
}

#[derive(PartialEq, Eq)]
enum Does {
    /// The model gets all of it.
    Takes,
    /// Some of it is lost silently.
    Drops,
    Refuses,
}

impl Does {
    fn read(value: &Value) -> Does {
        match value.as_str().unwrap() {
            "takes" => Does::Takes,
            "drops" => Does::Drops,
            "refuses" => Does::Refuses,
            other => panic!("{other}"),
        }
    }
}

fn templates() -> Vec<Template> {
    let record: Map<String, Value> = serde_json::from_str(RECORD).unwrap();
    let template = |(model, rules): (String, Value)| Template {
        model,
        system: Does::read(&rules["system"]),
        later_system: Does::read(&rules["laterSystem"]),
        two_prompts: Does::read(&rules["twoPrompts"]),
        tools: Does::read(&rules["tools"]),
    };
    record.into_iter().map(template).collect()
}

impl Template {
    /// The form that the agent uses after the template's refusals.
    fn form(&self) -> Form {
        Form { tools: self.tools != Does::Refuses, system: self.system != Does::Refuses }
    }

    fn check(&self, wire: &[Message]) -> Result<(), String> {
        let broken = |rule: &str| Err(format!("{}: {rule}: {wire:?}", self.model));
        let systems: Vec<usize> =
            wire.iter().enumerate().filter(|(_, one)| matches!(one, Message::System(_))).map(|(at, _)| at).collect();
        if systems.len() > 1 || (self.later_system != Does::Takes && systems.iter().any(|at| *at > 0)) {
            return broken("system messages stand elsewhere");
        }
        if self.system == Does::Refuses && !systems.is_empty() {
            return broken("there is a system message");
        }
        let roles = wire.windows(2).filter(|pair| pair[0].role() == pair[1].role() && pair[0].role() != "tool");
        if roles.count() > 0 {
            return broken("neighbours have one role");
        }
        let is_call = |one: &Message| matches!(one, Message::Assistant { calls, .. } if !calls.is_empty());
        let is_result = |one: &Message| matches!(one, Message::Tool { .. });
        if self.tools == Does::Refuses && wire.iter().any(|one| is_call(one) || is_result(one)) {
            return broken("there are tools");
        }
        let said: Vec<&str> = wire
            .iter()
            .filter(|one| !is_call(one) && !is_result(one) && !matches!(one, Message::System(_)))
            .map(Message::role)
            .collect();
        let in_turns =
            said.iter().enumerate().all(|(at, role)| *role == if at % 2 == 0 { "user" } else { "assistant" });
        if self.two_prompts != Does::Takes && !in_turns {
            return broken("roles do not take turns");
        }
        let after_call = |at: usize| at > 0 && (is_call(&wire[at - 1]) || is_result(&wire[at - 1]));
        if wire.iter().enumerate().any(|(at, one)| is_result(one) && !after_call(at)) {
            return broken("a result stands alone");
        }
        if !wire.last().is_some_and(|last| matches!(last, Message::User(_) | Message::Tool { .. })) {
            return broken("the last message leaves nothing to answer");
        }
        Ok(())
    }
}

fn system(text: &str) -> Message {
    Message::System(text.into())
}

fn user(text: &str) -> Message {
    Message::User(text.into())
}

fn says(text: &str) -> Message {
    Message::Assistant { content: text.into(), calls: Vec::new() }
}

fn calls(text: &str, ids: &[&str]) -> Message {
    let call = |id: &&str| Call { id: (*id).into(), name: "shell".into(), arguments: Arguments::parse("{}") };
    Message::Assistant { content: text.into(), calls: ids.iter().map(call).collect() }
}

fn result(id: &str) -> Message {
    Message::Tool { call_id: id.into(), name: "shell".into(), content: format!("out {id}") }
}

/// Typical conversations of sessions, each of which ends with a question.
fn conversations() -> Vec<(&'static str, Vec<Message>)> {
    vec![
        ("a first prompt", vec![system("s"), user("u1")]),
        ("no system prompt", vec![user("u1"), says("a1"), user("u2")]),
        ("hooks at the start", vec![system("s"), system("n1"), system("n2"), user("u1")]),
        ("hooks around a prompt", vec![system("s"), user("u1"), says("a1"), system("n1"), user("u2"), system("n2")]),
        (
            "hooks amid calls",
            vec![system("s"), user("u1"), calls("", &["1", "2"]), result("1"), result("2"), system("n1")],
        ),
        ("a failed turn", vec![system("s"), user("u1"), user("u2")]),
        (
            "several failed turns with notes",
            vec![system("s"), user("u1"), system("n1"), user("u2"), system("n2"), user("u3")],
        ),
        ("an interrupted call", vec![system("s"), user("u1"), calls("a1", &["1"]), result("1"), user("u2")]),
        ("an interrupted call and a note", vec![user("u1"), calls("", &["1"]), result("1"), system("n1"), user("u2")]),
        ("an answer that broke off", vec![system("s"), user("u1"), says("a1"), says("a2"), user("u2")]),
        ("words before a call", vec![system("s"), user("u1"), says("a1"), calls("a2", &["1"]), result("1")]),
        ("calls one after another", vec![user("u1"), calls("", &["1"]), result("1"), calls("", &["2"]), result("2")]),
        ("an earlier call", vec![user("u1"), calls("", &["1"]), result("1"), says("a1"), user("u2")]),
        ("a shortened beginning", vec![system("s"), system("n1"), calls("", &["1"]), result("1")]),
        ("a shortened beginning with an answer", vec![system("s"), says("a1"), user("u2")]),
        ("a note for which no prompt comes", vec![system("s"), user("u1"), says("a1"), system("n1")]),
        ("a note between answers", vec![user("u1"), says("a1"), system("n1"), says("a2"), user("u2")]),
        ("an empty answer", vec![user("u1"), says(""), user("u2")]),
    ]
}

#[test]
fn every_template_takes_every_conversation() {
    let templates = templates();
    assert!(templates.len() >= 29, "{}", templates.len());
    for template in templates {
        for (what, messages) in conversations() {
            let wire = shaped(&messages, template.form());
            template.check(&wire).unwrap_or_else(|why| panic!("{what}: {why}"));
        }
    }
}

#[test]
fn nothing_of_a_conversation_is_left_out_and_its_order_stays() {
    for form in [Form::default(), Form { tools: false, system: true }, Form { tools: true, system: false }] {
        for (what, messages) in conversations() {
            let wire = shaped(&messages, form);
            let whole = wire.iter().map(Message::content).collect::<Vec<_>>().join("\n");
            let said = messages.iter().map(Message::content).filter(|text| !text.is_empty());
            for text in said {
                assert!(whole.contains(text), "{what}: {text} is missing in {whole}");
            }
            let prompts = ["u1", "u2", "u3"].iter().filter_map(|prompt| whole.find(prompt)).collect::<Vec<_>>();
            assert!(prompts.is_sorted(), "{what}: {whole}");
        }
    }
}

#[test]
fn calls_become_words_for_a_model_without_tools() {
    let messages = [user("u1"), calls("let me see", &["1"]), result("1")];
    let wire = shaped(&messages, Form { tools: false, system: true });
    assert_eq!(wire, [user("u1"), says("let me see\n\n[called shell with {}]"), user("[result of shell]\nout 1")]);
}

#[test]
fn a_note_joins_what_stands_before_it() {
    let messages = [system("s"), system("t"), user("u1"), system("n1")];
    assert_eq!(shaped(&messages, Form::default()), [system("s\n\nt"), user("u1\n\n[system note] n1")]);
    let bare = Form { tools: true, system: false };
    assert_eq!(shaped(&messages, bare), [user("s\n\nt\n\nu1\n\n[system note] n1")]);
}
