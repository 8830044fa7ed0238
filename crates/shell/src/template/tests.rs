//! Tests where holes may stand. A hole is written `{{x}}` here, and filled with a reference to `T1`, `T2`, ….

use super::*;

fn holes(text: &str) -> Vec<Hole> {
    let mut holes = Vec::new();
    let mut at = 0;
    while let Some(open) = text.get(at..).and_then(|rest| rest.find("{{")) {
        let start = at + open + text[at + open..].chars().take_while(|&next| next == '{').count() - 2;
        let inside = text[start + 2..].split("}}").next().unwrap();
        at = start + 2;
        if inside.trim().chars().all(|next| next.is_ascii_alphanumeric() || next == '.') && !inside.starts_with('.') {
            at = start + inside.len() + "{{}}".len();
            holes.push(Hole { span: start..at, name: format!("{{{{{}}}}}", inside.trim()) });
        }
    }
    holes
}

/// The script with its holes filled, or why it was refused.
fn script(text: &str) -> String {
    match filled(text) {
        Ok(script) => script,
        Err(error) => error.to_string(),
    }
}

fn filled(text: &str) -> Result<String, PlaceError> {
    let holes = holes(text);
    let mut names: Vec<&str> = Vec::new();
    let mut script = String::new();
    let mut from = 0;
    for (hole, quoting) in holes.iter().zip(place(text, &holes)?) {
        let Some(quoting) = quoting else { continue };
        let index = names.iter().position(|name| *name == hole.name).unwrap_or_else(|| {
            names.push(&hole.name);
            names.len() - 1
        });
        script.push_str(&text[from..hole.span.start]);
        script.push_str(&quoting.reference(&format!("T{}", index + 1)));
        from = hole.span.end;
    }
    Ok(script + &text[from..])
}

fn position(text: &str) -> Option<Position> {
    match filled(text) {
        Err(PlaceError::Position { position, .. }) => Some(position),
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
        let parsed = filled(text);
        assert!(parsed.is_ok(), "{text}: {parsed:?}");
    }
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
    for (text, name) in [("sh {{x}}", "sh"), (". {{x}}", "."), ("sh - {{x}}", "sh"), ("python3 ./{{x}}", "python3")] {
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
        ("yash -c 'e {{x}}'", "yash"),
        ("tcsh -c 'e {{x}}'", "tcsh"),
        ("/bin/ksh93 -c 'e {{x}}'", "ksh93"),
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
    for (text, name) in
        [("e {{x}} | sh", "sh"), ("e {{x}} | bash -s -- a", "bash"), ("sh < {{x}}", "sh"), ("e {{x}} | sh 3<f", "sh")]
    {
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
        assert_eq!(filled(construct).unwrap(), construct);
        let error = filled(&format!("{construct}; e {{{{x}}}}"));
        assert!(matches!(error, Err(PlaceError::Unclear { .. })), "{construct}: {error:?}");
    }
    for construct in ["e 'a", "e \"a", "e `a", "e $(a", "e ${a:-b", "(e", "e $((1"] {
        assert_eq!(filled(construct).unwrap(), construct);
        let error = filled(&format!("{construct}; e {{{{x}}}}"));
        assert!(error.is_err(), "{construct}: {error:?}");
        let error = filled(&format!("e {{{{x}}}}; {construct}"));
        assert!(matches!(error, Err(PlaceError::Unclosed { .. })), "{construct}: {error:?}");
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
    assert_eq!(filled(&"a".repeat(LONGEST + 1)), Err(PlaceError::TooLong { size: LONGEST + 1 }));
    assert_eq!(filled("a\0{{x}}"), Err(PlaceError::Nul));
    let nested = |depth| format!("e {}{{{{x}}}}{}", "$(e ".repeat(depth), ")".repeat(depth));
    assert!(filled(&nested(90)).is_ok());
    assert!(matches!(filled(&nested(20_000 / 4)), Err(PlaceError::TooDeep { .. })));
}

#[test]
fn a_keyword_counts_before_a_line_continuation_too() {
    for text in ["!\\\n {{x}}", "if\\\n {{x}}; then e; fi", "{\\\n {{x}}; }", "if e; then\\\n {{x}}; fi"] {
        assert_eq!(position(text), Some(Position::Command), "{text}");
    }
    for text in ["a[ {{x}}\n]=1", "a[<{{x}}", "export a[ {{x}}\n]=1"] {
        assert!(matches!(filled(text), Err(PlaceError::Unclear { .. })), "{text}");
    }
}

#[test]
fn a_value_is_followed_to_where_it_runs() {
    for text in [
        "while :; do eval \"$v\"; v={{x}}; done",
        "for i in 1 2; do eval \"$w\"; w=$v; v={{x}}; done",
        "f() { eval \"$v\"; }; v={{x}}; f",
        "v={{x}}; e `eval \"$v\"`",
    ] {
        assert_eq!(position(text), Some(Position::Code("eval".into())), "{text}");
    }
    for text in ["v={{x}}; sh <<E\n$v\nE", "{ sh; } < {{x}}", "sh <f <{{x}}", "exec 3<{{x}}; sh <&3"] {
        assert_eq!(position(text), Some(Position::Stdin("sh".into())), "{text}");
    }
    // Some shells continue the name after the backslash.
    assert!(matches!(filled("ab={{x}}; eval \"$a\\\nb\""), Err(PlaceError::Unclear { .. })));
}

#[test]
fn a_script_that_ends_with_its_here_document_keeps_its_end() {
    assert_eq!(script("e {{x}} <<E\na\nE"), "e \"${T1}\" <<E\na\nE");
}

#[test]
fn a_chain_of_variables_in_a_loop_ends() {
    let chain: Vec<String> = (1..3000).map(|index| format!("a{index}=$a{}", index + 1)).collect();
    let script = format!("while :; do {}; a3000={{{{x}}}}; done", chain.join(";"));
    assert!(matches!(filled(&script), Err(PlaceError::Unclear { .. })));
}
