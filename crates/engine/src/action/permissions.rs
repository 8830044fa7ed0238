//! Makes the box of a hook: what its program may read, write and reach.

use ollm_process::{BoxWatch, Job};
use ollm_protocol::PermissionsSpec;
use ollm_trust::ProgramBox;

use super::ActionContext;

/// The box for the program of a hook; none if the program runs without a box.
pub(super) fn program_box(context: &ActionContext<'_>, job: &Job) -> Option<ProgramBox> {
    let (hook, environment) = (context.hook(), context.environment);
    let permissions = match (hook.permissions.clone(), environment.read_only) {
        (permissions, false) => permissions?,
        (Some(permissions), true) => PermissionsSpec { write: Vec::new(), net: false, ..permissions },
        // A program without a box of its own may read everything.
        (None, true) => PermissionsSpec { read: vec!["/".to_owned()], ..PermissionsSpec::default() },
    };
    let project = hook.spec.project.as_ref().or(environment.project.as_ref()).unwrap_or(&environment.cwd);
    let least = ProgramBox::new(&job.program, project, &environment.trust_context());
    Some(ProgramBox {
        permissions,
        // In read-only mode, a program does not run where the box cannot be enforced.
        declared: hook.spec.permissions.is_some() || environment.read_only,
        script: hook.script().cloned(),
        copy: context.trusted.copy_folder().map(ToOwned::to_owned),
        watch: if environment.watch_boxes { BoxWatch::Everything } else { BoxWatch::Refused },
        ..least
    })
}
