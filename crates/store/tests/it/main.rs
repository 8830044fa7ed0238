//! Tests of the files, and of the keyring where there is one to try.

#[cfg(target_os = "linux")]
mod keyring;
