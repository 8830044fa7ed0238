#!/usr/bin/env node
// Save as: ~/.ollm/hooks/block-dangerous.js

let input = '';
process.stdin.on('data', (chunk) => { input += chunk; });
process.stdin.on('end', () => {
  try {
    const { event, data } = JSON.parse(input);
    
    if (event === 'before_tool' && data.tool_name === 'shell') {
      const command = data.args.command;
      const dangerous = ['rm -rf /', 'dd if=', 'mkfs', ':(){:|:&};:'];
      
      for (const pattern of dangerous) {
        if (command.includes(pattern)) {
          process.stdout.write(JSON.stringify({
            continue: false,
            systemMessage: `Blocked dangerous command: ${pattern}`,
          }));
          return;
        }
      }
    }
    
    process.stdout.write(JSON.stringify({ continue: true }));
  } catch (error) {
    process.stdout.write(JSON.stringify({
      continue: true,
      error: error.message,
    }));
  }
});
