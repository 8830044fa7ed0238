//! Which rule of which layer decided each default of a hook, and the line of the configuration that says so.

use ollm_app::App;
use ollm_catalog::Setting;
use ollm_catalog::edit::key_place;
use ollm_protocol::{Basis, DefaultBox, Hook, Origin, PermissionsSpec, Priority, Source};
use serde_json::{Value, json};

use super::place;

/// A rule that applies to a hook, with or without its own word for it.
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) value: String,
    /// The layer: hook, configuration, dialect, default; for the dialect also the event's spelling and the file.
    pub(super) from: &'static str,
    /// The setting, where the configuration decided.
    setting: Option<Setting>,
    /// Where the hook says so itself.
    own: Option<Origin>,
}

/// All rules of a hook.
pub(super) fn rules(hook: &Hook, app: &App) -> Vec<Rule> {
    let of_basis = |name, value: String, basis: Basis, key: &str, path: &str| {
        let setting = (basis == Basis::Config).then(|| setting(path, hook, app)).flatten();
        let own = (basis == Basis::Hook).then(|| key_place(hook, key)).flatten();
        Rule { name, value, from: basis.name(), setting, own }
    };
    let (timeout, failure, scope) = (&hook.timeout, &hook.on_failure, &hook.reach);
    let mut rules = vec![
        dialect(hook),
        priority(hook),
        of_basis("timeout", format!("{:?}", timeout.value), timeout.basis, "timeout", "hooks.timeout"),
        of_basis("failure", failure.value.name().to_owned(), failure.basis, "onFailure", ""),
        of_basis("scope", scope.value.name().to_owned(), scope.basis, "scope", ""),
    ];
    rules.extend(limits(hook, app));
    rules.extend(hook.spec.runs_program().then(|| boxed(hook, app)));
    rules
}

/// Its dialect: by its own key, else by the form of its file, else by the spelling of its event.
fn dialect(hook: &Hook) -> Rule {
    let own = hook.spec.dialect.as_ref().and_then(|_| key_place(hook, "dialect"));
    let from = match (&hook.spec.dialect, &own) {
        (None, _) => "event",
        (Some(_), None) if hook.spec.source != Source::Builtin => "file",
        (Some(_), _) => Basis::Hook.name(),
    };
    Rule { name: "dialect", value: hook.dialect.name().to_owned(), from, setting: None, own }
}

fn priority(hook: &Hook) -> Rule {
    let priority = hook.spec.priority;
    let own = key_place(hook, "priority");
    let from = if own.is_some() || priority != Priority::default() { Basis::Hook.name() } else { "default" };
    Rule { name: "priority", value: priority.name().to_owned(), from, setting: None, own }
}

/// Its own limit, and that of all hooks together.
fn limits(hook: &Hook, app: &App) -> impl Iterator<Item = Rule> {
    let own = hook.spec.rate_limit.describe().map(|value| {
        let own = key_place(hook, "rateLimit");
        Rule { name: "limit", value, from: Basis::Hook.name(), setting: None, own }
    });
    let rates = &app.engine.rates;
    let of_all = rates.global.describe().filter(|_| rates.is_held_to_global(hook)).map(|value| {
        let keys = ["hooks.rateLimit.perMinute", "hooks.rateLimit.cooldownMs"];
        let setting = keys.into_iter().find_map(|key| setting(key, hook, app));
        Rule { name: "limit", value: format!("{value} for all hooks"), from: Basis::Config.name(), setting, own: None }
    });
    own.into_iter().chain(of_all)
}

fn boxed(hook: &Hook, app: &App) -> Rule {
    let value = hook.permissions.as_ref().map_or_else(|| "none".to_owned(), PermissionsSpec::describe);
    // Without its own key, only a foreign hook gets the strictest box, unless the configuration says otherwise.
    let is_open = hook.spec.permissions.is_none() && DefaultBox::On.applies_to(None, hook.spec.source).is_some();
    let setting = is_open.then(|| setting("hooks.box", hook, app)).flatten();
    let from = match &setting {
        _ if hook.spec.permissions.is_some() => Basis::Hook.name(),
        Some(_) => Basis::Config.name(),
        None => "default",
    };
    let own = hook.spec.permissions.as_ref().and_then(|_| key_place(hook, "permissions"));
    Rule { name: "box", value, from, setting, own }
}

fn setting(path: &str, hook: &Hook, app: &App) -> Option<Setting> {
    app.config.default_for(path, hook.spec.source, hook.spec.layer).cloned()
}

impl Rule {
    /// Where the hook or the configuration says so, and the line itself.
    pub(super) fn said(&self, app: &App) -> Vec<String> {
        if let Some(own) = &self.own {
            let place = place::shown(own).map(|place| format!("--> {place}"));
            return place.into_iter().chain(place::lines(own)).collect();
        }
        let Some(setting) = &self.setting else { return Vec::new() };
        let place = setting.origin.shown(app.context().places.user_home.as_deref());
        let lines = place::of_setting(setting).map(|origin| place::lines(&origin));
        std::iter::once(format!("`{}` of {place}", setting.path)).chain(lines.into_iter().flatten()).collect()
    }

    /// The rule as JSON; `None` if neither hook nor configuration decided.
    fn to_json(&self) -> Option<Value> {
        if let Some(own) = &self.own {
            return Some(merged(json!({"rule": self.name, "layer": "hook"}), own));
        }
        let setting = self.setting.as_ref()?;
        let Setting { path, origin, .. } = setting;
        let value = json!({"rule": self.name, "setting": path, "layer": origin.layer(), "from": origin.to_string()});
        Some(match place::of_setting(setting) {
            Some(place) => merged(value, &place),
            None => value,
        })
    }
}

fn merged(mut value: Value, place: &Origin) -> Value {
    if let (Some(map), Value::Object(place)) = (value.as_object_mut(), place::json_of(place)) {
        map.extend(place);
    }
    value
}

/// Which rules the configuration decided.
pub(super) fn to_json(hook: &Hook, app: &App) -> Value {
    rules(hook, app).iter().filter(|rule| rule.setting.is_some()).filter_map(Rule::to_json).collect()
}

/// Which rules the hook itself decided, and where.
pub(super) fn own_to_json(hook: &Hook, app: &App) -> Value {
    rules(hook, app).iter().filter(|rule| rule.own.is_some()).filter_map(Rule::to_json).collect()
}
