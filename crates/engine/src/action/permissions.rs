//! The box of a hook: what its program may read, write and reach.

use ollm_process::{BoxWatch, Job};
use ollm_trust::ProgramBox;

use super::ActionContext;

/// What the program of a hook is held to; nothing if it runs without a box.
pub(super) fn program_box(context: &ActionContext<'_>, job: &Job) -> Option<ProgramBox> {
    let (hook, environment) = (context.hook(), context.environment);
    let permissions = hook.permissions.clone()?;
    let project = hook.spec.project.as_ref().or(environment.project.as_ref()).unwrap_or(&environment.cwd);
    let least = ProgramBox::new(&job.program, project, &environment.trust_context());
    Some(ProgramBox {
        permissions,
        declared: hook.spec.permissions.is_some(),
        script: hook.script().cloned(),
        copy: context.trusted.copy_folder().map(ToOwned::to_owned),
        watch: if environment.watch_boxes { BoxWatch::Everything } else { BoxWatch::Refused },
        ..least
    })
}
