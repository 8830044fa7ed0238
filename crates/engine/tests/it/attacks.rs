//! Attempts to run other bytes than those that were approved, and what approved hooks find in their copy.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use ollm_engine::{Engine, Environment, Status};
use ollm_protocol::hook::action::CommandSpec;
use ollm_protocol::{ActionSpec, Event, EventKind, Hook, HookSpec, OnFailure, Origin, Source};
use ollm_trust::{Term, Trust};

use crate::support::{World, command, event, file, ran, sh, skipped, within};

/// Attempts of all races together.
const ATTEMPTS: usize = 10_000;
/// A slow machine makes fewer.
const TIME: Duration = Duration::from_secs(40);

/// Equally long, so that nothing but the bytes tells them apart.
const GOOD: &str = "#!/bin/sh\n: >good\n";
const EVIL: &str = "#!/bin/sh\n: >evil\n";

/// How an attacker changes what a path leads to.
type Swap = fn(&World, content: &str);

fn by_renaming(world: &World, content: &str) {
    fs::rename(world.script("new.sh", content), world.path("guard.sh")).unwrap();
}

fn by_a_link(world: &World, content: &str) {
    let target = if content == GOOD { "a.sh" } else { "b.sh" };
    fs::remove_file(world.path("link")).ok();
    symlink(world.path(target), world.path("link")).unwrap();
    fs::rename(world.path("link"), world.path("guard.sh")).unwrap();
}

fn in_place(world: &World, content: &str) {
    let file = OpenOptions::new().write(true).open(world.path("guard.sh")).unwrap();
    file.write_all_at(content.as_bytes(), 0).unwrap();
}

fn a_folder_above(world: &World, content: &str) {
    let target = if content == GOOD { "good" } else { "evil" };
    fs::remove_file(world.path("link")).ok();
    symlink(target, world.path("link")).unwrap();
    fs::rename(world.path("link"), world.path("way")).unwrap();
}

/// Dispatches while an attacker swaps good and evil; how often the good bytes ran, and how often nothing did.
fn race(world: &World, spec: HookSpec, swap: Swap, attempts: usize) -> (usize, usize) {
    let deadline = Instant::now() + TIME / 4;
    let mut engine = Engine::new(
        Trust::new(world.path("approvals.json"), SystemTime::now),
        Environment { cwd: world.path("out"), ..world.engine.environment().clone() },
    );
    fs::create_dir(world.path("out")).unwrap();
    let hook = engine.registry.register(Hook::new(spec, &world.rules).unwrap()).unwrap();
    let proposal = engine.trust.propose(&*hook, &engine.environment().trust_context()).unwrap();
    engine.trust.approve(&*hook, &proposal, Term::Always, &engine.environment().trust_context()).unwrap();
    let over = AtomicBool::new(false);
    let (mut good, mut nothing) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                swap(world, EVIL);
                swap(world, GOOD);
            }
        });
        for _ in 0..attempts {
            let outcome = engine.dispatch(&event());
            if world.path("out/evil").exists() || Instant::now() > deadline {
                break;
            }
            if ran(&outcome).is_empty() { nothing += 1 } else { good += 1 }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(!world.path("out/evil").exists(), "the evil bytes ran");
    assert_eq!(world.path("out/good").exists(), good > 0);
    (good, nothing)
}

/// Some attempts must meet the good bytes and some the evil ones, or there was no race.
fn assert_raced((good, nothing): (usize, usize)) {
    assert!(good > 0 && nothing > 0, "good {good}, nothing {nothing}");
}

fn guest(spec: HookSpec) -> HookSpec {
    HookSpec { source: Source::Workspace, ..spec }
}

#[test]
fn a08_a_script_swapped_by_renaming_never_runs_evil_bytes() {
    let world = World::new();
    let script = world.script("guard.sh", GOOD);
    assert_raced(race(&world, guest(file("guard", &script)), by_renaming, ATTEMPTS / 4));
}

#[test]
fn a08_a_script_behind_a_swapped_link_never_runs_evil_bytes() {
    let world = World::new();
    world.script("a.sh", GOOD);
    world.script("b.sh", EVIL);
    by_a_link(&world, GOOD);
    let script = world.path("guard.sh");
    let run_by_sh = ActionSpec::Command(CommandSpec {
        command: "/bin/sh".to_owned(),
        args: vec![script.to_str().unwrap().to_owned()],
        script: Some(script.clone()),
    });
    let spec = HookSpec { action: run_by_sh, ..file("guard", &script) };
    assert_raced(race(&world, guest(spec), by_a_link, ATTEMPTS / 4));
}

#[test]
fn a08_a_script_written_in_place_never_runs_evil_bytes() {
    let world = World::new();
    let script = world.script("guard.sh", GOOD);
    assert_raced(race(&world, guest(file("guard", &script)), in_place, ATTEMPTS / 4));
}

#[test]
fn a08_a_script_below_a_swapped_folder_never_runs_evil_bytes() {
    let world = World::new();
    for (folder, content) in [("good", GOOD), ("evil", EVIL)] {
        fs::create_dir(world.path(folder)).unwrap();
        world.script(&format!("{folder}/guard.sh"), content);
    }
    a_folder_above(&world, GOOD);
    let script = world.path("way/guard.sh");
    assert_raced(race(&world, guest(file("guard", &script)), a_folder_above, ATTEMPTS / 4));
}

#[test]
fn a08_a_person_approves_the_copy_that_was_shown_and_no_later_content() {
    let mut world = World::new();
    let script = world.script("guard.sh", GOOD);
    let hook = world.add(guest(file("guard", &script)));
    let (trust, environment) = (&world.engine.trust, &world.engine.environment().trust_context());
    let proposal = trust.propose(&*hook, environment).unwrap();
    assert_eq!(fs::read_to_string(proposal.copy_of(&script).unwrap()).unwrap(), GOOD);
    world.file("guard.sh", EVIL);
    assert_eq!(fs::read_to_string(proposal.copy_of(&script).unwrap()).unwrap(), GOOD);
    trust.approve(&*hook, &proposal, Term::Always, environment).unwrap();
    assert_eq!(skipped(&world.engine.dispatch(&event())), [("guard", "modified")]);
    let later = trust.propose(&*hook, environment).unwrap();
    let changes = trust.review(&*hook, &later).changes.unwrap();
    assert!(changes.starts_with("--- changed: guard.sh"), "{changes}");
    world.file("guard.sh", GOOD);
    assert_eq!(ran(&world.engine.dispatch(&event())), ["guard"]);
    assert!(!world.path("evil").exists());
}

#[test]
fn a09_a_folder_opened_to_others_is_noticed_by_a_process_that_found_it_closed() {
    let mut world = World::new();
    fs::create_dir(world.path("hooks")).unwrap();
    let script = world.script("hooks/guard.sh", GOOD);
    let environment = Environment { project: Some(world.path("")), ..world.engine.environment().clone() };
    world.engine = Engine::new(Trust::new(world.path("approvals.json"), SystemTime::now), environment);
    let hook = world.add(guest(HookSpec { on_failure: Some(OnFailure::Allow), ..file("guard", &script) }));
    world.approve(&hook);
    let open = |mode| fs::set_permissions(world.path("hooks"), fs::Permissions::from_mode(mode)).unwrap();
    assert_eq!(ran(&world.engine.dispatch(&event())), ["guard"]);
    open(0o777);
    let outcome = world.engine.dispatch(&event());
    assert_eq!(skipped(&outcome), [("guard", "unsafe")]);
    assert!(outcome.skipped[0].detail.contains("hooks is writable by others (mode 0777)"), "{outcome:?}");
    open(0o755);
    assert_eq!(ran(&world.engine.dispatch(&event())), ["guard"]);
}

/// A hook in a language whose scripts import their neighbours.
struct Language {
    program: &'static str,
    script: (&'static str, &'static str),
    sibling: (&'static str, &'static str),
}

const PYTHON: Language = Language {
    program: "python3",
    script: ("guard.py", "import rules\nopen('said', 'w').write(rules.VALUE + ' ' + __file__)\n"),
    sibling: ("rules.py", "VALUE = 'approved'\n"),
};
const NODE: Language = Language {
    program: "node",
    script: (
        "guard.js",
        "const rules = require('./rules.js');\nrequire('fs').writeFileSync('said', rules.VALUE + ' ' + __filename);\n",
    ),
    sibling: ("rules.js", "exports.VALUE = 'approved';\n"),
};

impl Language {
    #[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
    fn is_here(&self) -> bool {
        let here = ["/usr/bin", "/bin"].iter().any(|folder| Path::new(folder).join(self.program).exists());
        if !here {
            eprintln!("skipped: no {}", self.program);
        }
        here
    }

    /// Its hook in a folder `hooks`, approved.
    fn approved(&self, world: &mut World, inputs: Vec<PathBuf>) -> Arc<Hook> {
        let script = world.path("hooks").join(self.script.0);
        let args = vec![script.to_str().unwrap().to_owned()];
        let action = ActionSpec::Command(CommandSpec { command: self.program.to_owned(), args, script: Some(script) });
        let origin = Origin { file: world.path("hooks/hooks.json"), line: 1, column: 1 };
        let hook = world.add(guest(HookSpec { action, inputs, origin, ..command("guard", self.program, &[]) }));
        world.approve(&hook);
        hook
    }

    fn world(&self) -> World {
        let world = World::new();
        fs::create_dir(world.path("hooks")).unwrap();
        for (name, text) in [self.script, self.sibling] {
            world.file(&format!("hooks/{name}"), text);
        }
        world
    }
}

fn said(world: &World) -> Option<String> {
    let said = fs::read_to_string(world.path("said")).ok();
    fs::remove_file(world.path("said")).ok();
    said
}

/// Everything below a folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() { found.extend(below(&entry.path())) } else { found.push(entry.path()) }
    }
    found
}

fn copies(world: &World) -> Vec<PathBuf> {
    let is_copy = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("sha256-"));
    fs::read_dir(world.path("store")).unwrap().flatten().map(|entry| entry.path()).filter(is_copy).collect()
}

#[test]
fn a_declared_sibling_is_imported_from_the_copy() {
    for language in [PYTHON, NODE] {
        if !language.is_here() {
            continue;
        }
        let mut world = language.world();
        let sibling = world.path("hooks").join(language.sibling.0);
        language.approved(&mut world, vec![sibling.clone()]);
        for _ in 0..2 {
            let outcome = world.engine.dispatch(&event());
            assert_eq!((ran(&outcome), outcome.reports[0].status), (vec!["guard"], Status::Ok), "{outcome:?}");
            let (value, place) =
                said(&world).unwrap().split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
            assert_eq!(value, "approved");
            assert!(Path::new(&place).starts_with(world.path("store").canonicalize().unwrap()), "{place}");
        }
        assert_eq!(copies(&world).len(), 1, "running it leaves the copy as it was");
        fs::write(&sibling, "evil").unwrap();
        assert_eq!(skipped(&world.engine.dispatch(&event())), [("guard", "modified")]);
    }
}

#[test]
fn an_undeclared_sibling_fails_and_the_line_to_add_is_named() {
    let mut world = World::new();
    let script = world.script("guard.sh", "#!/bin/sh\ncat \"${0%/*}/rules.txt\"\n");
    world.file("rules.txt", "one");
    let hook = world.add(guest(file("guard", &script)));
    world.approve(&hook);
    let outcome = world.engine.dispatch(&event());
    let report = &outcome.reports[0];
    assert_eq!(report.status, Status::Failed);
    let error = report.error.as_ref().unwrap();
    assert!(error.ends_with("add \"inputs\": [\"rules.txt\"] to the hook"), "{error}");
}

#[test]
fn a_sibling_that_is_imported_is_approved_along_and_runs_from_the_copy() {
    for language in [PYTHON, NODE] {
        if !language.is_here() {
            continue;
        }
        let mut world = language.world();
        language.approved(&mut world, Vec::new());
        assert_eq!(world.engine.dispatch(&event()).reports[0].status, Status::Ok);
        world.file(&format!("hooks/{}", language.sibling.0), "changed");
        assert_eq!(skipped(&world.engine.dispatch(&event()))[0].1, "modified");
    }
}

#[test]
fn the_original_folder_is_told_and_the_copy_is_closed_and_cannot_be_written() {
    let mut world = World::new();
    fs::create_dir_all(world.path("hooks/lib")).unwrap();
    let script = world.script("hooks/guard.sh", "#!/bin/sh\necho \"$OLLM_HOOK_DIR ${0%/*}\" >said\n");
    let input = world.file("hooks/lib/rules", "");
    let origin = Origin { file: world.path("hooks/hooks.json"), line: 1, column: 1 };
    let hook = world.add(guest(HookSpec { inputs: vec![input], origin, ..file("guard", &script) }));
    world.approve(&hook);
    assert_eq!(ran(&world.engine.dispatch(&event())), ["guard"]);
    let [copy] = &*copies(&world) else { panic!("{:?}", copies(&world)) };
    assert_eq!(said(&world).unwrap(), format!("{} {}\n", world.path("hooks").display(), copy.display()));
    for path in below(copy) {
        let meta = fs::metadata(&path).unwrap();
        let mode = meta.permissions().mode() & 0o7777;
        assert_eq!(mode & 0o277, 0, "{} has mode {mode:04o}", path.display());
        assert_eq!(std::os::unix::fs::MetadataExt::uid(&meta), ollm_store::current_uid());
    }
    let mode = fs::metadata(world.path("store")).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

#[test]
fn a_tampered_copy_is_not_used() {
    let mut world = World::new();
    fs::create_dir(world.path("hooks")).unwrap();
    let script = world.script("hooks/guard.sh", GOOD);
    let hook = world.add(guest(file("guard", &script)));
    world.approve(&hook);
    world.engine.dispatch(&event());
    let [copy] = &*copies(&world) else { panic!() };
    let kept = copy.join("guard.sh");
    let tamper: [&dyn Fn(); 4] = [
        &|| {
            fs::set_permissions(&kept, fs::Permissions::from_mode(0o700)).unwrap();
            fs::write(&kept, EVIL).unwrap();
            fs::set_permissions(&kept, fs::Permissions::from_mode(0o500)).unwrap();
        },
        &|| fs::set_permissions(&kept, fs::Permissions::from_mode(0o777)).unwrap(),
        &|| {
            fs::set_permissions(copy, fs::Permissions::from_mode(0o700)).unwrap();
            fs::remove_file(&kept).unwrap();
            symlink(world.file("evil.sh", EVIL), &kept).unwrap();
            fs::set_permissions(copy, fs::Permissions::from_mode(0o500)).unwrap();
        },
        &|| {
            fs::rename(copy, world.path("store/elsewhere")).unwrap();
            symlink("elsewhere", copy).unwrap();
        },
    ];
    for (number, tamper) in tamper.iter().enumerate() {
        tamper();
        fs::remove_file(world.path("good")).unwrap();
        assert_eq!(ran(&world.engine.dispatch(&event())), ["guard"], "{number}");
        assert!(world.path("good").exists() && !world.path("evil").exists(), "{number}");
        assert_eq!(fs::read_to_string(&kept).unwrap(), GOOD, "{number}: it is made anew");
        assert!(fs::symlink_metadata(copy).unwrap().is_dir(), "{number}");
    }
}

#[test]
fn a_tampered_copy_of_a_script_that_changed_is_no_way_around_the_approval() {
    let mut world = World::new();
    let script = world.script("guard.sh", GOOD);
    let hook = world.add(guest(file("guard", &script)));
    world.approve(&hook);
    world.engine.dispatch(&event());
    let [copy] = &*copies(&world) else { panic!() };
    let kept = copy.join("guard.sh");
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(&kept, EVIL).unwrap();
    fs::write(&script, EVIL).unwrap();
    assert_eq!(skipped(&world.engine.dispatch(&event())), [("guard", "modified")]);
    assert!(!world.path("evil").exists());
}

#[test]
fn an_approval_for_one_use_serves_one_of_many_at_once() {
    let mut world = World::new();
    let script = world.script("guard.sh", "#!/bin/sh\necho x >>log\n");
    let hook = world.add(guest(file("guard", &script)));
    let engine = &world.engine;
    let proposal = engine.trust.propose(&*hook, &engine.environment().trust_context()).unwrap();
    engine.trust.approve(&*hook, &proposal, Term::Once, &engine.environment().trust_context()).unwrap();
    let ran: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| engine.dispatch(&event()).reports.len())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((ran, world.log().len()), (1, 1));
}

#[test]
fn an_approval_for_a_session_serves_one_of_many_at_once() {
    let mut world = World::new();
    let script = world.script("guard.sh", "#!/bin/sh\necho x >>log\n");
    let hook = world.add(guest(file("guard", &script)));
    let engine = &world.engine;
    let proposal = engine.trust.propose(&*hook, &engine.environment().trust_context()).unwrap();
    engine.trust.approve(&*hook, &proposal, Term::Session(None), &engine.environment().trust_context()).unwrap();
    let served: usize = thread::scope(|scope| {
        let serve = |number: usize| {
            let data = [("tool_name", "shell".into()), ("session_id", format!("{number}").into())];
            engine.dispatch(&Event::unchecked(EventKind::BeforeTool, data)).reports.len()
        };
        let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || serve(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((served, world.log().len()), (1, 1));
}

/// A clock that is a day ahead at every other look.
fn jumping() -> SystemTime {
    static LOOKS: AtomicUsize = AtomicUsize::new(0);
    let day = Duration::from_hours(24);
    let ahead = LOOKS.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
    if ahead { SystemTime::now() + day } else { SystemTime::now() }
}

#[test]
fn b19_a_clock_that_jumps_changes_no_deadline() {
    let world = World::new();
    let trust = Trust::new(world.path("approvals.json"), jumping);
    let mut engine = Engine::new(trust, world.engine.environment().clone());
    for spec in [sh("quick", "exit 0"), within(Duration::from_millis(200), sh("slow", "sleep 1000"))] {
        engine.registry.register(Hook::new(spec, &world.rules).unwrap()).unwrap();
    }
    for _ in 0..4 {
        let reports = engine.dispatch(&event()).reports;
        let ends: Vec<Status> = reports.iter().map(|report| report.status).collect();
        assert_eq!(ends, [Status::Ok, Status::Timeout]);
    }
}
