#!/usr/bin/env node
// Tells the agent what a file says, before it begins: at most 32 KiB of it.
//
// The event comes as JSON on standard input; the answer is JSON on standard output.
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";

const FILE = __FILE__;

JSON.parse(readFileSync(0, "utf8"));
const answer = { continue: true };
const path = resolve(process.env.OLLM_PROJECT_DIR ?? ".", FILE);
if (existsSync(path)) {
  answer.systemMessage = readFileSync(path).subarray(0, 32 << 10).toString("utf8");
}
console.log(JSON.stringify(answer));
