//! Which words of a command line are files of the hook's own.

use std::fs;

use ollm_protocol::ActionSpec;
use ollm_protocol::hook::action::CommandSpec;

use crate::world::{World, link};

/// The command line of the one hook, with the hook folder as `@`.
fn line(world: &World) -> (Vec<String>, Option<String>) {
    let folder = world.path("home/.ollm/hooks").to_string_lossy().into_owned();
    let ActionSpec::Command(CommandSpec { command, args, script }) = world.hook().spec.action else {
        panic!("no command")
    };
    let short = |word: &str| word.replace(&folder, "@");
    let words = std::iter::once(&command).chain(&args).map(|word| short(word)).collect();
    (words, script.map(|script| short(&script.to_string_lossy())))
}

#[test]
fn own_files_become_absolute_and_everything_else_stays_as_written() {
    #[rustfmt::skip]
    let cases: &[(&str, &[&str], &[&str], Option<&str>)] = &[
        ("./run.sh", &["x"], &["@/run.sh", "x"], Some("@/run.sh")),
        ("run.sh", &[], &["@/run.sh"], Some("@/run.sh")),
        ("sub/run.sh", &[], &["@/sub/run.sh"], Some("@/sub/run.sh")),
        ("./missing.sh", &[], &["@/missing.sh"], Some("@/missing.sh")),
        ("/bin/true", &["x"], &["/bin/true", "x"], None),
        ("/bin/true", &["data.txt", "-v"], &["/bin/true", "@/data.txt", "-v"], Some("@/data.txt")),
        ("python3", &["guard.py", "data.txt", "other"], &["python3", "@/guard.py", "@/data.txt", "other"], Some("@/guard.py")),
        ("python3", &["missing.py"], &["python3", "@/missing.py"], Some("@/missing.py")),
        ("python3", &["-u", "-W", "ignore", "guard.py"], &["python3", "-u", "-W", "ignore", "@/guard.py"], Some("@/guard.py")),
        ("python3", &["--", "guard.py"], &["python3", "--", "@/guard.py"], Some("@/guard.py")),
        ("/usr/bin/python3", &["guard.py"], &["/usr/bin/python3", "@/guard.py"], Some("@/guard.py")),
        ("python3", &["/opt/guard.py"], &["python3", "/opt/guard.py"], Some("/opt/guard.py")),
        ("python3", &["-c", "guard.py"], &["python3", "-c", "guard.py"], None),
        ("python3", &["-Ic", "guard.py"], &["python3", "-Ic", "guard.py"], None),
        ("python3", &["-m", "guard.py"], &["python3", "-m", "guard.py"], None),
        ("node", &["-e", "guard.py"], &["node", "-e", "guard.py"], None),
        ("node", &["--eval=1", "guard.py"], &["node", "--eval=1", "guard.py"], None),
        ("node", &["-p", "guard.py"], &["node", "-p", "guard.py"], None),
        ("node", &["-r", "module", "guard.py"], &["node", "-r", "module", "@/guard.py"], Some("@/guard.py")),
        ("bash", &["-e", "run.sh"], &["bash", "-e", "@/run.sh"], Some("@/run.sh")),
        ("bash", &["-eo", "pipefail", "run.sh"], &["bash", "-eo", "pipefail", "@/run.sh"], Some("@/run.sh")),
        ("bash", &["-ec", "run.sh"], &["bash", "-ec", "run.sh"], None),
        ("sh", &["-c", "run.sh"], &["sh", "-c", "run.sh"], None),
        ("npx", &["guard.py"], &["npx", "guard.py"], None),
        ("uvx", &["data.txt"], &["uvx", "data.txt"], None),
        ("python3", &["guard.py", "{{tool_name}}", "../outside.txt"], &["python3", "@/guard.py", "{{tool_name}}", "../outside.txt"], Some("@/guard.py")),
        ("python3", &["sub/../guard.py"], &["python3", "@/guard.py"], Some("@/guard.py")),
    ];
    for (command, args, words, script) in cases {
        let world = World::new();
        for file in ["run.sh", "sub/run.sh", "guard.py", "data.txt", "node", "../outside.txt"] {
            world.write(&format!("home/.ollm/hooks/{file}"), "");
        }
        let args = args.iter().map(|arg| format!("{arg:?}")).collect::<Vec<_>>().join(", ");
        world.entry(&format!(r#"{{"command": "{command}", "args": [{args}]}}"#));
        let expected = (words.iter().map(|word| (*word).to_owned()).collect(), script.map(str::to_owned));
        assert_eq!(line(&world), expected, "{command} {args}");
    }
}

#[test]
fn an_absolute_command_in_the_hooks_own_folder_is_its_script() {
    let world = World::new();
    let run = world.write("home/.ollm/hooks/run.sh", "");
    world.entry(&format!(r#"{{"command": {run:?}}}"#));
    assert_eq!(world.hook().spec.script(), Some(&run));
}

#[test]
fn a_file_outside_of_the_hooks_folder_is_refused_whichever_way_leads_there() {
    let world = World::new();
    let outside = world.write("outside.sh", "");
    fs::create_dir_all(world.path("elsewhere")).unwrap();
    link(&outside, world.path("home/.ollm/hooks/link.sh"));
    link(world.path("elsewhere"), world.path("home/.ollm/hooks/folder"));
    link(world.path("nowhere"), world.path("home/.ollm/hooks/dangling.sh"));
    for (entry, field, target) in [
        (r#"{"command": "../../../outside.sh"}"#, "command", "outside.sh"),
        (r#"{"command": "./link.sh"}"#, "command", "outside.sh"),
        (r#"{"command": "link.sh"}"#, "command", "outside.sh"),
        (r#"{"command": "folder/new.sh"}"#, "command", "elsewhere"),
        (r#"{"command": "sh", "args": ["../../../outside.sh"]}"#, "args[0]", "outside.sh"),
        (r#"{"command": "sh", "args": ["-x", "link.sh"]}"#, "args[1]", "outside.sh"),
        (r#"{"command": "/bin/true", "args": ["link.sh"]}"#, "args[0]", "outside.sh"),
        (r#"{"command": "/bin/true", "inputs": ["link.sh"]}"#, "inputs[0]", "outside.sh"),
        (r#"{"command": "/bin/true", "inputs": ["../x"]}"#, "inputs[0]", "home/.ollm/x"),
        (r#"{"command": "/bin/true", "inputs": ["/etc/passwd"]}"#, "inputs[0]", "/etc/passwd"),
    ] {
        world.entry(entry);
        let (problem, loaded) = world.problem();
        assert_eq!(loaded, 0, "{entry}");
        assert_eq!(problem.field, format!("hooks.before_tool[0].{field}"), "{entry}");
        let leads = format!(
            " leads to {}, out of the hook's folder {}; the hook is not loaded",
            world.path(target).display(),
            world.path("home/.ollm/hooks").display()
        );
        assert!(problem.message.ends_with(&leads), "{entry}: {}", problem.message);
    }
    world.entry(r#"{"command": "./dangling.sh"}"#);
    let (problem, loaded) = world.problem();
    assert_eq!((loaded, problem.field.as_str()), (0, "hooks.before_tool[0].command"));
    let nowhere = "`./dangling.sh` cannot be looked at: it is a link that leads nowhere; the hook is not loaded";
    assert_eq!(problem.message, nowhere);
}

#[test]
fn a_linked_hooks_folder_is_as_good_as_any() {
    let world = World::new();
    world.write("dotfiles/guard.py", "");
    world.write("dotfiles/a.json", r#"{"hooks": {"before_tool": [{"command": "python3", "args": ["guard.py"]}]}}"#);
    fs::remove_dir(world.path("home/.ollm/hooks")).unwrap();
    link(world.path("dotfiles"), world.path("home/.ollm/hooks"));
    assert_eq!(line(&world).1.as_deref(), Some("@/guard.py"));
}

#[test]
fn a_command_with_its_arguments_in_it_is_told_what_to_do() {
    for command in ["./run.sh --fast", "run.sh --fast", "python3 run.sh"] {
        let world = World::new();
        world.write("home/.ollm/hooks/run.sh", "");
        world.entry(&format!(r#"{{"command": "{command}"}}"#));
        let (problem, loaded) = world.problem();
        assert_eq!((problem.field.as_str(), loaded), ("hooks.before_tool[0].command", 0));
        assert!(problem.message.starts_with(&format!("command `{command}` holds arguments")), "{}", problem.message);
    }
}

#[test]
fn a_command_line_with_a_slash_in_it_is_no_relative_path() {
    for (command, says) in [("rm -rf /", "neither a path nor one of"), ("node;/bin/rm", "holds shell characters")] {
        let world = World::new();
        world.entry(&format!(r#"{{"command": "{command}"}}"#));
        let (problem, loaded) = world.problem();
        assert_eq!((problem.field.as_str(), loaded), ("hooks.before_tool[0].command", 0));
        assert!(problem.message.contains(says), "{}", problem.message);
    }
}

#[test]
fn what_is_loaded_before_the_script_is_an_input_and_the_script_stays_the_script() {
    let world = World::new();
    for file in ["pre.js", "main.js"] {
        world.write(&format!("home/.ollm/hooks/{file}"), "");
    }
    world.entry(r#"{"command": "node", "args": ["-r", "pre.js", "main.js"]}"#);
    let (catalog, problems) = world.load();
    assert_eq!(problems, []);
    let spec = &catalog.hooks[0].spec;
    let names = |paths: Vec<&std::path::PathBuf>| -> Vec<String> {
        paths.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    };
    assert_eq!(names(spec.script().into_iter().collect()), ["main.js"]);
    assert_eq!(names(spec.inputs.iter().collect()), ["pre.js"]);
}
