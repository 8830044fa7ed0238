//! The invariants of ARCHITECTURE.md that neither the compiler nor a lint can see.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::lab::OLLM;

const LEAVES: &[&str] =
    &["ollm-protocol", "ollm-condition", "ollm-shell", "ollm-process", "ollm-store", "ollm-net", "ollm-package"];
const ROOMS: &[&str] = &["ollm-engine", "ollm-catalog", "ollm-guard", "ollm-mcp", "ollm-agent"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Each package of the build with the packages it needs at run time.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--locked", "--filter-platform", "host-tuple"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let names: BTreeMap<&str, &str> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| (package["id"].as_str().unwrap(), package["name"].as_str().unwrap()))
        .collect();
    let normal =
        |dependency: &&Value| dependency["dep_kinds"].as_array().unwrap().iter().any(|kind| kind["kind"].is_null());
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    nodes
        .iter()
        .map(|node| {
            let needed = node["deps"].as_array().unwrap().iter().filter(normal);
            let needed = needed.map(|dependency| names[dependency["pkg"].as_str().unwrap()].to_owned());
            (names[node["id"].as_str().unwrap()].to_owned(), needed.collect())
        })
        .collect()
}

fn closure<'a>(of: &'a str, graph: &'a BTreeMap<String, BTreeSet<String>>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut next = vec![of];
    while let Some(package) = next.pop() {
        for needed in graph.get(package).into_iter().flatten() {
            if seen.insert(needed.as_str()) {
                next.push(needed);
            }
        }
    }
    seen
}

/// The source files below a folder of the workspace.
fn sources(folder: &str) -> Vec<(String, String)> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).unwrap().display().to_string();
                found.push((name, code(&fs::read_to_string(&path).unwrap())));
            }
        }
    }
    found
}

/// A file without its comments and its unit tests.
fn code(text: &str) -> String {
    // `mod tests;` only names another file.
    let is_here = |at: &usize| {
        let item = text[*at..].lines().find(|line| !line.trim_start().starts_with("#["));
        item.is_some_and(|item| item.ends_with('{'))
    };
    let marks = ["#[cfg(test)]", "#[cfg(all(test"].into_iter();
    let tests = marks.flat_map(|mark| text.match_indices(mark)).map(|(at, _)| at).filter(is_here).min();
    let body = &text[..tests.unwrap_or(text.len())];
    body.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn library_sources() -> Vec<(String, String)> {
    [
        "protocol",
        "condition",
        "shell",
        "process",
        "store",
        "net",
        "package",
        "trust",
        "engine",
        "catalog",
        "guard",
        "agent",
        "mcp",
        "app",
    ]
    .iter()
    .flat_map(|name| sources(&format!("crates/{name}/src")))
    .filter(|(name, _)| !name.ends_with("/tests.rs"))
    .collect()
}

fn offenders(files: &[(String, String)], words: &[&str], allowed: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (name, text) in files.iter().filter(|(name, _)| !allowed(name)) {
        found.extend(words.iter().filter(|word| text.contains(**word)).map(|word| format!("{name}: {word}")));
    }
    found
}

#[test]
fn invariant_1_protocol_has_no_runtime_and_does_no_io() {
    let graph = dependencies();
    assert!(!closure("ollm-protocol", &graph).contains("tokio"));
    let mut files = sources("crates/protocol/src");
    files.extend(sources("crates/condition/src"));
    let io = ["std::fs", "std::net", "std::io", "std::env", "std::process", "SystemTime::now", "Instant::now"];
    assert_eq!(offenders(&files, &io, |_| false), Vec::<String>::new());
}

#[test]
fn invariant_2_only_dialects_know_wire_field_names() {
    let wire = [
        "\"hook_event_name\"",
        "\"tool_input\"",
        "\"tool_response\"",
        "\"hookSpecificOutput\"",
        "\"permissionDecision\"",
        "\"jsonrpc\"",
        "\"systemMessage\"",
        "\"hookName\"",
        "\"modified_args\"",
        "\"allow\":",
    ];
    // MCP is JSON-RPC as well, and none of the dialects; the answer of `hook run` and golden cases have words of their own.
    let others = [
        "crates/mcp/src/auth/net.rs",
        "crates/mcp/src/fast_decode.rs",
        "crates/app/src/cases.rs",
        "crates/app/src/outcome.rs",
        "crates/app/src/scaffold/purpose.rs",
    ];
    let allowed = |name: &str| name.starts_with("crates/protocol/src/dialect/") || others.contains(&name);
    assert_eq!(offenders(&library_sources(), &wire, allowed), Vec::<String>::new());
}

#[test]
fn invariant_3_only_trust_makes_a_trusted_and_only_process_starts_programs() {
    let files = library_sources();
    let makes = ["crates/trust/src/trust.rs", "crates/trust/src/trust/trusted.rs"];
    assert_eq!(offenders(&files, &["Trusted {"], |name| makes.contains(&name)), Vec::<String>::new());
    let starts = ["Command::new", "libc::fork", "libc::clone", "libc::execv"];
    let mut all = files;
    all.extend(sources("crates/cli/src"));
    assert_eq!(
        offenders(&all, &starts, |name| { name.starts_with("crates/process/") || name == "crates/cli/src/open.rs" }),
        Vec::<String>::new()
    );
}

#[test]
fn invariant_5_only_output_prints_and_only_the_door_reads_the_environment() {
    let printing = ["io::stdout", "io::stderr", "println!", "eprintln!"];
    let environment = ["env::var", "env::vars", "env::home_dir", "env::current_dir", "env::args"];
    assert_eq!(offenders(&library_sources(), &printing, |_| false), Vec::<String>::new());
    assert_eq!(offenders(&library_sources(), &environment, |_| false), Vec::<String>::new());
    let door = sources("crates/cli/src");
    let prints = |name: &str| name.ends_with("/output.rs") || name.ends_with("/tui/terminal.rs");
    assert_eq!(offenders(&door, &printing, prints), Vec::<String>::new());
    assert_eq!(offenders(&door, &environment, |name| name.ends_with("/main.rs")), Vec::<String>::new());
}

#[test]
fn invariant_6_rooms_and_leaves_stay_apart() {
    let graph = dependencies();
    for leaf in LEAVES {
        let ours: Vec<&str> = closure(leaf, &graph).into_iter().filter(|name| name.starts_with("ollm")).collect();
        // A hook holds its condition, read, and the words of a call become one text.
        let allowed: &[&str] = if *leaf == "ollm-protocol" { &["ollm-condition", "ollm-shell"] } else { &[] };
        assert_eq!(ours, allowed, "{leaf} depends on");
    }
    let trust: Vec<&str> = closure("ollm-trust", &graph).into_iter().filter(|name| name.starts_with("ollm")).collect();
    assert!(trust.iter().all(|name| LEAVES.contains(name)), "trust depends on {trust:?}");
    for room in ROOMS.iter().filter(|room| graph.contains_key(**room)) {
        let needed = closure(room, &graph);
        let others: Vec<&&str> = ROOMS.iter().filter(|other| needed.contains(**other)).collect();
        assert_eq!(others, Vec::<&&str>::new(), "{room} depends on");
        assert!(!needed.contains("ollm"), "{room} depends on the door");
    }
    for package in graph.keys().filter(|name| name.starts_with("ollm")) {
        assert!(!closure(package, &graph).contains("testkit"), "{package} needs the workshop at run time");
    }
}

#[test]
fn invariant_9_no_process_wide_mutable_state() {
    let state = ["static mut", "lazy_static!", "thread_local!", "set_var("];
    assert_eq!(offenders(&library_sources(), &state, |_| false), Vec::<String>::new());
    // What belongs to the process itself: its children, their guards, whether it adopts, and which children it keeps.
    let of_process = |name: &str| name.starts_with("crates/process/src/unix") || name == "crates/process/src/spared.rs";
    let inner = ["Mutex", "RwLock", "Atomic", "RefCell", "OnceLock", "Cell<"];
    let is_static = |line: &&str| line.starts_with("static ") || line.starts_with("pub") && line.contains(" static ");
    for (name, text) in library_sources().iter().filter(|(name, _)| !of_process(name)) {
        let mut statics = text.lines().map(str::trim_start).filter(is_static);
        let found = statics.find(|line| inner.iter().any(|kind| line.contains(kind)));
        assert_eq!(found, None, "{name}");
    }
}

#[test]
fn invariant_10_no_library_names_a_command_of_the_program() {
    let help = Command::new(OLLM).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let commands = crate::documents::subcommands(&help);
    assert!(commands.contains(&"hook") && commands.len() > 10, "{commands:?}");
    let word = |text: &str| text.chars().take_while(char::is_ascii_alphabetic).collect::<String>();
    for (name, text) in library_sources() {
        let named: Vec<String> = text.split("ollm ").skip(1).map(word).collect();
        assert!(!named.iter().any(|word| commands.contains(&word.as_str())), "{name}: ollm {named:?}");
    }
    // Nor its options; only the code that looks for a calling agent reads them.
    let options = ["--set", "--model", "--approval", "--record", "--digest", "--uncovered"];
    let reads_them = |name: &str| name.ends_with("/agent_signs.rs") || name.ends_with("/tampering/own.rs");
    assert_eq!(offenders(&library_sources(), &options, reads_them), Vec::<String>::new());
}

#[test]
fn unsafe_code_lives_in_one_module_tree() {
    let mut all = library_sources();
    all.extend(sources("crates/cli/src"));
    let audited = |name: &str| name.starts_with("crates/process/src/unix");
    assert_eq!(offenders(&all, &["unsafe {", "unsafe fn", "unsafe extern"], audited), Vec::<String>::new());
}

/// The number of an abuse case, in two digits: `A1` and `a01_nothing_…` are both `a01`.
fn case(letter: char, digits: &str) -> Option<String> {
    let number: u8 = digits.parse().ok()?;
    "abcd".contains(letter.to_ascii_lowercase()).then(|| format!("{}{number:02}", letter.to_ascii_lowercase()))
}

/// The abuse cases that some test carries in its name.
fn tested() -> BTreeSet<String> {
    let crates = fs::read_dir(root().join("crates")).unwrap().flatten();
    let folders = crates.map(|entry| entry.path().join("tests")).filter(|folder| folder.is_dir());
    let tests = folders.flat_map(|folder| sources(folder.strip_prefix(root()).unwrap().to_str().unwrap()));
    let of_line = |line: &str| {
        let name = line.trim().strip_prefix("fn ")?.split_once('_')?.0.to_owned();
        case(name.chars().next()?, name.get(1..)?)
    };
    tests.flat_map(|(_, text)| text.lines().filter_map(of_line).collect::<Vec<_>>()).collect()
}

#[test]
fn every_abuse_case_has_its_test_or_its_reason_in_the_guide() {
    let guide = fs::read_to_string(root().join("docs/security.md")).unwrap();
    let rows: BTreeMap<String, bool> = guide
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" |"))
        .filter_map(|(name, rest)| Some((case(name.chars().next()?, name.get(1..)?)?, rest)))
        .map(|(case, rest)| (case, !rest.contains("| does not apply")))
        .collect();
    let expected =
        |letter: char, numbers: &[u8]| numbers.iter().map(move |n| format!("{letter}{n:02}")).collect::<Vec<_>>();
    let all: Vec<u8> = (1..=20).collect();
    let known = [expected('a', &all[..18]), expected('b', &all), expected('c', &[1, 2, 3, 4, 5, 6, 7, 10])];
    let missing: Vec<String> = known.concat().into_iter().filter(|case| !rows.contains_key(case)).collect();
    assert_eq!(missing, Vec::<String>::new(), "not in the guide");
    let claimed: BTreeSet<String> = rows.into_iter().filter(|(_, tested)| *tested).map(|(case, _)| case).collect();
    assert_eq!(claimed, tested());
}

/// The tables of ARCHITECTURE.md lead somewhere: a file that was moved is moved there too.
#[test]
fn every_file_that_the_architecture_names_exists() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let named = page.split('`').skip(1).step_by(2).filter_map(|text| text.split_whitespace().next());
    let is_rust = |name: &str| Path::new(name).extension().is_some_and(|extension| extension == "rs");
    let files: Vec<&str> = named.filter(|name| is_rust(name) && !name.contains(['<', '*'])).collect();
    assert!(files.len() > 30, "{files:?}");
    for file in files {
        let (room, rest) = file.split_once('/').unwrap_or((file, ""));
        let place =
            if room == "crates" { root().join(file) } else { root().join("crates").join(room).join("src").join(rest) };
        assert!(place.is_file(), "{file}");
    }
}

#[test]
fn every_type_that_a_page_for_programmers_names_exists() {
    const OF_RUST: &[&str] = &["Default", "Send"];
    let declared: BTreeSet<String> = library_sources()
        .into_iter()
        .chain(sources("crates/cli/src"))
        .flat_map(|(_, text)| {
            let words: Vec<&str> = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
            let pairs = words.windows(2).filter(|pair| matches!(pair[0], "struct" | "enum" | "trait" | "type"));
            pairs.map(|pair| pair[1].to_owned()).collect::<Vec<_>>()
        })
        .collect();
    for page in ["ARCHITECTURE.md", "docs/embedding.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let prose: String = text.split("```").step_by(2).collect();
        let spans = prose.split('`').skip(1).step_by(2).filter(|span| !span.contains(['/', '.', '-']));
        let words = spans.flat_map(|span| span.split(|letter: char| !letter.is_alphanumeric()));
        let is_type = |word: &&str| word.starts_with(char::is_uppercase) && word.contains(char::is_lowercase);
        let unknown: Vec<&str> =
            words.filter(is_type).filter(|word| !declared.contains(*word) && !OF_RUST.contains(word)).collect();
        assert_eq!(unknown, Vec::<&str>::new(), "{page} names types that are not there");
    }
}

#[test]
fn the_event_order_names_sections_of_crates_that_are_in_the_program() {
    let list = fs::read_to_string(root().join("crates/cli/event-order.txt")).unwrap();
    let graph = dependencies();
    let crates: BTreeSet<String> = closure("ollm", &graph)
        .into_iter()
        .chain(["ollm", "alloc", "compiler_builtins", "core", "std"])
        .map(|package| package.replace('-', "_"))
        .collect();
    let is_known = |line: &&str| line.split_once(' ').is_some_and(|(found, _)| crates.contains(found));
    let unknown: Vec<&str> = list.lines().filter(|line| !is_known(line)).collect();
    assert_eq!(unknown, Vec::<&str>::new(), "scripts/event-order.py writes the list anew");
    assert!(list.contains("ollm_catalog4load8load_for"), "the load of every event is not in it");
    let kinds = [".text.", ".rodata.", ".data.rel.ro."];
    assert!(kinds.iter().all(|kind| list.contains(&format!(" {kind}"))), "one of {kinds:?} is not in it");
}

/// Each further library costs every event a tenth of a small program. Where one comes in with a dependency, the `program!`
/// macro brings the functions that are called.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn the_program_loads_no_library_but_that_of_c() {
    let output = Command::new(OLLM).env("LD_TRACE_LOADED_OBJECTS", "1").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.split_whitespace().next()?.rsplit('/').next());
    let known = |name: &&str| ["libc.so", "ld-linux", "linux-vdso"].iter().any(|known| name.starts_with(known));
    assert!(text.contains("libc.so"), "{text}");
    assert_eq!(names.filter(|name| !known(name)).collect::<Vec<_>>(), [""; 0], "{text}");
}
