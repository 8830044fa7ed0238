//! Approves a script, changes it, and finds that it may not run any more.

#![expect(clippy::print_stdout, reason = "the point of the program")]

use std::sync::Arc;
use std::time::SystemTime;

use ollm_protocol::hook::action::CommandSpec;
use ollm_protocol::{ActionSpec, Hook, HookSpec, Rules, Source};
use ollm_trust::{RefusalReason, Term, Trust, TrustContext};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("guard.sh");
    std::fs::write(&script, "exit 0")?;
    let args = vec![script.display().to_string()];
    let action = ActionSpec::Command(CommandSpec { command: "/bin/sh".into(), args, script: Some(script.clone()) });
    // Hooks of the user need no approval; hooks that came with a project do.
    let spec = HookSpec { source: Source::Workspace, ..HookSpec::new("guard", "before_tool", action) };
    let hook = Arc::new(Hook::new(spec, &Rules::default())?);

    let trust = Trust::new(folder.path().join("trusted-hooks.json"), SystemTime::now);
    let context = TrustContext::default();
    let proposal = trust.propose(&*hook, &context)?;
    println!("{:#?}", trust.review(&*hook, &proposal).files);
    trust.approve(&*hook, &proposal, Term::Always, &context)?;
    assert!(trust.trust(&hook, &context, None).is_ok());

    std::fs::write(&script, "exit 2")?;
    let refusal = trust.trust(&hook, &context, None).err().ok_or("the changed script may run")?;
    println!("{}", refusal.detail);
    assert_eq!(refusal.reason, RefusalReason::Modified);
    Ok(())
}
