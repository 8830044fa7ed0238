//! The built-in guards, as hooks: on unless the user switched them off.

use ollm_catalog::GUARDS;
use ollm_guard::{Shelter, destructive, tampering, usual};
use ollm_protocol::{
    ActionSpec, Builtin, Event, Hook, HookError, HookSpec, OnFailure, Priority, Reach, Rules, Source, Verdict,
};

use crate::world::World;

/// The guards with these names.
pub(crate) fn guards(names: &[String], world: &World) -> Vec<Result<Hook, HookError>> {
    let wanted = GUARDS.iter().filter(|name| names.iter().any(|wanted| wanted == *name));
    wanted.map(|name| hook(name, guard(name, world))).collect()
}

fn hook(name: &str, guard: Builtin) -> Result<Hook, HookError> {
    let spec = HookSpec {
        name: name.to_owned(),
        source: Source::Builtin,
        priority: Priority::Critical,
        on_failure: Some(OnFailure::Ask),
        // The user's own hooks still have their say, and their log, when a guard refuses.
        dialect: Some("agent".to_owned()),
        // Hooks of that dialect leave sub-agents alone; a guard does not, or an agent would send one.
        reach: Some(Reach::All),
        ..HookSpec::new(format!("builtin:{name}"), "before_tool", ActionSpec::Builtin(guard))
    };
    Hook::new(spec, &Rules::default())
}

fn guard(name: &str, world: &World) -> Builtin {
    let (cwd, home) = (world.cwd.clone(), world.places.user_home.clone());
    if name == "self-protection" {
        let protected = usual(home.as_deref(), &world.places.home, world.places.project.as_deref());
        let shelter = Shelter { protected, cwd, home };
        return Builtin::new(move |event: &Event| -> Verdict { tampering(event, &shelter) });
    }
    Builtin::new(move |event: &Event| -> Verdict { destructive(event, &cwd, home.as_deref()) })
}
