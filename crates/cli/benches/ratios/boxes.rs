//! Boxes: what one adds to the start of a program.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use ollm_app::AppContext;
use ollm_app::command_box::{BoxPolicy, CommandBox};
use ollm_catalog::Config;
use ollm_process::{BoxMeans, BoxRules, BoxWatch, Children, End, Job, Outcome, ProcessBox};
use ollm_trust::ProgramBox;

use crate::lab::Lab;
use crate::measure::Case;

/// A program without a box costs 1; so a box that adds 0.8 of it costs 1.8.
pub(crate) fn boxes(lab: &Lab) -> Vec<Case> {
    let (home, project) = (lab.root.join("box-home"), lab.root.join("box-home/project"));
    for name in
        [".ollm/hooks", ".claude/hooks", ".config/goose", ".codex", ".ssh", "project/.git/hooks", "project/.ollm"]
    {
        fs::create_dir_all(home.join(name)).unwrap();
    }
    for name in
        [".bashrc", ".profile", ".claude/settings.json", ".codex/config.toml", ".ssh/config", "project/.git/config"]
    {
        fs::write(home.join(name), "").unwrap();
    }
    let names =
        [".ollm", ".bashrc", ".profile", ".claude/settings.json", ".claude/hooks", ".ssh/config", ".config/goose"];
    let read_only: Vec<PathBuf> = names.iter().map(|name| home.join(name)).collect();
    let rules = BoxRules { read_only, whole: vec![project.clone()], ..BoxRules::default() };
    let context = AppContext::new(Vec::new(), project, Some(home.clone()));
    let command_box = CommandBox::by_policy(BoxPolicy::On, &context, &Config::default());
    let whole = lab.no_op.clone();
    let children = Children::new();
    let least = ProgramBox::new(&lab.no_op, home.join("project"), &context.trust_context());
    vec![
        case("program in a box by mounts / without", 1.8, lab, BoxMeans::Namespaces, &rules),
        case("program in a box by Landlock / without", 1.3, lab, BoxMeans::Landlock, &rules),
        of_hook(
            "hook's box, made and entered / without",
            1.8,
            lab,
            ProgramBox { watch: BoxWatch::Nothing, ..least.clone() },
        ),
        of_hook("hook's box, made, entered and watched / without", 2.5, lab, least),
        Case {
            name: "command in the agent's box, files compared / without",
            target: 1.8,
            floor: plain(lab),
            run: Box::new(move || {
                let ran = command_box.run(&children, Job::new(&whole), |job| children.run(job));
                ended(&ran.outcome);
            }),
        },
    ]
}

fn case(name: &'static str, target: f64, lab: &Lab, means: BoxMeans, rules: &BoxRules) -> Case {
    let made = Arc::new(ProcessBox::new(means, rules).unwrap());
    let (program, children) = (lab.no_op.clone(), Children::new());
    let run = move || {
        ended(&children.run(Job { process_box: Some(Arc::clone(&made)), ..Job::new(&program) }));
    };
    Case { name, target, floor: plain(lab), run: Box::new(run) }
}

/// A box is made for each run of a hook.
fn of_hook(name: &'static str, target: f64, lab: &Lab, program_box: ProgramBox) -> Case {
    let (program, children) = (lab.no_op.clone(), Children::new());
    let run = move || ended(&children.run(program_box.hold(Job::new(&program)).unwrap()));
    Case { name, target, floor: plain(lab), run: Box::new(run) }
}

fn plain(lab: &Lab) -> Box<dyn FnMut()> {
    let (program, children) = (lab.no_op.clone(), Children::new());
    Box::new(move || ended(&children.run(Job::new(&program))))
}

fn ended(outcome: &Outcome) {
    assert!(matches!(outcome.end, End::Exited(_)), "{outcome:?}");
}
