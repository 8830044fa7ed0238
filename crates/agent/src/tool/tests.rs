//! Tests every tool with good and bad arguments, in a temporary folder.

use super::*;
use ollm_protocol::tool::{declared, effects_of};
use std::fs;

/// The most of a result that the model is shown here.
const MOST: usize = 64 << 10;

struct World {
    folder: tempfile::TempDir,
    workspace: Workspace,
    children: Children,
    shell: ShellSettings,
    todos: Vec<todo::Item>,
    cancel: Cancel,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("w")).unwrap();
        let workspace = Workspace::new(&folder.path().join("w"), &[]).unwrap();
        let env = vec![("PATH".into(), "/usr/bin:/bin".into()), ("OLLM_AGENT".into(), "forged".into())];
        let shell = ShellSettings { agent: "s1".into(), ..ShellSettings::new(env, &folder.path().join("spill")) };
        World { folder, workspace, children: Children::new(), shell, todos: Vec::new(), cancel: Cancel::default() }
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> &World {
        let path = self.folder.path().join("w").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    fn content(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join("w").join(name)).unwrap()
    }

    fn run(&mut self, tool: &str, args: Value) -> Result<ToolOutcome, String> {
        let Value::Object(args) = args else { panic!("arguments are an object") };
        let mut bench = Bench {
            workspace: &self.workspace,
            children: &self.children,
            shell: &self.shell,
            todos: &mut self.todos,
            cancel: &self.cancel,
            most: MOST,
        };
        find(tool).unwrap().run(&args, &mut bench)
    }

    fn text(&mut self, tool: &str, args: Value) -> String {
        self.run(tool, args).unwrap().text
    }

    fn fault(&mut self, tool: &str, args: Value) -> String {
        self.run(tool, args).unwrap_err()
    }
}

#[test]
fn names_are_unique_and_schemas_complete() {
    let mut names: Vec<&str> = Vec::new();
    for tool in TOOLS {
        let description = tool.describe();
        names.push(description.declaration.name);
        let known = declared(description.declaration.name);
        assert!(known.is_none_or(|known| known == description.declaration), "one name, one declaration");
        let schema = description.tool().input.0;
        assert_eq!(schema["type"], "object");
        assert!(
            schema["required"]
                .as_array()
                .unwrap()
                .iter()
                .all(|name| schema["properties"][name.as_str().unwrap()].is_object())
        );
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// A tool whose arguments have usual names needs no row in the table of tools; any other tool does.
#[test]
fn guards_find_every_effect_that_a_tool_declares() {
    for tool in TOOLS {
        let declaration = tool.describe().declaration;
        for (arg, effect) in declaration.effects {
            let value = if *effect == Effect::ProgramArguments { json!(["x"]) } else { json!("x") };
            let args = Map::from_iter([((*arg).to_owned(), value)]);
            let found = effects_of(declaration.name, &args);
            assert!(found.iter().any(|found| found.sure && found.effect == *effect), "{} {arg}", declaration.name);
        }
    }
}

#[test]
fn every_list_that_a_model_is_offered_says_what_it_holds() {
    use ollm_protocol::schema::{Api, lower};
    for tool in TOOLS {
        for api in [Api::Full, Api::Object, Api::Simple] {
            let schema = lower(&tool.describe().tool().input, api).schema;
            for (name, property) in schema["properties"].as_object().unwrap() {
                assert_eq!(property["type"] == "array", property["items"].is_object(), "{name}: {property}");
            }
        }
    }
}

#[test]
fn the_documents_names_mean_our_tools() {
    for (alias, tool) in [("bash_execute", "shell"), ("replace_in_file", "edit_file"), ("read-file", "read_file")] {
        assert_eq!(declared(alias).map(|known| known.name), Some(tool));
    }
}

#[test]
fn a_file_is_read_whole_or_in_part() {
    let mut world = World::new();
    world.file("a", "one\ntwo\nthree\n");
    assert_eq!(world.text("read_file", json!({"path": "a"})), "one\ntwo\nthree\n");
    assert_eq!(world.text("read_file", json!({"file_path": "a"})), "one\ntwo\nthree\n");
    let part = world.text("read_file", json!({"path": "a", "offset": 2, "limit": "1"}));
    assert_eq!(part, "two\n\n[lines 2 to 2 of 3; use offset and limit for others]");
    world.file("long", "x\n".repeat(100_000));
    assert!(world.text("read_file", json!({"path": "long"})).len() < MOST + 100);
    world.file("binary", b"a\0b");
    assert!(world.fault("read_file", json!({"path": "binary"})).contains("no text"));
    assert!(world.fault("read_file", json!({"path": "missing"})).contains("there is no file"));
    assert!(world.fault("read_file", json!({"path": "../spill"})).contains("outside the workspace"));
    assert!(world.fault("read_file", json!({})).contains("`path` is missing"));
    assert!(world.fault("read_file", json!({"path": 7})).contains("must be a text"));
    assert!(world.fault("read_file", json!({"path": "a", "offset": -1})).contains("whole number"));
}

#[test]
fn a_line_of_any_length_is_read_piece_by_piece() {
    let mut world = World::new();
    let line = "0é".repeat(MOST);
    world.file("long", format!("first\n{line}\r\nlast\n"));
    let (mut read, mut column) = (String::new(), 1);
    loop {
        let piece = world.text("read_file", json!({"path": "long", "offset": 2, "column": column}));
        let (text, note) = piece.rsplit_once("\n[").unwrap();
        assert!(text.len() <= MOST && !text.is_empty(), "{note}");
        read.push_str(text);
        let Some((_, next)) = note.split_once("; go on with offset 2 and column ") else { break };
        column = next.trim_end_matches(']').parse().unwrap();
    }
    assert_eq!(read, line);
    let before = world.text("read_file", json!({"path": "long"}));
    assert_eq!(before, "first\n\n[lines 1 to 1 of 3; use offset and limit for others]");
    let beyond = world.text("read_file", json!({"path": "long", "column": 99}));
    assert_eq!(beyond, "\n[bytes 6 to 5 of the 5 in line 1]");
}

#[test]
fn writing_tells_what_changed() {
    let mut world = World::new();
    let done = world.run("write_file", json!({"path": "d/a", "content": "one\n"})).unwrap();
    let change = done.change.unwrap();
    assert_eq!((change.kind, change.size), (EventKind::FileCreated, 4));
    let change = world.run("write_file", json!({"path": "d/a", "content": "two\n"})).unwrap().change.unwrap();
    assert_eq!(change.kind, EventKind::FileEdited);
    assert!(change.diff.contains("-one\n+two\n"), "{}", change.diff);
    assert_eq!(world.content("d/a"), "two\n");
    assert!(world.fault("write_file", json!({"path": "/etc/x", "content": ""})).contains("outside"));
    assert!(world.fault("write_file", json!({"path": "x"})).contains("`content` is missing"));
}

#[test]
fn an_edit_needs_a_passage_that_occurs_once() {
    let mut world = World::new();
    world.file("a", "x = 1\ny = 1\n");
    let done = world.run("edit_file", json!({"path": "a", "old": "x = 1", "new": "x = 2"})).unwrap();
    assert!(done.text.contains("-x = 1\n+x = 2"), "{}", done.text);
    assert_eq!(world.content("a"), "x = 2\ny = 1\n");
    assert!(world.fault("edit_file", json!({"path": "a", "old": "=", "new": ":"})).contains("occurs 2 times"));
    assert!(world.fault("edit_file", json!({"path": "a", "old": "z", "new": ":"})).contains("does not occur"));
    assert!(world.fault("edit_file", json!({"path": "a", "old": "", "new": ":"})).contains("empty"));
    assert!(world.fault("edit_file", json!({"path": "a", "old": "x", "new": "x"})).contains("the same"));
    assert!(world.fault("edit_file", json!({"path": "b", "old": "x", "new": "y"})).contains("there is no file"));
}

#[test]
fn a_deleted_file_is_gone_and_told_of() {
    let mut world = World::new();
    world.file("a", "one\n");
    let change = world.run("delete_file", json!({"path": "a"})).unwrap().change.unwrap();
    assert_eq!(change.kind, EventKind::FileDeleted);
    assert!(change.diff.contains("-one"));
    assert!(world.fault("delete_file", json!({"path": "a"})).contains("there is no file"));
}

#[test]
fn folders_are_listed_and_files_found() {
    let mut world = World::new();
    world.file("src/a.rs", "fn a() {}\n").file("src/b.txt", "fn b\n").file("target/c.rs", "fn c() {}");
    world.file(".gitignore", "target/\n").file(".git/config", "fn\n");
    assert_eq!(world.text("list_dir", json!({})), ".git/\n.gitignore\nsrc/\ntarget/");
    assert_eq!(world.text("list_dir", json!({"path": "src"})), "a.rs\nb.txt");
    assert!(world.fault("list_dir", json!({"path": "src/a.rs"})).contains("cannot list"));
    assert_eq!(world.text("glob", json!({"pattern": "*.rs"})), "src/a.rs");
    assert_eq!(world.text("glob", json!({"pattern": "src/**"})), "src/a.rs\nsrc/b.txt");
    assert_eq!(world.text("glob", json!({"pattern": "*.py"})), "no file fits");
    assert_eq!(world.text("glob", json!({"pattern": "{*.rs,*.txt}"})), "src/a.rs\nsrc/b.txt");
    assert_eq!(world.text("glob", json!({"pattern": "s*/*.txt"})), "src/b.txt");
    assert_eq!(world.text("glob", json!({"pattern": "./src/*.rs"})), "src/a.rs");
    assert!(world.fault("glob", json!({"pattern": "[a"})).contains("no pattern"));
    let nested = format!("{}a{}", "{a,".repeat(150), "}".repeat(150));
    for hostile in ["{a,b}".repeat(200), nested] {
        assert!(world.fault("glob", json!({"pattern": hostile})).contains("too many patterns"));
    }
    assert_eq!(world.text("grep", json!({"pattern": "^fn .\\("})), "src/a.rs:1:fn a() {}");
    assert_eq!(world.text("grep", json!({"pattern": "fn", "path": "src/b.txt"})), "src/b.txt:1:fn b");
    assert_eq!(world.text("grep", json!({"pattern": "zzz"})), "no line fits");
    assert!(world.fault("grep", json!({"pattern": "("})).contains("no expression"));
    assert!(world.fault("grep", json!({"pattern": "a", "path": "nowhere"})).contains("there is no"));
    assert!(world.fault("grep", json!({"pattern": "a", "path": ".."})).contains("outside"));
}

#[test]
fn the_list_of_things_to_do_is_replaced_as_a_whole() {
    let mut world = World::new();
    let items = json!({"items": [{"text": "a", "status": "done"}, {"text": "b"}, "c"]});
    assert_eq!(world.text("todo", items), "[x] a\n[ ] b\n[ ] c");
    assert!(world.fault("todo", json!({"items": [{"text": "a", "status": "later"}]})).contains("no status"));
    assert!(world.fault("todo", json!({"items": 3})).contains("must be a list"));
    assert_eq!(world.todos.len(), 3, "a list that cannot be read changes nothing");
    assert_eq!(world.text("todo", json!({"items": []})), "the list is empty");
}

#[test]
fn a_command_runs_in_the_workspace_and_knows_its_agent() {
    let mut world = World::new();
    world.file("here", "");
    assert_eq!(world.text("shell", json!({"command": "ls; echo $OLLM_AGENT"})), "here\ns1");
    let done = world.run("shell", json!({"command": "echo out; echo err >&2; exit 3"})).unwrap();
    assert_eq!((done.text.as_str(), done.failed), ("out\n[standard error]\nerr\n[exit code 3]", true));
    assert_eq!(world.text("shell", json!({"command": "true"})), "[no output]");
    assert_eq!(world.text("shell", json!({"command": "cat"})), "[no output]", "there is no input to wait for");
    assert!(world.fault("shell", json!({"command": "a\u{0}b"})).contains("NUL"));
}

#[test]
fn long_output_is_kept_in_a_file_and_endless_output_ends() {
    let mut world = World::new();
    let text = world.text("shell", json!({"command": "seq 1 20000"}));
    let place = text.split("all of it is in ").nth(1).unwrap().split(';').next().unwrap();
    assert_eq!(fs::read_to_string(place).unwrap().lines().count(), 20_000);
    assert!(text.starts_with("1\n2\n") && text.ends_with("20000"));
    for _ in 0..60 {
        world.text("shell", json!({"command": "seq 1 20000"}));
    }
    assert_eq!(fs::read_dir(&world.shell.spill).unwrap().count(), 50, "old outputs are forgotten");
    world.shell.output = 1 << 20;
    let done = world.run("shell", json!({"command": "yes"})).unwrap();
    assert!(done.failed && done.text.contains("went over 1048576 bytes"), "{}", done.text);
}

#[test]
fn a_command_that_hangs_is_ended_by_its_deadline_or_the_person() {
    let mut world = World::new();
    world.shell.timeout = Duration::from_millis(200);
    assert!(world.run("shell", json!({"command": "sleep 600"})).unwrap().text.contains("the most a command may take"));
    world.shell.timeout = Duration::from_mins(10);
    world.cancel.interrupt();
    assert!(world.run("shell", json!({"command": "sleep 600"})).unwrap().text.contains("[interrupted]"));
}
