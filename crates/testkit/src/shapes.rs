//! Shell commands of every shape that agents write, and of some that they should not write, each in any length.

/// One shape of a command: what stands before its parts, a part, and what stands behind them all.
pub struct Shape {
    /// What it is.
    pub name: &'static str,
    before: &'static str,
    /// `N` in it stands for the number of the part.
    part: &'static str,
    behind: &'static str,
}

impl Shape {
    /// A command of this shape with about so many bytes, and no more.
    pub fn command(&self, bytes: usize) -> String {
        let room = bytes.saturating_sub(self.before.len() + self.behind.len());
        let mut command = self.before.to_owned();
        let most = self.before.len() + room;
        for number in 0_usize.. {
            let part = self.part.replace('N', &format!("{number:04}"));
            if command.len() + part.len() > most {
                break;
            }
            command.push_str(&part);
        }
        command.push_str(self.behind);
        command
    }
}

const fn shape(name: &'static str, before: &'static str, part: &'static str, behind: &'static str) -> Shape {
    Shape { name, before, part, behind }
}

/// What agents write all day, and what costs most to read.
#[rustfmt::skip]
pub const SHAPES: &[Shape] = &[
    shape("lines of agents", "",
        "grep -rn \"fn main\" src | head -20; for f in *.rs; do wc -l \"$f\"; done; out=build/$(date +%F)\nmkdir -p \"$out\" && cp -r target/x \"$out\" && cargo test -p foo -- --nocapture 2>&1 | tail -5 > log.txt\nnpx tsx scripts/run.ts --input data/a.json --output build/b.json && pytest -k \"foo and bar\" tests/unit\ngit add -A && git commit -m \"Fix the parser of dates N\" && git push origin main\n",
        "true"),
    shape("pipelines", "", "grep -v N log.txt | sort | uniq -c | head -5; ", "true"),
    shape("a pipeline", "cat log.txt", " | grep -v N", ""),
    shape("an and-chain", "", "cargo test -p xN && ", "true"),
    shape("arguments", "tool", " wN", ""),
    shape("quoted arguments", "tool", " 'run N now'", ""),
    shape("options", "tool", " --oN='a b'", ""),
    shape("marks", "tool 'x ", "=rm,", "'"),
    shape("settings of settings", "tool '", "aN=", " x'"),
    shape("long words with equal signs", "tool", " --a-long-option-nameN=some/long/path/to/a/file.txt", ""),
    shape("a here-document into a file", "cat > src/main.rs <<'EOF'\n", "fn fN(x: &str) -> bool { x.contains(\"rm -rf\") }\n", "EOF\n"),
    shape("a here-document for a program", "tool <<'E'\n", "run N now\n", "E\n"),
    shape("a loop over a here-document", "while read x; do tool $x; done <<'E'\n", "N\n", "E\n"),
    shape("a message of a commit", "git commit -m \"$(cat <<'EOF'\n", "- Mend the parser of dates, which took N for a year\n", "EOF\n)\""),
    shape("substitutions", "", "echo $(echo $(echo $(echo N))); ", "true"),
    shape("assignments", "", "aN=v; echo $aN; ", "true"),
    shape("variables of a command", "", "AN='b c' ", "tool"),
    shape("variables that hold paths", "", "dN=/srv/app/N; rm -rf \"$dN/cache\"; ", "true"),
    shape("globs", "rm -f", " build/*N*.o", ""),
    shape("paths to remove", "rm -rf", " build/outN/x", ""),
    shape("absolute paths to remove", "rm -rf", " /home/ada/project/build/outN", ""),
    shape("files for a program", "prettier --write", " src/deep/folder/fN.ts", ""),
    shape("braces", "", "mkdir -p src/{a,b,c}/{x,y}N; ", "true"),
    shape("loops", "", "for f in a b c; do wc $f; done; ", "true"),
    shape("values of variables", "for x in a b c d e f g h; do ", "tool $x N; ", "done"),
    shape("redirections", "", "echo x > out/N.txt 2>&1; ", "true"),
    shape("wrappers", "", "sudo -E nice -n 5 timeout 3 tool N; ", "true"),
    shape("a chain of env", "", "env A=N ", "tool"),
    shape("programs on other machines", "", "ssh hostN 'cd /srv/app && git pull && make'; ", "true"),
    shape("programs in containers", "", "docker run --rm -v $PWD:/app -w /app node:20 npm test -- N; ", "true"),
    shape("shells", "", "bash -c 'echo N | wc -l'; ", "true"),
    shape("code quoted in quoted code", "", "bash -c \"sh -c 'bash -c \\\"ls N | wc -l\\\"'\"; ", "true"),
    shape("substitutions in fifteen levels", "", "echo $(a $(b $(c $(d $(e $(f $(g $(h $(i $(j $(k $(l $(m $(n $(o N))))))))))))))); ", "true"),
    shape("quoted substitutions in fifteen levels", "", "x=\"$(a \"$(b \"$(c \"$(d \"$(e \"$(f \"$(g \"$(h \"$(i \"$(j \"$(k \"$(l \"$(m \"$(n \"$(o N)\")\")\")\")\")\")\")\")\")\")\")\")\")\")\"; ", "true"),
    shape("fifteen times eval", "", "eval eval eval eval eval eval eval eval eval eval eval eval eval eval eval ls N; ", "true"),
    shape("fifteen groups", "", "( ( ( ( ( ( ( { { { { { { { { ls N; } } } } } } } } ) ) ) ) ) ) ); ", "true"),
    shape("words that name programs", "", "tool rm git sudo env N; ", "true"),
    shape("one command of such words", "tool", " rm git", ""),
    shape("nine words that name programs", "", "tool rm git sudo env xargs find sed tee timeout N; ", "true"),
    shape("fifteen words that name programs", "", "tool rm git sudo env xargs find sed tee timeout nice bash eval chmod mv kill N; ", "true"),
    shape("words that name wrappers", "", "tool sudo nohup nice timeout env xargs doas setsid N; ", "true"),
    shape("searches that run", "", "find src -name '*.N' -exec grep -l x {} +; ", "true"),
    shape("a loop over eight values with other options", "", "for f in a b c d e f g h; do sort -kN $f; done; ", "true"),
    shape("searches that remove in other folders", "", "find dN -exec rm {} +; ", "true"),
    shape("a pipeline of xargs with other words", "ls", "|xargs rm N", ""),
    shape("searches that remove", "", "find . -exec rm {} +;", "true"),
    shape("a search that runs searches", "find .", " -exec", " ls \\;"),
    shape("a search that runs again and again", "find a b c", " -exec ls {} \\;", ""),
    shape("fd that runs", "fd x", " -x", " ls"),
    shape("xargs that searches", "ls | xargs find .", " -exec", " ls \\;"),
    shape("searches that delete", "", "find src -name x -delete;", "true"),
    shape("a pipeline of xargs", "ls", "|xargs rm", ""),
    shape("a search with many tests", "find .", " -name '*.N' -o", " -delete"),
    shape("xargs", "", "find . -name '*.N' -print0 | xargs -0 -n1 rm -f; ", "true"),
    shape("code for sed", "sed -i", " -e 's/old_nameN/new_name/g'", " src/lib.rs"),
    shape("code for sed that runs", "sed '", "1e ls;", "' x"),
    shape("JSON", "curl -d '{", "\"keyN\": {\"a\": [1, 2, 3], \"b\": \"run it now\"}, ", "\"x\": 1}' http://localhost"),
    shape("JSON for a program", "tool '{", "\"keyN\": {\"a\": [1, 2, 3], \"b\": \"run it now\"}, ", "\"x\": 1}'"),
    shape("code for python", "python3 -c '\nimport os, json\n", "x = json.load(open(\"data/N.json\")); print(x[\"a b\"])\n", "'"),
    shape("code for python that runs", "python3 -c 'import os\n", "os.system(\"ls N\"); ", "'"),
    shape("python in a here-document", "python3 - <<'EOF'\nimport re, subprocess\n", "s = re.sub(r'foo', \"bar N\", s); subprocess.run([\"ls\", \"-l\"])\n", "EOF\n"),
    shape("minified code for node", "node -e '", "function aN(b){return b.map(c=>c.d(\"e\")+`${c.f}`).filter(Boolean)};", "'"),
    shape("code for awk", "awk '", "/N/ { print $1 \" \" $2; n += $3 } ", "' x"),
    shape("base64", "echo ", "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5ejAxMjM0NTY3ODkr/", "= | base64 -d > out.bin"),
    shape("lines with carriage returns", "", "cargo test -p xN\r\n", "true"),
    shape("letters of other scripts", "git commit -m '", "Größe und Maß von Übung N – 日本語のテキスト ", "'"),
    shape("letters of other scripts as words", "tool", " größe-N/日本語", ""),
    shape("changes of folder", "", "cd sub/dirN && make; ", "true"),
    shape("tests", "", "[ -f a/N ] && [[ -n \"$x\" ]] || echo none; ", "true"),
    shape("arithmetic", "", "i=$((i + N)); ", "true"),
    shape("functions", "", "fN() { rm -rf \"$1/build\"; }; fN .; ", "true"),
    shape("cases", "case $1 in\n", "  aN) make N ;;\n", "esac"),
    shape("traps", "", "trap 'rm -f \"/tmp/xN\"' EXIT; ", "true"),
    shape("comments", "", "# what comes next is part N of it\nmake N\n", "true"),
    shape("patches", "apply_patch <<'EOF'\n*** Begin Patch\n", "*** Update File: src/fN.rs\n@@\n-let a = 1;\n+let a = 2;\n", "*** End Patch\nEOF\n"),
    shape("copies", "", "cp -r src/N build/N; ", "true"),
    shape("downloads", "", "curl -sSLo /tmp/N.tgz https://example.org/N.tgz && tar xzf /tmp/N.tgz -C vendor; ", "true"),
];
