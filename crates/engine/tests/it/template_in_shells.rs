//! Templates against real shells: every value arrives byte for byte, and nothing in it runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use ollm_engine::template::{ShellTemplate, Template, TemplateError};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Commands that print a word in each quoting position, each word ended by NUL, and the words they must print.
type Case = (&'static str, fn(&str, &str) -> Vec<String>);

const POSITIONS: &[Case] = &[
    (r"printf '%s\0' {{x}}", |x, _| vec![x.into()]),
    (r"printf '%s\0' '{{x}}' ''", |x, _| vec![x.into(), String::new()]),
    (r#"printf '%s\0' "{{x}}" "{{y}}""#, |x, y| vec![x.into(), y.into()]),
    (r"printf '%s\0' --flag={{x}}.txt", |x, _| vec![format!("--flag={x}.txt")]),
    (r"printf '%s\0' {{x}}{{y}}{{x}}", |x, y| vec![format!("{x}{y}{x}")]),
    (r#"printf '%s\0' a'b {{x}} c'"d {{y}} e"{{x}}"#, |x, y| vec![format!("ab {x} cd {y} e{x}")]),
    (r#"printf '%s\0' "$(printf '%s.' {{x}})""#, |x, _| vec![format!("{x}.")]),
    (r#"printf '%s\0' "a $(printf '%s.' "$(printf '%s.' '{{x}}')") b""#, |x, _| vec![format!("a {x}.. b")]),
    (r#"v={{x}}; printf '%s\0' "$v""#, |x, _| vec![x.into()]),
    (r#"v='a {{x}}'{{y}} w="{{y}}"; printf '%s\0' "$v" "$w""#, |x, y| vec![format!("a {x}{y}"), y.into()]),
    (r#"export V={{x}}; printf '%s\0' "$V""#, |x, _| vec![x.into()]),
    (r"printf '%s\0' ${none:-{{x}}}", |x, _| vec![x.into()]),
    (r"printf '%s\0' ${none:-'a {{x}}'}", |x, _| vec![format!("a {x}")]),
    (r#"printf '%s\0' "${none:-a {{x}} b}" "${none-${none-{{y}}}}""#, |x, y| vec![format!("a {x} b"), y.into()]),
    (r#"printf '%s\0' "${none:-$(printf '%s.' {{x}})}""#, |x, _| vec![format!("{x}.")]),
    (r#"v={{x}}END; printf '%s\0' "${v#{{x}}}" ${v#{{x}}}"#, |_, _| vec!["END".into(), "END".into()]),
    (r#"for f in {{x}} {{y}}; do printf '%s\0' "$f"; done"#, |x, y| vec![x.into(), y.into()]),
    (r"case {{x}} in {{x}}) printf 'same\0';; *) printf 'other\0';; esac", |_, _| vec!["same".into()]),
    (r#"set -- {{x}} '{{y}}'; printf '%s\0' $# "$1""#, |x, _| vec!["2".into(), x.into()]),
    (r#"sh -c 'printf "%s\0" "$1"' name {{x}}"#, |x, _| vec![x.into()]),
    (r#"f() { printf '%s\0' "$@" {{y}}; }; f {{x}}"#, |x, y| vec![x.into(), y.into()]),
    (r"printf '%s\0' ~{{x}} *{{x}}{{y}}", |x, y| vec![format!("~{x}"), format!("*{x}{y}")]),
    (r#"if [ {{x}} = {{x}} ]; then printf '%s\0' \\{{x}} \'{{y}}\"; fi"#, |x, y| {
        vec![format!("\\{x}"), format!("'{y}\"")]
    }),
    ("cat <<'E' # it's {{x}}\nit's $(f) \"\nE\nprintf '\\0%s\\0' {{x}}", |x, _| {
        vec!["it's $(f) \"\n".into(), x.into()]
    }),
];

/// A folder of its own, with a canary that must never appear.
struct Room(PathBuf);

impl Room {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("ollm-template-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let room = Self(std::env::temp_dir().join(name));
        for folder in ["bin", "home", "work"] {
            fs::create_dir_all(room.0.join(folder)).unwrap();
        }
        room.program("pwn", &format!("#!/bin/sh\n: > '{}'\n", room.canary().display()));
        for tool in ["touch", "cat", "sh", "date", "head"] {
            let found = ["/bin", "/usr/bin"].map(|folder| Path::new(folder).join(tool));
            let found = found.iter().find(|path| path.exists()).unwrap();
            std::os::unix::fs::symlink(found, room.0.join("bin").join(tool)).unwrap();
        }
        room
    }

    fn canary(&self) -> PathBuf {
        self.0.join("canary")
    }

    /// Another process writes it: a child that another test forks meanwhile would hold our file open, and no shell starts
    /// a program that is open for writing.
    fn program(&self, name: &str, text: &str) {
        let (path, draft) = (self.0.join("bin").join(name), self.0.join("draft"));
        fs::write(&draft, text).unwrap();
        assert!(Command::new("cp").args([&draft, &path]).status().unwrap().success());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs the script, and makes sure that no value ran.
    fn run(&self, shell: &[&str], text: &str, scope: &Value) -> Output {
        let template = ShellTemplate::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        self.start(shell, &template, scope)
    }

    fn start(&self, shell: &[&str], template: &ShellTemplate, scope: &Value) -> Output {
        let output = Command::new(shell[0])
            .args(&shell[1..])
            .args(["-c", template.script()])
            .env_clear()
            .env("PATH", self.0.join("bin"))
            .env("HOME", self.0.join("home"))
            .envs(template.bind(scope).unwrap().env)
            .current_dir(self.0.join("work"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let ran = fs::remove_file(self.canary()).is_ok();
        assert!(!ran, "a value ran in {shell:?}: {:?} {scope}", template.script());
        output
    }

    /// Empties the work folder: file names that one script left must not feed the wildcards of the next.
    fn clear(&self) {
        fs::remove_dir_all(self.0.join("work")).unwrap();
        fs::create_dir(self.0.join("work")).unwrap();
    }

    fn work(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.join("work")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn shells() -> Vec<Vec<&'static str>> {
    let posix = ["/bin/bash", "/usr/bin/bash"].into_iter().find(|bash| Path::new(bash).exists());
    std::iter::once(vec!["/bin/sh"]).chain(posix.map(|bash| vec![bash, "--posix"])).collect()
}

/// Text that tries hard to get out of wherever it is put.
fn hostile(canary: &Path) -> impl Strategy<Value = String> + use<> {
    let canary = canary.display();
    let attacks = [
        "'",
        "\"",
        "`",
        "\\",
        "$",
        "\n",
        "\n\n",
        " ",
        "\t",
        "*",
        "?",
        "[a-z]*",
        "~",
        "~/",
        "-",
        "--",
        "-n",
        "-e",
        "#",
        ";",
        "&",
        "|",
        "<",
        ">",
        "(",
        ")",
        "{",
        "}",
        "{{y}}",
        "{{x}}",
        "$x",
        "${OLLM_T1}",
        "$OLLM_T2",
        "%s",
        "\\0",
        "\r",
        "\u{1}",
        "\u{7f}",
        "\u{81}",
        "\u{88}",
        "é",
        "日本",
        "🦀",
        "\u{202e}",
        "",
        "a",
        "pwn",
        "\npwn\n",
        ";pwn;",
        "$(pwn)",
        "`pwn`",
        "'$(pwn)'",
        "\"$(pwn)\"",
        "';pwn;'",
        "\";pwn;\"",
        "}pwn;",
        ")pwn;(",
        "a[$(pwn)]",
        "-va[$(pwn)]",
        "\\\n",
        "E\npwn\n",
        "))",
        "$((a[$(pwn)]))",
        "esac",
        ";;",
    ];
    let touches = [format!("$(touch {canary})"), format!("'; touch {canary}; '"), format!("\"; touch {canary} #")];
    let piece = prop_oneof![
        8 => proptest::sample::select(attacks.map(String::from).into_iter().chain(touches).collect::<Vec<_>>()),
        1 => "[^\0]{0,8}".prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

#[test]
fn a_hostile_value_arrives_whole_in_every_position() {
    let room = Room::new();
    let text = POSITIONS.iter().map(|(text, _)| *text).collect::<Vec<_>>().join("\n");
    let values = (hostile(&room.canary()), hostile(&room.canary()));
    proptest!(cases(512), |((x, y) in values)| {
        let want: Vec<String> = POSITIONS.iter().flat_map(|(_, words)| words(&x, &y)).collect();
        for shell in shells() {
            let output = room.run(&shell, &text, &json!({"x": x, "y": y}));
            let stdout = String::from_utf8(output.stdout).unwrap();
            let got: Vec<&str> = stdout.split_terminator('\0').collect();
            prop_assert_eq!(&got, &want, "{:?}: {}", shell, String::from_utf8_lossy(&output.stderr));
            prop_assert_eq!(room.work(), Vec::<String>::new());
        }
    });
}

#[test]
fn each_position_works_alone() {
    let room = Room::new();
    let (x, y) = ("it's \"$(pwn)\" `pwn` *\n\\", "-n {{x}}\n\n");
    for shell in shells() {
        for (text, words) in POSITIONS {
            let output = room.run(&shell, text, &json!({"x": x, "y": y}));
            let stdout = String::from_utf8(output.stdout).unwrap();
            assert_eq!(stdout.split_terminator('\0').collect::<Vec<_>>(), words(x, y), "{shell:?} {text}");
        }
    }
}

#[test]
fn a_value_names_a_redirection_target_exactly() {
    let room = Room::new();
    let name = "[^/\0]{0,12}".prop_filter("a file name", |name| !["", ".", ".."].contains(&name.as_str()));
    proptest!(cases(256), |(name in prop_oneof![name, hostile(&room.canary())])| {
        prop_assume!(!name.contains('/') && !["", ".", ".."].contains(&name.as_str()) && name.len() < 255);
        for shell in shells() {
            room.run(&shell, "printf '%s' '{{x}}' >{{x}} 2>&1", &json!({"x": name}));
            prop_assert_eq!(room.work(), vec![name.clone()]);
            let path = room.0.join("work").join(&name);
            prop_assert_eq!(&fs::read_to_string(&path).unwrap(), &name);
            fs::remove_file(path).unwrap();
        }
    });
}

#[test]
fn a_value_of_a_hundred_thousand_bytes_arrives() {
    let room = Room::new();
    let value = "it's $(pwn) \"`\n".repeat(100_000 / 15 + 1);
    for shell in shells() {
        let output = room.run(&shell, "printf %s {{x}}; printf %s 'a{{x}}'", &json!({"x": value}));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{value}a{value}"));
    }
}

/// Pieces of scripts, a dot between two; none can loop or name files by a wildcard.
const PIECES: &[&str] = &[
    "{{x}}·{{x}}·{{x}}·{{y}}· {{x}}·'·\"·`·\\·$·$(·)·(·((·))·$((·${v:-·${v#·${v:=·${·}·{ ·; }· · ·\n",
    "\\\n·;·&·&&·|·||·<·>·>&·<<E·<<-'E'·\nE\n·\n\tE\n·#· #·=·v=·$v·\"$v\"·export v=·1·v·case a in ",
    "a) ·(a) ·;;· esac ·if ·; then ·; else ·; fi·; do ·; done·for v in ·! ·echo ·printf %s ·printf ",
    ": ·eval ·sh -c ·sh ·set -- ·read ·unset ·[ -n ·[ · ]·-v ·test ·env ·exec ·command ·time ·f ",
    "alias f=·trap ·cat ·[[ · ]]·$'·$\"·$[·]·a[·a=(·<(·<<<·&>·let ·local ·declare ·- ·-c ·-- ·_ ·~·!",
    "$_",
];

/// Scripts put together blindly: most are not valid, some are valid in an unforeseen way.
fn scripts() -> impl Strategy<Value = String> {
    let pieces = proptest::sample::select(PIECES.iter().flat_map(|row| row.split('·')).collect::<Vec<_>>());
    prop_oneof![
        4 => proptest::collection::vec(pieces, 1..16).prop_map(|pieces| pieces.concat()),
        1 => ("[ -)+->@-Z\\\\-~\n]{0,12}", "[ -)+->@-Z\\\\-~\n]{0,12}").prop_map(|(before, after)| format!("{before}{{{{x}}}}{after}")),
    ]
}

#[test]
fn no_accepted_script_runs_a_value() {
    let room = Room::new();
    let canary = room.canary();
    let command = proptest::sample::select(&["echo ", ": ", "", "printf %s ", "v="][..]);
    let config = ProptestConfig { max_global_rejects: 1_000_000, ..cases(400) };
    proptest!(config, |(command in command, script in scripts(), x in hostile(&canary), y in hostile(&canary))| {
        let Ok(template) = ShellTemplate::parse(&format!("{command}{script}")) else {
            return Err(TestCaseError::reject("refused"));
        };
        prop_assume!(template.paths().next().is_some());
        for shell in shells() {
            for x in ["pwn", "$(pwn)", "a[$(pwn)]", "'\"`pwn`\"';pwn;", &x] {
                room.start(&shell, &template, &json!({"x": x, "y": y}));
                room.clear();
            }
        }
    });
}

proptest! {
    #![proptest_config(cases(4096))]

    #[test]
    fn any_text_parses_or_is_refused(text in prop_oneof![any::<String>(), scripts(), "[{}x. '\"$()`\\\\\n]{0,40}"]) {
        let _ = ShellTemplate::parse(&text);
        let _ = Template::parse(&text).render(&json!({"x": {"x": "{{x}}"}}));
    }

    #[test]
    fn text_without_variables_stays_as_it_is(text in "[^{\0]{0,60}") {
        let shell = ShellTemplate::parse(&text).unwrap();
        prop_assert_eq!(shell.script(), &text);
        prop_assert_eq!(Template::parse(&text).render(&json!({})).text, text);
    }

    #[test]
    fn a_rendered_value_is_never_read_again(value in any::<String>()) {
        let rendered = Template::parse("a{{x}}b{{ x }}").render(&json!({"x": value}));
        prop_assert_eq!(rendered.text, format!("a{value}b{value}"));
    }
}

#[test]
fn a_value_with_nul_is_refused_by_name() {
    let error = ShellTemplate::parse("e {{tool_args.a}}").unwrap().bind(&json!({"tool_args": {"a": "x\0y"}}));
    assert_eq!(error, Err(TemplateError::Nul { variable: "tool_args.a".into() }));
}

/// The commands a settings file shows as examples, with stand-ins that write down their arguments.
#[test]
fn the_documented_commands_work_as_written() {
    let room = Room::new();
    let recorded = room.0.join("recorded");
    let record = format!("#!/bin/sh\nprintf '%s\\0' \"${{0##*/}}\" \"$@\" > '{}'\n", recorded.display());
    for name in ["notify-send", "logger", "black", "git", "osascript", "slack-cli", "security-check"] {
        room.program(name, &record);
    }
    let hostile = "it's; $(pwn) `pwn` \"*\" -- {{tool_name}}";
    let scope = json!({
        "tool_name": hostile, "message": hostile, "result": hostile,
        "tool_args": {"file_path": hostile, "command": hostile},
    });
    let security = format!("{}/bin/security-check '{{{{tool_args.command}}}}'", room.0.display());
    let calls: &[(&str, &[&str])] = &[
        ("notify-send 'Tool completed: {{tool_name}}'", &["notify-send", &format!("Tool completed: {hostile}")]),
        ("logger 'CLI-Agent: {{message}}'", &["logger", &format!("CLI-Agent: {hostile}")]),
        ("black {{tool_args.file_path}} 2>/dev/null || true", &["black", hostile]),
        ("git add {{tool_args.file_path}} 2>/dev/null || true", &["git", "add", hostile]),
        (
            r#"osascript -e 'display notification "CLI-Agent finished" with title "Task Complete"'"#,
            &["osascript", "-e", r#"display notification "CLI-Agent finished" with title "Task Complete""#],
        ),
        ("slack-cli send '#ai-agents' '{{message}}'", &["slack-cli", "send", "#ai-agents", hostile]),
        (&security, &["security-check", hostile]),
    ];
    for shell in shells() {
        for (command, want) in calls {
            let output = room.run(&shell, command, &scope);
            assert!(output.status.success(), "{command}");
            let arguments = fs::read_to_string(&recorded).unwrap();
            assert_eq!(arguments.split_terminator('\0').collect::<Vec<_>>(), *want, "{command}");
        }
        let logs: &[(&str, &str, String)] = &[
            ("echo 'About to execute bash command'", "", String::new()),
            ("echo 'Response complete' >> ~/.cli-agent-log", ".cli-agent-log", "Response complete\n".into()),
            (
                "echo '[$(date)] BASH: {{tool_args.command}}' >> ~/.cli-agent-audit.log",
                ".cli-agent-audit.log",
                format!("[$(date)] BASH: {hostile}\n"),
            ),
            (
                "echo '[$(date)] TOOL: {{tool_name}} - {{result}}' | head -c 200 >> ~/.cli-agent-audit.log",
                ".cli-agent-audit.log",
                format!("[$(date)] TOOL: {hostile} - {hostile}\n"),
            ),
        ];
        for (command, file, want) in logs {
            let output = room.run(&shell, command, &scope);
            assert!(output.status.success(), "{command}");
            if !file.is_empty() {
                let path = room.0.join("home").join(file);
                assert_eq!(&fs::read_to_string(&path).unwrap(), want, "{command}");
                fs::remove_file(path).unwrap();
            }
        }
    }
    assert_eq!(room.work(), Vec::<String>::new());
}
