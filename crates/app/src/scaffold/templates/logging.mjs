#!/usr/bin/env node
// Keeps a log of tool calls, one event per line.
//
// The event comes as JSON on standard input; the answer is JSON on standard output.
import { appendFileSync, mkdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

const { data } = JSON.parse(readFileSync(0, "utf8"));
const folder = join(process.env.XDG_STATE_HOME || join(homedir(), ".local/state"), "ollm-hooks");
mkdirSync(folder, { recursive: true, mode: 0o700 });
const line = { time: data.timestamp, session: data.session_id, tool: data.tool_name };
appendFileSync(join(folder, "__NAME__.log"), JSON.stringify(line) + "\n", { mode: 0o600 });
process.stdout.write(JSON.stringify({ continue: true }));
