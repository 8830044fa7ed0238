#!/usr/bin/env node

// Set internal timeout
const timeout = setTimeout(() => {
  console.log(
    JSON.stringify({
      allow: false,
      message: 'Hook timed out',
    })
  );
  process.exit(1);
}, 40); // before the timeout of the host

// Work that never ends
setInterval(() => {}, 1000);
