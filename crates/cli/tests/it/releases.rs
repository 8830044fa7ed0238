//! Release archives: packed, checked, installed.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::documents::root;
use crate::installing::server::{Answer, WebServer};
use crate::lab::OLLM;

/// Runs `install.sh` for a home of its own; what it said, and whether it went well.
fn install(source: &str, home: &Path) -> (bool, String) {
    let ran = Command::new("sh").arg(root().join("install.sh")).arg(source).env("HOME", home).output().unwrap();
    (ran.status.success(), String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned())
}

#[test]
fn a_release_archive_is_installed_only_if_it_is_what_its_checksum_says() {
    let folder = tempfile::tempdir().unwrap();
    // The program itself takes long to pack; a script that starts it serves as well.
    let program = folder.path().join("ollm");
    std::fs::write(&program, format!("#!/bin/sh\nexec {OLLM} \"$@\"\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let packed = Command::new(root().join("scripts/dist.sh"))
        .args(["--pack", program.to_str().unwrap(), &format!("{}-unknown-linux-musl", std::env::consts::ARCH)])
        .env("CARGO_TARGET_DIR", folder.path())
        .output()
        .unwrap();
    assert!(packed.status.success(), "{packed:?}");
    let archive = String::from_utf8(packed.stdout).unwrap().trim().to_owned();
    let dist = folder.path().join("archives");
    let server = WebServer::new();
    for file in std::fs::read_dir(&dist).unwrap().flatten() {
        let name = file.file_name().into_string().unwrap();
        server.put(&format!("releases/{name}"), Answer::File(std::fs::read(file.path()).unwrap()));
    }
    let (of_archive, of_folder) =
        (server.url(&format!("releases/{}", archive.rsplit('/').next().unwrap())), server.url("releases/"));
    for source in [archive.as_str(), dist.to_str().unwrap(), &of_archive, &of_folder] {
        let home = tempfile::tempdir().unwrap();
        let (went_well, said) = install(source, home.path());
        assert!(went_well && said.contains("is in "), "{said}");
        let version = Command::new(home.path().join(".local/bin/ollm")).arg("--version").output().unwrap();
        assert_eq!(String::from_utf8_lossy(&version.stdout), concat!("ollm ", env!("CARGO_PKG_VERSION"), "\n"));
        assert!(home.path().join(".local/share/man/man1/ollm.1").exists());
    }
    let home = tempfile::tempdir().unwrap();
    std::fs::OpenOptions::new().append(true).open(&archive).unwrap().write_all(b"x").unwrap();
    let refused = [
        (archive.as_str(), "is not what SHA256SUMS says"),
        ("http://example.invalid/ollm.tar.gz", "only https is fetched"),
        ("http://127.0.0.1:1@example.invalid/ollm.tar.gz", "only https is fetched"),
        (&server.url("elsewhere/"), "cannot be fetched"),
        ("nothing.tar.gz", "cannot be read"),
    ];
    for (source, why) in refused {
        let (went_well, said) = install(source, home.path());
        assert!(!went_well && said.contains(why), "{source}: {said}");
    }
    std::fs::write(dist.join("SHA256SUMS"), "").unwrap();
    assert!(!install(&archive, home.path()).0);
    assert!(!home.path().join(".local").exists(), "nothing was installed");
}
