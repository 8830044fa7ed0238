//! An approval is bound to digests. `tests/approved` holds approvals that an earlier version wrote; they count as long as
//! the same things have the same digests. A change that ends them is a change that every user meets: it belongs into the
//! changelog, and new approvals beside the old ones.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ollm_protocol::hook::action::{AskAgentSpec, CommandSpec, ShellSpec};
use ollm_protocol::{ActionSpec, Hook, HookSpec, Origin, Rules, Source};
use ollm_trust::{Approvable, ExtensionFolder, Standing, Trust, TrustContext};
use tempfile::TempDir;

/// The folder of the files, by a name that is the same on every machine: digests know paths.
const FOLDER: &str = "/proc/self/cwd/tests/approved";

fn project() -> PathBuf {
    Path::new(FOLDER).join("project")
}

fn hook(name: &str, action: ActionSpec) -> HookSpec {
    HookSpec {
        source: Source::Workspace,
        project: Some(project()),
        origin: Origin { file: project().join("hooks.json"), line: 1, column: 1 },
        ..HookSpec::new(name, "before_tool", action)
    }
}

fn command(command: &str, args: &[&str], script: Option<PathBuf>) -> ActionSpec {
    ActionSpec::Command(CommandSpec {
        command: command.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        script,
    })
}

fn shell(line: &str) -> ActionSpec {
    ActionSpec::Shell(ShellSpec { script: line.to_owned() })
}

fn hooks() -> Vec<Hook> {
    let guard = project().join("guard.sh");
    let specs = [
        hook("script", command(&guard.display().to_string(), &["--strict"], Some(guard))),
        hook("argument", command("sh", &["scripts/check.sh"], None)),
        hook("line", shell("sh scripts/check.sh && echo \"$OLLM_EVENT\"")),
        hook("no-file", shell("exit 0")),
        HookSpec { inputs: vec![project().join("rules.txt")], ..hook("inputs", shell("cat rules.txt")) },
        HookSpec { env: vec![("ENV".into(), "scripts/lib.sh".into())], ..hook("variable", shell("exit 0")) },
        hook("prompt", ActionSpec::AskAgent(AskAgentSpec { prompt: "look at it".to_owned() })),
    ];
    specs.into_iter().map(|spec| Hook::new(spec, &Rules::default()).unwrap()).collect()
}

fn extension() -> ExtensionFolder {
    ExtensionFolder::new("one", Path::new(FOLDER).join("extension"))
}

fn standing<T: Approvable>(trust: &Trust, thing: &T) -> Standing {
    let variables = [("PATH".into(), "/bin".into())];
    let project = project();
    let context = TrustContext { variables: &variables, project: Some(&project), ..TrustContext::default() };
    trust.standing(thing, Some(&trust.identity(thing, &context).unwrap()))
}

/// Trust with the approvals of the earlier version, changed in some way, in a folder of its own.
fn trust(change: impl FnOnce(String) -> String) -> (TempDir, Trust) {
    let home = tempfile::tempdir().unwrap();
    let approvals = home.path().join("trusted-hooks.json");
    fs::write(&approvals, change(fs::read_to_string("tests/approved/trusted-hooks.json").unwrap())).unwrap();
    fs::set_permissions(&approvals, Permissions::from_mode(0o600)).unwrap();
    let trust = Trust::new(approvals, std::time::SystemTime::now);
    (home, trust)
}

#[test]
fn what_an_earlier_version_approved_is_still_approved() {
    let (_home, trust) = trust(|approvals| approvals);
    assert_eq!(trust.trouble(), None);
    assert_eq!(trust.counting().list().len(), hooks().len() + 1, "an approval is not even read");
    for hook in hooks() {
        assert_eq!(standing(&trust, &hook), Standing::Approved, "{}", hook.id());
    }
    assert_eq!(standing(&trust, &extension()), Standing::Approved);
}

#[test]
fn approvals_of_another_form_are_told_and_approve_nothing() {
    let (_home, trust) = trust(|approvals| approvals.replace("\"version\": 1", "\"version\": 2"));
    assert!(trust.trouble().is_some_and(|trouble| trouble.contains("version")), "{:?}", trust.trouble());
    for hook in hooks() {
        assert_eq!(standing(&trust, &hook), Standing::Unknown, "{}", hook.id());
    }
}
