// Refuses shell commands that force a push.
//
// The event comes as JSON on standard input; the answer is JSON on standard output.
import { readFileSync } from "node:fs";

const forcesAPush = (command) => {
  const words = command.split(/\s+/).map((word) => word.replace(/["']/g, ""));
  const forces = (word) => word === "-f" || word.startsWith("--force");
  return words.includes("git") && words.includes("push") && words.some(forces);
};

const event = JSON.parse(readFileSync(0, "utf8"));
const command = event.data.args?.command ?? "";
const answer = forcesAPush(command)
  ? { continue: false, systemMessage: "A forced push rewrites what others rely on; push without force." }
  : { continue: true };
process.stdout.write(JSON.stringify(answer));
