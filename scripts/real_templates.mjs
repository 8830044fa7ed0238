// Asks each chat template for its rules, and runs a session with each: `node real_templates.mjs PACKAGES OLLM [WORD]`;
// scripts/real-templates.sh calls it.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const [packages, ollm, word] = process.argv.slice(2);
const { Template } = await import(resolve(packages, "node_modules/@huggingface/jinja/dist/index.js"));

// The list is TypeScript; without its one type it is JavaScript.
const file = resolve(packages, "node_modules/@huggingface/ollama-utils/src/chat-template-automap.ts");
const source = readFileSync(file, "utf8");
const list = source.slice(source.indexOf("= [", source.indexOf("export const")) + 2).replace(/;\s*$/, "");
const all = new Function(`return ${list}`)();
// Judges of texts take no conversation, and the vision models of Llama 3.2 take lists of parts only.
const others = /guard|llama3\.2-vision/;
const templates = all.filter((one) => one.gguf && one.model.includes(word ?? "") && !others.test(one.model));
// What the renderer cannot do, where the real one can.
const unknown = /^(Unknown \w+ filter|Cannot perform operation|Expected iterable)/;

const home = mkdtempSync(join(tmpdir(), "ollm-templates-"));
mkdirSync(join(home, ".ollm/hooks"), { recursive: true });
const told = { continue: true, systemMessage: "be brief", context: "it is Monday" };
writeFileSync(join(home, ".ollm/hooks/tell.sh"), `cat > /dev/null; echo '${JSON.stringify(told)}'\n`);
const hook = (event) => [event, [{ name: `tell-${event}`, command: "sh", args: ["tell.sh"] }]];
const hooks = Object.fromEntries(["session_start", "before_agent", "before_model", "after_tool"].map(hook));
writeFileSync(join(home, ".ollm/hooks/tell.json"), JSON.stringify({ hooks }));

let template, refusals, rendered;

/// What the model is asked, or why its template does not take it.
function render({ messages, tools }) {
    return template.render({ messages, tools, add_generation_prompt: true, bos_token: "<s>", eos_token: "</s>" });
}

/// A template that the renderer reads.
function read(one) {
    try {
        return new Template(one.gguf);
    } catch (error) {
        console.log(`- ${one.model}: the renderer does not read it (${error.message})`);
        return undefined;
    }
}

const says = (role, content) => ({ role, content });
const shell = { type: "function", function: { name: "shell", description: "runs a command", parameters: { type: "object", properties: {} } } };
// Some templates want an id of nine letters and digits, which their servers give.
const called = { type: "function", id: "call00001", function: { name: "shell", arguments: '{"command":"MARK-1"}' } };
// Short conversations: what a template does with one of them is a rule of it. Each mark must reach the model.
const probes = {
    system: { messages: [says("system", "MARK-1"), says("user", "MARK-2")] },
    laterSystem: { messages: [says("user", "MARK-1"), says("assistant", "MARK-2"), says("system", "MARK-3"), says("user", "MARK-4")] },
    twoPrompts: { messages: [says("user", "MARK-1"), says("user", "MARK-2")] },
    tools: { messages: [says("user", "MARK-2"), { ...says("assistant", ""), tool_calls: [called] }, { ...says("tool", "MARK-3"), tool_call_id: "call00001", name: "shell" }], tools: [shell] },
};

/// What the template at hand does with a conversation; nothing where the renderer cannot tell.
function rule(probe) {
    const marks = JSON.stringify(probe).match(/MARK-\d/g);
    try {
        const text = render(probe);
        return marks.every((mark) => text.includes(mark)) ? "takes" : "drops";
    } catch (error) {
        return unknown.test(error.message) ? undefined : "refuses";
    }
}

/// The rules of all templates, by their models.
function rules() {
    const found = {};
    for (const one of templates) {
        template = read(one);
        const own = template && Object.entries(probes).map(([name, probe]) => [name, rule(probe)]);
        if (own?.every(([, what]) => what)) found[one.model] = Object.fromEntries(own);
    }
    return found;
}

// A test of the agent rests on this record.
const record = "crates/agent/src/provider/shape/templates.json";
const found = rules();
if (process.env.UPDATE_TEMPLATES) {
    const rows = Object.entries(found).sort().map(([model, own]) => `  ${JSON.stringify(model)}: ${JSON.stringify(own)}`);
    writeFileSync(record, `{\n${rows.join(",\n")}\n}\n`);
}
const recorded = JSON.parse(readFileSync(record, "utf8"));
const other = templates.map((one) => one.model).filter((model) => JSON.stringify(recorded[model]) !== JSON.stringify(found[model]));
if (other.length) {
    console.log(`${record} does not say what these templates do (UPDATE_TEMPLATES=1 writes it anew): ${other.join(", ")}`);
    process.exit(1);
}

const server = createServer((request, response) => {
    let text = "";
    request.on("data", (part) => { text += part; });
    request.on("end", () => {
        if (request.method !== "POST" || !request.url.endsWith("/chat/completions")) {
            response.writeHead(404).end();
            return;
        }
        const body = JSON.parse(text);
        try {
            rendered.push(render(body));
        } catch (error) {
            refusals.push(error.message);
            const message = `Jinja Exception: ${error.message}`;
            response.writeHead(500, { "Content-Type": "application/json" });
            response.end(JSON.stringify({ error: { code: 500, message, type: "server_error" } }));
            return;
        }
        const called = body.messages.some((one) => one.role === "tool" || String(one.content).includes("marker-42"));
        const call = { index: 0, id: "call00001", type: "function", function: { name: "shell", arguments: '{"command":"echo marker-42"}' } };
        const delta = body.tools && !called ? { tool_calls: [call] } : { content: "done" };
        const finish_reason = delta.tool_calls ? "tool_calls" : "stop";
        response.writeHead(200, { "Content-Type": "text/event-stream" });
        const chunk = (choice) => response.write(`data: ${JSON.stringify({ id: "1", model: "m", choices: [{ index: 0, ...choice }] })}\n\n`);
        chunk({ delta: { role: "assistant", ...delta } });
        chunk({ delta: {}, finish_reason });
        response.end("data: [DONE]\n\n");
    });
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const url = `http://127.0.0.1:${server.address().port}/v1`;

/// Runs the program with lines on its standard input.
function run(args, input) {
    return new Promise((done) => {
        const env = { HOME: home, PATH: process.env.PATH };
        const child = spawn(resolve(ollm), args, { cwd: home, env });
        let said = "";
        child.stdout.on("data", (part) => { said += part; });
        child.stderr.on("data", (part) => { said += part; });
        const deadline = setTimeout(() => child.kill("SIGKILL"), 60_000);
        child.on("close", (code) => { clearTimeout(deadline); done({ code, said }); });
        child.stdin.end(input);
    });
}

let failed = 0, adapted = 0;
for (const one of templates) {
    template = read(one);
    if (!template) continue;
    [refusals, rendered] = [[], []];
    const args = ["chat", "--model", `openai:m@${url}`, "--approval", "yolo"];
    const { code, said } = await run(args, "one\ntwo\n");
    const fine = code === 0 && (said.match(/done/g) ?? []).length >= 2;
    if (refusals.some((why) => unknown.test(why))) {
        console.log(`- ${one.model}: the renderer cannot do it (${refusals[0]})`);
        continue;
    }
    adapted += refusals.length > 0;
    if (!fine) {
        failed += 1;
        console.log(`! ${one.model}: exit ${code}; refused: ${[...new Set(refusals)].join("; ")}\n${said}`);
    }
}
server.close();
rmSync(home, { recursive: true });
console.log(`${templates.length} templates, ${adapted} of them refused something first, ${failed} failed`);
process.exit(failed ? 1 : 0);
