//! What the first guard refuses, asks about and lets pass.

use ollm_guard::destructive;
use ollm_protocol::{Event, EventKind, Flow};
use serde_json::json;
use std::path::Path;

use super::{HOME, PROJECT, call, check, first};

#[test]
fn what_destroys_a_system_a_home_or_the_project_is_refused() {
    check(
        first,
        Flow::Block,
        &[
            "rm -rf /",
            "rm -r -f /",
            "rm -fr /*",
            "rm --recursive --force /",
            "rm --recurs /",
            "rm -rf --no-preserve-root /",
            "rm --no-preserve-root x",
            "rm -R ~",
            "rm -rf ~/",
            "rm -rf ~/*",
            "rm -rf ~/.*",
            "rm -rf $HOME",
            "rm -rf \"$HOME\"/",
            "rm -rf ${HOME}/*",
            "rm -rf ~root",
            "rm -rf ~bob",
            "rm -rf /home/bob",
            "rm -rf ..",
            "rm -rf ../..",
            "rm -rf ../../*",
            "rm -rf ../*",
            "rm -rf /home/ada/work",
            "rm -rf /etc /x",
            "rm -rf x /usr",
            "rm -rf /usr/lib",
            "rm -rf //etc/",
            "rm -rf /./etc/../usr",
            "rm -rf /e*",
            "rm -rf /[eu]*",
            "rm -rf /*/",
            "rm -rf /etc/*",
            "rm -rf /var",
            "rm -rf /home",
            "rm -rf /Users/bob",
            "rm -rf .git",
            "rm -rf ./.git/",
            "rm -rf .git/*",
            "rm -rf .git/objects",
            "rm -rf ../../work/project/.git",
            "cd / && rm -rf *",
            "cd ~ && rm -rf *",
            "cd ~; rm -rf .",
            "cd && rm -rf *",
            "cd ../../.. && rm -rf ada",
            "cd /tmp; cd ~; rm -rf *",
            "(cd / && rm -rf .)",
            "dd if=/dev/zero of=/dev/sda",
            "dd of=/dev/nvme0n1 if=x bs=1M",
            "cat x > /dev/sda",
            "cat x >> /dev/nvme0n1p1",
            "cat x | tee /dev/sdb",
            "cp x /dev/sda",
            "mkfs.ext4 /dev/sda1",
            "mkfs -t ext4 /dev/sda1",
            "mke2fs /dev/sda1",
            "wipefs -a /dev/sda",
            "fdisk /dev/sda",
            "parted /dev/sda mklabel gpt",
            "sgdisk -Z /dev/sda",
            "blkdiscard /dev/sda",
            ":(){ :|:& };:",
            ":(){ :|: & }; :",
            "bomb() { bomb | bomb & }; bomb",
            "f() { f & f & }; f",
            "f() { if true; then f | f; fi; }",
            "chmod -R 777 /",
            "chmod -R 000 ~",
            "chmod --recursive 777 /etc",
            "chown -R me:me /usr",
            "chown -Rv me ~",
            "mv / x",
            "mv ~ /tmp",
            "mv /etc x",
            "mv .. x",
            "mv x /dev/null",
            "mv -t /tmp ~",
            "find / -delete",
            "find ~ -delete",
            "find / -type f -delete",
            "find ~ -exec rm -rf {} ;",
            "find / -exec rm -rf {} +",
            "find .. -delete",
            "find /etc -type f -exec rm -rf '{}' \\;",
            "shred /dev/sda",
            "shred -u /etc/hosts",
            "truncate -s 0 /etc/hosts",
            "truncate -s0 /dev/sda",
            "cd ~ && git clean -fdx",
            "git -C / clean -fdx",
            "kill -9 -1",
            "kill -KILL -1",
            "kill -s KILL -1",
            "kill -- -1",
            "killall5 -9",
            "shutdown -h now",
            "reboot",
            "sudo halt",
            "poweroff -f",
            "init 0",
            "telinit 6",
            "systemctl poweroff",
            "crontab -r",
            "crontab -ir",
        ],
    );
}

#[test]
fn what_may_be_meant_is_left_to_a_person() {
    check(
        first,
        Flow::Ask,
        &[
            "rm -rf .",
            "rm -rf $PWD",
            "rm -rf /home/ada/work/project",
            "rm -rf /etc/nginx",
            "rm -rf /usr/local/share/x",
            "find / -name core -delete",
            "find ~ -name .DS_Store -delete",
            "rm /etc/passwd",
            "rm ~/*",
            "rm $x /etc",
            "echo x >> /etc/passwd",
            "echo x > /etc/shadow",
            "echo x | sudo tee /etc/sudoers",
            "echo x | sudo tee -a /etc/sudoers.d/me",
            "cp x /etc/passwd",
            "mv x /etc/shadow",
            "sed -i s/a/b/ /etc/sudoers",
            "cat key >> ~/.ssh/authorized_keys",
            "cat key | tee -a ~/.ssh/authorized_keys",
            "cp key ~/.ssh/authorized_keys",
            "cd \"$x\" && rm -rf *",
            "cd \"$x\"; rm -rf ..",
        ],
    );
}

#[test]
fn everyday_work_passes() {
    check(
        first,
        Flow::NoOpinion,
        &[
            "",
            "   \n\n",
            "rm -rf build",
            "rm -rf ./node_modules",
            "rm -rf target/ dist/ *.log",
            "rm -rf *",
            "rm -rf ./*",
            "rm file",
            "rm -f a b c",
            "rm -r src/old",
            "rm -rf ../sibling",
            "rm -rf /tmp/x /tmp/*",
            "rm -rf ~/.cache/x",
            "rm -rf ~/work/other",
            "rm -rf vendor/x/.git",
            "rm -rf /tmp/clone/.git",
            "rm -f .git/index.lock",
            "rm -rf build/$x",
            "rm -rf ./build/\"$x\"",
            "rm \"$x\"",
            "d=$(mktemp -d); cp x \"$d\"; rm -rf \"$d\"",
            "DIR=build; rm -rf \"$DIR\"",
            "for i in a b; do rm -rf \"$i\"; done",
            "cd build && rm -rf *",
            "cd /tmp/x/y && rm -rf ..",
            "sudo apt-get install -y jq",
            "sudo systemctl restart nginx",
            "git push --force",
            "git clean -fdx",
            "git reset --hard HEAD~1",
            "chmod -R u+w .",
            "chmod -R 755 public",
            "chown -R me:me .",
            "chmod +x x.sh",
            "mv a b; mv build /tmp",
            "find . -name '*.o' -delete",
            "find . -name node_modules -exec rm -rf {} +",
            "find build -delete",
            "find . -type f -exec grep -l x {} +",
            "find / -name x 2>/dev/null",
            "ls > /dev/null 2>&1",
            "echo x > /dev/stderr",
            "echo x > /dev/tty",
            "cat x > /dev/fd/3",
            "dd if=/dev/zero of=disk.img bs=1M count=1",
            "dd if=/dev/sda of=/dev/null",
            "fdisk -l /dev/sda",
            "kill -9 1234",
            "kill -1 1234",
            "kill %1",
            "killall node",
            "shutdown -c",
            "systemctl status x",
            "crontab -l",
            "mkfs.ext4 disk.img",
            "rm -rf $x",
            "rm -rf \"$x/y\"",
            "ls | xargs -I{} rm -rf {}",
            "truncate -s 0 log.txt",
            "shred -u secret.txt",
            "cargo test -- --nocapture 2>&1 | tail -20",
            "npm run build && npm test",
            "docker run --rm -it -v $PWD:/x alpine ls /",
            "ssh host uptime",
            "for f in *.rs; do wc -l \"$f\"; done",
            "while read -r l; do echo \"$l\"; done < x",
            "while IFS= read -r l; do echo $l; done < x",
            "if [ -f x ]; then rm x; else touch x; fi",
            "f() { echo hi; }; f",
            "rec() { rec; }",
            "[[ -f x && $y =~ ^(a|b)$ ]] && echo ok",
            "x=$((1 + 2 * (3 + $y))); echo $x ${#x} ${x%.*} ${x//a/b} \"${x:-d}\" $? $# $1",
            "((i++)); let j=i+1",
            "arr=(a b c); echo ${arr[@]} ${arr[0]}",
            "cat <<EOF > f\nhello $USER ${x:-y} $(date)\nEOF\nls",
            "bash script.sh",
            "bash -x ./run.sh --fast",
            "bash --version",
            "xargs -0 grep x < list",
            "ls | xargs rm -f",
            "timeout 5 sleep 1",
            "env FOO=1 cargo build",
            "python3 -c 'import os; print(os.getcwd())'",
            "curl -s x | jq .",
            "eval 'ls -la'",
            "trap 'rm -f \"$tmp\"' EXIT; trap - INT",
            "echo {a,b}{1..3} {x}",
            "git commit -F - <<'EOF'\nDon't \"worry\" (yet\nEOF",
            "make -j4 \\\n  && make install DESTDIR=/tmp/x",
            "echo a; # done\n# rest\nls",
            "[ \"$a\" = b ] || { echo no; exit 1; }",
            "exec 3<>x 3>&-",
            "time ls | wc -l",
            "echo \"it's\" 'say \"hi\"' \\\"",
            "awk 'BEGIN { while (x < 3) x++ }'",
            "ls -d ~/x ~+ 2>/dev/null",
        ],
    );
}

#[test]
fn a_homes_own_folder_makes_wildcards_dangerous() {
    let judge = |command: &str| {
        let data = [("tool_name", "shell".into()), ("args", json!({ "command": command })), ("cwd", HOME.into())];
        destructive(&Event::unchecked(EventKind::BeforeTool, data), Path::new(HOME), Some(Path::new(HOME)))
    };
    check(judge, Flow::Block, &["rm -rf *", "rm -rf .", "rm -rf ./*", "rm -rf .*", "git clean -fdx", "find . -delete"]);
    check(judge, Flow::NoOpinion, &["rm -rf x", "ls *"]);
}

#[test]
fn every_shell_like_tool_is_looked_at() {
    let script = "true; rm -rf ~";
    let calls = [
        call("shell", json!({ "command": script })),
        call("bash", json!({ "command": script })),
        call("Bash", json!({ "command": script, "description": "x" })),
        call("sh", json!({ "cmd": script })),
        call("bash_execute", json!({ "script": script })),
        call("run_shell_command", json!({ "command": script, "directory": "src" })),
        call("exec_command", json!({ "cmd": script })),
        call("execute_command", json!({ "input": script })),
        call("run_command", json!({ "CommandLine": script })),
        call("terminal", json!({ "text": script })),
        call("mcp__any__thing", json!({ "command": script })),
        call("mcp__any__shell", json!({ "input": script })),
        call("whatever", json!({ "script": script })),
        call("whatever", json!({ "commands": ["ls", script] })),
        call("shell", json!({ "command": ["bash", "-lc", script] })),
        call("shell", json!({ "command": ["rm", "-rf", "/"] })),
        call("shell", json!({ "command": [script] })),
        call("whatever", json!({ "command": "rm", "args": ["-rf", "/"] })),
        call("shell", json!(script)),
        call("shell", json!({ "command": "rm -rf *", "workdir": "/" })),
        call("shell", json!({ "command": "rm -rf ../*", "workdir": "../.." })),
    ];
    for event in calls {
        let verdict = destructive(&event, Path::new(PROJECT), Some(Path::new(HOME)));
        assert_eq!(verdict.flow, Flow::Block, "{event:?}");
    }
    let mut after = call("shell", json!({ "command": script }));
    after.kind = EventKind::AfterTool;
    let others = [
        call("write_file", json!({ "path": "x", "content": script })),
        call("shell", json!({ "command": ["git", "commit", "-m", script] })),
        call("shell", json!({ "command": ["echo", script] })),
        call("web_search", json!({ "query": script })),
        call("shell", json!({})),
        call("shell", json!(null)),
        after,
        Event::unchecked(EventKind::BeforeTool, []),
    ];
    for event in others {
        let verdict = destructive(&event, Path::new(PROJECT), Some(Path::new(HOME)));
        assert_eq!(verdict.flow, Flow::NoOpinion, "{event:?}");
    }
}

#[test]
fn without_a_home_a_tilde_is_not_known() {
    let judge = |command: &str| {
        let event = call("shell", json!({ "command": command }));
        destructive(&event, Path::new(PROJECT), None).flow
    };
    assert_eq!(judge("rm -rf ~"), Flow::Ask);
    assert_eq!(judge("rm -rf $HOME/x"), Flow::Ask);
    assert_eq!(judge("rm -rf build"), Flow::NoOpinion);
}

#[test]
fn a_variable_that_is_made_of_itself_ends_the_search_for_its_value() {
    for made in [
        "$(cat <<< $x)",
        "$(cat <<< \"$x\" | tee y)",
        "$(cat <<E\n$x\nE\n)",
        "$(echo $x)",
        "`ls $x`",
        "${x:-$(cat <<< $x)}",
        "$(cat <(echo $x))",
        "$(cat <<< <(cat <<< $x))",
        "$(find $(ls $x) -name $x)",
        "$(printf %s \"$(dirname <(echo $x))\")",
        "$(ssh-agent <(ssh-agent $x))",
    ] {
        let command = format!("x={made}; rm -rf $x; cat <<< $x > $x; rm -rf /");
        assert_eq!(first(&command).flow, Flow::Block, "{command}");
    }
    for made in ["HOME=~/x", "HOME=~", "PWD=~+/x", "HOME=$(cat <<< ~)", "x=~; HOME=$x", "PWD=$(echo ~+)"] {
        let command = format!("{made}; cat ~ ~+; rm -rf /");
        assert_eq!(first(&command).flow, Flow::Block, "{command}");
    }
}
