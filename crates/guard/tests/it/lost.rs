//! What cannot be brought back, however it is lost.

use ollm_protocol::Flow;

use super::{
    classes::{passes, stopped},
    first,
};

#[test]
fn what_lists_hidden_names_lists_the_history_of_the_project() {
    for command in [
        "ls -A | xargs rm -rf",
        "ls -A | xargs -I{} rm -rf {}",
        "ls -a | grep -v x | xargs rm -rf",
        "ls -A1 | while read f; do rm -rf \"$f\"; done",
        "rm -rf $(ls -A)",
        "for f in $(ls -A); do rm -rf $f; done",
        "find . -maxdepth 1 | xargs rm -rf",
        "find . -mindepth 1 -print0 | xargs -0 rm -rf",
        "ls -la | awk '{print $9}' | xargs rm -rf",
        "rm -rf .*",
        "rm -rf .g*",
    ] {
        assert!(first(command).flow >= Flow::Ask, "{command}");
    }
    passes(&[
        "ls | xargs rm -rf",
        "ls -A build | xargs rm -rf",
        "ls *.tmp | xargs rm -rf",
        "ls -t *.log | tail -n +5 | xargs rm -f",
        "find build | xargs rm -rf",
        "ls -la | head",
        "ls -A | wc -l",
        "find . -type f | xargs grep x",
        "rm -f .eslintcache .*.swp",
    ]);
}

#[test]
fn a_key_that_exists_only_once_is_a_secret_to_every_program() {
    stopped(&[
        "gpg --batch --yes --delete-secret-keys X",
        "gpg2 --delete-secret-and-public-key X",
        "gpg --delete-secret-key X",
    ]);
    passes(&["gpg --list-secret-keys", "gpg --export-secret-keys X", "gpg --delete-keys X", "gpg --verify x.sig x"]);
}

#[test]
fn code_that_overwrites_a_device_or_a_file_of_the_system_is_asked_about() {
    stopped(&[
        "python3 -c 'open(\"/dev/sda\",\"wb\").write(b\"0\"*512)'",
        "python3 -c 'open(\"/etc/passwd\", \"w\")'",
        "python3 -c 'open(\"/etc/passwd\", mode=\"w\")'",
        "python3 -c 'from pathlib import Path; Path(\"/etc/hosts\").write_text(\"\")'",
        "python3 -c 'import os; os.truncate(\"/etc/passwd\",0)'",
        "node -e 'fs.writeFileSync(\"/etc/passwd\",\"\")'",
        "node -e 'require(\"fs\").createWriteStream(\"/dev/sda\")'",
        "ruby -e 'File.write(\"/etc/passwd\",\"\")'",
        "perl -e 'open(F,\">/dev/sda\")'",
        "perl -e 'open(F, \">\", \"/etc/passwd\")'",
        "php -r 'file_put_contents(\"/etc/passwd\",\"\");'",
        "python3 -c 'import shutil; shutil.copyfile(\"/dev/null\",\"/etc/passwd\")'",
        "python3 -c 'import os; os.open(\"/dev/sda\", os.O_WRONLY)'",
        "python3 -c 'import os; os.chmod(\"/\",0)'",
        "node -e 'fs.copyFileSync(\"/dev/null\",\"/etc/passwd\")'",
        "python3 - <<'E'\nwith open('/dev/sda', 'r+b') as f:\n    f.write(b'0')\nE",
    ]);
    passes(&[
        "python3 -c 'print(open(\"/etc/passwd\").read(), file=open(\"out\", \"w\"))'",
        "python3 -c 'open(\"/tmp/x\",\"w\").write(open(\"/proc/cpuinfo\").read())'",
        "python3 -c 'open(\"out.txt\",\"w\").write(\"/etc/passwd\")'",
        "node -e 'fs.writeFileSync(\"out.json\", fs.readFileSync(\"/etc/hosts\"))'",
        "node -e 'console.log(fs.readFileSync(\"/etc/hosts\",\"utf8\"))'",
        "perl -e 'open(F, \"<\", \"/etc/passwd\")'",
        "python3 -c 'import shutil; shutil.copy(\"/etc/hosts\", \"out\")'",
        "python3 -c 'import os; os.chmod(\"x.sh\", 0o755)'",
        "python3 -c 'open(\"/dev/null\", \"w\").write(\"x\")'",
    ]);
}

#[test]
fn a_program_nobody_knows_is_not_given_all_homes() {
    stopped(&["rclone delete /home", "s5cmd rm /home", "tmpreaper 0 /home/", "bleachbit --delete /home"]);
    passes(&["rclone copy build remote:x", "ncdu /home", "tool /home/ada/work/project/build"]);
}

#[test]
fn packages_that_others_need_are_not_forced_away() {
    stopped(&[
        "rpm -e --nodeps glibc",
        "dpkg -r --force-depends libc6",
        "apk del --force-broken-world musl",
        "apt-get remove --purge -y '*'",
    ]);
    passes(&["rpm -qa", "dpkg -l", "rpm -e foo", "apt-get install --force-yes foo", "rpm -i --nodeps foo.rpm"]);
}

#[test]
fn a_whole_drive_is_lost_with_all_that_is_on_it() {
    stopped(&[
        "rm -rf /media/ada/USB",
        "rm -rf /run/media/ada/disk",
        "rm -rf /Volumes/Backup",
        "rm -rf /Volumes/Backup/*",
        "rm -rf /mnt/d",
        "rm -rf /mnt/c/Users",
        "rm -rf /mnt/c/Windows",
        "rm -rf /media/*",
    ]);
    passes(&["rm -rf /mnt/data/build", "rm -rf /media/ada/USB/tmp", "rm -rf /mnt/c/Users/ada/project/build"]);
}
