//! Repositories: a tag, a commit, a branch; and nothing of them runs (abuse case D16).

use super::server::{Answer, WebServer};
use super::*;

/// Runs git in a folder of the lab, as its owner does.
fn git(lab: &Lab, folder: &str, arguments: &[&str]) -> String {
    let mut command = lab.program("git");
    command.current_dir(lab.root.join(folder)).args(["-c", "user.name=Ann", "-c", "user.email=a@e.org"]);
    command.args(["-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"]).args(arguments);
    let ran = finish(command, b"");
    assert_eq!(ran.code, 0, "{arguments:?}: {ran:?}");
    ran.stdout.trim().to_owned()
}

/// A repository of `guard` with a tag `v1.0.0` and 1.1.0 on its branch.
fn repository(lab: &Lab) -> (String, String) {
    package(lab, "repo", "1.0.0", &json!({}));
    git(lab, "repo", &["init", "-q"]);
    git(lab, "repo", &["add", "."]);
    git(lab, "repo", &["commit", "-qm", "one"]);
    git(lab, "repo", &["tag", "v1.0.0"]);
    let first = git(lab, "repo", &["rev-parse", "HEAD"]);
    package(lab, "repo", "1.1.0", &json!({}));
    git(lab, "repo", &["commit", "-qam", "two"]);
    (format!("file://{}", lab.root.join("repo").display()), first)
}

#[test]
fn a_branch_a_tag_and_a_commit_are_installed() {
    let lab = Lab::new();
    let (url, first) = repository(&lab);
    let path = lab.root.join("repo").to_str().unwrap().to_owned();
    for (arguments, expected) in [
        (vec![url.as_str()], "1.1.0"),
        (vec![&url, "--ref", "v1.0.0"], "1.0.0"),
        (vec![&url, "--ref", &first], "1.0.0"),
        (vec![&path, "--ref", "main"], "1.1.0"),
    ] {
        let told = changed(&installed(&lab, &[&["--json"], arguments.as_slice()].concat()));
        assert_eq!(told["version"], expected, "{arguments:?}");
        assert!(!lab.home.join(".ollm/extensions/guard/.git").exists());
        assert_eq!(lab.run(&["ext", "uninstall", "guard", "--yes"]).code, 0);
    }
    refused(&lab, &["ext", "install", &url, "--ref", "no-such-tag", "--yes"], 5, "no-such-tag");
    refused(&lab, &["ext", "install", &url, "--ref", &first[..8], "--yes"], 5, "named by all of its digits");
    refused(&lab, &["ext", "install", "file:///no/such/repo", "--yes"], 5, "was not fetched");
}

#[test]
fn an_update_follows_the_branch_and_a_pin_holds_the_commit() {
    let lab = Lab::new();
    let (url, _) = repository(&lab);
    installed(&lab, &[&url]);
    let commit = git(&lab, "repo", &["rev-parse", "HEAD"]);
    assert_eq!(lab.run(&["ext", "pin", "guard"]).stdout, format!("guard is pinned to {commit}\n"));
    package(&lab, "repo", "1.2.0", &json!({}));
    git(&lab, "repo", &["commit", "-qam", "three"]);
    assert_eq!(lab.run(&["ext", "update", "--yes"]).stdout, format!("guard is pinned to {commit}\n"));
    assert_eq!(lab.run(&["ext", "pin", "guard", "--remove"]).code, 0);
    assert_eq!(lab.run(&["ext", "update", "--yes"]).code, 0);
    assert_eq!(version(&lab), "1.2.0");
}

#[test]
fn a_pin_to_a_commit_leads_there_and_leaves_no_trace_when_it_is_taken_away() {
    let lab = Lab::new();
    let (url, first) = repository(&lab);
    installed(&lab, &[&url]);
    assert_eq!(lab.run(&["ext", "pin", "guard", &first.to_uppercase()]).code, 0);
    assert_eq!(lab.run(&["ext", "update", "guard", "--yes"]).code, 0);
    assert_eq!(version(&lab), "1.0.0");
    assert_eq!(lab.run(&["ext", "update", "guard"]).stdout, format!("guard is pinned to {first}\n"));
    assert_eq!(lab.run(&["ext", "pin", "guard", "--remove"]).code, 0);
    assert_eq!(lab.run(&["ext", "update", "guard", "--yes"]).code, 0);
    assert_eq!(version(&lab), "1.1.0");
}

#[test]
fn what_git_says_is_told_with_its_command_and_odd_folders_are_found() {
    let lab = Lab::new();
    refused(&lab, &["ext", "install", "file:///no/such/repo", "--yes"], 5, "git fetch: ");
    package(&lab, "a%41b?c#d", "1.0.0", &json!({}));
    git(&lab, "a%41b?c#d", &["init", "-q"]);
    git(&lab, "a%41b?c#d", &["add", "."]);
    git(&lab, "a%41b?c#d", &["commit", "-qm", "one"]);
    installed(&lab, &[lab.root.join("a%41b?c#d").to_str().unwrap(), "--ref", "main"]);
    refused(&lab, &["ext", "install", "git-guard", "--ref", "v7", "--yes"], 64, "is no repository");
}

#[test]
fn d12_a_branch_that_goes_back_is_followed_only_by_who_names_it() {
    let lab = Lab::new();
    let (url, _) = repository(&lab);
    installed(&lab, &[&url, "--ref", "main"]);
    package(&lab, "repo", "1.0.1", &json!({}));
    git(&lab, "repo", &["commit", "-qam", "back"]);
    refused(&lab, &["ext", "update", "guard", "--yes"], 64, "1.0.1 is lower");
    refused(&lab, &["ext", "install", &url, "--yes"], 64, "1.0.1 is lower");
    installed(&lab, &[&url, "--ref", "main"]);
    assert_eq!(version(&lab), "1.0.1");
}

#[test]
fn d16_nothing_of_a_repository_runs() {
    let lab = Lab::new();
    let (url, _) = repository(&lab);
    let mark = lab.root.join("ran");
    let touch = format!("touch {}", mark.display());
    lab.write("sub/x", "x");
    git(&lab, "sub", &["init", "-q"]);
    git(&lab, "sub", &["add", "."]);
    git(&lab, "sub", &["commit", "-qm", "x"]);
    git(&lab, "repo", &["submodule", "--quiet", "add", "../sub", "vendor"]);
    lab.write("repo/.gitattributes", "* filter=evil\n*.sh text eol=crlf export-subst\nhooks/run.sh export-ignore\n");
    git(&lab, "repo", &["add", "."]);
    git(&lab, "repo", &["commit", "-qm", "four"]);
    // The repository's own configuration and hooks, and filters that the user's configuration knows.
    for key in [
        "filter.evil.smudge",
        "filter.evil.clean",
        "core.fsmonitor",
        "core.pager",
        "uploadpack.packObjectsHook",
        "core.alternateRefsCommand",
    ] {
        git(&lab, "repo", &["config", key, &touch]);
    }
    for hook in ["post-checkout", "post-merge", "reference-transaction", "post-index-change", "pre-auto-gc"] {
        lab.write_executable(&format!("repo/.git/hooks/{hook}"), &format!("#!/bin/sh\n{touch}\n"));
        lab.write_executable(&format!("hooks/{hook}"), &format!("#!/bin/sh\n{touch}\n"));
    }
    let own = format!(
        "[core]\n hooksPath = {0}/hooks\n fsmonitor = {touch}\n[filter \"evil\"]\n smudge = {touch}\n required = true\n[init]\n templateDir = {0}/hooks\n",
        lab.root.display()
    );
    lab.write("home/.gitconfig", own);
    let ran = installed(&lab, &[&url, "--json"]);
    assert!(!mark.exists(), "something of the repository ran");
    assert_eq!(changed(&ran)["notLoaded"], json!(["vendor (a submodule)"]));
    // Files have their committed content, under all attributes.
    let committed = fs::read(lab.root.join("repo/hooks/run.sh")).unwrap();
    assert_eq!(fs::read(lab.home.join(".ollm/extensions/guard/hooks/run.sh")).unwrap(), committed);
}

#[test]
fn a_person_who_waits_for_git_sees_for_which_repository() {
    let lab = Lab::new();
    let slow = lab.write_executable("bin/slow", "#!/bin/sh\nsleep 1.5\nexit 1\n");
    let lab = lab.set("GIT_SSH_COMMAND", slow.to_str().unwrap());
    let mut person = lab.pty(crate::lab::pty::LARGE, &["ext", "install", "ssh://example.org/guard.git"]);
    person.sees("fetching ssh://example.org/guard.git");
    let ran = person.ends();
    assert!(ran.code == 5 && ran.stdout.contains("was not fetched"), "{ran:?}");
}

#[test]
fn a_repository_with_links_out_is_refused() {
    let lab = Lab::new();
    let (url, _) = repository(&lab);
    std::os::unix::fs::symlink("/etc/passwd", lab.root.join("repo/link")).unwrap();
    git(&lab, "repo", &["add", "."]);
    git(&lab, "repo", &["commit", "-qm", "link"]);
    refused(&lab, &["ext", "install", &url, "--yes"], 3, "is a link to `/etc/passwd`");
}

#[test]
fn variables_of_git_lead_nowhere_else() {
    let lab = Lab::new();
    let (url, _) = repository(&lab);
    let lab = lab.set("GIT_DIR", "/nonexistent").set("GIT_WORK_TREE", "/nonexistent").set("GIT_CONFIG_COUNT", "x");
    installed(&lab, &[&url]);
    assert_eq!(version(&lab), "1.1.0");
}

#[test]
fn no_server_leads_git_to_an_address_without_encryption() {
    let (lab, named, other) = (Lab::new(), WebServer::new(), WebServer::new());
    let refs = "guard.git/info/refs?service=git-upload-pack";
    named.put(refs, Answer::Redirect(other.url(refs)));
    refused(&lab, &["ext", "install", &named.url("guard.git"), "--yes"], 5, "was not fetched");
    assert_eq!((named.asked().len(), other.asked()), (1, Vec::new()));
}
