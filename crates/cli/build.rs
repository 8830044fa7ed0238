//! What agents wait for at every event, because they start us anew, is done once by the linker:
//!
//! - The unwinder is linked into the program, where there is a static one: finding, mapping and initialising
//!   `libgcc_s.so` takes a twentieth of an event.
//! - The program lies at a fixed place. One that may lie anywhere has nineteen thousand pointers to mend before `main`,
//!   on 130 pages that the kernel copies for it: a sixth of an event. The feature `pie` asks for that all the same.
//! - The functions and constants that an event touches lie side by side in a release. Scattered over the whole program
//!   they cost the kernel a hundred page faults more, a sixth of an event. `scripts/event-order.py` writes the list of
//!   them; what it does not name, or what is gone, stays where the linker puts it.
//! - With `OLLM_LINK_MAP`, the linker writes to this file what lies where, which that script reads.

use std::collections::BTreeSet;
use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What an event touches: a crate and the name of a section on each line.
const TOUCHED: &str = "event-order.txt";
/// The kinds of these sections, the section that takes each, and its place. Constants with addresses in them stay in their
/// section, because only this one is protected once the addresses are settled.
const KINDS: [(&str, &str, &str); 3] = [
    (".text.", ".text.event", "BEFORE .text"),
    (".rodata.", ".rodata.event", "AFTER .rodata"),
    (".data.rel.ro.", ".data.rel.ro", "BEFORE .dynamic"),
];
const MAP_VARIABLE: &str = "OLLM_LINK_MAP";

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
        if is("PROFILE", "release") && is("CARGO_CFG_TARGET_ARCH", "x86_64") && has_usual_linker() {
            let _ = order_sections();
        }
        println!("cargo:rerun-if-env-changed={MAP_VARIABLE}");
        if let Ok(map) = env::var(MAP_VARIABLE) {
            println!("cargo:rustc-link-arg-bins=-Wl,-Map={map}");
        }
    }
}

/// Other linkers than those of Rust and of GNU refuse such scripts.
fn has_usual_linker() -> bool {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    env::var_os("RUSTC_LINKER").is_none() && !flags.contains("link")
}

/// Writes the script by which the linker puts what an event touches before everything else.
fn order_sections() -> Option<()> {
    println!("cargo:rerun-if-changed={TOUCHED}");
    let list = fs::read_to_string(TOUCHED).ok()?;
    let folder = PathBuf::from(env::var_os("OUT_DIR")?);
    // That profile makes one file of all crates.
    let is_whole = folder.ancestors().nth(3)?.ends_with("dist");
    let mut script = String::new();
    for (kind, into, place) in KINDS {
        let sections = list.lines().filter_map(|line| line.split_once(' ')).filter(|(_, name)| name.starts_with(kind));
        let (mut exact, mut similar) = (String::new(), BTreeSet::new());
        for (part, name) in sections {
            let files = if is_whole { "*".to_owned() } else { format!("*{part}-*") };
            let _ = writeln!(exact, "{files}({name}*)");
            // Names end with a number that depends on compiler and dependencies. Where it is another one, every function
            // that is called the same in the same crate comes next.
            if let Some((name, _)) = name.rsplit_once("17h") {
                similar.insert(format!("{files}({name}17h*)\n"));
            }
        }
        let similar: String = similar.into_iter().collect();
        let _ = writeln!(script, "SECTIONS {{ {into} : {{\n{exact}{similar}}} }} INSERT {place};");
    }
    let file = folder.join("event-order.ld");
    fs::write(&file, script).ok()?;
    println!("cargo:rustc-link-arg-bins=-T{}", file.display());
    Some(())
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
