#!/usr/bin/env node

const fs = require('fs');

function validateInput(input) {
  if (!input.event) {
    throw new Error('Missing event field');
  }
  if (!input.context) {
    throw new Error('Missing context field');
  }
}

try {
  validateInput(JSON.parse(fs.readFileSync(0, 'utf-8')));
  console.log(JSON.stringify({ allow: true }));
} catch (error) {
  console.log(JSON.stringify({ allow: false, message: error.message }));
}
