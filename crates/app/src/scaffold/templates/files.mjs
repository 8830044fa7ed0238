#!/usr/bin/env node
// Refuses calls that name a file which matches one of the patterns.
//
// The first argument holds the files that the call names, one per line; the second the commands of its shell text, one per
// line, as plain words. Both are the same for every agent. The answer is JSON on standard output. A failure of this script
// refuses the call too, because `onFailure` is `block` in the hook file.

// `*` stands for any text, `?` for one character. Case does not count.
const PATTERNS = __PATTERNS__;
const ANSWER = __ANSWER__;
const WILD = { "*": ".*", "?": "." };

const matches = (pattern, name) => {
  const escaped = [...pattern].map((char) => WILD[char] ?? char.replace(/[.+^${}()|[\]\\/]/, "\\$&")).join("");
  return new RegExp(`/${escaped}/`, "su").test(`/${name.toLowerCase()}/`);
};

const [files, commands] = process.argv.slice(2);
// Blanks within a word are tabs: it may name a file as a whole, and in its parts.
const words = commands.split(/[ \n=@:,]/).map((word) => word.replaceAll("\t", " "));
const names = [...files.split("\n"), ...words, ...commands.split(/[\s=@:,]/)].filter(Boolean);
const found = PATTERNS.some((pattern) => names.some((name) => matches(pattern, name)));
console.log(found ? ANSWER : '{"continue": true}');
