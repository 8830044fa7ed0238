//! The table of explanations, one row for each code.

use ollm_protocol::Code;

use super::Explanation;

/// The explanation of a code.
pub(super) fn explanation(code: Code) -> Explanation {
    let (why, example, mend) = row(code);
    Explanation { why, example, mend }
}

/// The reason, an example, and the fix.
#[expect(clippy::too_many_lines, reason = "a table has as many rows as there are codes")]
fn row(code: Code) -> (&'static str, &'static str, &'static str) {
    match code {
        Code::Usage => (
            "An option is unknown, a word is missing, or two options exclude each other. Nothing was done.",
            "ollm hook list --jsno",
            "`ollm help COMMAND` shows the words and options of a command.",
        ),
        Code::UnknownHook => (
            "Hooks are found by their id or name. No hook has it, several have the same name, or this one cannot be tried.",
            "ollm hook show gaurd",
            "`ollm hook list` shows the ids. An id names one hook, whatever the others are called.",
        ),
        Code::UnknownServer => (
            "No file and no extension declares an MCP server of this name.",
            "ollm mcp tools flies",
            "`ollm mcp list` shows the servers. `ollm mcp add NAME -- COMMAND` declares one.",
        ),
        Code::UnknownExtension => (
            "No folder of extensions holds an extension of this name, or the named folder has no manifest.json.",
            "ollm ext info lintter",
            "`ollm ext list` shows the extensions. `ollm ext new NAME` writes one to begin with.",
        ),
        Code::UnknownSkill => (
            "No extension that is on brings a skill of this name, or several do.",
            "ollm skill show revew",
            "`ollm skill list` shows the skills. EXTENSION.SKILL names one of several.",
        ),
        Code::UnknownTool => (
            "The MCP server does not offer a tool of this name, or its declaration denies the tool.",
            "ollm mcp call files raed_file",
            "`ollm mcp tools SERVER` shows the tools and their arguments.",
        ),
        Code::UnknownSession => (
            "Conversations are kept by their id. None has this id, or none happened in this folder.",
            "ollm chat --resume 0199",
            "`ollm session list` shows the conversations there are.",
        ),
        Code::UnknownTrace => (
            "A record of the trace is named by its traceId, its beginning, or its end. None fits, or several do.",
            "ollm trace show 0199",
            "`ollm trace list` shows the records. Write more of the id if several fit.",
        ),
        Code::UnknownAgent => (
            "ollm cannot be connected to an agent of this name, or the agent has no settings of this kind.",
            "ollm connect cladue",
            "`ollm connect` lists the agents that are known.",
        ),
        Code::UnknownSetting => (
            "The configuration, the extension or a hook has no setting of this name.",
            "ollm config set hooks.timout 5000",
            "`ollm config show` lists the settings, `ollm ext info NAME` those of an extension, `ollm schema hooks` the keys of hooks.",
        ),
        Code::UnknownModel => (
            "The name of the model cannot be read, or the server does not have the model.",
            "ollm run --model openai: hello",
            "`ollm model list` shows the models of a local Ollama. `ollm model pull NAME` fetches one.",
        ),
        Code::UnknownName => (
            "The word is neither an event, a hook, a trace, a file nor a command that is known.",
            "ollm explain befor_tool",
            "`ollm schema` lists the events and files, `ollm hook list` the hooks, `ollm help` the commands.",
        ),
        Code::InvalidValue => (
            "The value is empty, too long, of another kind, or not one of those that are possible. Nothing was changed.",
            "ollm hook disable guard --for soon",
            "The message says what fits. `ollm help COMMAND` shows an example where there is one.",
        ),
        Code::InvalidArguments => (
            "The arguments are no JSON object, or do not fit the schema of the tool or the placeholders of the skill.",
            "ollm mcp call files read_file --args '['",
            "`ollm mcp tools SERVER` and `ollm skill show NAME` show what is expected.",
        ),
        Code::AlreadyThere => (
            "A hook, server or file of this name exists, and nothing is overwritten.",
            "ollm hook new guard\nollm hook new guard",
            "Choose another name, or remove the other one first: `ollm hook remove`, `ollm mcp remove`.",
        ),
        Code::NoProject => (
            "The command works on a project, and this folder belongs to none.",
            "cd /tmp && ollm hook new guard --project",
            "`mkdir .ollm` makes the folder a project. A folder with `.git` is one, too.",
        ),
        Code::NotConfirmed => (
            "Something would be removed, and the answer was not yes, or there was no terminal to ask on.",
            "ollm hook new guard\nollm hook remove guard < /dev/null",
            "Run it on a terminal, or with `--yes`.",
        ),
        Code::Elsewhere => (
            "The hook or server comes from another file, an extension, the policy of the machine or ollm itself.",
            "ollm hook edit builtin:destructive-commands timeout=1",
            "The message names the file. `ollm hook disable ID` switches a hook off without changing it.",
        ),
        Code::LowerVersion => (
            "An update or a package has a lower version than what is installed. It may bring back a mistake that was mended.",
            "ollm ext update guard",
            "`ollm ext update NAME --to VERSION` has that version all the same.",
        ),
        Code::UnreadableFile => (
            "The file is missing, too large, no regular file, not text, or you may not read it. What it declares is not loaded.",
            "mkdir ~/.ollm/hooks/guard.json\nollm hook list",
            "Make the file readable, or remove it. `ollm hook validate FILE` checks one file.",
        ),
        Code::InvalidSyntax => (
            "The text of the file breaks the rules of its language, so nothing of it is loaded.",
            "{\"hooks\": {\"before_tool\": [}}",
            "Correct the file at the marked place. `ollm hook validate FILE` or `ollm config validate` checks it again.",
        ),
        Code::UnknownKey => (
            "A key of the file is none that is read there; often it is a slip of the keyboard. It is ignored, but for `requires` and `permissions` of a hook: that hook is not loaded.",
            "{\"hooks\": {\"before_tool\": [{\"command\": \"./guard\", \"tiemout\": 5000}]}}",
            "Correct the name. `ollm schema hooks` and `ollm schema config` print every key.",
        ),
        Code::WrongValue => (
            "A value has another type, unit or range than its key needs. The message says what applies instead.",
            "hooks:\n  timeout: soon",
            "Correct the value at the marked place. `ollm config validate` and `ollm hook validate` check it again.",
        ),
        Code::MissingKey => (
            "A declaration lacks something without which it means nothing, or an extension lacks a required setting.",
            "{\"hooks\": {\"before_tool\": [{\"name\": \"guard\"}]}}",
            "Add the key that the message names. `ollm ext set EXTENSION SETTING=VALUE` sets one of an extension.",
        ),
        Code::UnknownEvent => (
            "No dialect knows an event of this name, so its hooks would never run.",
            "{\"hooks\": {\"before_tol\": [{\"command\": \"./guard\"}]}}",
            "`ollm schema` lists the events. An event of your own is `custom:NAME`.",
        ),
        Code::WrongForm => (
            "The file is valid text, but nothing that is read has this form; or ollm cannot change it in this form.",
            "[\"before_tool\", \"./guard\"]",
            "`ollm schema hooks` prints the form of a hook file. `ollm hook new NAME` writes one to begin with.",
        ),
        Code::Duplicate => (
            "Two declarations have one id or name. The first counts; the other is not loaded, or not used.",
            "{\"hooks\": {\"before_tool\": [{\"id\": \"a\", \"command\": \"./x\"}, {\"id\": \"a\", \"command\": \"./y\"}]}}",
            "Rename one of them, or remove it. `ollm hook list` shows the ids.",
        ),
        Code::UnsafePath => (
            "A command or file leads out of its folder, holds shell characters, or belongs to another user.",
            "{\"hooks\": {\"before_tool\": [{\"command\": \"../../bin/guard\"}]}}",
            "Keep the script beside its hook file, name the program alone, and put the rest into `args`.",
        ),
        Code::OlderName => (
            "The setting was renamed. The older name is still read, but not for ever.",
            "hooks_timeout: 5000",
            "`ollm config migrate` writes today's names and keeps a copy of the file.",
        ),
        Code::Ignored => (
            "The setting is known, but not where it is written: a project may not loosen a guard or vouch for itself.",
            "# in .ollm/config.yaml of a project\nhooks:\n  trustWorkspace: true",
            "Remove it there, or set it for yourself: `ollm config set KEY VALUE`.",
        ),
        Code::InvalidVariable => (
            "An environment variable has a value that does not fit, is mistyped, or is not set though a server wants it.",
            "OLLM_LOG_LEVEL=loud ollm hook list",
            "Correct or unset the variable. `ollm config show` names the variable of each setting.",
        ),
        Code::MissingFile => (
            "A hook or server names a script that does not exist or is not executable, so it cannot run.",
            "{\"hooks\": {\"before_tool\": [{\"command\": \"sh\", \"args\": [\"gone.sh\"]}]}}",
            "Put the file there, or make it executable: `chmod +x FILE`.",
        ),
        Code::UndeclaredScript => (
            "A script lies in a folder of hooks, but no hook file names it, so it never runs.",
            "touch ~/.ollm/hooks/guard.sh\nollm hook validate",
            "`ollm hook add EVENT FILE` declares it.",
        ),
        Code::BrokenCase => (
            "A golden case beside a hook cannot be read, so the hook is not tested with it.",
            "ollm hook new guard\necho '{' > ~/.ollm/hooks/cases/guard/broken.json\nollm hook validate",
            "Correct the case, or remove it. `ollm hook new NAME` writes cases to look at.",
        ),
        Code::MissingDependency => (
            "An extension needs another one that is missing, off, of another version, or needs it in turn.",
            "{\"name\": \"a\", \"version\": \"1.0.0\", \"description\": \"Needs b.\", \"dependencies\": {\"b\": \"^2\"}}",
            "`ollm ext enable NAME` switches one on. `ollm ext info NAME` says what it needs.",
        ),
        Code::TooMuch => (
            "A folder has more files, or more bytes, than are read at every event. What goes beyond is not loaded.",
            "for number in $(seq 1100); do echo '{}' > ~/.ollm/hooks/$number.json; done\nollm hook list",
            "Use fewer and smaller files.",
        ),
        Code::InvalidEvent => (
            "The event, or its data, is no JSON, too large, or lacks what its dialect demands. No hook saw it.",
            "ollm emit deploy --data '{'",
            "`ollm schema EVENT` prints the form of an event; `--data` takes one JSON value.",
        ),
        Code::UnsafePolicy => (
            "The policy of the machine is not owned by root, or cannot be read. Nothing runs before it can be relied on.",
            "ls -l /etc/ollm/config.yaml",
            "Root has to correct the owner, the permissions or the content of the named file.",
        ),
        Code::ForeignFile => (
            "A file of another program is not what ollm expects, so it was left unchanged.",
            "mkdir ~/.claude\necho '[' > ~/.claude/settings.json\nollm connect claude",
            "Correct the named file or move it away, and try again.",
        ),
        Code::NotLoaded => (
            "It is declared, but it is off, broken, or what it needs is not there.",
            "ollm mcp add files -- false\nollm config set mcp.enabled false\nollm mcp call files read_file",
            "`ollm doctor` names the cause. `ollm ext enable NAME` or `ollm config set` switches it on.",
        ),
        Code::ModelSettings => (
            "The settings of the model contradict each other, hold a key, or name answers that cannot be read.",
            "ollm run --model replay:gone.jsonl hello",
            "`ollm config show model` shows where they are set. `ollm config set model.apiKey` keeps a key safely.",
        ),
        Code::InvalidCondition => (
            "The condition under `if` cannot be read. A hook that guards refuses until it is mended; others do not run.",
            "{\"hooks\": {\"before_tool\": [{\"command\": \"./guard\", \"if\": \"data.args.\"}]}}",
            "Correct the condition, and look at it with `ollm hook validate FILE`.",
        ),
        Code::DoesNotRun => (
            "The hook is on, but it is not approved, has changed since, or lacks something that it requires.",
            "ollm hook new guard --project\nollm doctor",
            "`ollm explain ID` says what keeps it from running, and the command that mends it.",
        ),
        Code::NeverSent => (
            "The hook waits for an event, and nothing that is set up sends the event here.",
            "{\"hooks\": {\"git_commit\": [{\"command\": \"./guard\"}]}}",
            "`ollm connect AGENT`, `ollm git-hook install` or `ollm watch` has events sent; `ollm emit` sends one.",
        ),
        Code::PackageRefused => (
            "The package is broken, attacks, has another content than the index says, or is no extension. Nothing of it was installed.",
            "ollm ext install ./guard.tar.gz    # with ../../evil in it",
            "The message names the entry or the line. Tell its author, or take it from another source.",
        ),
        Code::NotApproved => (
            "Nothing of a project, an extension or a server runs before a person approved exactly its content.",
            "ollm mcp add --project files -- false\nollm mcp call files read_file",
            "`ollm hook trust`, `ollm ext trust` or `ollm mcp trust` shows the content and asks.",
        ),
        Code::AgentRefused => (
            "The command approves or loosens something, and an agent started it. Only a person may do that.",
            "ollm hook new guard --project\nOLLM_AGENT=1 ollm hook trust guard",
            "Run the command yourself, in a terminal that no agent controls.",
        ),
        Code::NobodyToAsk => (
            "The command has to ask a person, and standard input or standard error is no terminal.",
            "ollm hook new guard --project\nollm hook trust guard < /dev/null",
            "Run it on a terminal. Where the setting allows it, `--digest` approves content that you know.",
        ),
        Code::DigestMismatch => (
            "An approval by digest names other content than there is now, or approving by digest is switched off.",
            "ollm hook new guard --project\nollm hook trust guard --digest 0000",
            "Look at the content again. `ollm hook show ID --json` prints its digest.",
        ),
        Code::BrokenApprovals => (
            "The list of approvals is damaged, belongs to another user, or its signature does not fit. Nothing counts as approved.",
            "echo '{' > ~/.ollm/trusted-hooks.json\nollm doctor",
            "`ollm trust status` says what is wrong. `ollm trust init` shows the list and signs it anew.",
        ),
        Code::LockedKey => (
            "Approvals are signed, and the key was not unlocked: a wrong passphrase, or no terminal to ask on.",
            "ollm hook trust guard",
            "Run the command on a terminal and type the passphrase. `ollm trust status` shows the key.",
        ),
        Code::Uncovered => (
            "The command fetches or reads something that the approval cannot cover, such as a package without a version.",
            "ollm mcp add --project files -- npx -y some-server\nollm mcp trust files",
            "Name exact versions and files, or approve it with `--uncovered`.",
        ),
        Code::Declined => (
            "The question was answered with no, so nothing was approved and nothing runs.",
            "ollm hook trust guard",
            "Run the command again when you want to approve it.",
        ),
        Code::GuardsOff => (
            "A setting or a switch turns off hooks, or a guard against dangerous commands and changes of protected files.",
            "hooks:\n  guards: []",
            "`ollm config show` shows where it is set. `ollm config unset KEY` and `ollm hook enable ID` undo it.",
        ),
        Code::Environment => (
            "The system refused something that ollm needs, or a variable of ollm's own has a place that is not used.",
            "OLLM_HOME=$PWD/home ollm doctor",
            "`ollm doctor` looks over the machine and names what does not work.",
        ),
        Code::NotWritten => (
            "A file cannot be written or removed: no permission, no space, or another program holds it. It stays as it was.",
            "OLLM_HOME=/proc/ollm ollm config set hooks.timeout 5000",
            "Make room, or correct the permissions of the named file.",
        ),
        Code::Unreadable => (
            "A file or stream that ollm needs cannot be read: no permission, damaged, or gone.",
            "touch ~/.ollm/sessions\nollm session list",
            "Correct the permissions of the named file, or move it away.",
        ),
        Code::NoFolder => (
            "There is no home, or the current folder is gone.",
            "mkdir gone && cd gone && rmdir ../gone && ollm hook list",
            "Set HOME or OLLM_HOME, and change into a folder that exists.",
        ),
        Code::MissingProgram => (
            "A program is not on PATH, is not executable, or did not start.",
            "ollm box -- no-such-program",
            "Install it, or name it by its path. `ollm doctor` lists programs that are missing.",
        ),
        Code::ServerFailed => (
            "The MCP server did not start, ended, or answered against the protocol.",
            "ollm mcp add files -- false\nollm mcp call files read_file",
            "`ollm mcp logs NAME` shows its words. `ollm mcp restart NAME` starts it again.",
        ),
        Code::LoginFailed => (
            "The issuer refused the login, it was not completed in time, or the issuer cannot be reached.",
            "ollm mcp login tracker",
            "Try `ollm mcp login NAME` again; `--timeout` gives you longer.",
        ),
        Code::ModelUnreachable => (
            "No server answers where the model is expected, or it has no model.",
            "ollm run hello",
            "Start it, or name another one: `ollm run --model openai:NAME@http://HOST:PORT/v1 …`. `ollm demo` needs none.",
        ),
        Code::NoBox => (
            "The kernel, or its settings, lets an ordinary user make no box.",
            "ollm box -- make",
            "`ollm doctor` says what is missing.",
        ),
        Code::TraceUnreadable => (
            "The file of the trace cannot be opened or read.",
            "mkdir -p ~/.ollm/trace/trace.jsonl\nollm trace last",
            "`ollm config show trace` shows where it is. Correct its permissions, or move it away.",
        ),
        Code::OutputLost => (
            "Standard output cannot be written: the disk is full, or the other end failed.",
            "ollm hook list > /dev/full",
            "Make room where the output goes.",
        ),
        Code::NoSecret => (
            "The keyring, or the file of secrets, cannot be read or written.",
            "ollm ext set tracker token",
            "Unlock the keyring, or correct the permissions of the named file.",
        ),
        Code::TooDeep => (
            "A hook sent an event that started the hook again, too many times within one another.",
            "ollm emit deploy    # in a hook for custom:deploy",
            "Have the hook send another event, or give it a condition. `ollm explain EVENT` shows who runs.",
        ),
        Code::Busy => (
            "Another process works on the same folder, or changed a file at the same moment.",
            "ollm ext dev ./my-extension    # twice",
            "End the other process, or try again.",
        ),
        Code::LineFails => (
            "The agent's settings were written, but the line in them does not reach ollm in the agent's shell.",
            "ollm connect claude",
            "`ollm doctor` tries every line. `ollm disconnect AGENT` takes it out again.",
        ),
        Code::GitFailed => (
            "Git is missing, or refused what ollm asked of it. The message holds its words.",
            "ollm git-hook install",
            "Install git, or correct what it complains about.",
        ),
        Code::DemoFailed => (
            "The demo runs in a throwaway home, and something there did not work.",
            "TMPDIR=/full ollm demo",
            "Point TMPDIR to a folder with some space.",
        ),
        Code::NotFetched => (
            "The server is not reached, answers with an error, sends us elsewhere, or its answer was cut. Nothing was changed.",
            "ollm ext install https://example.invalid/guard.zip",
            "Try again later, or correct the address. `--offline` uses what was fetched before.",
        ),
    }
}
