//! The stable codes of failures and problems. A code never changes its meaning and is never reused.
//!
//! Libraries know the code and its title. The program says why it happened and which command fixes it.

use std::fmt;

/// The class of a failure, by the first letter of its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeClass {
    /// `U`: the request makes no sense.
    Usage,
    /// `C`: a file that a person wrote is invalid: a configuration, a hook file, a manifest, an event.
    Configuration,
    /// `T`: something is not approved, or may not be approved here.
    Trust,
    /// `E`: something outside of the program fails: a missing program, a permission, a full disk.
    Environment,
}

macro_rules! codes {
    ($($variant:ident $id:literal $title:literal)*) => {
        /// The code of a failure, or of a problem with a file.
        ///
        /// ```
        /// use ollm_protocol::Code;
        ///
        /// assert_eq!(Code::UnknownKey.to_string(), "C003");
        /// assert_eq!(Code::by_id("c003"), Some(Code::UnknownKey));
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $(#[doc = $title] $variant,)*
        }

        impl Code {
            /// All codes, in the order of the reference.
            pub const ALL: &[Code] = &[$(Code::$variant),*];

            /// The code as people see it.
            pub fn id(self) -> &'static str {
                match self {
                    $(Code::$variant => $id,)*
                }
            }

            /// A short description of the failure.
            pub fn title(self) -> &'static str {
                match self {
                    $(Code::$variant => $title,)*
                }
            }
        }
    };
}

codes! {
    Usage "U001" "The command line cannot be understood"
    UnknownHook "U002" "No single hook has this id or name"
    UnknownServer "U003" "No MCP server has this name"
    UnknownExtension "U004" "No extension has this name"
    UnknownSkill "U005" "No single skill has this name"
    UnknownTool "U006" "The server offers no such tool"
    UnknownSession "U007" "There is no such session"
    UnknownTrace "U008" "No single record of the trace has this id"
    UnknownAgent "U009" "No agent has this name"
    UnknownSetting "U010" "No setting has this name"
    UnknownModel "U011" "There is no such model"
    UnknownName "U012" "Nothing has this name"
    InvalidValue "U013" "The value does not fit"
    InvalidArguments "U014" "The arguments do not fit the tool or the skill"
    AlreadyThere "U015" "Something of this name is there already"
    NoProject "U016" "The command needs a project"
    NotConfirmed "U017" "The change was not confirmed"
    Elsewhere "U018" "What is named belongs to something else and is changed there"
    LowerVersion "U019" "A lower version than the installed one was not named"

    UnreadableFile "C001" "A file cannot be read"
    InvalidSyntax "C002" "A file is not valid JSON, YAML or TOML"
    UnknownKey "C003" "A key is unknown"
    WrongValue "C004" "A value cannot be used"
    MissingKey "C005" "A key is missing"
    UnknownEvent "C006" "An event is unknown"
    WrongForm "C007" "A file has no form that is known"
    Duplicate "C008" "Two declarations have the same name"
    UnsafePath "C009" "A path or a command leads where it must not"
    OlderName "C010" "A setting has an older name"
    Ignored "C011" "A setting has no effect where it is written"
    InvalidVariable "C012" "An environment variable cannot be used"
    MissingFile "C013" "A script or a file that is named cannot run"
    UndeclaredScript "C014" "No hook file declares a script"
    BrokenCase "C015" "A test case cannot be read"
    MissingDependency "C016" "An extension lacks what it needs"
    TooMuch "C017" "There is more than is read"
    InvalidEvent "C018" "An event cannot be read"
    UnsafePolicy "C019" "The policy of the machine cannot be relied on"
    ForeignFile "C020" "A file of another program cannot be changed"
    NotLoaded "C021" "A declared part is not loaded"
    ModelSettings "C022" "The settings of the model cannot be used"
    InvalidCondition "C023" "A condition cannot be used"
    DoesNotRun "C024" "A hook is declared and does not run"
    NeverSent "C025" "Nothing sends an event that a hook waits for"
    PackageRefused "C026" "The package of an extension is refused"

    NotApproved "T001" "Something is not approved"
    AgentRefused "T002" "An agent may not do this"
    NobodyToAsk "T003" "There is no terminal to ask on"
    DigestMismatch "T004" "The digest is of other content"
    BrokenApprovals "T005" "The list of approvals cannot be relied on"
    LockedKey "T006" "The approval key stays locked"
    Uncovered "T007" "An approval would not cover all that runs"
    Declined "T008" "A person declined"
    GuardsOff "T009" "Hooks or a built-in guard are off"

    Environment "E001" "Something outside does not work"
    NotWritten "E002" "A file cannot be written"
    Unreadable "E003" "A file of our own cannot be read"
    NoFolder "E004" "A folder that is needed is not there"
    MissingProgram "E005" "A program cannot be found or started"
    ServerFailed "E006" "An MCP server does not work"
    LoginFailed "E007" "A login at an MCP server failed"
    ModelUnreachable "E008" "The model does not answer"
    NoBox "E009" "There is no box on this machine"
    TraceUnreadable "E010" "The trace cannot be read"
    OutputLost "E011" "The answer cannot be written"
    NoSecret "E012" "A secret cannot be kept or read"
    TooDeep "E013" "Hooks call themselves"
    Busy "E014" "Another process works on it"
    LineFails "E015" "The line in an agent's settings does not work"
    GitFailed "E016" "Git does not do what is needed"
    DemoFailed "E017" "The demo does not work"
    NotFetched "E018" "A package or an index cannot be fetched"
}

impl Code {
    /// The code with this id, in upper or lower case.
    pub fn by_id(id: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.id().eq_ignore_ascii_case(id))
    }

    /// The class of the failure.
    pub fn class(self) -> CodeClass {
        match self.id().as_bytes().first() {
            Some(b'U') => CodeClass::Usage,
            Some(b'C') => CodeClass::Configuration,
            Some(b'T') => CodeClass::Trust,
            _ => CodeClass::Environment,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.id())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_code_and_no_title_is_there_twice() {
        let ids: HashSet<&str> = Code::ALL.iter().map(|code| code.id()).collect();
        let titles: HashSet<&str> = Code::ALL.iter().map(|code| code.title()).collect();
        assert_eq!((ids.len(), titles.len()), (Code::ALL.len(), Code::ALL.len()));
    }

    #[test]
    fn every_code_is_a_known_letter_and_three_digits() {
        for code in Code::ALL {
            let (letter, number) = code.id().split_at(1);
            assert!("UCTE".contains(letter) && number.len() == 3, "{code}");
            assert!(number.chars().all(|digit| digit.is_ascii_digit()), "{code}");
        }
    }
}
