#!/usr/bin/env node

let input = '';
process.stdin.on('data', (chunk) => { input += chunk; });
process.stdin.on('end', () => {
  const { event, data } = JSON.parse(input);
  
  if (event === 'before_tool' && data.tool_name === 'shell') {
    // Block dangerous shell commands
    const command = data.args.command;
    if (command.includes('rm -rf')) {
      process.stdout.write(JSON.stringify({
        continue: false,
        systemMessage: 'Blocked dangerous command',
      }));
      return;
    }
  }
  
  // Allow
  process.stdout.write(JSON.stringify({ continue: true }));
});
