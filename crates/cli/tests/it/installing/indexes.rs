//! Indexes on servers and in files.

use minisign::KeyPair;
use ollm_store::digest_bytes;

use super::server::{Answer, WebServer};
use super::*;

/// A server with an index that has the extension `guard`, and the archive that it lists.
struct Team {
    lab: Lab,
    server: WebServer,
}

impl Team {
    /// A team that publishes 1.0.0.
    fn new() -> Team {
        let team = Team { lab: Lab::new(), server: WebServer::new() };
        team.publish("1.0.0", &["team"]);
        team.configure("");
        team
    }

    fn configure(&self, hooks: &str) {
        let indexes = json!([self.server.url("index.json")]);
        self.lab.write("home/.ollm/config.yaml", format!("extensions: {{indexes: {indexes}}}\n{hooks}"));
    }

    /// Builds the index as a team does, and puts it on the server.
    fn publish(&self, version: &str, keywords: &[&str]) {
        package(&self.lab, "work/guard", version, &json!({"keywords": keywords, "author": "Ann"}));
        let ran = self.lab.run(&["ext", "index", "build", "../work/guard", "--out", "../out"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        self.upload();
    }

    fn upload(&self) {
        for (path, bytes) in files(&self.lab.root.join("out")) {
            self.server.put(path.to_str().unwrap(), Answer::File(bytes));
        }
    }

    /// Puts a changed index on the server.
    fn change(&self, change: impl Fn(&mut Value)) {
        let text = fs::read(self.lab.root.join("out/index.json")).unwrap();
        let mut index: Value = serde_json::from_slice(&text).unwrap();
        change(&mut index);
        self.server.put("index.json", Answer::File(index.to_string().into_bytes()));
    }
}

#[test]
fn a_team_publishes_and_others_search_install_and_update() {
    let Team { lab, server } = &Team::new();
    let found = lab.run(&["ext", "search", "ann", "--json"]).answer();
    assert_eq!((&found[0]["name"], &found[0]["version"]), (&json!("guard"), &json!("1.0.0")), "{found:#}");
    let told = changed(&installed(lab, &["guard", "--json"]));
    let archive = fs::read(lab.root.join("out/guard-1.0.0.tar.gz")).unwrap();
    assert_eq!(told["checksum"], digest_bytes(&archive).to_string());
    assert_eq!(told["index"], server.url("index.json"));
    approve(lab);
    package(lab, "work/guard", "1.1.0", &json!({}));
    assert_eq!(lab.run(&["ext", "index", "build", "../work/guard", "--out", "../out"]).code, 0);
    for (path, bytes) in files(&lab.root.join("out")) {
        server.put(path.to_str().unwrap(), Answer::File(bytes));
    }
    assert_eq!(lab.run(&["ext", "update", "--yes"]).code, 0);
    assert_eq!((version(lab).as_str(), said(lab)), ("1.1.0", None));
    // Both versions are listed, and a person can still name the older one.
    refused(lab, &["ext", "install", "guard@3.0.0", "--yes"], 64, "it has 1.1.0, 1.0.0");
    assert_eq!(lab.run(&["ext", "update", "guard", "--to", "1.0.0", "--yes"]).code, 0);
    assert_eq!((version(lab).as_str(), said(lab).as_deref()), ("1.0.0", Some("1.0.0")));
    assert_eq!(lab.run(&["ext", "update", "--yes"]).code, 0);
    installed(lab, &["guard@1.0.0"]);
    assert_eq!(version(lab), "1.0.0");
}

/// Publishes `guard` that needs `base`, and `base` in these versions.
fn publish_with_needs(team: &Team, range: &str, bases: &[&str]) {
    package(&team.lab, "work/guard", "1.5.0", &json!({"dependencies": {"base": range}}));
    assert_eq!(team.lab.run(&["ext", "index", "build", "../work/guard", "--out", "../out"]).code, 0);
    for version in bases {
        let manifest = json!({"name": "base", "version": version, "description": "What others need"});
        team.lab.write("work/base/manifest.json", manifest.to_string());
        assert_eq!(team.lab.run(&["ext", "index", "build", "../work/base", "--out", "../out"]).code, 0);
    }
    team.upload();
}

#[test]
fn what_a_package_needs_is_told_first_and_installed_from_the_same_index() {
    let team = Team::new();
    publish_with_needs(&team, "^1.0.0", &["1.0.0", "1.2.0", "2.0.0"]);
    let needs = "`guard` needs the extension `base` (^1.0.0), which is not there; index ";
    let mut person = team.lab.pty(crate::lab::pty::WHOLE, &["ext", "install", "guard"]);
    person.waits_for(needs).waits_for("Install `base`?").types("n\n");
    let ran = person.ends();
    assert!(ran.code == 64 && ran.stdout.contains("`guard` needs it, and was not installed either"), "{ran:?}");
    assert_eq!(extensions(&team.lab), BTreeMap::new());
    // All are accepted before the first is put in place.
    let mut person = team.lab.pty(crate::lab::pty::WHOLE, &["ext", "install", "guard"]);
    person.waits_for("Install `base`?").types("y\n");
    person.waits_for("Install `guard`?").types("n\n");
    let ran = person.ends();
    assert!(ran.code == 64 && ran.stdout.contains("what it needs was not installed either"), "{ran:?}");
    assert_eq!(extensions(&team.lab), BTreeMap::new());
    let dry = team.lab.run(&["ext", "install", "guard", "--dry-run", "--json"]);
    assert_eq!((dry.code, dry.answer()["changed"].as_array().unwrap().len()), (0, 2), "{dry:?}");
    assert_eq!(extensions(&team.lab), BTreeMap::new());
    let ran = installed(&team.lab, &["guard", "--json"]);
    let told: Vec<Value> = ran.answer()["changed"].as_array().unwrap().clone();
    let versions: Vec<(&str, &str)> =
        told.iter().map(|one| (one["name"].as_str().unwrap(), one["version"].as_str().unwrap())).collect();
    assert_eq!(versions, [("base", "1.2.0"), ("guard", "1.5.0")]);
    assert!(ran.answer()["messages"].to_string().contains(needs), "{ran:?}");
    assert_eq!(told[1]["error"], Value::Null, "it is loaded: {ran:?}");
}

#[test]
fn what_a_package_needs_comes_from_no_other_index_also_if_that_is_the_first() {
    let team = Team::new();
    publish_with_needs(&team, "*", &["1.0.0"]);
    let other = json!({"name": "base", "version": "9.0.0", "description": "Of somebody else"});
    team.lab.write("other/base/manifest.json", other.to_string());
    assert_eq!(team.lab.run(&["ext", "index", "build", "../other/base", "--out", "../first"]).code, 0);
    let indexes = json!([team.lab.root.join("first/index.json"), team.server.url("index.json")]);
    team.lab.write("home/.ollm/config.yaml", format!("extensions: {{indexes: {indexes}}}\n"));
    let told = installed(&team.lab, &["guard", "--json"]).answer()["changed"].clone();
    assert_eq!((&told[0]["name"], &told[0]["version"]), (&json!("base"), &json!("1.0.0")), "{told:#}");
}

#[test]
fn what_a_package_needs_and_its_index_does_not_have_ends_the_installation() {
    let team = Team::new();
    publish_with_needs(&team, "^3.0.0", &["1.0.0"]);
    refused(&team.lab, &["ext", "install", "guard", "--yes"], 3, "has no version that will do");
    // A dependency from elsewhere serves as well.
    let base = json!({"name": "base", "version": "3.0.0", "description": "What others need"});
    let folder = team.lab.write("elsewhere/base/manifest.json", base.to_string());
    installed(&team.lab, &[folder.parent().unwrap().to_str().unwrap()]);
    installed(&team.lab, &["guard"]);
}

#[test]
fn a_network_that_is_cut_while_what_a_package_needs_is_fetched_leaves_nothing() {
    let team = Team::new();
    publish_with_needs(&team, "*", &["1.0.0"]);
    let archive = fs::read(team.lab.root.join("out/base-1.0.0.tar.gz")).unwrap();
    team.server.put("base-1.0.0.tar.gz", Answer::Cut(archive.clone()));
    refused(&team.lab, &["ext", "install", "guard", "--yes"], 5, "was not fetched");
    assert_eq!(extensions(&team.lab), BTreeMap::new());
    team.server.put("base-1.0.0.tar.gz", Answer::File(archive));
    installed(&team.lab, &["guard"]);
}

#[test]
fn two_packages_that_need_each_other_are_asked_about_once_each() {
    let team = Team::new();
    publish_with_needs(&team, "*", &[]);
    let manifest = json!({"name": "base", "version": "1.0.0", "description": "x", "dependencies": {"guard": "*"}});
    team.lab.write("work/base/manifest.json", manifest.to_string());
    assert_eq!(team.lab.run(&["ext", "index", "build", "../work/base", "--out", "../out"]).code, 0);
    team.upload();
    let told = installed(&team.lab, &["guard", "--json"]).answer()["changed"].clone();
    assert_eq!((&told[0]["name"], &told[1]["name"]), (&json!("base"), &json!("guard")), "{told:#}");
}

#[test]
fn an_index_is_fetched_once_and_used_without_a_network() {
    let Team { lab, server } = &Team::new();
    for _ in 0..2 {
        assert_eq!(lab.run(&["ext", "search", "guard"]).code, 0);
    }
    assert_eq!(server.asked(), ["200 /index.json", "304 /index.json"]);
    assert_eq!(lab.run(&["ext", "search", "guard", "--offline"]).code, 0);
    assert_eq!(server.asked(), Vec::<String>::new());
    refused(lab, &["ext", "install", "guard", "--yes", "--offline"], 5, "no server is asked");
    // A server that is gone leaves what was fetched.
    server.remove("index.json");
    let ran = lab.run(&["ext", "search", "guard"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("status 404; what was fetched before is used"), "{ran:?}");
    assert!(ran.stderr.starts_with("ollm: index http://"), "{ran:?}");
}

#[test]
fn an_index_that_lies_is_refused_and_nothing_is_left() {
    let team = Team::new();
    let Team { lab, server } = &team;
    let install = &["ext", "install", "guard", "--yes"][..];
    let set = |key: &'static str, value: Value| move |index: &mut Value| index["extensions"][0][key] = value.clone();
    team.change(set("checksum", json!(format!("sha256:{}", "0".repeat(64)))));
    refused(lab, install, 3, "and should be sha256:000");
    team.change(set("size", json!(3)));
    refused(lab, install, 3, "the index says 3 bytes");
    team.change(set("version", json!("9.0.0")));
    refused(lab, install, 3, "the index says guard 9.0.0, and the package is guard 1.0.0");
    team.change(set("name", json!("other")));
    refused(lab, &["ext", "install", "other", "--yes"], 3, "the package is guard");
    team.change(set("downloadUrl", json!("file:///etc/passwd")));
    refused(lab, install, 64, "nothing is fetched by");
    team.change(set("downloadUrl", json!("http://example.com/x.tar.gz")));
    refused(lab, install, 64, "without encryption");
    // An archive that is cut, and one that never comes to its end.
    team.upload();
    server.put("guard-1.0.0.tar.gz", Answer::Cut(fs::read(lab.root.join("out/guard-1.0.0.tar.gz")).unwrap()));
    refused(lab, install, 5, "was not fetched");
    assert_eq!(version(lab), "");
}

#[test]
fn an_index_that_redirects_is_cut_or_shrinks_is_told() {
    let team = Team::new();
    let Team { lab, server } = &team;
    let index = fs::read(lab.root.join("out/index.json")).unwrap();
    server.put("index.json", Answer::Redirect(server.url("elsewhere.json")));
    server.put("elsewhere.json", Answer::File(index.clone()));
    refused(lab, &["ext", "install", "guard", "--yes"], 5, "sends us to");
    server.put("index.json", Answer::Cut(index.clone()));
    refused(lab, &["ext", "install", "guard", "--yes"], 5, "was cut");
    server.put("index.json", Answer::File(b"{\"version\": 1, \"extensions\": [".to_vec()));
    refused(lab, &["ext", "install", "guard", "--yes"], 5, "not JSON");
    team.upload();
    assert_eq!(lab.run(&["ext", "search"]).code, 0);
    team.change(|index| index["extensions"] = json!([]));
    let ran = lab.run(&["ext", "search"]);
    assert!(ran.stderr.contains("no longer has `guard`\n"), "{ran:?}");
    // A version does not disappear without a word either: a new installation would get an older one.
    team.publish("1.1.0", &["team"]);
    assert_eq!(lab.run(&["ext", "search"]).stderr, "");
    let without = |gone: &'static str| {
        move |index: &mut Value| index["extensions"].as_array_mut().unwrap().retain(|entry| entry["version"] != gone)
    };
    team.change(without("1.0.0"));
    assert_eq!(lab.run(&["ext", "search"]).stderr, "");
    team.publish("1.1.0", &["team"]);
    assert_eq!(lab.run(&["ext", "search"]).code, 0);
    team.change(without("1.1.0"));
    let ran = lab.run(&["ext", "search"]);
    assert!(ran.stderr.contains("no longer has `guard` 1.1.0\n"), "{ran:?}");
}

#[test]
fn an_archive_may_be_elsewhere_because_its_digest_is_known() {
    let Team { lab, server } = &Team::new();
    let archive = fs::read(lab.root.join("out/guard-1.0.0.tar.gz")).unwrap();
    server.put("guard-1.0.0.tar.gz", Answer::Redirect(server.url("mirror/x")));
    server.put("mirror/x", Answer::File(archive));
    installed(lab, &["guard"]);
}

#[test]
fn the_first_index_that_has_a_name_counts_and_a_broken_one_hides_no_other() {
    let lab = Lab::new();
    for (folder, version) in [("a", "1.0.0"), ("b", "2.0.0")] {
        package(&lab, &format!("work-{folder}"), version, &json!({}));
        let out = format!("../{folder}");
        let ran = lab.run(&["ext", "index", "build", &format!("../work-{folder}"), "--out", &out]);
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let indexes =
        json!(["/no/such/index.json", lab.root.join("a/index.json"), lab.root.join("b/index.json"), "builtin"]);
    lab.write("home/.ollm/config.yaml", json!({"extensions": {"indexes": indexes}}).to_string());
    let ran = lab.run(&["ext", "search", "--json"]);
    assert!(ran.stderr.contains("/no/such/index.json: there is no such file"), "{ran:?}");
    assert_eq!(ran.answer().as_array().unwrap().len(), 4);
    // It may have the name as well, and comes first.
    refused(&lab, &["ext", "install", "guard", "--yes"], 5, "may have `guard`");
    let indexes = json!([lab.root.join("a/index.json"), lab.root.join("b/index.json"), "builtin"]);
    lab.write("home/.ollm/config.yaml", json!({"extensions": {"indexes": indexes}}).to_string());
    installed(&lab, &["guard"]);
    assert_eq!(version(&lab), "1.0.0");
}

#[test]
fn an_update_comes_from_the_index_that_the_extension_came_from() {
    let lab = Lab::new();
    for (folder, version) in [("team", "1.0.0"), ("public", "9.0.0")] {
        package(&lab, &format!("work-{folder}"), version, &json!({}));
        let out = format!("../{folder}");
        assert_eq!(lab.run(&["ext", "index", "build", &format!("../work-{folder}"), "--out", &out]).code, 0);
    }
    let indexes = json!([lab.root.join("team/index.json"), lab.root.join("public/index.json")]);
    lab.write("home/.ollm/config.yaml", json!({"extensions": {"indexes": indexes}}).to_string());
    installed(&lab, &["guard"]);
    lab.write("team/index.json", json!({"version": 1, "extensions": []}).to_string());
    refused(&lab, &["ext", "update", "guard", "--yes"], 64, "came from index");
    fs::remove_file(lab.root.join("team/index.json")).unwrap();
    refused(&lab, &["ext", "update", "guard", "--yes"], 5, "may have `guard`");
    assert_eq!(version(&lab), "1.0.0");
}

#[test]
fn what_an_index_has_beside_what_we_know_stays_and_what_cannot_be_read_is_not_lost() {
    let lab = Lab::new();
    let build = &["ext", "index", "build", "../work", "--out", "../out"][..];
    package(&lab, "work", "1.0.0", &json!({}));
    assert_eq!(lab.run(build).code, 0);
    let mut index: Value = serde_json::from_slice(&fs::read(lab.root.join("out/index.json")).unwrap()).unwrap();
    index["owner"] = json!("team");
    index["extensions"][0]["homepage"] = json!("https://e.org");
    lab.write("out/index.json", index.to_string());
    package(&lab, "work", "1.1.0", &json!({}));
    assert_eq!(lab.run(build).code, 0);
    let now: Value = serde_json::from_slice(&fs::read(lab.root.join("out/index.json")).unwrap()).unwrap();
    assert_eq!(
        (&now["owner"], &now["extensions"][1]["homepage"]),
        (&json!("team"), &json!("https://e.org")),
        "{now:#}"
    );
    index["extensions"][0]["version"] = json!("1.0");
    lab.write("out/index.json", index.to_string());
    let before = files(&lab.root.join("out"));
    let ran = lab.run(build);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.stderr.contains("has the version `1.0`\n"), "{ran:?}");
    assert_eq!(files(&lab.root.join("out")), before);
}

#[test]
fn an_installed_folder_can_be_published_and_a_signature_that_is_none_cannot() {
    let lab = Lab::new();
    let folder = package(&lab, "src", "1.0.0", &json!({}));
    installed(&lab, &[folder.to_str().unwrap()]);
    let place = lab.home.join(".ollm/extensions/guard");
    let build = ["ext", "index", "build", place.to_str().unwrap(), "--out", "../out"];
    assert_eq!(lab.run(&build).code, 0);
    assert_eq!(lab.run(&["ext", "uninstall", "guard", "--yes"]).code, 0);
    installed(&lab, &[lab.root.join("out/guard-1.0.0.tar.gz").to_str().unwrap()]);
    lab.write("out/guard-1.0.0.tar.gz.minisig", "garbage");
    let ran = lab.run(&build);
    assert!(ran.code != 0 && ran.stderr.contains("no signature as minisign writes it"), "{ran:?}");
}

#[test]
fn a_password_in_the_address_of_an_index_is_not_shown() {
    let Team { lab, server } = &Team::new();
    let address = server.url("index.json").replace("://", "://ann:secret@");
    lab.write("home/.ollm/config.yaml", json!({"extensions": {"indexes": [address]}}).to_string());
    for arguments in [&["ext", "search", "guard"][..], &["ext", "search", "guard", "--json"]] {
        let ran = lab.run(arguments);
        assert!(ran.code == 0 && !format!("{ran:?}").contains("secret"), "{ran:?}");
    }
}

#[test]
fn a_published_version_never_becomes_another_one() {
    let lab = Lab::new();
    let build = &["ext", "index", "build", "../work", "--out", "../out"][..];
    package(&lab, "work", "1.0.0", &json!({}));
    assert_eq!(lab.run(build).code, 0);
    let first = files(&lab.root.join("out"));
    assert_eq!(lab.run(build).code, 0);
    assert_eq!(files(&lab.root.join("out")), first);
    lab.write("work/hooks/run.sh", "other");
    let ran = lab.run(build);
    assert_eq!(ran.code, 64, "{ran:?}");
    assert!(ran.stderr.contains("is listed already with another content"), "{ran:?}");
    assert_eq!(files(&lab.root.join("out")), first);
    let ran = lab.run(&["ext", "index", "build", "../nowhere", "--out", "../out"]);
    assert!(ran.code == 5 && ran.stderr.contains("nowhere is not listed: there is no such folder"), "{ran:?}");
    assert_eq!(files(&lab.root.join("out")), first);
}

#[test]
fn a17_a_signature_is_checked_by_the_users_keys_and_makes_an_extension_verified() {
    let team = Team::new();
    let Team { lab, .. } = &team;
    let keys = KeyPair::generate_unencrypted_keypair().unwrap();
    let archive = fs::read(lab.root.join("out/guard-1.0.0.tar.gz")).unwrap();
    let sign = |bytes: &[u8]| minisign::sign(None, &keys.sk, bytes, None, None).unwrap().into_string();
    let with =
        |signature: String| move |index: &mut Value| index["extensions"][0]["signature"] = signature.clone().into();
    // Without a key it says nothing.
    team.change(with(sign(&archive)));
    let ran = installed(lab, &["guard"]);
    assert!(ran.stderr.contains("hooks.signatureKeys has no key"), "{ran:?}");
    assert_eq!(lab.run(&["ext", "uninstall", "guard", "--yes"]).code, 0);
    let key = keys.pk.to_base64();
    team.configure(&format!("hooks: {{signatureKeys: [{key}]}}\n"));
    team.change(with(sign(b"something else")));
    refused(lab, &["ext", "install", "guard", "--yes"], 3, "its signature is not that of the archive");
    team.change(with("no signature".to_owned()));
    refused(lab, &["ext", "install", "guard", "--yes"], 3, "its signature is not that of the archive");
    team.change(with(sign(&archive)));
    let told = changed(&installed(lab, &["guard", "--json"]));
    assert_eq!(told["trust"], "trusted", "{told:#}");
    assert_eq!(said(lab).as_deref(), Some("1.0.0"));
    // An extension that came with a signature must not come without one.
    package(lab, "work/guard", "1.1.0", &json!({}));
    assert_eq!(lab.run(&["ext", "index", "build", "../work/guard", "--out", "../out"]).code, 0);
    team.upload();
    refused(lab, &["ext", "update", "guard", "--yes"], 3, "what is installed was signed by");
}

#[test]
fn a_digest_in_the_configuration_makes_an_extension_verified() {
    let team = Team::new();
    let archive = fs::read(team.lab.root.join("out/guard-1.0.0.tar.gz")).unwrap();
    team.configure(&format!("hooks: {{pins: [\"{}\"]}}\n", digest_bytes(&archive)));
    let told = changed(&installed(&team.lab, &["guard", "--json"]));
    assert_eq!(told["trust"], "trusted", "{told:#}");
    // Where only a person approves, nothing else does.
    assert_eq!(team.lab.run(&["ext", "uninstall", "guard", "--yes"]).code, 0);
    team.configure(&format!("hooks: {{approveByDigest: false, pins: [\"{}\"]}}\n", digest_bytes(&archive)));
    let told = changed(&installed(&team.lab, &["guard", "--json"]));
    assert_eq!(told["trust"], "untrusted", "{told:#}");
}
