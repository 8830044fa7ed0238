//! Folders that are named by a pattern, by a variable, or by the name of the user.

use super::classes::{passes, stopped};

#[test]
fn a_folder_that_a_pattern_names_sheds_no_protection() {
    stopped(&[
        "cd ~/.oll* && rm *",
        "cd ~/.[o]llm && echo x > config.yaml",
        "cd ~; cd .oll*; echo x > config.yaml",
        "pushd ~/.oll*; rm config.yaml; popd",
        "cd .gi*/hooks && echo x > pre-commit",
        "cd .gi* && cd hooks && echo x > pre-commit",
        "cd .cl* && 7z x a.7z",
        "(cd ~/.oll* && rm -rf hooks)",
        "env -C ~/.oll* rm config.yaml",
        "for d in ~/.oll*; do cd $d; rm config.yaml; done",
        "cd ~/.ss* && rm id_rsa",
        "cd ~/.ss* && echo x > id_rsa",
        "rm ~/.ss*/id_rsa",
        "cd sub* && git init",
        "cd /et* && rm passwd",
        "cd /e*c && echo x > passwd",
        "rm /e*/passwd",
        "cd ~/.cargo/b* && cp x ollm",
    ]);
    passes(&[
        "cd packages/* && npm test",
        "for d in packages/*; do (cd \"$d\" && npm i && npm run build); done",
        "for d in */; do cd \"$d\"; cp ../x.json config.json; cd ..; done",
        "for d in */; do (cd $d && rm -rf node_modules dist); done",
        "cd build* && rm -rf ./*.o",
        "cd .venv/lib/python*/site-packages && ls",
        "cd .github/work* && sed -i s/a/b/ ci.yml",
        "rm -f /t*/foo/x",
        "cat /e*/hosts",
    ]);
}

#[test]
fn a_folder_that_a_variable_or_a_command_names_sheds_no_protection() {
    stopped(&[
        "cd $D && echo x > config.yaml",
        "cd \"$D\"; tee config.yaml < x",
        "cd $(cat f) && cp x hooks.json",
        "D=$(ls -d ~/.oll*); cd $D; rm *",
        "cd $(ls -d ~/.oll*) && echo x > config.yaml",
    ]);
    passes(&[
        "cd \"$PROJECT_DIR\" && npm ci",
        "cd $DIR && ls && cat config.yaml",
        "cd $(mktemp -d) && echo x > config.yaml && git init",
        "T=$(mktemp -d); cd \"$T\" && git init && echo '{}' > settings.json",
        "cd \"$(git rev-parse --show-toplevel)\" && rm -rf target",
        "cd apps/$APP && npm i && rm -rf .next",
        "cd \"$(dirname \"$0\")/..\" && cargo build && rm -rf out",
    ]);
}

#[test]
fn the_name_of_the_user_is_that_of_the_home() {
    stopped(&[
        "rm -rf ~/../$USER",
        "rm -rf ~/../$(whoami)",
        "rm -rf ../../../$LOGNAME",
        "cd ~/../$USER && rm -rf *",
        "echo x > ~/../$USER/.ollm/config.yaml",
        "cd ~/../$USER/.ollm && rm config.yaml",
    ]);
    passes(&["chown -R $USER:$USER .", "mkdir -p /tmp/$USER && rm -rf /tmp/$USER", "scp x $USER@host:"]);
}
