//! The key by which a person signs approvals. A passphrase locks it, and its file is useless without the passphrase.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use minisign::{ErrorKind as MinisignKind, KeyPair, PublicKey, SecretKey, SecretKeyBox};
use ollm_protocol::Code;
use ollm_store::{read_bounded, write_atomic};
use ollm_trust::{Sign, SignError, Signer};

use crate::app_context::AppContext;
use crate::error::AppError;
use crate::port::Person;

/// How often a person may mistype the passphrase.
const TRIES: usize = 3;
/// Larger files cannot be a key.
const LARGEST_FILE: u64 = 4 << 10;
/// The shortest passphrase; a program that copies the file could guess a shorter one.
const SHORTEST: usize = 8;

/// A key that stays unlocked while this value lives.
pub struct UnlockedKey(SecretKey);

impl UnlockedKey {
    /// Makes a key and saves both halves: the secret one locked with the passphrase, the public one beside it.
    pub fn create(passphrase: &str, context: &AppContext) -> Result<UnlockedKey, AppError> {
        let short = || {
            AppError::new(
                Code::InvalidValue,
                format!("a passphrase of an approval key has at least {SHORTEST} characters"),
            )
        };
        if passphrase.chars().count() < SHORTEST {
            return Err(short());
        }
        let broken =
            |error: &dyn std::fmt::Display| AppError::new(Code::NotWritten, format!("the key was not made: {error}"));
        let pair = KeyPair::generate_encrypted_keypair(Some(passphrase.to_owned())).map_err(|error| broken(&error))?;
        let secret = pair.sk.to_box(Some("secret key for approvals of ollm")).map_err(|error| broken(&error))?;
        let public = pair.pk.to_box().map_err(|error| broken(&error))?;
        write_atomic(&context.secret_key(), &secret.to_bytes()).map_err(|error| broken(&error))?;
        write_atomic(&context.public_key(), &public.to_bytes()).map_err(|error| broken(&error))?;
        match opened(&secret.into_string(), passphrase) {
            Ok(Some(key)) => Ok(key),
            Ok(None) => Err(broken(&"it does not open with the passphrase")),
            Err(error) => Err(broken(&error)),
        }
    }

    /// Asks the person to unlock the existing key.
    pub fn ask(context: &AppContext) -> Result<UnlockedKey, AppError> {
        let person = context.person.clone().ok_or_else(no_terminal)?;
        let locked = |error: SignError| AppError::new(Code::LockedKey, error.to_string());
        PersonsKey { file: context.secret_key(), person }.open().map_err(locked)
    }

    /// The public key in the form that `hooks.approvalKey` expects.
    pub fn public(&self) -> Result<String, AppError> {
        let public = PublicKey::from_secret_key(&self.0).map(|public| public.to_base64());
        public.map_err(|error| AppError::new(Code::Unreadable, error.to_string()))
    }
}

impl std::fmt::Debug for UnlockedKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("UnlockedKey")
    }
}

impl Signer for UnlockedKey {
    fn unlock(&self) -> Result<Sign, SignError> {
        Ok(sign_with(UnlockedKey(self.0.clone())))
    }
}

/// The key in the person's file. Each use asks for the passphrase.
#[derive(Debug)]
struct PersonsKey {
    file: PathBuf,
    person: Arc<dyn Person>,
}

impl PersonsKey {
    fn open(&self) -> Result<UnlockedKey, SignError> {
        let text = read(&self.file)?;
        for _ in 0..TRIES {
            let typed = self.person.ask_secret("Passphrase of your approval key: ");
            let Some(typed) = typed.filter(|typed| !typed.is_empty()) else {
                return Err(SignError::Locked("no passphrase was given".to_owned()));
            };
            match opened(&text, &typed)? {
                Some(key) => return Ok(key),
                None => self.person.say("That is not the passphrase.\n"),
            }
        }
        Err(SignError::Locked(format!("the passphrase was wrong {TRIES} times")))
    }
}

impl Signer for PersonsKey {
    fn unlock(&self) -> Result<Sign, SignError> {
        self.open().map(sign_with)
    }
}

/// The signer of approvals, if a person can be asked.
pub(crate) fn signer(context: &AppContext) -> Option<Box<dyn Signer>> {
    let person = context.person.clone()?;
    Some(Box::new(PersonsKey { file: context.secret_key(), person }))
}

fn sign_with(key: UnlockedKey) -> Sign {
    Box::new(move |statement| {
        let comment = Some("approvals of ollm");
        let signature = minisign::sign(None, &key.0, statement, comment, comment);
        let unusable = |error: minisign::PError| SignError::Unusable(format!("nothing was signed: {error}"));
        signature.map(minisign::SignatureBox::into_string).map_err(unusable)
    })
}

fn read(file: &Path) -> Result<String, SignError> {
    let unusable = |why: String| SignError::Unusable(format!("the approval key cannot be used: {why}"));
    let bytes = read_bounded(file, LARGEST_FILE).map_err(|error| unusable(error.to_string()))?;
    let bytes = bytes.ok_or_else(|| unusable(format!("{} is not there", file.display())))?;
    String::from_utf8(bytes).map_err(|_| unusable(format!("{} is no text", file.display())))
}

/// The key, if the passphrase is right.
fn opened(text: &str, passphrase: &str) -> Result<Option<UnlockedKey>, SignError> {
    match SecretKeyBox::from(text.to_owned()).into_secret_key(Some(passphrase.to_owned())) {
        Ok(key) => Ok(Some(UnlockedKey(key))),
        Err(error) if matches!(error.kind(), MinisignKind::Verify) => Ok(None),
        Err(error) => Err(SignError::Unusable(format!("the approval key cannot be used: {error}"))),
    }
}

fn no_terminal() -> AppError {
    AppError::new(Code::NobodyToAsk, "there is no terminal to ask for a passphrase on")
        .hint("run this command yourself, in a terminal")
}
