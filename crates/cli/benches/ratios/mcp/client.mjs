// A client on the TypeScript SDK: `client.mjs stdio|http TARGET`; each line of input is a round to run.
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [kind, target] = process.argv.slice(2);
const transport =
    kind === "stdio"
        ? new StdioClientTransport({ command: target })
        : new StreamableHTTPClientTransport(new URL(target));
const client = new Client({ name: "bench", version: "1" });
await client.connect(transport);
await client.listTools();

const call = () => client.callTool({ name: "echo", arguments: { text: "hello" } });
const micros = (start) => Number(process.hrtime.bigint() - start) / 1000;

async function one(calls) {
    const times = [];
    for (let i = 0; i < calls; i++) {
        const start = process.hrtime.bigint();
        await call();
        times.push(micros(start));
    }
    times.sort((a, b) => a - b);
    return times[Math.floor(calls / 2)];
}

async function many(calls) {
    const start = process.hrtime.bigint();
    for (let left = calls; left > 0; left -= 32) {
        await Promise.all(Array.from({ length: 32 }, call));
    }
    return micros(start) / calls;
}

await one(50);
console.log("0");
for await (const line of createInterface({ input: process.stdin })) {
    const [what, calls] = line.split(" ");
    console.log(await (what === "one" ? one : many)(Number(calls)));
}
await client.close();
