//! Signs that an agent, not a person, started us: an agent may not approve hooks for itself.

use std::path::Path;

use ollm_catalog::configuration;
use ollm_protocol::Code;
use ollm_protocol::dialect::AGENTS;
use ollm_shell::program_stem;

use crate::app_context::AppContext;
use crate::error::AppError;

/// Variables that agents set on the commands they run; ours is set on every process we start.
const SIGNS: &[&str] = &[
    "OLLM_AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "GEMINI_CLI",
    "CODEX_SANDBOX",
    "CODEX_THREAD_ID",
    "CURSOR_AGENT",
    "CURSOR_TRACE_ID",
    "QWEN_CODE",
    "OPENCODE",
    "GOOSE_TERMINAL",
    "AIDER",
    "COPILOT_CLI",
    "CLINE_ACTIVE",
    "AUGMENT_AGENT",
    "CRUSH",
    "AI_AGENT",
    "AGENT",
    "AMP_CURRENT_THREAD_ID",
    "ANTIGRAVITY_AGENT",
    "CLAUDE_CODE",
    "CODEX_CI",
    "OPENCODE_CLIENT",
    "PI_CODING_AGENT",
    "TRAE_AI_SHELL_ID",
];

/// Longer chains of parents are not followed: no honest one is this long.
const MOST_ANCESTORS: usize = 64;

/// Agents whose hooks we do not know, by the name of their program or of the script that an interpreter runs.
#[rustfmt::skip]
const OTHER_AGENTS: &[&str] = &[
    "aider", "amp", "antigravity", "auggie", "augment", "blackbox", "cagent", "claude-code-acp", "clawdbot", "cn", "codebuddy",
    "codex-acp", "cody", "cortex", "crush", "devin", "forgecode", "goosed", "gptme", "grok", "hermes", "iflow", "interpreter",
    "jules", "junie", "kilo", "kilocode", "kimi", "kiro-cli-chat", "kode", "letta", "llxprt", "mentat", "nanocoder",
    "octofriend", "open-interpreter", "openclaw", "opendevin", "openhands", "pi", "plandex", "q", "qchat", "qoder", "qodercli",
    "qodo", "ra-aid", "roo", "rovodev", "sweagent", "tabnine", "trae", "trae-cli", "vibe",
];

/// Folders of packages whose scripts are agents under any name.
#[rustfmt::skip]
const PACKAGES: &[&str] = &[
    "amp", "auggie", "claude-code", "cline", "codex", "cody", "copilot", "crush", "cursor-agent", "droid", "gemini-cli",
    "iflow-cli", "llxprt-code", "nanocoder", "opencode-ai", "openhands", "pi-coding-agent", "qwen-code",
];

/// Programs that run the script in their arguments.
const INTERPRETERS: &[&str] = &["node", "nodejs", "bun", "deno", "python", "pypy", "ruby"];

/// Options of interpreters whose value is the next word.
const VALUED: &[&str] = &[
    "-C",
    "-I",
    "-W",
    "-X",
    "-r",
    "--conditions",
    "--env-file",
    "--experimental-loader",
    "--import",
    "--loader",
    "--require",
    "--title",
];

/// Prefixes and suffixes that packagers add to a program's name.
const AROUND: &[&str] = &[".exe", ".appimage", ".cmd", "-wrapped", "-unwrapped", "-bin"];

/// Refuses when an agent started us.
pub fn refuse_agents(context: &AppContext, what: &str) -> Result<(), AppError> {
    let variable = SIGNS.iter().find(|name| context.variable(name).is_some_and(|value| !value.is_empty()));
    let processes = Path::new("/proc");
    let unseen = || is_replaced(processes).then(|| "/proc is not the system's list of processes".to_owned());
    let sign = variable.map(|name| format!("{name} is set")).or_else(unseen).or_else(|| ancestor(processes));
    sign.map_or(Ok(()), |sign| {
        Err(AppError::new(Code::AgentRefused, format!("an agent may not {what}: {sign}"))
            .hint("run this command yourself, in a terminal that no agent controls: outside of an editor that has one"))
    })
}

/// Refuses an approval by an agent, and an approval by digest where the configuration forbids it.
pub fn refuse_approval(what: &str, digest: Option<&str>, context: &AppContext) -> Result<(), AppError> {
    refuse_agents(context, &format!("approve {what}"))?;
    refuse_digest(digest, context)
}

fn refuse_digest(digest: Option<&str>, context: &AppContext) -> Result<(), AppError> {
    if digest.is_none() {
        return Ok(());
    }
    let variable = |name: &str| context.variable(name);
    let (config, _) = configuration(&context.places, &variable, &context.overrides);
    let Some(setting) = config.get("hooks.approveByDigest").filter(|setting| setting.value == false) else {
        return Ok(());
    };
    let from = setting.origin.shown(context.places.user_home.as_deref());
    Err(AppError::new(
        Code::DigestMismatch,
        format!("nothing is approved by digest: hooks.approveByDigest is false ({from})"),
    )
    .hint("look at it on a terminal, and approve it there"))
}

/// Whether an agent started another process. A process that we cannot inspect counts as started by one.
pub fn agent_above(process: u32) -> Option<String> {
    let processes = Path::new("/proc");
    match Process::read(processes, &process.to_string()) {
        Some(found) => climb(processes, &found),
        None => Some(format!("process {process} is gone")),
    }
}

/// An ancestor of ours that runs hooks, servers or an agent. An ancestor that we cannot see counts as one.
fn ancestor(processes: &Path) -> Option<String> {
    if !processes.exists() {
        // On a system without `/proc`, only the variables tell.
        return None;
    }
    if read_text(processes, "self/uid_map").is_some_and(|map| !is_whole(&map)) {
        return Some("we run in a user namespace, where its maker could hide".to_owned());
    }
    if is_lone_namespace(processes) {
        return Some("we run in a PID namespace that is no container's, where its maker could hide".to_owned());
    }
    match Process::read(processes, "self") {
        Some(own) => climb(processes, &own),
        None => Some("our own ancestors cannot be seen".to_owned()),
    }
}

/// Looks at the ancestors of a process, up to the first one of another user. An agent that can act as another user
/// needs no trick.
fn climb(processes: &Path, own: &Process) -> Option<String> {
    let mut process = own.parent;
    for _ in 0..MOST_ANCESTORS {
        if process == 0 {
            return Some("our ancestors are outside of what we can see".to_owned());
        }
        let Some(found) = Process::read(processes, &process.to_string()) else {
            return (!is_anothers(process))
                .then(|| format!("process {process}, which started us, cannot be looked at"));
        };
        if found.user != own.user {
            return None;
        }
        if is_agent(&found.words) {
            return Some(format!("process {process} (`{}`) started us", found.words.join(" ").trim()));
        }
        if process == 1 {
            return None;
        }
        process = found.parent;
    }
    Some("we have more ancestors than we can look at".to_owned())
}

/// Whether a process exists and belongs to another user.
fn is_anothers(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    process.is_some_and(|process| rustix::process::test_kill_process(process) == Err(rustix::io::Errno::PERM))
}

/// Whether the users of a namespace are those of the system.
fn is_whole(map: &str) -> bool {
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// Whether another file system was mounted over the system's list of processes.
#[cfg(target_os = "linux")]
fn is_replaced(processes: &Path) -> bool {
    rustix::fs::statfs(processes).is_ok_and(|found| found.f_type != rustix::fs::PROC_SUPER_MAGIC)
}

#[cfg(not(target_os = "linux"))]
fn is_replaced(_processes: &Path) -> bool {
    false
}

/// Whether we are in a PID namespace that does not look like a container's. Containers have a name and queues of their
/// own as well, their first process begins a session, and nothing lies below their `/proc`.
fn is_lone_namespace(processes: &Path) -> bool {
    let is_first = |kind: &str, number: u32| {
        let found = std::fs::read_link(processes.join("self/ns").join(kind));
        found.ok().map(|found| found == Path::new(&format!("{kind}:[{number}]")))
    };
    // The kernel gives the first namespaces these numbers.
    if is_first("pid", 4_026_531_836) != Some(false) {
        return false;
    }
    let shares = is_first("uts", 4_026_531_838) == Some(true) && is_first("ipc", 4_026_531_839) == Some(true);
    let status = read_text(processes, "self/status").unwrap_or_default();
    let session = status_field(&status, "NSsid:");
    let mounts = read_text(processes, "self/mountinfo").unwrap_or_default();
    let is_list = |mount: &&str| mount.split(' ').nth(4) == Some("/proc") && mount.contains(" - proc ");
    shares || session == Some("0") || mounts.lines().filter(is_list).count() > 1
}

fn read_text(processes: &Path, name: &str) -> Option<String> {
    String::from_utf8(read(processes, name).ok()?).ok()
}

/// Reads a file of the list of processes; refuses a file that was mounted over it.
#[cfg(target_os = "linux")]
fn read(processes: &Path, name: &str) -> std::io::Result<Vec<u8>> {
    use rustix::fs::{Mode, OFlags, ResolveFlags};
    use rustix::io::Errno;
    use std::io::Read as _;

    let folder = rustix::fs::open(processes, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = match rustix::fs::openat2(&folder, name, flags, Mode::empty(), ResolveFlags::NO_XDEV) {
        // The kernel or a seccomp filter does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(&folder, name, flags, Mode::empty())?,
        opened => opened?,
    };
    let mut bytes = Vec::new();
    std::fs::File::from(file).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(not(target_os = "linux"))]
fn read(processes: &Path, name: &str) -> std::io::Result<Vec<u8>> {
    std::fs::read(processes.join(name))
}

/// The first word after a field's name.
fn status_field<'s>(status: &'s str, name: &str) -> Option<&'s str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next())
}

/// What the system tells about a process.
struct Process {
    parent: u32,
    /// The user it acts for. Its folder belongs to another user while its memory is closed to others, as ours is.
    user: u32,
    words: Vec<String>,
}

impl Process {
    fn read(processes: &Path, name: &str) -> Option<Process> {
        let status = String::from_utf8_lossy(&read(processes, &format!("{name}/status")).ok()?).into_owned();
        let line = read(processes, &format!("{name}/cmdline")).ok()?;
        Some(Process {
            parent: status_field(&status, "PPid:")?.parse().ok()?,
            user: status_field(&status, "Uid:")?.parse().ok()?,
            words: line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect(),
        })
    }
}

fn is_agent(words: &[String]) -> bool {
    let mut words = words.iter().map(String::as_str);
    let program = words.next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    if INTERPRETERS.contains(&program_stem(program)) {
        return script(&mut words).is_some_and(is_agents_script);
    }
    if name != "ollm" {
        // A program may change its title, as Node does for scripts that ask for it.
        return is_agents_name(&plain_name(name.split_whitespace().next().unwrap_or_default()));
    }
    match command(&mut words) {
        // Without a command, `ollm` starts a chat.
        None | Some("run" | "chat" | "tui" | "emit" | "watch") => true,
        Some("session") => words.next() == Some("resume"),
        Some("git-hook" | "skill") => words.next() == Some("run"),
        Some("ext") => words.next() == Some("test"),
        Some("hook") => matches!(words.next(), Some("run" | "background" | "test" | "trigger")),
        // These start servers, which are other people's programs as well.
        Some("mcp") => {
            matches!(words.next(), Some("start" | "restart" | "tools" | "call" | "resources" | "prompts" | "review"))
        }
        _ => false,
    }
}

/// The script or module that an interpreter runs.
fn script<'w>(words: &mut impl Iterator<Item = &'w str>) -> Option<&'w str> {
    loop {
        match words.next()? {
            "-m" => return words.next(),
            option if VALUED.contains(&option) => drop(words.next()),
            option if option.starts_with('-') => {}
            script => return Some(script),
        }
    }
}

/// The usual name of a program: `.claude-wrapped` and `Claude.exe` are `claude`.
fn plain_name(name: &str) -> String {
    let lower = name.trim_start_matches('.').to_lowercase();
    let mut plain = lower.as_str();
    while let Some(shorter) = AROUND.iter().find_map(|around| plain.strip_suffix(around)) {
        plain = shorter;
    }
    plain.to_owned()
}

fn is_agents_name(name: &str) -> bool {
    AGENTS.iter().any(|agent| agent.home.programs.contains(&name)) || OTHER_AGENTS.contains(&name)
}

fn is_agents_script(script: &str) -> bool {
    let name = script.rsplit('/').next().unwrap_or_default();
    let stem = plain_name(name.trim_start_matches('.').split('.').next().unwrap_or_default());
    is_agents_name(&stem) || script.split('/').rev().skip(1).any(|folder| PACKAGES.contains(&folder))
}

/// The first word that is neither an option before the command nor such an option's value.
fn command<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<&'a str> {
    loop {
        match words.next()? {
            "--set" => drop(words.next()),
            option if option.starts_with('-') => {}
            command => return Some(command),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_hooks_or_an_agent_is_an_agent() {
        for (line, agent) in [
            ("/usr/bin/ollm hook run", true),
            ("ollm run fix it", true),
            ("ollm chat", true),
            ("ollm tui --panel hooks", true),
            ("ollm", true),
            ("ollm --set hooks.timeout=5s", true),
            ("ollm hook background", true),
            ("ollm hook test guard", true),
            ("ollm hook trigger lint", true),
            ("ollm watch --json", true),
            ("ollm git-hook run .git/COMMIT_EDITMSG", true),
            ("ollm git-hook status", false),
            ("ollm emit deployed", true),
            ("ollm --verbose emit deployed", true),
            ("ollm --set hooks.timeout=5s --set=log.level=off hook run", true),
            ("ollm --set run hook list", false),
            ("ollm hook list", false),
            ("ollm mcp call s t", true),
            ("ollm mcp tools", true),
            ("ollm mcp list", false),
            ("ollm skill run review --agent", true),
            ("ollm skill list", false),
            ("ollm ext test guard", true),
            ("ollm ext list", false),
            ("bash -c ollm hook run", false),
            ("python3.12 -X dev /opt/bin/aider", true),
            ("python3 -W ignore -m aider", true),
            ("python3 tool.py aider", false),
            ("/nix/store/x/bin/.claude-wrapped", true),
            ("/opt/Cursor.AppImage", true),
            ("goosed", true),
            ("", false),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(is_agent(&words), agent, "{line}");
        }
    }

    /// A folder like `/proc`, with processes by number, parent, user and command line.
    fn processes(all: &[(&str, u32, u32, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, parent, user, line) in all {
            let process = folder.path().join(name);
            std::fs::create_dir(&process).unwrap();
            let status = format!("Name:\tx\nPPid:\t{parent}\nUid:\t{user}\t{user}\t{user}\t{user}\n");
            std::fs::write(process.join("status"), status).unwrap();
            std::fs::write(process.join("cmdline"), line.replace(' ', "\0")).unwrap();
        }
        folder
    }

    #[test]
    fn an_ancestor_that_runs_hooks_is_found() {
        let own = ("self", 30, 5, "ollm hook trust x");
        let found = processes(&[own, ("30", 20, 5, "sh"), ("20", 10, 5, "/opt/ollm hook run")]);
        assert!(ancestor(found.path()).unwrap().contains("process 20"));
        let person = processes(&[own, ("30", 20, 5, "bash"), ("20", 1, 5, "tmux"), ("1", 0, 5, "init")]);
        assert_eq!(ancestor(person.path()), None);
    }

    #[test]
    fn s02_the_climb_ends_at_another_user_and_nowhere_else() {
        let own = ("self", 30, 5, "ollm hook trust x");
        let login = processes(&[own, ("30", 20, 5, "bash"), ("20", 10, 0, "sshd"), ("10", 1, 5, "ollm chat")]);
        assert_eq!(ancestor(login.path()), None, "who is somebody else needs no trick");
        let outside = processes(&[own, ("30", 0, 5, "bash")]);
        assert!(ancestor(outside.path()).unwrap().contains("outside"));
        let hidden = processes(&[own, ("30", std::process::id(), 5, "bash")]);
        assert!(ancestor(hidden.path()).unwrap().contains("cannot be looked at"));
        let alone = tempfile::tempdir().unwrap();
        assert!(ancestor(alone.path()).unwrap().contains("cannot be seen"));
        assert_eq!(ancestor(Path::new("/no/such/folder")), None);
    }

    #[test]
    fn s02_a_namespace_of_users_hides_who_made_it() {
        let found = processes(&[("self", 1, 0, "ollm hook trust x"), ("1", 0, 0, "init")]);
        assert_eq!(ancestor(found.path()), None);
        let map = found.path().join("self/uid_map");
        std::fs::write(&map, "         0          0 4294967295\n").unwrap();
        assert_eq!(ancestor(found.path()), None);
        std::fs::write(&map, "         0       1000          1\n").unwrap();
        assert!(ancestor(found.path()).unwrap().contains("user namespace"));
    }

    /// The namespaces of a process, by their kinds and numbers.
    #[cfg(unix)]
    fn namespaces(processes: &Path, all: &[(&str, u32)]) {
        let folder = processes.join("self/ns");
        std::fs::create_dir_all(&folder).unwrap();
        for (kind, number) in all {
            let _ = std::fs::remove_file(folder.join(kind));
            std::os::unix::fs::symlink(format!("{kind}:[{number}]"), folder.join(kind)).unwrap();
        }
    }

    #[cfg(unix)]
    #[test]
    fn s02_a_namespace_of_processes_counts_unless_it_is_a_containers() {
        const MOUNT: &str = "20 1 0:20 / /proc rw - proc proc rw\n";
        let found = processes(&[("self", 1, 0, "ollm hook trust x"), ("1", 0, 0, "sh")]);
        let own = |file: &str| found.path().join("self").join(file);
        namespaces(found.path(), &[("pid", 4_026_531_836), ("uts", 4_026_531_838), ("ipc", 4_026_531_839)]);
        assert_eq!(ancestor(found.path()), None, "the machine itself");
        namespaces(found.path(), &[("pid", 4_026_532_178)]);
        assert!(ancestor(found.path()).unwrap().contains("PID namespace"), "nothing else is of its own");
        namespaces(found.path(), &[("uts", 4_026_532_179), ("ipc", 4_026_532_180)]);
        std::fs::write(own("mountinfo"), MOUNT).unwrap();
        assert_eq!(ancestor(found.path()), None, "a container");
        std::fs::write(own("mountinfo"), MOUNT.repeat(2)).unwrap();
        assert!(ancestor(found.path()).unwrap().contains("PID namespace"), "the list of processes outside lies below");
        std::fs::write(own("mountinfo"), MOUNT).unwrap();
        let status = std::fs::read_to_string(own("status")).unwrap();
        std::fs::write(own("status"), format!("{status}NSsid:\t0\n")).unwrap();
        assert!(ancestor(found.path()).unwrap().contains("PID namespace"), "the session began outside");
    }

    #[test]
    fn s02_every_agent_that_we_speak_with_is_known_among_ancestors() {
        for program in AGENTS.iter().flat_map(|agent| agent.home.programs) {
            assert!(is_agent(&[format!("/usr/bin/{program}"), "x".to_owned()]), "{program}");
            assert!(is_agent(&["node".to_owned(), format!("/usr/bin/{program}")]), "{program}");
        }
    }

    #[test]
    fn s02_other_agents_are_known_among_ancestors() {
        for (line, agent) in [
            ("claude", true),
            ("/usr/local/bin/codex exec", true),
            ("node /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js", true),
            ("node --no-warnings=DEP0040 /usr/bin/gemini", true),
            ("python3 /home/me/.local/bin/aider --yes", true),
            ("bun /opt/opencode-ai/bin/index.js", true),
            ("copilot -p x", true),
            ("droid exec x", true),
            ("/usr/bin/crush run x", true),
            ("python3 -m openhands.cli", true),
            ("python3 /usr/bin/openhands", true),
            ("node /usr/lib/node_modules/@augmentcode/auggie/augment.mjs", true),
            ("q chat", true),
            ("node /home/me/.local/share/cursor-agent/versions/1/index.js", true),
            ("python3 /usr/bin/gptme", true),
            ("/opt/trae-cli x", true),
            ("plandex", true),
            ("node /srv/app/server.js", false),
            ("python3 claude_notes.py", false),
            ("vim claude", false),
            ("bash -c claude", false),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(is_agent(&words), agent, "{line}");
        }
    }
}
