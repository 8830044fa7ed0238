//! Everyday work in a box, each thing with the real tool.

use super::{assert_intact, boxed, guarded, is_whole};
use crate::lab::{Lab, Ran};

fn works(lab: &Lab, script: &str) -> Ran {
    let ran = boxed(lab, &["sh", "-ec", script]);
    assert_eq!(ran.code, 0, "{script}\n{ran:?}");
    assert_intact(lab, script);
    ran
}

fn scene() -> Option<Lab> {
    let lab = guarded();
    is_whole(&lab).then_some(lab)
}

#[test]
fn git_works_in_a_box() {
    let Some(lab) = scene() else { return };
    for folder in [".git", ".ollm"] {
        std::fs::remove_dir_all(lab.project.join(folder)).unwrap();
    }
    let made = boxed(&lab, &["git", "init", "-q", "-b", "trunk", "."]);
    assert_eq!((made.stderr.as_str(), made.code), ("", 0));
    let script = "git config user.name a; git config user.email a@b.c; echo x > f; git add f
        git commit -qm one; git checkout -qb other; echo y >> f; git commit -qam two; git checkout -q trunk
        git merge -q other; git remote add origin /srv/x.git; git stash list; git gc -q; git worktree add -q ../tree other
        git clone -q . ../copy; git -C ../copy log --oneline | wc -l";
    let ran = boxed(&lab, &["sh", "-ec", script]);
    assert_eq!((ran.stdout.trim(), ran.code), ("2", 0), "{ran:?}");
    let config = std::fs::read_to_string(lab.project.join(".git/config")).unwrap();
    assert!(config.contains("url = /srv/x.git"), "{config}");
}

#[test]
fn compilers_and_their_output_work_in_a_box() {
    let Some(lab) = scene() else { return };
    let ran = works(&lab, "printf 'int main(void){return 3;}' > a.c; cc -o a a.c; ./a || echo $?; rm a");
    assert_eq!(ran.stdout, "3\n");
}

#[test]
fn cargo_works_in_a_box() {
    let Some(lab) = scene() else { return };
    let variable = |name: &str, usual: &str| {
        std::env::var(name).unwrap_or_else(|_| format!("{}/{usual}", std::env::var("HOME").unwrap_or_default()))
    };
    let lab = lab.set("RUSTUP_HOME", &variable("RUSTUP_HOME", ".rustup"));
    lab.write("project/Cargo.toml", "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2024\"\n");
    lab.write("project/src/main.rs", "fn main() { println!(\"built\"); }\n");
    let cargo = env!("CARGO");
    let ran = works(&lab, &format!("{cargo} run -q --offline"));
    assert_eq!(ran.stdout, "built\n");
}

#[test]
fn npm_works_in_a_box() {
    let Some(lab) = scene() else { return };
    lab.write("project/package.json", r#"{"name": "tiny", "version": "1.0.0", "scripts": {"test": "echo tested"}}"#);
    lab.write("project/dep/package.json", r#"{"name": "dep", "version": "1.0.0"}"#);
    let ran =
        works(&lab, "npm test --silent; npm install --offline --no-audit --no-fund --silent ./dep; ls node_modules");
    assert_eq!(ran.stdout, "tested\ndep\n");
}

/// Makes a package as pip installs it, since nothing can be fetched.
const WHEEL: &str = r#"
import zipfile
with zipfile.ZipFile('dep-1.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('dep.py', 'def main(): print("installed")\n')
    wheel.writestr('dep-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\nName: dep\nVersion: 1.0\n')
    wheel.writestr('dep-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    wheel.writestr('dep-1.0.dist-info/entry_points.txt', '[console_scripts]\ndep = dep:main\n')
    wheel.writestr('dep-1.0.dist-info/RECORD', '')
"#;

#[test]
fn pip_works_in_a_box() {
    let Some(lab) = scene() else { return };
    lab.write("project/wheel.py", WHEEL);
    let has_pip = lab.program("python3").args(["-c", "import ensurepip"]).output().unwrap().status.success();
    if !has_pip {
        return eprintln!("skipped: this Python brings no pip");
    }
    let install = "python3 -m venv env; python3 wheel.py
        env/bin/pip install -q --no-index --disable-pip-version-check ./dep-1.0-py3-none-any.whl; env/bin/dep
        env/bin/pip uninstall -q -y dep; test ! -e env/bin/dep";
    assert_eq!(works(&lab, install).stdout, "installed\n");
}

#[test]
fn servers_watchers_and_temporary_files_work_in_a_box() {
    let Some(lab) = scene() else { return };
    let server = "
import http.client, http.server, os, tempfile, threading
server = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = http.client.HTTPConnection('127.0.0.1', server.server_port, timeout=30)
client.request('GET', '/'); print(client.getresponse().status)
with tempfile.NamedTemporaryFile() as file: file.write(b'x')
";
    lab.write("project/serve.py", server);
    assert_eq!(works(&lab, "python3 serve.py").stdout, "200\n");
    let watcher = "const fs = require('fs'); const w = fs.watch('.', (e, n) => { if (n === 'new') { console.log('seen'); w.close(); } });
        setImmediate(() => fs.writeFileSync('new', ''));";
    lab.write("project/watch.js", watcher);
    assert_eq!(works(&lab, "node watch.js").stdout, "seen\n");
}

/// Starts the server that its arguments name, opens a file with a mistake, and prints what the server says of it.
const LANGUAGE_CLIENT: &str = r"
import json, os, pathlib, subprocess, sys
language, name, *server = sys.argv[1:]
file = pathlib.Path(name).resolve()
child = subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def send(message):
    body = json.dumps({'jsonrpc': '2.0', **message}).encode()
    child.stdin.write(b'Content-Length: %d\r\n\r\n' % len(body) + body); child.stdin.flush()
def received():
    length = 0
    while (line := child.stdout.readline().strip()):
        if line.lower().startswith(b'content-length:'): length = int(line.split(b':')[1])
    return json.loads(child.stdout.read(length)) if length else sys.exit('the server has ended')
root = file.parent.as_uri()
send({'id': 1, 'method': 'initialize', 'params': {'processId': os.getpid(), 'rootUri': root, 'capabilities': {
    'workspace': {'configuration': True}, 'textDocument': {'publishDiagnostics': {}}}, 'workspaceFolders': [{'uri': root, 'name': 'project'}]}})
while True:
    message = received()
    if 'method' in message and 'id' in message:
        items = message.get('params', {}).get('items', [])
        send({'id': message['id'], 'result': [None] * len(items) if items else None})
    elif message.get('id') == 1:
        send({'method': 'initialized', 'params': {}})
        send({'method': 'textDocument/didOpen', 'params': {'textDocument': {
            'uri': file.as_uri(), 'languageId': language, 'version': 1, 'text': file.read_text()}}})
    elif message.get('method') == 'textDocument/publishDiagnostics' and message['params']['diagnostics']:
        print(json.dumps(message['params']['diagnostics'])); break
send({'id': 2, 'method': 'shutdown'})
send({'method': 'exit'})
child.wait(30)
";

/// `scripts/real-servers.sh` installs the servers and names the folder.
#[test]
fn language_servers_work_in_a_box() {
    let Some(folder) = std::env::var_os("OLLM_REAL_SERVERS").map(std::path::PathBuf::from) else {
        return eprintln!("skipped: no language servers; scripts/real-servers.sh installs them");
    };
    let Some(lab) = scene() else { return };
    lab.write("project/client.py", LANGUAGE_CLIENT);
    lab.write("project/wrong.py", "print(no_such_name)\n");
    lab.write("project/wrong.ts", "const n: number = 'text';\n");
    for (language, file, server, mistake) in [
        ("python", "wrong.py", "node_modules/.bin/pyright-langserver --stdio", "no_such_name"),
        ("python", "wrong.py", "python/bin/pylsp", "no_such_name"),
        ("typescript", "wrong.ts", "node_modules/.bin/typescript-language-server --stdio", "number"),
    ] {
        let server = folder.join(server).display().to_string();
        let ran = works(&lab, &format!("timeout 120 python3 client.py {language} {file} {server}"));
        assert!(ran.stdout.contains(mistake), "{server}: {ran:?}");
    }
}
