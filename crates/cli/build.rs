//! What agents wait for at every event, because they start us anew, is done once by the linker:
//!
//! - The unwinder is linked into the program, where there is a static one: finding, mapping and initialising
//!   `libgcc_s.so` takes a twentieth of an event.
//! - The program lies at a fixed place. One that may lie anywhere has nineteen thousand pointers to mend before `main`,
//!   on 130 pages that the kernel copies for it: a sixth of an event. The feature `pie` asks for that all the same.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    let native = env::var("HOST").is_ok() && env::var("HOST") == env::var("TARGET");
    if native && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        // Without it the program is the same, only slower to start.
        let _ = stand_in();
        if env::var_os("CARGO_FEATURE_PIE").is_none() {
            println!("cargo:rustc-link-arg-bins=-no-pie");
        }
    }
}

/// The linker looks for `libgcc_s` here first, and finds a script that names the static library.
fn stand_in() -> Option<()> {
    let library = static_unwinder()?;
    let folder = PathBuf::from(env::var_os("OUT_DIR")?).join("unwinder");
    fs::create_dir_all(&folder).ok()?;
    let quoted = library.to_str().filter(|path| !path.contains(['"', '\n']))?;
    fs::write(folder.join("libgcc_s.so"), format!("INPUT(\"{quoted}\")\n")).ok()?;
    println!("cargo:rustc-link-search=native={}", folder.display());
    Some(())
}

fn static_unwinder() -> Option<PathBuf> {
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let answer = Command::new(compiler).arg("-print-file-name=libgcc_eh.a").output().ok()?;
    let path = String::from_utf8(answer.stdout).ok()?;
    let path = Path::new(path.trim());
    // A compiler that does not have it repeats the name.
    (path.is_absolute() && path.is_file()).then(|| path.to_owned())
}
