//! The box of a hook that declares `permissions`, or of all hooks where nothing may be changed: what its program may read,
//! write and reach.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ollm_process::{BoxMeans, BoxNetwork, BoxRules, Job, ProcessBox};
use ollm_protocol::PermissionsSpec;

use super::{ActionContext, set_variable};

/// What every program needs to read.
const SYSTEM: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix/store", "/proc", "/sys", "/dev"];
/// What every program writes to.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/shm"];
/// Where nothing is left of what is written.
const SINKS: &[&str] = &["/dev/null", "/dev/zero", "/dev/full"];

/// The job in its box; as it is where there is no need for one.
pub(super) fn held(context: &ActionContext<'_>, mut job: Job) -> Result<Job, String> {
    let (hook, read_only) = (context.hook(), context.environment.read_only);
    let declared = hook.spec.permissions.as_ref();
    if declared.is_none() && !read_only {
        return Ok(job);
    }
    if hook.detached(context.event.kind) {
        return Err("an async hook cannot be held to `permissions`; set `async` to false".to_owned());
    }
    let mut rules = declared.map(|permissions| rules(permissions, context, &job)).unwrap_or_default();
    if read_only {
        rules = only_reading(rules, context);
    }
    let made = ProcessBox::new(BoxMeans::Landlock, &rules)
        .map_err(|error| format!("it cannot be held to its `permissions`: {error}"))?;
    if let Some(temporary) = made.temporary() {
        set_variable(&mut job.env, "TMPDIR", temporary.into());
    }
    job.process_box = Some(Arc::new(made));
    Ok(job)
}

/// The same rules, with nothing to write but a temporary folder, and without a network.
fn only_reading(rules: BoxRules, context: &ActionContext<'_>) -> BoxRules {
    BoxRules {
        writable: Some(SINKS.iter().map(PathBuf::from).collect()),
        temporary: Some(temporary(context)),
        network: BoxNetwork::Closed,
        ..rules
    }
}

fn temporary(context: &ActionContext<'_>) -> PathBuf {
    context.environment.get("TMPDIR").map_or_else(|| "/tmp".into(), PathBuf::from)
}

fn rules(permissions: &PermissionsSpec, context: &ActionContext<'_>, job: &Job) -> BoxRules {
    let environment = context.environment;
    let temporary = temporary(context);
    let project = environment.project.clone().unwrap_or_else(|| environment.cwd.clone());
    let named = |paths: &[String]| -> Vec<PathBuf> {
        let place = |path: &String| match (path.strip_prefix("~/"), &environment.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => project.join(path),
        };
        paths.iter().map(place).collect()
    };
    let mut readable: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
    readable.extend(prefix(&job.program));
    readable.push(job.program.clone());
    // Its own files: where its script is, and the copy of all that was approved. Arguments may hold what an event says, and
    // open nothing.
    let script = context.hook().script();
    let around = script.and_then(|script| script.parent());
    // A script that lies in the home itself does not open the home.
    let holds_home = |folder: &&Path| environment.home.as_ref().is_some_and(|home| home.starts_with(folder));
    readable.extend(around.filter(|folder| !holds_home(folder)).map(Path::to_owned));
    readable.extend(script.cloned());
    readable.extend(context.trusted.copy_folder().map(Path::to_owned));
    readable.push(project.clone());
    readable.extend(named(&permissions.read));
    let mut writable: Vec<PathBuf> = DEVICES.iter().map(PathBuf::from).collect();
    writable.extend(named(&permissions.write));
    let network = if permissions.net { BoxNetwork::Open } else { BoxNetwork::Closed };
    BoxRules {
        readable: Some(readable),
        writable: Some(writable),
        temporary: Some(temporary),
        network,
        ..BoxRules::default()
    }
}

/// Where an interpreter has its libraries: beside the folder of its program, as it is once links are followed.
fn prefix(program: &Path) -> Option<PathBuf> {
    let real = program.canonicalize().ok()?;
    let folder = real.parent().filter(|folder| folder.ends_with("bin"))?;
    folder.parent().filter(|prefix| prefix.parent().is_some()).map(Path::to_owned)
}
