//! The actions of keys in the panel of hooks: commands of `ollm hook`, with a person's choices and form values.

use std::path::PathBuf;

use ollm_protocol::Hook;

use super::super::form::{Field, Form};
use super::super::list_panel::KeyAction;
use super::{HookItem, HookKey, category};
use crate::arguments::Command;
use crate::arguments::hook::{
    AddArguments, EditArguments, HookCommand, RemoveArguments, SwitchArguments, TestArguments, TrustArguments,
};

/// The purpose of a form.
pub(crate) enum FormPurpose {
    Add,
    /// The hook, and its values before.
    Edit(String, Vec<String>),
}

/// The keys of a hook that the form changes; the others are changed in the editor.
const EDITED: [&str; 6] = ["matcher", "timeout", "onFailure", "priority", "if", "description"];

/// What the failure of a hook may mean.
const ON_FAILURE: [&str; 4] = ["", "allow", "block", "ask"];

/// The action of a key for the chosen hook.
pub(super) fn deed(key: HookKey, chosen: Option<&HookItem>) -> KeyAction<FormPurpose> {
    if key == HookKey::Add {
        return KeyAction::Fill(FormPurpose::Add, add_form());
    }
    let Some(HookItem { hook, state }) = chosen else { return KeyAction::None };
    let id = hook.id().to_owned();
    let ids = vec![id.clone()];
    match key {
        HookKey::Add => KeyAction::None,
        HookKey::Toggle => {
            let switch = SwitchArguments { ids, limit: None };
            if category::is_on(hook, state) {
                run(format!("switching {id} off"), HookCommand::Disable(switch))
            } else {
                run(format!("switching {id} on"), HookCommand::Enable(switch))
            }
        }
        HookKey::Edit => {
            let values = values(hook);
            KeyAction::Fill(FormPurpose::Edit(id, values.clone()), edit_form(hook, &values))
        }
        HookKey::OpenEditor => {
            let arguments = EditArguments { id: id.clone(), set: Vec::new(), unset: Vec::new() };
            run(format!("editing {id}"), HookCommand::Edit(arguments))
        }
        HookKey::Delete => {
            let arguments = RemoveArguments { ids, yes: false, with_files: false };
            run(format!("deleting {id}"), HookCommand::Remove(arguments))
        }
        HookKey::Test => run(format!("testing {id}"), HookCommand::Test(test_of(id))),
        HookKey::Trust => run(format!("reviewing {id}"), HookCommand::Trust(trust_of(ids))),
        HookKey::Withdraw => run(format!("withdrawing the approval of {id}"), HookCommand::Untrust { ids, all: false }),
    }
}

fn run(title: String, command: HookCommand) -> KeyAction<FormPurpose> {
    KeyAction::Run(title, Command::Hook { command })
}

/// Carries out the purpose of a form.
pub(super) fn save(purpose: &FormPurpose, filled: &[String]) -> KeyAction<FormPurpose> {
    match purpose {
        FormPurpose::Add => {
            let arguments = added(filled);
            run(format!("adding {}", arguments.path.display()), HookCommand::Add(Box::new(arguments)))
        }
        FormPurpose::Edit(id, before) => {
            let changed = || EDITED.iter().zip(before.iter().zip(filled)).filter(|(_, (old, new))| old != new);
            let set: Vec<String> = changed()
                .filter(|(_, (_, new))| !new.is_empty())
                .map(|(key, (_, new))| format!("{key}={new}"))
                .collect();
            let unset: Vec<String> =
                changed().filter(|(_, (_, new))| new.is_empty()).map(|(key, _)| (*key).to_owned()).collect();
            // Without a key the command would open the editor.
            if set.is_empty() && unset.is_empty() {
                return KeyAction::None;
            }
            run(format!("changing {id}"), HookCommand::Edit(EditArguments { id: id.clone(), set, unset }))
        }
    }
}

fn add_form() -> Form {
    Form::new(
        "Add a hook",
        vec![
            Field::text("event", "when it runs, in any dialect's spelling", "before_tool"),
            Field::text("script", "a script or program, in the folder of the hooks or from here", ""),
            Field::text("name", "empty: that of the script", ""),
            Field::text("matcher", "which tools it is for, such as shell|write_*; empty: all", ""),
            Field::text("timeout", "how long it may take, such as 5s; empty: the default", ""),
            Field::choice("on failure", "what its failure means", &ON_FAILURE, ""),
            Field::choice("for", "you, or everybody who works in this project", &["you", "project"], ""),
        ],
    )
}

fn added(filled: &[String]) -> AddArguments {
    let value = |at: usize| filled.get(at).filter(|value| !value.is_empty()).cloned();
    AddArguments {
        event: value(0).unwrap_or_default(),
        path: PathBuf::from(value(1).unwrap_or_default()),
        args: Vec::new(),
        name: value(2),
        matcher: value(3),
        condition: None,
        timeout: value(4),
        on_failure: value(5),
        priority: None,
        dialect: None,
        description: None,
        file: None,
        project: value(6).as_deref() == Some("project"),
    }
}

fn edit_form(hook: &Hook, values: &[String]) -> Form {
    let value = |at: usize| values.get(at).map(String::as_str).unwrap_or_default();
    Form::new(
        format!("Edit {}", ollm_store::one_line(&hook.spec.name)),
        vec![
            Field::text("matcher", "which tools it is for, such as shell|write_*; empty: all", value(0)),
            Field::text("timeout", "how long it may take, such as 5s; empty: the default", value(1)),
            Field::choice("onFailure", "what its failure means", &ON_FAILURE, value(2)),
            Field::choice(
                "priority",
                "how urgent it is among its neighbours",
                &["critical", "high", "normal", "low"],
                value(3),
            ),
            Field::text("if", "run it only where this CEL expression holds", value(4)),
            Field::text("description", "what it does, for people", value(5)),
        ],
    )
}

/// The declared values of the edited keys.
fn values(hook: &Hook) -> Vec<String> {
    let spec = &hook.spec;
    let timeout = spec.timeout.map(|_| format!("{}ms", hook.timeout.value.as_millis()));
    vec![
        spec.matcher.clone().unwrap_or_default(),
        timeout.unwrap_or_default(),
        spec.on_failure.map(|one| one.name().to_owned()).unwrap_or_default(),
        spec.priority.name().to_owned(),
        spec.condition.clone().unwrap_or_default(),
        spec.description.clone().unwrap_or_default(),
    ]
}

fn test_of(id: String) -> TestArguments {
    TestArguments {
        id: Some(id),
        all: false,
        event: None,
        from_trace: None,
        data: None,
        in_box: false,
        watch: false,
        json: false,
    }
}

fn trust_of(ids: Vec<String>) -> TrustArguments {
    TrustArguments { ids, all: false, review: false, list: false, json: false, digest: None, uncovered: false }
}
