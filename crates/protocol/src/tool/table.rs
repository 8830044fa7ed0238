//! The table of tools: the effects of each canonical tool, and other agents' names for it and its arguments.
//!
//! Canonical names are those of our own agent, if it has the tool. A tool of another agent is one row of [`FOREIGN`].
//! Rows with the same name are combined, because several agents use one name with different arguments.

use super::effect::{Declaration, Effect, ForeignTool};

/// Runs a command line.
pub const SHELL: &Declaration = &Declaration {
    effects: &[
        ("command", Effect::RunsShell),
        ("commands", Effect::RunsEach),
        ("args", Effect::ProgramArguments),
        ("cwd", Effect::RunsIn),
    ],
    ..Declaration::new("shell")
};

/// Types into a program that is running.
pub const WRITE_STDIN: &Declaration =
    &Declaration { effects: &[("chars", Effect::TypesIntoShell)], ..Declaration::new("write_stdin") };

/// Shows a file.
pub const READ_FILE: &Declaration =
    &Declaration { effects: &[("path", Effect::ReadsPath)], ..Declaration::new("read_file") };

/// Creates or replaces a file.
pub const WRITE_FILE: &Declaration =
    &Declaration { effects: &[("path", Effect::WritesPath)], ..Declaration::new("write_file") };

/// Changes a part of a file.
pub const EDIT_FILE: &Declaration =
    &Declaration { effects: &[("path", Effect::WritesPath)], ..Declaration::new("edit_file") };

/// Changes a cell of a notebook.
pub const EDIT_NOTEBOOK: &Declaration = &Declaration {
    effects: &[("path", Effect::WritesPath)],
    also: &["edit_file"],
    ..Declaration::new("edit_notebook")
};

/// Shows, creates or changes a file, depending on `command`; matchers for any of these fit it.
pub const TEXT_EDITOR: &Declaration = &Declaration {
    effects: &[("path", Effect::WritesPath), ("command", Effect::ReadsIf(&["view"]))],
    also: &["edit_file", "write_file", "read_file"],
    ..Declaration::new("text_editor")
};

/// Creates or changes a file.
pub const FILE_WRITER: &Declaration = &Declaration {
    effects: &[("path", Effect::WritesPath), ("command", Effect::ReadsIf(&["view"]))],
    also: &["edit_file", "write_file"],
    ..Declaration::new("file_writer")
};

/// Applies a patch to any number of files.
pub const APPLY_PATCH: &Declaration = &Declaration {
    effects: &[("patch", Effect::AppliesPatch)],
    also: &["edit_file", "write_file"],
    ..Declaration::new("apply_patch")
};

/// Removes a file.
pub const DELETE_FILE: &Declaration =
    &Declaration { effects: &[("path", Effect::RemovesPath)], ..Declaration::new("delete_file") };

/// Moves a file or folder.
pub const MOVE_FILE: &Declaration = &Declaration {
    effects: &[("source", Effect::RemovesPath), ("destination", Effect::RemovesPath)],
    ..Declaration::new("move_file")
};

/// Lists a folder.
pub const LIST_DIR: &Declaration =
    &Declaration { effects: &[("path", Effect::ReadsPath)], ..Declaration::new("list_dir") };

/// Finds files by name.
pub const GLOB: &Declaration = &Declaration { effects: &[("path", Effect::ReadsPath)], ..Declaration::new("glob") };

/// Finds lines in files.
pub const GREP: &Declaration = &Declaration { effects: &[("path", Effect::ReadsPath)], ..Declaration::new("grep") };

/// Gets a page.
pub const WEB_FETCH: &Declaration =
    &Declaration { effects: &[("url", Effect::Sends)], ..Declaration::new("web_fetch") };

/// Asks a search engine.
pub const WEB_SEARCH: &Declaration =
    &Declaration { effects: &[("query", Effect::Sends)], ..Declaration::new("web_search") };

/// Keeps the model's list of tasks.
pub const TODO: &Declaration = &Declaration::new("todo");

/// Starts another agent; that agent's own calls are checked one by one.
pub const TASK: &Declaration = &Declaration::new("task");

/// Asks the person a question, which runs nothing.
pub const ASK_USER: &Declaration = &Declaration::new("ask_user");

/// Reads a skill; the agent's own calls that follow are checked one by one.
pub const SKILL: &Declaration = &Declaration::new("skill");

/// Every canonical tool.
pub const TOOLS: &[&Declaration] = &[
    SHELL,
    WRITE_STDIN,
    READ_FILE,
    WRITE_FILE,
    EDIT_FILE,
    EDIT_NOTEBOOK,
    TEXT_EDITOR,
    FILE_WRITER,
    APPLY_PATCH,
    DELETE_FILE,
    MOVE_FILE,
    LIST_DIR,
    GLOB,
    GREP,
    WEB_FETCH,
    WEB_SEARCH,
    TODO,
    TASK,
    ASK_USER,
    SKILL,
];

/// Tools of other agents and of the documents. A row has the agents, their name for the tool, the canonical tool, and
/// their arguments with our names.
///
/// When names are read, case, `_`, `-` and `.` do not matter. Of the rows for one agent and tool, the first is the one
/// that the agent's hooks read.
pub const FOREIGN: &[ForeignTool] = &[
    // Codex shows its shell to hooks under Claude Code's name.
    row("Bash", SHELL, &[]).of(&["claude", "codex"]),
    row("PowerShell", SHELL, &[]).of(&["claude"]),
    row("Read", READ_FILE, &[("file_path", "path")]).of(&["claude", "cursor", "droid"]),
    row("Write", WRITE_FILE, &[("file_path", "path")]).of(&["claude"]),
    row("Edit", EDIT_FILE, &[("file_path", "path")]).of(&["claude"]).with(REPLACED),
    row("MultiEdit", EDIT_FILE, &[("file_path", "path")]).of(&["claude", "droid"]),
    row("Glob", GLOB, &[]).of(&["claude"]),
    row("Grep", GREP, &[]).of(&["claude", "cursor", "droid"]),
    row("WebFetch", WEB_FETCH, &[]).of(&["claude"]),
    row("WebSearch", WEB_SEARCH, &[]).of(&["claude", "droid"]),
    row("NotebookEdit", EDIT_NOTEBOOK, &[("notebook_path", "path")]).of(&["claude"]),
    row("NotebookRead", READ_FILE, &[("notebook_path", "path")]),
    row("LS", LIST_DIR, &[]),
    row("TodoWrite", TODO, &[]).of(&["claude", "droid"]),
    row("TodoRead", TODO, &[]),
    row("Agent", TASK, &[]).of(&["claude"]),
    row("Task", TASK, &[]).of(&["claude", "cursor", "droid"]),
    row("AskUserQuestion", ASK_USER, &[]).of(&["claude"]),
    row("Skill", SKILL, &[]).of(&["claude"]),
    row("TaskCreate", TODO, &[]),
    row("TaskUpdate", TODO, &[]),
    // The person decides about the plan.
    row("ExitPlanMode", ASK_USER, &[]),
    row("ask_user_question", ASK_USER, &[]),
    row("ask_followup_question", ASK_USER, &[]),
    row("AskUser", ASK_USER, &[]),
    row("request_user_input", ASK_USER, &[]),
    row("activate_skill", SKILL, &[]).of(&["gemini"]),
    // Anthropic's text editor, and tools shaped like it: Kiro, goose.
    row("str_replace_based_edit_tool", TEXT_EDITOR, &[]),
    row("str_replace_editor", TEXT_EDITOR, &[("file_path", "path")]),
    row("fs_write", FILE_WRITER, &[]).of(&["kiro"]),
    row("developer__text_editor", TEXT_EDITOR, &[]).of(&["goose"]),
    // Codex.
    row("exec_command", SHELL, &[("cmd", "command"), ("workdir", "cwd")]),
    row("shell_command", SHELL, &[("workdir", "cwd")]),
    row("local_shell", SHELL, &[("working_directory", "cwd")]),
    row("container.exec", SHELL, &[("cmd", "command"), ("workdir", "cwd")]),
    row("unified_exec", SHELL, &[("input", "command")]),
    row("apply_patch", APPLY_PATCH, &[("command", "patch"), ("input", "patch")]).of(&["codex"]),
    row("view_image", READ_FILE, &[]),
    row("update_plan", TODO, &[]).of(&["codex"]),
    row("spawn_agent", TASK, &[]).of(&["codex"]),
    // Gemini CLI and Qwen Code.
    row("run_shell_command", SHELL, &[("directory", "cwd"), ("dir_path", "cwd")]).of(&["gemini", "qwen"]),
    row("read_file", READ_FILE, &[("file_path", "path"), ("absolute_path", "path")]).of(&["gemini", "qwen"]),
    row("read_many_files", READ_FILE, &[("paths", "path"), ("include", "path")]),
    row("write_file", WRITE_FILE, &[("file_path", "path")]).of(&["gemini", "qwen"]),
    row("replace", EDIT_FILE, &[("file_path", "path")]).of(&["gemini"]).with(REPLACED),
    row("edit", EDIT_FILE, &[("file_path", "path")]).of(&["qwen"]).with(REPLACED),
    row("list_directory", LIST_DIR, &[("dir_path", "path")]).of(&["gemini", "qwen"]),
    row("glob", GLOB, &[("dir_path", "path")]).of(&["gemini", "qwen"]),
    row("glob", GLOB, &[("paths", "path")]).of(&["copilot"]),
    row("glob", GLOB, &[]).of(&["kiro", "opencode"]),
    row("grep_search", GREP, &[("dir_path", "path")]).of(&["gemini", "qwen"]),
    row("search_file_content", GREP, &[("dir_path", "path")]),
    row("web_fetch", WEB_FETCH, &[]).of(&["gemini", "qwen", "copilot", "cline"]),
    row("google_web_search", WEB_SEARCH, &[]).of(&["gemini"]),
    row("web_search", WEB_SEARCH, &[]).of(&["qwen", "kiro"]),
    row("write_todos", TODO, &[]).of(&["gemini"]),
    row("invoke_agent", TASK, &[]).of(&["gemini"]),
    row("monitor", SHELL, &[("directory", "cwd")]).of(&["qwen"]),
    row("agent", TASK, &[]).of(&["qwen"]),
    // Cursor.
    row("Shell", SHELL, &[]).of(&["cursor"]),
    // It has no other tool that writes. In every other agent, a tool of this name writes a whole file.
    row("Write", FILE_WRITER, &[("file_path", "path")]).of(&["cursor"]),
    row("run_terminal_cmd", SHELL, &[]),
    row("edit_file", EDIT_FILE, &[("target_file", "path"), ("filename", "path")]),
    row("search_replace", EDIT_FILE, &[("file_path", "path")]),
    row("delete_file", DELETE_FILE, &[("target_file", "path")]),
    row("file_search", GLOB, &[]),
    // Copilot CLI and VS Code.
    row("bash", SHELL, &[]).of(&["copilot", "opencode"]),
    row("powershell", SHELL, &[]).of(&["copilot"]),
    row("write_bash", WRITE_STDIN, &[("input", "chars")]).of(&["copilot"]),
    row("write_powershell", WRITE_STDIN, &[("input", "chars")]),
    row("send_to_terminal", WRITE_STDIN, &[("command", "chars"), ("text", "chars")]),
    row("view", READ_FILE, &[]).of(&["copilot"]),
    row("create", WRITE_FILE, &[]).of(&["copilot"]).with(&[("file_text", "content")]),
    row("edit", EDIT_FILE, &[]).of(&["copilot"]).with(&[("old_str", "old"), ("new_str", "new")]),
    row("grep", GREP, &[("paths", "path")]).of(&["copilot"]),
    row("grep", GREP, &[]).of(&["kiro", "opencode"]),
    row("task", TASK, &[]).of(&["copilot", "qwen", "opencode"]),
    // The names in its PascalCase events.
    row("Bash", SHELL, &[]).of(&["copilot as claude"]),
    row("Read", READ_FILE, &[]).of(&["copilot as claude"]),
    row("Write", WRITE_FILE, &[]).of(&["copilot as claude"]).with(&[("file_text", "content")]),
    row("Edit", EDIT_FILE, &[]).of(&["copilot as claude"]).with(&[("old_str", "old"), ("new_str", "new")]),
    row("Glob", GLOB, &[("paths", "path")]).of(&["copilot as claude"]),
    row("Grep", GREP, &[("paths", "path")]).of(&["copilot as claude"]),
    row("WebFetch", WEB_FETCH, &[]).of(&["copilot as claude"]),
    row("TodoWrite", TODO, &[]).of(&["copilot as claude"]),
    row("Agent", TASK, &[]).of(&["copilot as claude"]),
    row("run_in_terminal", SHELL, &[]),
    row("create_file", WRITE_FILE, &[("file_path", "path"), ("filename", "path")]),
    row("insert_edit_into_file", EDIT_FILE, &[("file_path", "path")]),
    row("replace_string_in_file", EDIT_FILE, &[("file_path", "path")]),
    row("fetch_webpage", WEB_FETCH, &[("urls", "url")]),
    // Kiro.
    row("execute_bash", SHELL, &[]).of(&["kiro"]),
    row("fs_read", READ_FILE, &[]).of(&["kiro"]),
    // Windsurf. The last three are the subjects of its events about files and commands.
    row("run_command", SHELL, &[("command_line", "command")]).of(&["windsurf"]),
    row("write_to_file", WRITE_FILE, &[("target_file", "path")]),
    row("replace_file_content", EDIT_FILE, &[("target_file", "path")]),
    row("view_file", READ_FILE, &[("absolute_path", "path")]),
    row("send_command_input", WRITE_STDIN, &[("input", "chars")]),
    row("read_code", READ_FILE, &[("file_path", "path")]).of(&["windsurf"]),
    row("write_code", FILE_WRITER, &[("file_path", "path")]).of(&["windsurf"]),
    // goose.
    row("developer__shell", SHELL, &[]).of(&["goose"]),
    row("developer__write", WRITE_FILE, &[]).of(&["goose"]),
    row("developer__edit", EDIT_FILE, &[]).of(&["goose"]),
    row("developer__tree", LIST_DIR, &[]).of(&["goose"]),
    // Droid.
    row("Execute", SHELL, &[]).of(&["droid"]),
    row("Create", WRITE_FILE, &[("file_path", "path")]).of(&["droid"]),
    row("Edit", EDIT_FILE, &[("file_path", "path")]).of(&["droid"]).with(&[
        ("old_str", "old"),
        ("new_str", "new"),
        ("change_all", "all"),
    ]),
    row("Glob", GLOB, &[("folder", "path")]).of(&["droid"]).with(&[("patterns", "pattern")]),
    row("LS", LIST_DIR, &[("directory_path", "path")]).of(&["droid"]),
    row("FetchUrl", WEB_FETCH, &[]).of(&["droid"]),
    // Cline.
    row("run_commands", SHELL, &[]).of(&["cline"]).with(&[("commands", "command")]),
    row("execute_command", SHELL, &[]).of(&["cline"]),
    row("read_file", READ_FILE, &[]).of(&["cline"]),
    row("read_files", READ_FILE, &[("files", "path"), ("paths", "path")]).of(&["cline"]),
    row("editor", FILE_WRITER, &[]).of(&["cline"]).with(&[("old_text", "old"), ("new_text", "new")]),
    row("search_codebase", GREP, &[]).of(&["cline"]).with(&[("queries", "pattern")]),
    row("fetch_web_content", WEB_FETCH, &[("requests", "url")]).of(&["cline"]),
    row("write_to_file", WRITE_FILE, &[]).of(&["cline"]),
    row("replace_in_file", EDIT_FILE, &[("file_path", "path")]),
    row("replace_in_file", EDIT_FILE, &[]).of(&["cline"]),
    row("list_files", LIST_DIR, &[]).of(&["cline"]),
    row("search_files", GREP, &[]).of(&["cline"]).with(&[("regex", "pattern")]),
    // opencode.
    row("read", READ_FILE, &[("filePath", "path")]).of(&["opencode"]),
    row("write", WRITE_FILE, &[("filePath", "path")]).of(&["opencode"]),
    row("edit", EDIT_FILE, &[("filePath", "path")]).of(&["opencode"]).with(&[
        ("oldString", "old"),
        ("newString", "new"),
        ("replaceAll", "all"),
    ]),
    row("webfetch", WEB_FETCH, &[]).of(&["opencode"]),
    row("todowrite", TODO, &[]).of(&["opencode"]),
    row("apply_patch", APPLY_PATCH, &[("patchText", "patch")]).of(&["opencode"]),
    row("patch", APPLY_PATCH, &[("patchText", "patch")]).of(&["opencode"]),
    row("websearch", WEB_SEARCH, &[]).of(&["opencode"]),
    row("list", LIST_DIR, &[]).of(&["opencode"]),
    // Zed.
    row("terminal", SHELL, &[("cd", "cwd")]),
    row("delete_path", DELETE_FILE, &[]),
    row("move_path", MOVE_FILE, &[("source_path", "source"), ("destination_path", "destination")]),
    // Names from the documents, and names in common use.
    row("bash_execute", SHELL, &[("script", "command")]),
    row("sh", SHELL, &[("cmd", "command")]),
    row("zsh", SHELL, &[("cmd", "command")]),
    row("exec", SHELL, &[("cmd", "command")]),
    row("run_bash", SHELL, &[]),
    row("run_shell", SHELL, &[]),
    row("str_replace", EDIT_FILE, &[("file_path", "path")]),
    row("remove_file", DELETE_FILE, &[]),
    row("rename_file", MOVE_FILE, &[("old_path", "source"), ("new_path", "destination")]),
    row("find_files", GLOB, &[]),
    row("fetch", WEB_FETCH, &[]),
    row("send_input", WRITE_STDIN, &[("input", "chars")]),
    row("send_keys", WRITE_STDIN, &[("keys", "chars"), ("text", "chars")]),
    row("write_to_terminal", WRITE_STDIN, &[("command", "chars"), ("text", "chars"), ("input", "chars")]),
    row("write_to_process", WRITE_STDIN, &[("input", "chars"), ("data", "chars")]),
    row("interact_with_process", WRITE_STDIN, &[("input", "chars")]),
    row("pty_write", WRITE_STDIN, &[("data", "chars"), ("input", "chars")]),
    row("search", GREP, &[]),
    row("subagent", TASK, &[]),
];

const fn row(
    name: &'static str,
    tool: &'static Declaration,
    args: &'static [(&'static str, &'static str)],
) -> ForeignTool {
    ForeignTool { name, tool, args, data: &[], agents: &[] }
}

/// Claude Code's names for the texts of an edit; many agents use them.
const REPLACED: &[(&str, &str)] = &[("old_string", "old"), ("new_string", "new"), ("replace_all", "all")];
