#!/usr/bin/env node
// Tells the agent which branch is checked out, before it begins.
//
// The event comes as JSON on standard input; the answer is JSON on standard output.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

JSON.parse(readFileSync(0, "utf8"));
const git = spawnSync("git", ["branch", "--show-current"], { encoding: "utf8" });
const branch = git.stdout?.trim();
const systemMessage = branch
  ? `The branch that is checked out is ${branch}.`
  : "This folder is under no branch of git.";
process.stdout.write(JSON.stringify({ continue: true, systemMessage }));
