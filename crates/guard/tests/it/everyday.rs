//! What developers do every day passes, in the words they use; what only looks like it does not.

use super::classes::{passes, stopped};

#[test]
fn a_search_for_one_of_several_names_finds_only_these() {
    passes(&[
        r"find . -type d \( -name dist -o -name .turbo -o -name .next \) -prune -exec rm -rf {} +",
        r"find . \( -name '*.o' -or -name '*.d' \) -delete",
        "find . -name '*.orig' -delete -o -name '*.rej' -delete",
        "find . -path ./vendor -prune -o -name '*.pyc' -exec rm {} +",
        r"find . -type f \( -name '*.log' -o -name '*.tmp' \) -print0 | xargs -0 rm -f",
    ]);
    stopped(&[
        r"find . \( -name dist -o -type d \) -exec rm -rf {} +",
        r"find ~ \( -name x -o -true \) -delete",
        r"find ~ ! \( -name keep -o -name it \) -delete",
        "find ~ -name keep -o -delete",
        "find ~ -name x -prune -o -exec rm -rf {} +",
        r"find ~ \( -name '*' -o -name x \) -delete",
        "find ~ -name '-o' -o -print -exec rm {} +",
        r"find . \( -name .git -o -name .hg \) -prune -exec rm -rf {} +",
    ]);
}

#[test]
fn modes_that_give_nothing_away_pass_for_what_is_found_too() {
    passes(&[
        "find . -type d -exec chmod 755 {} +",
        "find . -name '*.sh' -exec chmod +x {} +",
        "find . -name '*.sh' | xargs chmod +x",
        "fd -e sh -x chmod +x",
        "find . -exec chown $USER {} +",
    ]);
    stopped(&[
        "find .claude -type f -exec chmod 777 {} +",
        "find .ollm -name '*.json' -exec chmod 000 {} +",
        "find ~/.ollm -exec chmod 000 {} +",
        "chmod +x .git/hooks/pre-commit",
    ]);
}

#[test]
fn fd_finds_nothing_hidden_unless_it_is_told() {
    passes(&["fd -t f -e log -x rm", "fd -e rs --exec rustfmt", "fd -g '*.pyc' -X rm", "fd -e py -x black"]);
    stopped(&[
        "fd -H config.yaml ~ -x rm",
        "fd -u -e json . .ollm -X rm",
        "fd . ~ -x rm -rf",
        "fd --base-directory ~ . -x rm -rf",
        "fd -e json . .ollm -x rm",
    ]);
}

#[test]
fn a_value_keeps_what_is_known_of_it() {
    passes(&[
        "ROOT=$(git rev-parse --show-toplevel)\nOUT=\"$ROOT/dist\"\nrm -rf \"$OUT\"",
        "D=$(node p.js)\nA=$D/lib\nB=$A/cache\nrm -rf \"$B\"",
        "WORK=$(mktemp -d \"${TMPDIR:-/tmp}/build.XXXXXX\")\ntrap 'rm -rf \"$WORK\"' EXIT",
        "f() { local d; d=$(mktemp -d); touch \"$d/x\"; rm -rf \"$d\"; }; f",
        "declare -r OUT; OUT=build; rm -rf \"$OUT\"",
        "export OUT; OUT=build; rm -rf $OUT",
    ]);
    stopped(&[
        "ROOT=$(pick)\nOUT=\"$ROOT/home\"\nrm -rf \"$OUT\"",
        "ROOT=$(pick)\nOUT=\"/$ROOT\"\nrm -rf \"$OUT\"",
        "R=$(pick); O=\"$R/.ollm\"; rm -rf \"$O\"",
        "R=$(pick); O=\"$R/config.yaml\"; echo x > ~/.ollm/../$O",
        "declare -l c; c=RM; $c -rf ~",
        "local d; d=$HOME; rm -rf \"$d\"",
        "D=$(mktemp -d); rm -rf \"$D\"/../../home",
    ]);
}

#[test]
fn a_shell_that_only_checks_syntax_runs_nothing() {
    passes(&[
        "find . -name '*.sh' | while read -r f; do bash -n \"$f\" || echo bad; done",
        "bash -n $(git ls-files '*.sh')",
        "for t in $(ls tests); do bash \"tests/$t\"; done",
        "svn st | grep '^?' | awk '{print $2}' | xargs rm -rf",
        "sh -nv x.sh",
    ]);
    stopped(&["bash -norc -c 'rm -rf ~'", "bash -n x; bash -c 'rm -rf ~'", "bash -c 'rm -rf ~' -n"]);
    stopped(&["bash -n +n -c 'rm -rf ~'", "bash -n +o noexec -c 'rm -rf ~'", "zsh -n -o exec -c 'rm -rf ~'"]);
    stopped(&["bash -n $(echo +n) -c 'rm -rf ~'", "bash -n $X -c 'rm -rf ~'"]);
}

#[test]
fn numbers_and_dates_are_words_of_their_own() {
    passes(&[
        "seq 1 5 | xargs -I{} -P5 sh -c 'echo {}; sleep 1'",
        "for i in $(seq -w 1 10); do rm -f part-$i; done",
        "rm -rf backup-$(date +%Y-%m-%dT%H:%M:%SZ)",
        "mkdir \"out-$(date '+%F %T')\"",
    ]);
    stopped(&[
        "sh -c \"$(date '+rm -rf ~')\"",
        "eval $(date '+rm -rf ~')",
        "eval \"$(date +reboot)\"",
        "seq -f 'rm -rf ~' 1 | sh",
        "sh -c \"$(seq -f 'rm -rf ~' 1 1)\"",
        "sh -c \"$(seq -s 'rm -rf ~' 1 2)\"",
    ]);
}

#[test]
fn calls_in_a_language_are_no_lines_of_a_shell() {
    passes(&[
        "Rscript -e 'unlink(\"cache\", recursive = TRUE)'",
        "julia -e 'rm(\"build\", recursive=true)'",
        "R -e 'unlink(\"cache\", recursive = TRUE)'",
    ]);
    stopped(&[
        "Rscript -e 'unlink(\"/home\", recursive = TRUE)'",
        "Rscript -e 'unlink(\"~\", recursive = TRUE)'",
        "julia -e 'rm(\"/home\", recursive=true)'",
        "julia -e 'rm(homedir(), recursive=true)'",
    ]);
}

#[test]
fn our_command_line_may_be_asked_for_lists() {
    passes(&["ollm connect", "ollm connect --json", "ollm connect claude --capabilities", "ollm connect --help"]);
    stopped(&["ollm connect claude", "ollm connect --project claude", "ollm connect $AGENT", "ollm disconnect claude"]);
}

#[test]
fn what_people_install_themselves_is_theirs_to_remove() {
    passes(&[
        "sudo rm -rf /usr/local/go && sudo tar -C /usr/local -xzf go.tar.gz",
        "kubectl exec pod -- sh -c 'kill 1'",
        "docker exec app kill 1",
    ]);
    stopped(&["rm -rf /usr/local", "rm -rf /usr/local/lib", "rm -rf /usr/local/share", "kill 1", "rm -rf /usr/lib/x"]);
}

#[test]
fn strings_of_code_are_files_only_to_calls_that_take_files() {
    passes(&[
        "python3 -c \"import subprocess; print(subprocess.check_output(['git','rev-parse','HEAD']).decode().split('/')[0])\"",
        "node -e \"const {execSync}=require('child_process'); console.log(execSync('git remote -v').toString().split('/').pop())\"",
        "python3 - <<'E'\nimport os\nfor f in os.listdir('out'):\n    if '/' in f: continue\n    os.remove('out/'+f)\nE",
        "python3 -c \"import os; n='a.b'.split('.')[0]; os.remove(n+'.txt')\"",
        "python3 - <<'E'\nimport subprocess\nfor l in subprocess.run(['ls'],capture_output=True,text=True).stdout.split('\\n'):\n    print('/'.join(l.split('.')))\nE",
        "node -e \"const cp=require('child_process');const b=cp.execSync('git branch').toString().trim().replace('/','-');console.log(b)\"",
        "ruby -e 'puts `git log -1`.split(\"/\").join(\".\")'",
        "perl -e '$x=`git log -1`; $x =~ s{/}{.}g; print join(\"/\", split(\".\", $x))'",
        "python3 -c \"import subprocess; print(open('/etc/os-release').read()); subprocess.run(['ls', '/etc'])\"",
        "python3 -c \"import os,sys; os.system('ls ' + sys.argv[1])\" /etc",
        "python3 - <<'E'\nimport shutil\nfrom pathlib import Path\nfor d in Path('.').glob('**/__pycache__'):\n    shutil.rmtree(d)\nE",
        "perl -e 'opendir(D,\".\"); for(readdir D){ unlink if /\\.bak$/ }'",
        "php -r 'print_r(explode(\"/\", \"a/b\")); exec(\"ls\", $o);'",
        "ruby -e 'File.rename(\"a\",\"b\"); puts File.exist?(\"/etc/hosts\")'",
        "python3 - <<'E'\nimport os\nif os.path.exists('/etc/os-release') and os.path.isfile('x'):\n    os.remove('x')\nE",
        "python3 - <<'E'\nimport os\nfor d in os.listdir('build'):\n    if d not in ('.git', '.', '..'):\n        os.remove('build/' + d)\nE",
    ]);
    stopped(&[
        "python3 -c \"import subprocess; subprocess.run(['rm','-rf','/'])\"",
        "python3 -c \"import subprocess; subprocess.run('rm -rf'.split() + ['/'])\"",
        "python3 -c \"import shutil; shutil.rmtree('/'.join(['', 'home']) or '/home')\"",
        "python3 -c \"import os; os.replace('/home', '/x')\"",
        "python3 -c \"import subprocess; subprocess.run(['/bin/chmod','-R','000','/'])\"",
        "python3 -c \"import shutil,os; shutil.rmtree(os.path.join('/', 'home'))\"",
        "python3 - <<'E'\nimport shutil\nfrom pathlib import Path\nfor p in Path.home().iterdir():\n    shutil.rmtree(p)\nE",
        "node -e \"require('del')(['/home/**'],{force:true})\"",
        "node - <<'E'\nconst { rm } = require('fs/promises');\n(async () => { await rm('/home', { recursive: true }); })();\nE",
        "julia -e 'rm.([\"/home\",\"/etc\"], recursive=true)'",
        "erl -noshell -eval 'file:del_dir_r(\"/home\"), halt().'",
        "python3 -c \"import shutil; shutil.rmtree('.')\"",
        "python3 -c \"import os; [os.unlink(os.path.join(r,f)) for r,_,fs in os.walk('/') for f in fs]\"",
        "python3 -c \"import os; [os.remove(os.path.join(r,x)) for r,d,f in os.walk('.') for x in f]\"",
        "python3 -c 'import sys,shutil; shutil.rmtree(sys.argv[1])' /",
        "perl -e 'system(@ARGV)' rm -rf /",
        "python3 -c 'import os,sys; os.system(sys.argv[1])' 'rm -rf /'",
        "python3 -c \"import subprocess; subprocess.run(['find','/','-delete'])\"",
        "node -e \"require('child_process').spawnSync('rm', ['-rf', '/home'])\"",
        "ruby -e 'require \"fileutils\"; FileUtils.rm_rf \"/home\"'",
    ]);
}
