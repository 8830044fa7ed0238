#!/usr/bin/env node

let input = '';
process.stdin.on('data', (chunk) => { input += chunk; });
process.stdin.on('end', () => {
  const { event, data } = JSON.parse(input);
  
  if (event === 'before_model') {
    // Add custom context
    process.stdout.write(JSON.stringify({
      continue: true,
      systemMessage: 'Current time: ' + new Date().toISOString(),
    }));
  } else {
    process.stdout.write(JSON.stringify({ continue: true }));
  }
});
