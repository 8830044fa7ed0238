//! Every example of the specification's five documents, through the real binary with real interpreters: it loads, and does
//! what its document says. Where a document is overruled, the example says so and what happens instead.
//!
//! An example is a row of a table: files, an event, and what must come of it. `LAB` stands for the folder of the test.

use std::fs;

use serde_json::{Value, json};

use crate::lab::{Lab, Ran, eventually, finish};

mod agent;
mod bundle;
mod gate;
mod ollm;
mod rpc;

/// One example.
struct Example {
    /// What its document calls it.
    name: &'static str,
    /// Files, from the folder of the test; those in `bin/` are programs on the search path.
    files: Vec<(&'static str, String)>,
    /// The event on standard input.
    event: Value,
    /// The dialect the event is written in; our own answer is expected without it.
    from: Option<&'static str>,
    /// Variables of the environment.
    env: &'static [(&'static str, &'static str)],
    /// The exit status.
    code: i32,
    /// Parts of the answer, by JSON pointer.
    answers: Vec<(&'static str, Value)>,
    /// Texts that standard error holds.
    tells: Vec<&'static str>,
    /// Files that are left behind, and a text in each.
    leaves: Vec<(&'static str, &'static str)>,
    /// Files that must not have been made.
    lacks: Vec<&'static str>,
}

impl Example {
    fn new(name: &'static str, event: Value) -> Example {
        Example {
            name,
            event,
            files: Vec::new(),
            from: None,
            env: &[],
            code: 0,
            answers: Vec::new(),
            tells: Vec::new(),
            leaves: Vec::new(),
            lacks: Vec::new(),
        }
    }

    fn file(mut self, path: &'static str, content: impl Into<String>) -> Example {
        self.files.push((path, content.into()));
        self
    }

    /// A hook of the user: a script, and the file that declares it under the name `hook`.
    fn hook(self, event: &str, script: &'static str, content: &str) -> Example {
        let name = script.rsplit('/').next().unwrap();
        let command = match name.rsplit('.').next().unwrap() {
            "js" => "node",
            "py" => "python3",
            _ => "bash",
        };
        let entry = json!({"name": "hook", "command": command, "args": [name], "timeout": "25s"});
        let declared = json!({"hooks": {event: [entry]}}).to_string();
        self.file(script, content).file("home/.ollm/hooks/hook.json", declared)
    }

    /// A hook of the user that answers just this.
    fn answering(self, event: &str, answer: &Value) -> Example {
        let script = format!("import sys\nsys.stdin.read()\nprint('''{answer:#}''')\n");
        self.hook(event, "home/.ollm/hooks/answer.py", &script)
    }

    fn from(mut self, dialect: &'static str) -> Example {
        self.from = Some(dialect);
        self
    }

    fn env(mut self, env: &'static [(&'static str, &'static str)]) -> Example {
        self.env = env;
        self
    }

    fn exits(mut self, code: i32) -> Example {
        self.code = code;
        self
    }

    fn gives(mut self, pointer: &'static str, value: impl Into<Value>) -> Example {
        self.answers.push((pointer, value.into()));
        self
    }

    fn tells(mut self, text: &'static str) -> Example {
        self.tells.push(text);
        self
    }

    fn leaves(mut self, path: &'static str, text: &'static str) -> Example {
        self.leaves.push((path, text));
        self
    }

    fn lacks(mut self, path: &'static str) -> Example {
        self.lacks.push(path);
        self
    }

    fn lab(&self) -> Lab {
        let lab = Lab::new();
        let path = format!("{}:{}", lab.root.join("bin").display(), crate::lab::search_path().display());
        let lab = self.env.iter().fold(lab.set("PATH", &path), |lab, (name, value)| lab.set(name, value));
        for (path, content) in &self.files {
            let content = content.replace("LAB", &lab.root.display().to_string());
            if path.starts_with("bin/") {
                lab.write_executable(path, &content);
            } else {
                lab.write(path, content);
            }
        }
        lab
    }

    fn run(&self, lab: &Lab) -> Ran {
        let arguments = [&["hook", "run"][..], &self.from.map_or_else(Vec::new, |from| vec!["--from", from])].concat();
        let event = self.event.to_string().replace("LAB", &lab.root.display().to_string());
        finish(lab.ollm(&arguments), event.as_bytes())
    }

    fn check(&self) {
        let lab = self.lab();
        let ran = self.run(&lab);
        let place = || format!("{}: {ran:#?}", self.name);
        assert_eq!(ran.code, self.code, "{}", place());
        for (pointer, wanted) in &self.answers {
            let wanted: Value =
                serde_json::from_str(&wanted.to_string().replace("LAB", &lab.root.display().to_string())).unwrap();
            assert_eq!(ran.answer().pointer(pointer), Some(&wanted), "{pointer} of {}", place());
        }
        for text in &self.tells {
            assert!(ran.stderr.contains(text), "{text} of {}", place());
        }
        for (path, text) in &self.leaves {
            let holds = || fs::read_to_string(lab.root.join(path)).is_ok_and(|found| found.contains(text));
            // Some hooks run in the background.
            eventually(&format!("{path} holds {text}: {}", place()), holds);
        }
        for path in &self.lacks {
            assert!(!lab.root.join(path).exists(), "{path} of {}", place());
        }
    }
}

fn check(examples: Vec<Example>) {
    for example in examples {
        example.check();
    }
}
