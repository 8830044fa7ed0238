//! The folder everything happens in, and the programs in it.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const NO_OP: &str = r#"
#include <unistd.h>
int main(void) { char b[65536]; while (read(0, b, sizeof b) > 0); return write(1, "{\"continue\":true}", 17) != 17; }
"#;
const HELLO: &str = r#"
#include <unistd.h>
int main(void) { return write(1, "hello\n", 6) != 6; }
"#;

/// The folder everything happens in.
pub(crate) struct Lab {
    pub(crate) root: PathBuf,
    pub(crate) no_op: PathBuf,
    pub(crate) hello: PathBuf,
    pub(crate) ollm: PathBuf,
}

impl Lab {
    pub(crate) fn new() -> Lab {
        let root = std::env::temp_dir().join(format!("ollm-bench-{}", std::process::id()));
        fs::create_dir_all(root.join("project/.ollm/hooks")).unwrap();
        let no_op = compile(&root, "no-op", NO_OP);
        let hello = compile(&root, "hello", HELLO);
        let ollm = install(&build(), &root.join("ollm"));
        // Digests are remembered only of files that have been quiet for a while.
        std::thread::sleep(Duration::from_millis(2_500));
        Lab { root, no_op, hello, ollm }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

pub(crate) fn compile(root: &Path, name: &str, source: &str) -> PathBuf {
    let (file, linked) = (root.join(format!("{name}.c")), root.join(format!("{name}.linked")));
    fs::write(&file, source).unwrap();
    let status = Command::new("cc").args(["-O2", "-static", "-o"]).arg(&linked).arg(&file).status().unwrap();
    assert!(status.success(), "the C compiler cannot link statically");
    install(&linked, &root.join(name))
}

/// Builds the program as people install it. With the benchmark it would be built with what the tests ask of its
/// dependencies, and these functions have other names than those that the linker puts side by side.
fn build() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--locked", "--quiet", "--package", "ollm", "--bin", "ollm"]);
    let status = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap();
    assert!(status.success(), "the program cannot be built as people install it");
    // It takes the place of the one that came with the benchmark.
    PathBuf::from(env!("CARGO_BIN_EXE_ollm"))
}

/// Programs are measured as people have them, copied to their place. What a linker has just written lies in small pieces in
/// the kernel's memory, and a large program then starts up to a third more slowly.
fn install(built: &Path, place: &Path) -> PathBuf {
    fs::copy(built, place).unwrap();
    place.to_owned()
}

pub(crate) fn cli(program: &Path, args: &[&'static str], home: &Path, input: &str) -> Box<dyn FnMut()> {
    fs::create_dir_all(home).unwrap();
    let (program, args, home, input) = (program.to_owned(), args.to_vec(), home.to_owned(), input.to_owned());
    Box::new(move || finish(start(&program, &args, Some(&home)), &input))
}

pub(crate) fn cli_in(
    program: &Path,
    args: &[&'static str],
    (home, folder): &(PathBuf, PathBuf),
    input: &str,
) -> Box<dyn FnMut()> {
    let (program, args, input) = (program.to_owned(), args.to_vec(), input.to_owned());
    let (home, folder) = (home.clone(), folder.clone());
    Box::new(move || {
        let mut command = Command::new(&program);
        command.args(&args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.current_dir(&folder).env_clear().env("HOME", &home).env("PATH", "/usr/bin:/bin");
        finish(command.spawn().unwrap(), &input);
    })
}

pub(crate) fn start(program: &Path, args: &[&str], home: Option<&Path>) -> std::process::Child {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(home) = home {
        command.current_dir(home).env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin");
    }
    command.spawn().unwrap()
}

pub(crate) fn finish(mut child: std::process::Child, input: &str) {
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let mut text = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut text).unwrap();
    child.stderr.take().unwrap().read_to_end(&mut text).unwrap();
    assert!(child.wait().unwrap().success(), "{}", String::from_utf8_lossy(&text));
}
