//! Shell commands whose variables travel in the environment.
//!
//! The script is read once, by the rules of POSIX `sh`, to learn the quoting position of every variable; each is then
//! replaced by a reference quoted for that position. Two kinds of place are refused: those where the shell would look
//! into the value (arithmetic, here-documents), and those where a program would run it (`eval`, `sh -c`, `awk`). The
//! list of such programs is a net for the known ones, not a proof about all programs.
//!
//! Whatever `sh` implementations read differently is refused too, as soon as the script holds a variable: a guess about
//! where a quote ends would turn the next value into code. A script without variables is never looked into.

mod command;
mod scan;
mod word;

use super::{MAX_ARGUMENT, TemplateError, TemplateWarning, parse};
use scan::Scanner;

const MAX_SCRIPT: usize = 65_536;

/// A `sh -c` script with `{{ path }}` variables.
///
/// ```
/// use ollm_protocol::template::ShellTemplate;
/// use serde_json::json;
///
/// let template = ShellTemplate::parse("logger 'said: {{message}}'")?;
/// assert_eq!(template.script(), r#"logger 'said: '"${OLLM_T1}"''"#);
/// let bound = template.bind(&json!({"message": "it's $(me)"}))?;
/// assert_eq!(bound.env, [("OLLM_T1".to_owned(), "it's $(me)".to_owned())]);
/// # Ok::<(), ollm_protocol::template::TemplateError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellTemplate {
    script: String,
    paths: Vec<String>,
    warnings: Vec<TemplateWarning>,
}

/// The values for one run of a script, and what was odd about finding them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// Environment variables as name and value, to be added to the child's environment.
    pub env: Vec<(String, String)>,
    /// One warning per unknown variable.
    pub warnings: Vec<TemplateWarning>,
}

impl ShellTemplate {
    /// Reads a script and places its variables.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        if text.len() > MAX_SCRIPT {
            return Err(TemplateError::ScriptTooLong { size: text.len() });
        }
        if text.contains('\0') {
            return Err(TemplateError::ScriptNul);
        }
        let warnings = parse::literals(text);
        if parse::pieces(text).iter().all(|piece| matches!(piece, parse::Piece::Text(_))) {
            return Ok(Self { script: text.to_owned(), paths: Vec::new(), warnings });
        }
        let (script, paths) = Scanner::new(text).scan()?;
        Ok(Self { script, paths, warnings })
    }

    /// The text for `sh -c`.
    pub fn script(&self) -> &str {
        &self.script
    }

    /// The variables used, in the order of their environment names.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    /// What the reader of the script should know: braces that were left as they stand.
    pub fn warnings(&self) -> &[TemplateWarning] {
        &self.warnings
    }

    /// The environment that carries the values; every name the script refers to is in it.
    pub fn bind(&self, scope: &serde_json::Value) -> Result<Bound, TemplateError> {
        let mut warnings = Vec::new();
        let mut env = Vec::new();
        for (index, path) in self.paths.iter().enumerate() {
            let name = name(index);
            let value = parse::Value::find(scope, path).text(&mut warnings);
            if value.contains('\0') {
                return Err(TemplateError::Nul { variable: path.clone() });
            }
            if name.len() + "=\0".len() + value.len() > MAX_ARGUMENT {
                return Err(TemplateError::TooLong { variable: path.clone(), size: value.len() });
            }
            env.push((name, value));
        }
        Ok(Bound { env, warnings })
    }
}

/// The environment name of the variable at this index.
fn name(index: usize) -> String {
    format!("OLLM_T{}", index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::Position;
    use serde_json::json;

    fn script(text: &str) -> String {
        match ShellTemplate::parse(text) {
            Ok(template) => template.script().replace("OLLM_", ""),
            Err(error) => error.to_string(),
        }
    }

    fn position(text: &str) -> Option<Position> {
        match ShellTemplate::parse(text) {
            Err(TemplateError::Position { position, .. }) => Some(position),
            _ => None,
        }
    }

    #[test]
    fn each_quoting_position_has_its_own_reference() {
        for (text, want) in [
            ("e {{x}}", r#"e "${T1}""#),
            ("e '{{x}}'", r#"e ''"${T1}"''"#),
            ("e 'a {{x}} b'", r#"e 'a '"${T1}"' b'"#),
            (r#"e "a {{x}} b""#, r#"e "a ${T1} b""#),
            ("e --f={{x}}.txt", r#"e --f="${T1}".txt"#),
            ("e {{x}}{{y}}{{x}}", r#"e "${T1}""${T2}""${T1}""#),
            (r#"e a'b {{x}} c'"d {{y}} e"{{z}}"#, r#"e a'b '"${T1}"' c'"d ${T2} e""${T3}""#),
            ("X={{x}} e", r#"X="${T1}" e"#),
            ("e >{{x}} 2>> {{y}} <{{z}}", r#"e >"${T1}" 2>> "${T2}" <"${T3}""#),
            ("e $(f {{x}})", r#"e $(f "${T1}")"#),
            (r#"e "$(f {{x}} "$(g '{{x}}')")""#, r#"e "$(f "${T1}" "$(g ''"${T1}"'')")""#),
            ("e ${v:-{{x}}}", r#"e ${v:-"${T1}"}"#),
            ("e ${v:-'{{x}}'}", r#"e ${v:-''"${T1}"''}"#),
            (r#"e "${v:-{{x}}}""#, r#"e "${v:-${T1}}""#),
            (r#"e "${v:=${w:-{{x}}}}""#, r#"e "${v:=${w:-${T1}}}""#),
            (r#"e "${v#{{x}}/}" ${v%{{x}}}"#, r#"e "${v#"${T1}"/}" ${v%"${T1}"}"#),
            (r"e \\{{x}} \'{{x}}", r#"e \\"${T1}" \'"${T1}""#),
            ("e $a{{x}} $?{{x}} $${{x}}", r#"e $a"${T1}" $?"${T1}" $$"${T1}""#),
            ("e '${{x}}'", r#"e '$'"${T1}"''"#),
            ("e ~/{{x}} *{{x}}", r#"e ~/"${T1}" *"${T1}""#),
            ("e a # it's {{x}}\ne {{x}}", "e a # it's {{x}}\ne \"${T1}\""),
            ("e a#{{x}}", r#"e a#"${T1}""#),
            ("e \\\n  {{x}} &&\\\n f", "e \\\n  \"${T1}\" &&\\\n f"),
            ("e $(( $(f) + 1 )) `g` {{x}}", r#"e $(( $(f) + 1 )) `g` "${T1}""#),
            ("cat <<A <<'B' {{x}}\n$b\nA\nit's\nB\ne {{y}}", "cat <<A <<'B' \"${T1}\"\n$b\nA\nit's\nB\ne \"${T2}\""),
            ("e '{{.Go}}' {{x}}", r#"e '{{.Go}}' "${T1}""#),
        ] {
            assert_eq!(script(text), want, "{text}");
        }
    }

    #[test]
    fn compound_commands_hold_variables_in_their_words() {
        for text in [
            "if [ {{x}} = {{y}} ]; then e {{x}}; elif f {{x}}; then g; else ! h {{x}}; fi",
            "for f in {{x}} b; do e \"$f\"; done | g {{x}}",
            "for f\ndo e {{x}}; done",
            "while read -r l; do e {{x}}; done < {{y}}",
            "case {{x}} in a|{{y}}*) e {{x}} ;; (b) f;; *) ;; esac && g {{x}}",
            "e \"$(case {{x}} in (a) e {{y}};; esac)\"",
            "{ e {{x}}; (f {{x}}) } 2>&1",
            "f() { e {{x}}; }; f {{x}}",
            "sh -c 'e \"$1\"' name {{x}}",
            "bash -euo pipefail -c 'e' name {{x}} && sh ./run.sh {{x}}",
            "sh -n -- {{x}}; node --check -- {{x}}; sh -n ./{{x}}",
            "python3 -c 'code' {{x}}; python3 -m mod {{x}}; python3 f.py {{x}}; python3 - {{x}} <<'E'\ncode\nE",
            "perl -pe 's/a/b/' -- {{x}}; sed -i 's/a/b/' -- {{x}}; awk -v v={{x}} '{print v}' {{y}}",
            "sed -i.save -e 's/a/b/' -- {{x}}",
            "env A={{x}} timeout -k 1 5 nice -n 3 e {{x}}; command -v {{x}}",
            "e {{x}} | grep -F {{y}} | xargs -0 rm --; e | python3 -m json.tool",
            "printf '%s' {{x}}; export A={{x}}; [ -n {{x}} ]; cd {{x}}",
            "logger -t bash {{x}}; e awk 'no {{x}}'; git commit -m 'sh: {{x}}'",
            "find {{x}} -name {{y}} -exec grep {{x}} {} \\;",
            "time -p e {{x}}",
            "$sudo e {{x}}; \"$HOME/bin/e\" {{x}}; \"$EDITOR\" {{x}}; sh \"$HOME\"/run.sh {{x}}",
        ] {
            let parsed = ShellTemplate::parse(text);
            assert!(parsed.is_ok(), "{text}: {parsed:?}");
        }
    }

    #[test]
    fn the_same_variable_shares_one_name() {
        let template = ShellTemplate::parse("e {{b}} {{ a }} '{{b}}'").unwrap();
        assert_eq!(template.paths().collect::<Vec<_>>(), ["b", "a"]);
        let bound = template.bind(&json!({"a": {"k": 1}})).unwrap();
        assert_eq!(bound.env, [("OLLM_T1".into(), String::new()), ("OLLM_T2".into(), r#"{"k":1}"#.into())]);
        assert_eq!(bound.warnings, [TemplateWarning::Unknown { variable: "b".into() }]);
    }

    #[test]
    fn a_place_where_the_shell_would_look_into_the_value_is_refused() {
        for (text, want) in [
            ("e $((1 + {{x}}))", Position::Arithmetic),
            ("e \"$(( $(f {{x}}) ))\"", Position::Arithmetic),
            ("v={{x}}; e $((v + 1))", Position::Arithmetic),
            ("e {{x}}; e $((_))", Position::Arithmetic),
            ("e `f {{x}}`", Position::Backticks),
            ("e \"`f '{{x}}'`\"", Position::Backticks),
            ("cat <<E\n{{x}}\nE", Position::HereDocument),
            ("cat <<'E'\n{{x}}\nE", Position::HereDocument),
            ("cat <<{{x}}\nE", Position::HereDocument),
            (r"e \{{x}}", Position::Escaped),
            (r#"e "\{{x}}""#, Position::Escaped),
            ("e ${{x}}", Position::AfterDollar),
            ("e \"${{x}}\"", Position::AfterDollar),
            ("e ${{{x}}}", Position::Parameter),
            ("e ${v{{x}}}", Position::Parameter),
            ("e ${v:={{x}}}", Position::UnquotedDefault),
            ("e \"${v#${w:-{{x}}}}\"", Position::NestedPattern),
            ("e >&{{x}}", Position::Descriptor),
            ("e 2<& a{{x}}", Position::Descriptor),
            ("for {{x}} in a; do e; done", Position::Name("for".into())),
        ] {
            assert_eq!(position(text), Some(want), "{text}");
        }
    }

    #[test]
    fn a_value_never_chooses_what_is_run() {
        for text in [
            "{{x}} a",
            "\"{{x}}\"",
            "a{{x}}",
            "$(f {{x}})",
            "e; {{x}}",
            "e | {{x}}",
            "e && {{x}}",
            "e || {{x}}",
            "e & {{x}}",
            "( {{x}} )",
            "{ {{x}}; }",
            "! {{x}}",
            "if {{x}}; then e; fi",
            "if e; then {{x}}; fi",
            "if e; then e; else {{x}}; fi",
            "if e; then e; elif {{x}}; then e; fi",
            "while {{x}}; do e; done",
            "until e; do {{x}}; done",
            "A=1 B={{y}} {{x}}",
            ">f {{x}}",
            "2>f {{x}}",
            "e\n{{x}}",
            "e $( {{x}} )",
            "case a in a) {{x}};; esac",
            "f() { {{x}}; }",
            "v={{x}}; $v",
            "for v in {{x}}; do $v; done",
            "env {{x}}",
            "env -i A=1 {{x}}",
            "exec {{x}}",
            "sudo -u me {{x}}",
            "timeout 5 {{x}}",
            "timeout {{x}} e",
            "xargs -n 1 {{x}}",
            "nohup nice {{x}}",
            "command {{x}}",
            "time {{x}}",
            "time A=1 {{x}}",
            "find . -exec {{x}} \\;",
            "$sudo {{x}}",
            "\"$@\" {{x}}",
            "env $v {{x}}",
            "$(f) ${v} {{x}}",
        ] {
            assert_eq!(position(text), Some(Position::Command), "{text}");
        }
        for (text, name) in [("sh {{x}}", "sh"), (". {{x}}", "."), ("sh - {{x}}", "sh"), ("python3 ./{{x}}", "python3")]
        {
            assert_eq!(position(text), Some(Position::Script(name.into())), "{text}");
        }
        for text in ["PATH={{x}} e", "export PATH=\"$PATH:{{x}}\"", "env PATH={{x}} e"] {
            assert_eq!(position(text), Some(Position::Environment("PATH".into())), "{text}");
        }
    }

    #[test]
    fn a_value_never_becomes_code_of_a_known_interpreter() {
        for (text, name) in [
            ("eval e {{x}}", "eval"),
            ("eval \"$(f {{x}})\"", "eval"),
            ("trap 'e {{x}}' EXIT", "trap"),
            ("ssh host e {{x}}", "ssh"),
            ("sh -c 'e {{x}}'", "sh"),
            ("/bin/bash -euo pipefail -c \"e {{x}}\"", "bash"),
            ("dash -c -x 'e {{x}}'", "dash"),
            ("zsh -lc 'e {{x}}' name", "zsh"),
            ("env A=1 sh -c 'e {{x}}'", "sh"),
            ("sudo -u me timeout -s KILL 5 ksh -c {{x}}", "ksh"),
            ("xargs -n 1 sh -c 'e {{x}}'", "sh"),
            ("docker exec box sh -c 'e {{x}}'", "sh"),
            ("find . -exec sh -c 'e {{x}}' \\;", "sh"),
            ("v={{x}}; sh -c \"e $v\"", "sh"),
            ("python3 -c 'print(\"{{x}}\")'", "python3"),
            ("\"$HOME/bin/python3.12\" -Ic '{{x}}'", "python3.12"),
            ("node -e '{{x}}'", "node"),
            ("node --eval='{{x}}'", "node"),
            ("deno eval '{{x}}'", "deno"),
            ("perl -lne '{{x}}'", "perl"),
            ("ruby -e'{{x}}'", "ruby"),
            ("php -r '{{x}}'", "php"),
            ("osascript -e 'display notification \"{{x}}\"'", "osascript"),
            ("awk '/{{x}}/ {print}'", "awk"),
            ("gawk -F , -v a=1 '{{x}}' f", "gawk"),
            ("sed 's/{{x}}/b/' f", "sed"),
            ("sed -i '' 's/a/{{x}}/' f", "sed"),
            ("sed -i.save -e 's/a/{{x}}/' f", "sed"),
            ("\"$PYTHON\" -c '{{x}}'", "an unknown program"),
            ("\"$v\"eval {{x}}", "eval"),
            ("sh \"$v\"-c {{x}}", "sh"),
        ] {
            assert_eq!(position(text), Some(Position::Code(name.into())), "{text}");
        }
        for (text, name) in [("sed s/a/b/ {{x}}", "sed"), ("perl -e 1 {{x}}", "perl"), ("sh -n {{x}}", "sh")] {
            assert_eq!(position(text), Some(Position::Option(name.into())), "{text}");
        }
        for (text, name) in [
            ("e {{x}} | sh", "sh"),
            ("e {{x}} | bash -s -- a", "bash"),
            ("sh < {{x}}", "sh"),
            ("e {{x}} | sh 3<f", "sh"),
        ] {
            assert_eq!(position(text), Some(Position::Stdin(name.into())), "{text}");
        }
        for (text, name) in
            [("read {{x}}", "read"), ("[ -v {{x}} ]", "["), ("[ {{x}} {{y}} ]", "["), ("export {{x}}", "export")]
        {
            assert_eq!(position(text), Some(Position::Name(name.into())), "{text}");
        }
        for text in ["printf {{x}} a", "printf $v {{x}}"] {
            assert_eq!(position(text), Some(Position::Format), "{text}");
        }
    }

    #[test]
    fn what_shells_read_differently_is_refused_beside_a_variable_only() {
        for construct in [
            "e $'a'",
            "e $\"a\"",
            "e $[1]",
            "e $_",
            "e \"${_}\"",
            "((1))",
            "[[ a ]]",
            "e <(f)",
            "e <<< a",
            "e &> f",
            "e |& f",
            "a=(b)",
            "a[1]=b",
            "a+=b",
            "function f { e; }",
            "select a in b; do e; done",
            "alias a=b",
            "let a",
            "declare -i a",
            "local -i a",
            "e ${a/b/c}",
            "e ${a:1:2}",
            "e ${!a}",
            "e \"${a:-\"b\"}\"",
            "e \"${a:-'b'}\"",
            "e $\\\n(f)",
            "e fo\\\no",
            "10>f e",
            "{fd}>f e",
            "time if e",
            "e a(b",
            "e )",
            "e $(f <<E\nE\n)",
            "e $(case a in a) f;; esac)",
            "e $(f # it's\n)",
        ] {
            assert_eq!(ShellTemplate::parse(construct).unwrap().script(), construct);
            let error = ShellTemplate::parse(&format!("{construct}; e {{{{x}}}}"));
            assert!(matches!(error, Err(TemplateError::Unclear { .. })), "{construct}: {error:?}");
        }
        for construct in ["e 'a", "e \"a", "e `a", "e $(a", "e ${a:-b", "(e", "e $((1"] {
            assert_eq!(ShellTemplate::parse(construct).unwrap().script(), construct);
            let error = ShellTemplate::parse(&format!("{construct}; e {{{{x}}}}"));
            assert!(error.is_err(), "{construct}: {error:?}");
            let error = ShellTemplate::parse(&format!("e {{{{x}}}}; {construct}"));
            assert!(matches!(error, Err(TemplateError::Unclosed { .. })), "{construct}: {error:?}");
        }
    }

    #[test]
    fn an_error_names_the_variable_the_place_and_the_way_out() {
        for (text, want) in [
            (
                "e\ne $(( {{ a.b }} ))",
                "`{{a.b}}` at line 2, column 7 stands inside arithmetic `$((…))`; its value cannot be kept as plain data \
                 there: read the event's JSON from stdin, or pass the value as an argument",
            ),
            (
                "sh -c 'e {{x}}'",
                "`{{x}}` at column 10 stands inside program text for `sh`; the value would be run as code: pass it as an \
                 argument after the program text, or read the event's JSON from stdin",
            ),
            (
                "[[ {{x}} ]]",
                "`function`, `select`, `coproc` or `[[` at column 1 is not read alike by every `sh`, so the script cannot \
                 hold {{variables}}; write it in plain POSIX form, or read the event's JSON from stdin in a script file",
            ),
        ] {
            assert_eq!(script(text), want);
        }
    }

    #[test]
    fn length_depth_nul_and_value_size_are_capped() {
        assert_eq!(
            ShellTemplate::parse(&"a".repeat(MAX_SCRIPT + 1)),
            Err(TemplateError::ScriptTooLong { size: MAX_SCRIPT + 1 })
        );
        assert_eq!(ShellTemplate::parse("a\0{{x}}"), Err(TemplateError::ScriptNul));
        let nested = |depth| format!("e {}{{{{x}}}}{}", "$(e ".repeat(depth), ")".repeat(depth));
        assert!(ShellTemplate::parse(&nested(90)).is_ok());
        assert!(matches!(ShellTemplate::parse(&nested(20_000 / 4)), Err(TemplateError::TooDeep { .. })));
        let template = ShellTemplate::parse("e {{x}}").unwrap();
        let fits = MAX_ARGUMENT - "OLLM_T1=\0".len();
        assert!(template.bind(&json!({"x": "v".repeat(fits)})).is_ok());
        let error = template.bind(&json!({"x": "v".repeat(fits + 1)}));
        assert_eq!(error, Err(TemplateError::TooLong { variable: "x".into(), size: fits + 1 }));
        assert_eq!(template.bind(&json!({"x": "\0"})), Err(TemplateError::Nul { variable: "x".into() }));
    }
}
