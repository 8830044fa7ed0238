use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;

const SECRET: &str = "pa\"ss/wörd+1\n2";

fn redactor() -> Redactor {
    Redactor::new([("PW", SECRET)])
}

fn base64_of(bytes: &[u8], last_two: [char; 2]) -> String {
    let alphabet: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(last_two).collect();
    let bits: Vec<u8> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    let digit = |six: &[u8]| {
        let value = (0..6).fold(0, |value, bit| value << 1 | usize::from(*six.get(bit).unwrap_or(&0)));
        alphabet[value]
    };
    bits.chunks(6).map(digit).collect()
}

fn in_pieces(redactor: &Redactor, text: &[u8], cuts: &[Index]) -> Vec<u8> {
    let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).chain([0, text.len()]).collect();
    places.sort_unstable();
    let mut out = Vec::new();
    let mut stream = redactor.stream();
    for pair in places.windows(2) {
        stream.push(&text[pair[0]..pair[1]], &mut out);
    }
    stream.finish(&mut out);
    out
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_known_value_is_hidden_in_every_form() {
    let forms = [
        SECRET.to_owned(),
        r#"pa\"ss/wörd+1\n2"#.to_owned(),
        r#"pa\"ss\/wörd+1\n2"#.to_owned(),
        r#"pa\"ss/w\u00f6rd+1\n2"#.to_owned(),
        r#"pa\"ss/w\u00F6rd+1\n2"#.to_owned(),
        r#"pa\"ss\/w\u00f6rd+1\n2"#.to_owned(),
        r#"pa\\\"ss/wörd+1\\n2"#.to_owned(),
        "pa%22ss%2Fw%C3%B6rd%2B1%0A2".to_owned(),
        "pa%22ss%2fw%c3%b6rd%2b1%0a2".to_owned(),
        "pa%22ss/w%C3%B6rd%2B1%0A2".to_owned(),
        "70612273732f77c3b672642b310a32".to_owned(),
        "70612273732F77C3B672642B310A32".to_owned(),
        base64_of(SECRET.as_bytes(), ['+', '/']),
    ];
    for form in forms {
        assert_eq!(redactor().redact_str(&format!("<{form}>")), "<[redacted:PW]>", "{form}");
    }
}

#[test]
fn padding_goes_with_the_value() {
    let redactor = Redactor::new([("PW", "secret!")]);
    assert_eq!(redactor.redact_str("c2VjcmV0IQ=="), "[redacted:PW]");
    assert_eq!(redactor.redact_str("c2VjcmV0IQ"), "[redacted:PW]");
}

#[test]
fn line_breaks_inside_an_encoded_value_do_not_help() {
    let value = "0123456789".repeat(20);
    let redactor = Redactor::new([("LONG", &value)]);
    let encoded = base64_of(value.as_bytes(), ['+', '/']);
    for line_break in ["\n", "\r\n", "\\n", "\\r\\n"] {
        let lines: Vec<_> = encoded.as_bytes().chunks(76).map(|line| str::from_utf8(line).unwrap()).collect();
        let wrapped = lines.join(line_break);
        let shown = redactor.redact_str(&wrapped).into_owned();
        assert!(shown.starts_with("[redacted:LONG]") && shown.len() < 20, "{shown}");
    }
}

#[test]
fn a_value_that_is_no_text_is_hidden_raw_and_as_shown() {
    let redactor = Redactor::new([("KEY", b"\xff\xfeabcdef")]);
    assert_eq!(redactor.redact(b"<\xff\xfeabcdef>").as_ref(), b"<[redacted:KEY]>");
    assert_eq!(redactor.redact_str("<\u{fffd}\u{fffd}abcdef>"), "<[redacted:KEY]>");
    // A secret may consist of continuation bytes of characters.
    let halves = Redactor::new([("KEY", b"\xb6\xc3\xb6\xc3\xb6\xc3")]);
    assert_eq!(halves.redact_str("ööööö"), "\u{fffd}[redacted:KEY]\u{fffd}");
}

#[test]
fn short_and_empty_values_are_left_alone_and_white_space_around_a_value_does_not_count() {
    let redactor = Redactor::new([("A", "12345"), ("B", ""), ("C", " \n"), ("D", " 123456\n")]);
    assert_eq!(redactor.redact_str("12345 and 123456"), "12345 and [redacted:D]");
}

#[test]
fn the_password_in_a_url_is_hidden_on_its_own() {
    let redactor = Redactor::new([("DATABASE_URL", "postgres://me:hunter22@db.example/app")]);
    assert_eq!(
        redactor.redact_str("login hunter22 failed at db.example"),
        "login [redacted:DATABASE_URL] failed at db.example"
    );
    assert_eq!(redactor.redact_str("postgres://me:hunter22@db.example/app"), "[redacted:DATABASE_URL]");
}

#[test]
fn what_a_url_logs_in_with_is_hidden_though_nobody_knows_it() {
    let hidden = |text: &str| Redactor::default().redact_str(text).into_owned();
    assert_eq!(hidden("GET https://bob:pw@h/x?y=1"), "GET https://[redacted:url-login]@h/x?y=1");
    assert_eq!(
        hidden(r#"{"u":"postgres://a:b@c@db:5432/app"}"#),
        r#"{"u":"postgres://[redacted:url-login]@db:5432/app"}"#
    );
    assert_eq!(hidden(r"https:\/\/bob:pw@h"), r"https:\/\/[redacted:url-login]@h");
    for clean in
        ["ssh://git@host/x", "http://host:80/a@b", "see http://a:1 and x@y", "http://host:80?q=a@b", "://:", "://"]
    {
        assert_eq!(hidden(clean), clean);
    }
}

#[test]
fn values_that_overlap_or_contain_one_another_leave_nothing() {
    let redactor = Redactor::new([("A", "abcdef"), ("B", "defghi"), ("C", "abcdefg")]);
    assert_eq!(redactor.redact_str("abcdefghi"), "[redacted:C]");
    assert_eq!(redactor.redact_str("abcdef!defghi"), "[redacted:A]![redacted:B]");
    assert_eq!(redactor.redact_str("abcdefabcdef"), "[redacted:A][redacted:A]");
    let rows = Redactor::new([("A", "aaaaaa")]);
    assert_eq!(rows.redact_str("aaaaaaaaaaaaaaaab"), "[redacted:A]b");
}

#[test]
fn clean_text_is_borrowed() {
    assert!(matches!(redactor().redact_str("nothing to hide, task-force, skew"), Cow::Borrowed(_)));
    assert!(matches!(Redactor::default().redact(b""), Cow::Borrowed(_)));
}

#[test]
fn the_values_do_not_show_in_debug_output() {
    let shown = format!("{:?}", redactor());
    assert!(shown.contains("PW") && !shown.contains("ss"), "{shown}");
}

#[test]
fn well_known_tokens_are_hidden() {
    let letters = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6k";
    let cases = [
        (format!("key sk-proj-{letters}!"), "key [redacted:api-key]!"),
        (format!("sk-ant-api03-{letters}-{letters}-{letters}"), "[redacted:api-key]"),
        (format!("\"ghp_{letters}\""), "\"[redacted:github-token]\""),
        (format!("{{\"a\":\"x\\nghs_{letters}\"}}"), "{\"a\":\"x\\n[redacted:github-token]\"}"),
        (format!("token%3Dgho_{letters}"), "token%3D[redacted:github-token]"),
        (format!("github_pat_{letters}_{letters}"), "[redacted:github-token]"),
        ("id=AKIAIOSFODNN7EXAMPLE;".to_owned(), "id=[redacted:aws-key];"),
        ("xoxb-123456789012-abc".to_owned(), "[redacted:slack-token]"),
        (format!("Authorization: Bearer {letters}=="), "Authorization: Bearer [redacted:bearer-token]"),
        (format!("authorization: bearer {letters}, next"), "authorization: bearer [redacted:bearer-token], next"),
        ("Authorization: Basic dXNlcjpwYXNzd29yZA==".to_owned(), "Authorization: Basic [redacted:basic-auth]"),
        (format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{letters} ok"), "[redacted:web-token] ok"),
        (
            "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIB/+==\n-----END RSA PRIVATE KEY-----\nb".to_owned(),
            "a\n[redacted:private-key]\nb",
        ),
        (
            r#"{"k":"-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n"}"#.to_owned(),
            r#"{"k":"[redacted:private-key]\n"}"#,
        ),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk".to_owned(), "[redacted:private-key]"),
    ];
    for (text, expected) in cases {
        assert_eq!(Redactor::default().redact_str(&text), expected);
    }
}

#[test]
fn what_only_resembles_a_token_stays() {
    for text in [
        "task-force-of-the-united-nations",
        "sk-learn-is-a-library-for-python-people",
        "sk-short1",
        "ghp_short",
        "AKIAIOSFODNN7EXAMPLETOOLONG",
        "XAKIAIOSFODNN7EXAMPLE",
        "Bearer authentication-is-required",
        "the bearer of this letter",
        "eyJhbGciOiJIUzI1NiJ9 and no more",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----",
    ] {
        assert_eq!(Redactor::default().redact_str(text), text);
    }
}

#[test]
fn a_known_value_gives_its_name_to_the_token_it_is_part_of() {
    let redactor = Redactor::new([("GH", "ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6k")]);
    assert_eq!(redactor.redact_str("Bearer ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6k"), "Bearer [redacted:GH]");
}

#[test]
fn a_stream_holds_back_little() {
    let redactor = redactor();
    let mut stream = redactor.stream();
    let mut out = Vec::new();
    let text = b"sk-aB3 eyJhbGciOiJIUzI1NiJ9eyJ-----BEGIN Bearer ".repeat(2_000);
    for chunk in text.chunks(100) {
        stream.push(chunk, &mut out);
        assert!(stream.held.len() <= 2_048 + 200, "{}", stream.held.len());
    }
    stream.finish(&mut out);
    assert_eq!(out, redactor.redact(&text).as_ref());
}

#[test]
fn hostile_text_takes_linear_time() {
    // This would take far too long if each position scanned the whole rest.
    let redactor = redactor();
    for unit in
        ["sk-", "sk-A1", "eyJ", "eyJ-", "-----BEGIN ", "Bearer A1", "-----BEGIN PRIVATE KEY-----", "ghp_", "\\n"]
    {
        let text = unit.repeat(400_000 / unit.len());
        let _ = redactor.redact_str(&text);
    }
}

/// Pieces of tokens, of secrets and of ordinary text, to be joined at random.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let fixed = [
        "sk-",
        "ghp_",
        "github_pat_",
        "AKIA",
        "IOSFODNN7EXAMPLE",
        "xoxb-",
        "Bearer ",
        "bearer ",
        "-----BEGIN ",
        "RSA ",
        "PRIVATE KEY-----",
        "-----END ",
        "-----",
        "eyJ",
        "eyJhbGciOiJIUzI1NiJ9",
        ".",
        " ",
        "\n",
        "\\n",
        "%20",
        "\\u0022",
        "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6k",
        "Authorization: Basic ",
        "\"",
        "ababab",
        "abab",
        "ba",
        "=",
        "\u{202e}",
    ];
    prop_oneof![
        4 => select(fixed.to_vec()).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..6),
        1 => "[ab]{0,12}".prop_map(String::into_bytes),
        1 => "[A-Za-z0-9]{0,90}".prop_map(String::into_bytes),
    ]
}

fn encoded(form: usize, secret: &[u8], before: &[u8], after: &[u8]) -> Vec<u8> {
    let around = [before, secret, after].concat();
    let text = String::from_utf8_lossy(secret).into_owned();
    match form {
        0 => secret.to_vec(),
        1 => serde_json::to_string(&text).unwrap().into_bytes(),
        2 => serde_json::to_string(&serde_json::to_string(&text).unwrap()).unwrap().into_bytes(),
        3 => base64_of(&around, ['+', '/']).into_bytes(),
        4 => base64_of(&around, ['-', '_']).into_bytes(),
        5 => secret.iter().flat_map(|byte| format!("%{byte:02X}").into_bytes()).collect(),
        _ => secret.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect(),
    }
}

/// The part of an encoded secret that depends only on the secret.
fn inner(encoded: &[u8], before: usize, secret: usize) -> Vec<u8> {
    encoded[(before * 8).div_ceil(6)..(before + secret) * 8 / 6].to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn pieces_give_the_same_result_as_the_whole(
        secrets in prop::collection::vec("[ab]{4,9}|[A-Za-z0-9]{6,12}|ghp_[a-z]{6}", 0..4),
        pieces in prop::collection::vec(piece(), 0..24),
        cuts in prop::collection::vec(any::<Index>(), 0..12),
    ) {
        let redactor = Redactor::new(secrets.iter().map(|secret| ("S", secret)));
        let text = pieces.concat();
        let whole = redactor.redact(&text).into_owned();
        prop_assert_eq!(&in_pieces(&redactor, &text, &cuts), &whole);
        let bytes: Vec<_> = (0..text.len()).collect();
        let each = bytes.iter().fold((redactor.stream(), Vec::new()), |(mut stream, mut out), &at| {
            stream.push(&text[at..=at], &mut out);
            (stream, out)
        });
        let (stream, mut out) = each;
        stream.finish(&mut out);
        prop_assert_eq!(&out, &whole);
        for secret in secrets.iter().filter(|secret| secret.len() >= Redactor::SHORTEST) {
            prop_assert!(!contains(&whole, secret.as_bytes()));
        }
    }

    #[test]
    fn no_form_of_a_secret_gets_through(
        secret in prop_oneof![
            "[!-~]{6,40}".prop_map(String::into_bytes),
            "[!-~][\\PC\n\"\\\\/]{6,20}[!-~]".prop_map(String::into_bytes),
            (prop::collection::vec(128_u8.., 6..30)),
        ],
        form in 0_usize..7,
        before in prop::collection::vec(any::<u8>(), 0..5),
        after in prop::collection::vec(any::<u8>(), 0..5),
        text in prop::collection::vec(piece(), 0..4),
        cuts in prop::collection::vec(any::<Index>(), 0..6),
    ) {
        prop_assume!(!contains(b"[redacted:S]", &secret));
        let redactor = Redactor::new([("S", &secret)]);
        let hidden = encoded(form, &secret, &before, &after);
        let input = [&text.concat(), b"<".as_slice(), &hidden, b">", &text.concat()].concat();
        let output = in_pieces(&redactor, &input, &cuts);
        prop_assert_eq!(&redactor.redact(&input).into_owned(), &output);
        let must_go = match form {
            1 => hidden[1..hidden.len() - 1].to_vec(),
            2 => hidden[3..hidden.len() - 3].to_vec(),
            3 | 4 => inner(&hidden, before.len(), secret.len()),
            _ => hidden,
        };
        prop_assert!(!contains(&output, &must_go), "{:?}", String::from_utf8_lossy(&output));
    }

    #[test]
    fn text_stays_text(text in any::<String>(), secret in "[a-z]{6}") {
        let redactor = Redactor::new([("S", secret)]);
        prop_assert_eq!(redactor.redact_str(&text).into_owned().into_bytes(), redactor.redact(text.as_bytes()).into_owned());
    }
}
