//! Commands in any wrapping, and any nonsense as input.

use std::path::Path;

use ollm_guard::{destructive, tampering};
use ollm_protocol::Flow;
use proptest::prelude::*;

use super::{HOME, PROJECT, first, second, shell, shelter};

/// Commands that must not pass.
const DESTRUCTIVE: &[&str] = &[
    "rm -rf /",
    "rm -rf ~",
    "rm -fr $HOME",
    "rm -r --force /etc",
    "rm -rf ..",
    "rm -rf .git",
    "dd if=/dev/zero of=/dev/sda",
    "mkfs.ext4 /dev/sda1",
    "chmod -R 777 /",
    "find / -delete",
    "shutdown -h now",
    "kill -9 -1",
    "mv /usr /tmp/x",
    "shred /dev/sda",
];

/// Commands that change what is protected.
const TAMPERING: &[&str] = &[
    "rm -rf ~/.ollm",
    "cp evil .ollm/config.yaml",
    "tee .claude/settings.json",
    "touch $HOME/.ollm/hooks/x",
    "ollm hook trust x",
    "mv .ollm x",
    "sed -i s/a/b/ .codex/config.toml",
];

/// Ways to run a command that take any command.
fn wrap(command: &str, way: usize) -> String {
    // What no shell can read never runs, and a program that may run it is given anything.
    if way >= PERHAPS && ollm_shell::parse(command, 0).is_err() {
        return command.to_owned();
    }
    let single = command.replace('\'', "'\\''");
    let double = command.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$").replace('`', "\\`");
    match way {
        0 => format!("true && {command}"),
        1 => format!("false || {command}"),
        2 => format!("true; {command}; true"),
        3 => format!("( {command} )"),
        4 => format!("{{ {command}; }}"),
        5 => format!("if true; then {command}; fi"),
        6 => format!("if {command}; then true; fi"),
        7 => format!("while true; do {command}; done"),
        8 => format!("for i in 1 2; do {command}; done"),
        9 => format!("case x in x) {command};; esac"),
        10 => format!("f() {{ {command}; }}; f"),
        11 => format!("echo $( {command} )"),
        12 => format!("echo \"a $( {command} ) b\""),
        13 => format!("cat <( {command} )"),
        14 => format!("x=$( {command} ) true"),
        15 => format!("echo ${{x:-$( {command} )}}"),
        16 => format!("cat <<EOF\n$( {command} )\nEOF\n"),
        17 => format!("bash -c '{single}'"),
        18 => format!("sh -ec \"{double}\""),
        19 => format!("eval '{single}'"),
        20 => format!("env A=b bash -c '{single}'"),
        21 => format!("sudo -u root bash -c '{single}'"),
        22 => format!("bash <<'EOF'\n{command}\nEOF\n"),
        23 => format!("trap '{single}' EXIT"),
        24 => format!("! {command}"),
        25 => format!("true | {command} | cat"),
        26 => format!("{command} &"),
        27 => format!("true\n{command}\n# end"),
        28 => format!("su - me -c '{single}'"),
        29 => format!("timeout 5 nice -n 3 sh -c '{single}'"),
        30 => format!("find . -exec sh -c '{single}' \\;"),
        31 => format!("ls | xargs -I% sh -c '{single}'"),
        32 => format!("ssh host '{single}'"),
        33 => format!("[[ -n $( {command} ) ]]"),
        34 => format!("echo $(( 1 + $( {command} ) ))"),
        35 => format!("function g {{ {command}\n}}; g"),
        36 => format!("time {command}"),
        37 => format!("a=($( {command} ))"),
        38 => format!("less '+!{single}' x"),
        39 => format!("man -P '{single}' x"),
        40 => format!("env PAGER='{single}' man x"),
        41 => format!("GIT_PAGER='{single}' git log"),
        42 => format!("tar cf x.tar --checkpoint-action=exec='{single}' x"),
        43 => format!("vim -c ':silent !{single}' x"),
        44 => format!("ssh -o ProxyCommand='{single}' host"),
        45 => format!("tool --hook='{single}'"),
        _ => format!("until {command}; do sleep 1; done"),
    }
}

/// From here on it is programs that may run what they are given.
const PERHAPS: usize = 38;

/// How many ways there are.
const WAYS: usize = 47;

/// Prefixes that may stand before a simple command.
const PREFIXES: &[&str] = &[
    "",
    "sudo ",
    "sudo -E -u root ",
    "doas ",
    "nohup ",
    "nice -n 5 ",
    "ionice -c 3 ",
    "timeout 10 ",
    "command ",
    "exec ",
    "setsid ",
    "stdbuf -oL ",
    "env ",
    "env -i A=b ",
    "A=b ",
    "A='b c' D=e ",
    "2>/dev/null ",
    "time ",
    "busybox ",
    "builtin command ",
    "\\",
];

/// Ways to mention a command as data.
fn mention(command: &str, way: usize) -> String {
    let single = command.replace('\'', "'\\''");
    let double = command.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$").replace('`', "\\`");
    match way {
        0 => format!("echo '{single}'"),
        1 => format!("echo \"{double}\""),
        2 => format!("grep -rn '{single}' src"),
        3 => format!("printf '%s\\n' \"{double}\" | wc -l"),
        4 => format!("git commit -m '{single}'"),
        5 => format!("git commit -m \"{double}\""),
        6 => format!("ls # {}", command.replace('\n', " ")),
        7 => format!("cat > notes.md <<'END_OF_TEXT'\n{command}\nEND_OF_TEXT\n"),
        8 => format!("rg -F -- '{single}' | head"),
        9 => format!("x='{single}'; echo \"$x\""),
        10 => format!("gh pr create --body '{single}'"),
        11 => format!("jq --arg note '{single}' . x.json"),
        12 => format!("timeout 5 git commit -m '{single}'"),
        13 => format!("curl -d '{single}' http://localhost"),
        _ => format!("case $x in '{single}') echo no;; esac"),
    }
}

/// How many ways to mention there are.
const MENTIONS: usize = 15;

fn wrapped(commands: &'static [&'static str]) -> impl Strategy<Value = String> {
    let ways = prop::collection::vec(0..WAYS, 0..5);
    (prop::sample::select(commands), prop::sample::select(PREFIXES), ways).prop_map(|(command, prefix, ways)| {
        ways.into_iter().fold(format!("{prefix}{command}"), |command, way| wrap(&command, way))
    })
}

fn settings() -> ProptestConfig {
    ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(settings())]

    #[test]
    fn a_destructive_command_never_passes_however_it_is_wrapped(command in wrapped(DESTRUCTIVE)) {
        prop_assert!(first(&command).flow >= Flow::Ask, "{}", command);
    }

    #[test]
    fn tampering_never_passes_however_it_is_wrapped(command in wrapped(TAMPERING)) {
        prop_assert!(second(&command).flow >= Flow::Ask, "{}", command);
    }

    #[test]
    fn a_command_as_data_passes(command in wrapped(DESTRUCTIVE), way in 0..MENTIONS) {
        let command = mention(&command, way);
        let verdict = first(&command);
        prop_assert_eq!(verdict.flow, Flow::NoOpinion, "{} {:?}", command, verdict.reasons);
    }

    #[test]
    fn any_text_is_judged_without_a_panic(text in any::<String>()) {
        let _ = first(&text);
        let _ = second(&text);
    }

    #[test]
    fn shell_like_text_is_judged_without_a_panic(text in "[\\(\\)\\{\\}\\[\\]$`\"'\\\\ \n;&|<>#!*?~=a-c0-1/.,-]{0,200}") {
        let _ = first(&text);
        let _ = second(&text);
    }

    #[test]
    fn any_bytes_are_judged_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let text = String::from_utf8_lossy(&bytes);
        let _ = first(&text);
        let _ = second(&text);
    }
}

/// What breaks other parsers: depth, length, and everything left open.
fn monsters() -> Vec<String> {
    const MANY: usize = 100_000;
    const FLAT: usize = 10_000;
    let pairs = [
        ("(", ")"),
        ("((", "))"),
        ("{ ", ";}"),
        ("$(", ")"),
        ("\"$(", ")\""),
        ("$((", "))"),
        ("${a:-", "}"),
        ("\"${a:-", "}\""),
        ("${a[", "]}"),
        ("<(", ")"),
        ("`", "`"),
        ("if ", "; then x; fi"),
        ("if x; then ", "; fi"),
        ("while ", "; do x; done"),
        ("for x in y; do ", "; done"),
        ("case x in x) ", ";; esac"),
        ("case $(", ") in x) ;; esac"),
        ("f() {", "}"),
        ("f() ", ""),
        ("function f ", ""),
        ("[[ ( ", " ) ]]"),
        ("[[ ! ", " ]]"),
        ("! ", ""),
        ("time ", ""),
        ("coproc ", ""),
        ("{a,", "}"),
        ("{1..", "}"),
        ("a=(", ")"),
        ("a[", "]=1"),
        ("eval ", ""),
        ("eval '", "'"),
        ("bash -c \"", "\""),
        ("sudo ", ""),
        ("env ", ""),
        ("xargs ", ""),
        ("find . -exec ", " \\;"),
        ("\\", ""),
        ("'", "'"),
        ("\"", "\""),
        ("$", ""),
        ("~", ""),
        ("*", ""),
        ("[", "]"),
        ("../", ""),
        ("/", ""),
        ("cat <<E\n", "\nE\n"),
        ("cat <<E; ", "\nE"),
        ("a|", ""),
        ("a&&", ""),
        ("a;", ""),
        ("a&", ""),
        ("\n", ""),
        ("#", ""),
        (">a ", ""),
        ("$((# ' \n", ") )"),
        ("$(( ", ""),
        ("x=$x; ", ""),
        ("x=\"$x$x\"; ", "echo $x"),
        ("cd ..; ", ""),
        ("cd a; ", ""),
        ("trap '", "'"),
        ("a{b,c}", ""),
        ("{a,b}", ""),
        ("$x ", ""),
        ("x=a; x=b; echo $x$x$x$x$x$x; ", ""),
        ("rm -rf a*b*c*", ""),
        ("${", "}"),
        ("$'", "'"),
    ];
    let mut monsters = Vec::new();
    let chain: String =
        ('a'..='y').map(|name| format!("{name}=${}; ", char::from(name as u8 + 1)).repeat(60)).collect();
    monsters.push(format!("z=1; {chain} echo $a $a$a $b"));
    for (open, close) in pairs {
        // What opens and closes may nest; the rest only repeats.
        let most = if close.is_empty() { FLAT } else { MANY };
        for count in [99, 200, most] {
            monsters.push(format!("{}x{}", open.repeat(count), close.repeat(count)));
            monsters.push(format!("{}x", open.repeat(count)));
        }
        monsters.push(format!("echo {}", open.repeat(1000)));
    }
    monsters
}

#[test]
fn no_input_exhausts_stack_or_patience() {
    let judge = || {
        for text in monsters() {
            let event = shell(&text);
            let _ = destructive(&event, Path::new(PROJECT), Some(Path::new(HOME)));
            let _ = tampering(&event, &shelter());
        }
    };
    // That it ends at all is what is asked: a text that took time by its square would not.
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(judge).unwrap();
    thread.join().unwrap();
}

#[test]
fn one_huge_plain_word_is_no_reason() {
    let word = "x".repeat(1 << 20);
    assert_eq!(first(&format!("echo {word}")).flow, Flow::NoOpinion);
    assert_eq!(
        first(&format!("cat > f <<'EOF'\n{}\nEOF", "fn main() { if x { y() } }\n".repeat(2_000))).flow,
        Flow::NoOpinion
    );
    assert_eq!(second(&format!("echo {word}")).flow, Flow::NoOpinion);
    assert_eq!(first(&"x ".repeat(3 << 20)).flow, Flow::Ask);
    assert_eq!(first(&format!("{}rm -rf /{}", "( ".repeat(5000), " )".repeat(5000))).flow, Flow::Ask);
}
