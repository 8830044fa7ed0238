#!/usr/bin/env node
// Answers calls whose commands match one of the patterns.
//
// The argument holds the commands of the shell text, one per line, as plain words; it is the same for every agent. The
// answer is JSON on standard output. A failure of this script counts as a match, because of `onFailure` in the hook file.

// The words of a pattern must stand in one command, in this order. `*` stands for any text, `?` for one character.
const PATTERNS = __PATTERNS__;
const ANSWER = __ANSWER__;
const WILD = { "*": ".*", "?": "." };

const expression = (pattern) =>
  [...pattern].map((char) => WILD[char] ?? char.replace(/[.+^${}()|[\]\\/]/, "\\$&")).join("");
const fits = (pattern, word) => new RegExp(`^${expression(pattern)}$`, "su").test(word);

const matches = (pattern, command) => {
  const [first, ...others] = pattern.split(" ").filter(Boolean);
  const words = command.split(" ");
  // A program may be called by its path.
  let at = words.findIndex((word) => fits(first, word.split("/").at(-1)));
  for (const part of others) {
    if (at < 0) return false;
    at = words.findIndex((word, index) => index > at && fits(part, word));
  }
  return at >= 0;
};

const [text] = process.argv.slice(2);
const commands = text.split("\n");
const found = PATTERNS.some((pattern) => commands.some((command) => matches(pattern, command)));
console.log(found ? ANSWER : '{"continue": true}');
