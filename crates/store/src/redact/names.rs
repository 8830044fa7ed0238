//! Names of environment variables that hold secrets.

/// Whether the value of an environment variable is probably a secret, judged by its name.
///
/// Yes: `GITHUB_TOKEN`, `PGPASSWORD`, `API_KEY`, `npm_config__authToken`, `SENTRY_DSN`, `DATABASE_URL`. No: names whose
/// last word says that the value only describes a secret, or says where to find one. Examples are `SSH_AUTH_SOCK`,
/// `SECRETS_DIR`, `TOKEN_FILE` and `AWS_ACCESS_KEY_ID`. Also no: numbers of tokens (`MAX_TOKENS`), public keys, and
/// `PWD`.
pub fn looks_secret(env_var_name: &str) -> bool {
    // Every event checks a whole environment, and few names in it are secret.
    may_be_secret(env_var_name.as_bytes()) && is_secret_name(env_var_name)
}

/// Whether a name contains the beginning of any telling word.
fn may_be_secret(name: &[u8]) -> bool {
    name.windows(3).any(|three| match three {
        [first, second, third] => {
            let seconds = BEGINNING_PAIRS.get(usize::from(first & LETTER)).copied().unwrap_or(0);
            // Clearing this bit turns small letters into capitals, and turns nothing else into a letter.
            let capitals = || [first & 0xdf, second & 0xdf, third & 0xdf];
            seconds >> (second & LETTER) & 1 == 1 && BEGINNINGS.iter().any(|beginning| **beginning == capitals())
        }
        _ => false,
    })
}

/// The beginnings of telling words.
const BEGINNINGS: [&[u8; 3]; 15] = [
    b"TOK", b"SEC", b"PAS", b"CRE", b"AUT", b"PRI", b"COO", b"DSN", b"JWT", b"BEA", b"KEY", b"PWD", b"URL", b"URI",
    b"STR",
];

/// The bits of a byte that identify a letter, in either case.
const LETTER: u8 = 31;

/// For each first letter of a beginning, its possible second letters as bits.
#[expect(clippy::indexing_slicing, reason = "the compiler runs it")]
const BEGINNING_PAIRS: [u32; 32] = {
    let mut pairs = [0; 32];
    let mut at = 0;
    while at < BEGINNINGS.len() {
        let [first, second, _] = *BEGINNINGS[at];
        pairs[(first & LETTER) as usize] |= 1 << (second & LETTER);
        at += 1;
    }
    pairs
};

fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    let Some(last) = words.last() else {
        return false;
    };
    if DESCRIBES.contains(&last.as_str()) {
        return false;
    }
    if last == "TOKENS" {
        return !words.iter().any(|word| COUNTS.contains(&word.as_str()));
    }
    let joined = words.join("_");
    if WHOLE.iter().any(|whole| joined.ends_with(whole)) {
        return true;
    }
    let public = words.iter().any(|word| word == "PUBLIC");
    if matches!(last.as_str(), "KEY" | "KEYS") && !public {
        return true;
    }
    words.iter().any(|word| is_secret(word)) || (last == "PWD" && words.len() > 1)
}

/// Last words of names whose value is not itself the secret.
const DESCRIBES: [&str; 40] = [
    "SOCK",
    "SOCKET",
    "PATH",
    "PATHS",
    "FILE",
    "FILES",
    "DIR",
    "DIRS",
    "FOLDER",
    "HOME",
    "HOST",
    "PORT",
    "SERVER",
    "ENDPOINT",
    "REGION",
    "ID",
    "NAME",
    "USER",
    "USERNAME",
    "EMAIL",
    "TYPE",
    "METHOD",
    "MODE",
    "PROVIDER",
    "PROGRAM",
    "COMMAND",
    "HELPER",
    "ENABLED",
    "DISABLED",
    "VERSION",
    "ALGORITHM",
    "TTL",
    "TIMEOUT",
    "EXPIRY",
    "EXPIRES",
    "LENGTH",
    "SIZE",
    "COUNT",
    "LIMIT",
    "PROMPT",
];

/// Words that mean a number of tokens.
const COUNTS: [&str; 8] = ["MAX", "MIN", "NUM", "TOTAL", "INPUT", "OUTPUT", "CONTEXT", "THINKING"];

/// Names, or ends of names, that are secret as a whole.
const WHOLE: [&str; 6] = ["DATABASE_URL", "REDIS_URL", "MONGODB_URI", "WEBHOOK_URL", "CONNECTION_STRING", "SAS_URL"];

/// Words that make a name secret at any position.
const SECRET: [&str; 15] = [
    "TOKEN",
    "SECRET",
    "SECRETS",
    "PASS",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "AUTH",
    "AUTHORIZATION",
    "PRIVATE",
    "COOKIE",
    "COOKIES",
    "DSN",
    "JWT",
    "BEARER",
];

/// Endings of words that are written without a separator.
const ENDINGS: [&str; 11] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWORDS",
    "PASSWD",
    "PASSPHRASE",
    "APIKEY",
    "ACCESSKEY",
    "SECRETKEY",
    "PRIVATEKEY",
    "CREDENTIALS",
];

fn is_secret(word: &str) -> bool {
    SECRET.contains(&word) || ENDINGS.iter().any(|ending| word.ends_with(ending))
}

/// The words of a name in capitals, split at each character that is not a letter or digit, and at `aB`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_small = false;
    for char in name.chars() {
        if !char.is_ascii_alphanumeric() || (after_small && char.is_ascii_uppercase()) {
            words.push(String::new());
        }
        after_small = char.is_ascii_lowercase();
        if let (true, Some(word)) = (char.is_ascii_alphanumeric(), words.last_mut()) {
            word.push(char.to_ascii_uppercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1024))]

        #[test]
        fn the_quick_look_passes_over_no_secret(
            parts in prop::collection::vec(
                prop_oneof![
                    prop::sample::select([&SECRET[..], &ENDINGS, &WHOLE, &["KEY", "KEYS", "PWD", "TOKENS"]].concat())
                        .prop_map(str::to_owned),
                    "[a-zA-Z0-9]{0,6}",
                ],
                0..4,
            ),
            glue in "[_.-]?",
            small in any::<bool>(),
        ) {
            let name = parts.join(&glue);
            let name = if small { name.to_lowercase() } else { name };
            prop_assert_eq!(looks_secret(&name), is_secret_name(&name));
        }
    }

    #[test]
    fn names_of_secrets_are_recognised() {
        for name in [
            "TOKEN",
            "GITHUB_TOKEN",
            "GITHUBTOKEN",
            "API_TOKENS",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "PGPASSWORD",
            "DB_PASS",
            "MYSQL_PWD",
            "OPENAI_API_KEY",
            "OPENAI_APIKEY",
            "apiKey",
            "npm_config__authToken",
            "npm_config__auth",
            "SENTRY_DSN",
            "DATABASE_URL",
            "SLACK_WEBHOOK_URL",
            "SESSION_KEY",
            "SESSION_COOKIE",
            "TLS_PRIVATE_KEY",
            "GOOGLE_CREDENTIALS",
            "GPG_PASSPHRASE",
            "MY_PASSWD",
            "HTTP_AUTHORIZATION",
            "SECRETS",
            "SECRET_1",
        ] {
            assert!(looks_secret(name), "{name}");
        }
    }

    #[test]
    fn names_that_only_sound_alike_are_not() {
        for name in [
            "",
            "PATH",
            "PWD",
            "OLDPWD",
            "HOME",
            "SSH_AUTH_SOCK",
            "XAUTHORITY",
            "GIT_AUTHOR_NAME",
            "MAX_TOKENS",
            "MAX_MCP_OUTPUT_TOKENS",
            "TOKENIZERS_PARALLELISM",
            "KEYBOARD",
            "MONKEY",
            "TOKEN_FILE",
            "SECRETS_DIR",
            "AWS_ACCESS_KEY_ID",
            "PUBLIC_KEY",
            "XDG_SESSION_ID",
            "GIT_ASKPASS",
            "COMPASS",
            "AUTH_TYPE",
            "TERM_SESSION_ID",
            "LANG",
            "GOOGLE_APPLICATION_CREDENTIALS_PATH",
        ] {
            assert!(!looks_secret(name), "{name}");
        }
    }
}
