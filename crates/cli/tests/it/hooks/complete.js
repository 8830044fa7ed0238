#!/usr/bin/env node

const fs = require('fs');

try {
  // Read and parse input
  const input = JSON.parse(fs.readFileSync(0, 'utf-8'));

  // Validate input
  if (!input.event || !input.context) {
    throw new Error('Invalid input');
  }

  // Process event
  const result = processEvent(input);

  // Return response
  console.log(
    JSON.stringify({
      allow: result.success,
      message: result.message,
      metadata: {
        duration: result.duration,
        timestamp: new Date().toISOString(),
      },
    })
  );
} catch (error) {
  // Return error response
  console.log(
    JSON.stringify({
      allow: false,
      message: `Error: ${error.message}`,
      metadata: {
        error: error.name,
        stack: error.stack,
      },
    })
  );
  process.exit(1);
}

function processEvent(input) {
  const start = Date.now();
  // Your logic here
  return {
    success: true,
    message: 'Success',
    duration: (Date.now() - start) / 1000,
  };
}
