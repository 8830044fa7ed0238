//! Variables that decide what programs run, with any arguments.
//!
//! Several parts of the program use this one table. Values of events never go into such a variable. Guards ask about
//! those that ordinary work never sets. Approvals cover the code they name. No setting of an extension may have their
//! names.

/// A variable that decides what programs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramVariable {
    /// Its name.
    pub name: &'static str,
    /// The kind of its value.
    pub holds: VariableHolds,
    /// Whether ordinary work never sets it.
    pub is_unusual: bool,
}

/// The kind of value with which a variable decides what programs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableHolds {
    /// Options for how a shell reads text.
    Reading,
    /// Text that a shell expands or runs by itself.
    Prompt,
    /// A file that a shell runs first; the shell expands its name.
    StartFile,
    /// A file that a program loads or runs.
    File,
    /// Folders in which programs, libraries or modules are searched.
    Folders,
    /// Options, libraries or editor commands, which may name files of code.
    Words,
    /// A command that another program starts.
    Command,
    /// A file or a folder of settings, which may name programs.
    Settings,
}

impl VariableHolds {
    /// Whether every file that a value names is code.
    pub fn names_code(self) -> bool {
        matches!(self, Self::StartFile | Self::File | Self::Words | Self::Command)
    }

    /// Whether a shell expands or runs the value by itself.
    pub fn is_expanded(self) -> bool {
        matches!(self, Self::Prompt | Self::StartFile)
    }

    /// Whether a value is one path, or a list of them, even without a slash.
    pub fn is_path(self) -> bool {
        matches!(self, Self::StartFile | Self::File | Self::Folders | Self::Settings)
    }
}

const fn usual(name: &'static str, holds: VariableHolds) -> ProgramVariable {
    ProgramVariable { name, holds, is_unusual: false }
}

const fn unusual(name: &'static str, holds: VariableHolds) -> ProgramVariable {
    ProgramVariable { name, holds, is_unusual: true }
}

/// The table, sorted by name.
pub const PROGRAM_VARIABLES: &[ProgramVariable] = &[
    usual("BASHOPTS", VariableHolds::Reading),
    usual("BASH_ENV", VariableHolds::StartFile),
    usual("BROWSER", VariableHolds::Command),
    usual("CLASSPATH", VariableHolds::Folders),
    unusual("CLAUDE_CONFIG_DIR", VariableHolds::Settings),
    unusual("CODEX_HOME", VariableHolds::Settings),
    unusual("DYLD_INSERT_LIBRARIES", VariableHolds::Words),
    usual("DYLD_LIBRARY_PATH", VariableHolds::Folders),
    usual("EDITOR", VariableHolds::Command),
    usual("ENV", VariableHolds::StartFile),
    unusual("EXINIT", VariableHolds::Words),
    unusual("GCONV_PATH", VariableHolds::Folders),
    usual("GIT_ASKPASS", VariableHolds::Command),
    unusual("GIT_CONFIG_GLOBAL", VariableHolds::Settings),
    unusual("GIT_CONFIG_SYSTEM", VariableHolds::Settings),
    usual("GIT_EDITOR", VariableHolds::Command),
    unusual("GIT_EXEC_PATH", VariableHolds::Folders),
    usual("GIT_EXTERNAL_DIFF", VariableHolds::Command),
    usual("GIT_PAGER", VariableHolds::Command),
    usual("GIT_SEQUENCE_EDITOR", VariableHolds::Command),
    usual("GIT_SSH", VariableHolds::Command),
    usual("GIT_SSH_COMMAND", VariableHolds::Command),
    usual("HOME", VariableHolds::Settings),
    usual("IFS", VariableHolds::Reading),
    usual("JAVA_TOOL_OPTIONS", VariableHolds::Words),
    unusual("LD_AUDIT", VariableHolds::Words),
    usual("LD_LIBRARY_PATH", VariableHolds::Folders),
    unusual("LD_PRELOAD", VariableHolds::Words),
    unusual("LESSCLOSE", VariableHolds::Command),
    unusual("LESSKEYIN", VariableHolds::File),
    unusual("LESSKEY_SYSTEM", VariableHolds::File),
    unusual("LESSOPEN", VariableHolds::Command),
    unusual("MAKEFILES", VariableHolds::File),
    usual("MANPAGER", VariableHolds::Command),
    usual("NODE_OPTIONS", VariableHolds::Words),
    usual("NODE_PATH", VariableHolds::Folders),
    unusual("OLLM_HOME", VariableHolds::Settings),
    unusual("OPENSSL_CONF", VariableHolds::File),
    usual("PAGER", VariableHolds::Command),
    usual("PATH", VariableHolds::Folders),
    unusual("PERL5DB", VariableHolds::Words),
    usual("PERL5LIB", VariableHolds::Folders),
    unusual("PERL5OPT", VariableHolds::Words),
    usual("PROMPT_COMMAND", VariableHolds::Prompt),
    usual("PS0", VariableHolds::Prompt),
    usual("PS1", VariableHolds::Prompt),
    usual("PS2", VariableHolds::Prompt),
    usual("PS4", VariableHolds::Prompt),
    usual("PYTHONHOME", VariableHolds::Folders),
    usual("PYTHONPATH", VariableHolds::Folders),
    unusual("PYTHONSTARTUP", VariableHolds::File),
    usual("RUBYLIB", VariableHolds::Folders),
    unusual("RUBYOPT", VariableHolds::Words),
    usual("SHELL", VariableHolds::Command),
    usual("SHELLOPTS", VariableHolds::Reading),
    usual("SSH_ASKPASS", VariableHolds::Command),
    unusual("SYSTEM_WGETRC", VariableHolds::File),
    unusual("VIMINIT", VariableHolds::Words),
    usual("VISUAL", VariableHolds::Command),
    unusual("WGETRC", VariableHolds::File),
    usual("XDG_CONFIG_HOME", VariableHolds::Settings),
    usual("ZDOTDIR", VariableHolds::Settings),
];

/// The variable of this name, if it decides what programs run.
pub fn program_variable(name: &str) -> Option<&'static ProgramVariable> {
    // Guards ask about every variable, and almost none is in the table.
    let at = PROGRAM_VARIABLES.binary_search_by(|variable| variable.name.cmp(name)).ok()?;
    PROGRAM_VARIABLES.get(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_found_by_its_name() {
        assert!(PROGRAM_VARIABLES.is_sorted_by_key(|variable| variable.name));
        for variable in PROGRAM_VARIABLES {
            assert_eq!(program_variable(variable.name), Some(variable));
        }
        assert_eq!(program_variable("BUILD_DIR"), None);
    }
}
