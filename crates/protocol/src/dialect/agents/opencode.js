// Asks `ollm hook run --from opencode` at each event. `ollm connect opencode` wrote this file, and `ollm disconnect opencode`
// removes it.
import { spawn } from "node:child_process";

const LINE = "__LINE__";
const ASKED = ["__ASKED__"];
const TOLD = ["__TOLD__"];

// What keeps hooks from being asked is told once; the agent goes on.
let isTold = false;
const tell = (what) => {
  if (!isTold) console.error(`ollm: ${what}`);
  isTold = true;
};

const ask = (directory, hook, input, output) =>
  new Promise((resolve, reject) => {
    const child = spawn("/bin/sh", ["-c", LINE], { cwd: directory, stdio: ["pipe", "pipe", "pipe"] });
    let answer = "";
    let reason = "";
    child.stdout.on("data", (chunk) => (answer += chunk));
    child.stderr.on("data", (chunk) => (reason += chunk));
    child.stdin.on("error", () => {});
    child.on("error", reject);
    child.on("close", (status) => {
      if (status === 2) return reject(new Error(reason.trim() || "a hook refused it"));
      if (status !== 0) tell(reason.trim() || `ollm ended with ${status}, so no hook was asked`);
      if (answer.trim() === "") return resolve({});
      try {
        resolve(JSON.parse(answer));
      } catch (error) {
        reject(error);
      }
    });
    child.stdin.end(JSON.stringify({ hook, directory, input, output }));
  });

// The agent keeps hold of the objects that it passes, so they are changed in place.
const assign = (target, source) => {
  for (const [key, value] of Object.entries(source)) {
    const isMap = (it) => it !== null && typeof it === "object" && !Array.isArray(it);
    if (isMap(target[key]) && isMap(value)) {
      for (const old of Object.keys(target[key])) if (!(old in value)) delete target[key][old];
      Object.assign(target[key], value);
    } else {
      target[key] = value;
    }
  }
};

export const Ollm = async ({ directory }) => {
  const asked = (hook) => async (input, output) => {
    const answer = await ask(directory, hook, input, output);
    // A result is text here.
    if (typeof answer.output?.output === "object") answer.output.output = JSON.stringify(answer.output.output);
    if (answer.output && output) assign(output, answer.output);
  };
  const hooks = Object.fromEntries(ASKED.map((hook) => [hook, asked(hook)]));
  hooks.event = async ({ event }) => {
    // Nobody waits for what is only told.
    if (TOLD.includes(event.type)) await ask(directory, event.type, event.properties, {}).catch(() => {});
  };
  return hooks;
};
