"""A client on the Python SDK: `client.py stdio|http TARGET`; each line of input is a round to run."""

import sys
import time

import anyio
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


def micros(start):
    return (time.perf_counter_ns() - start) / 1000


async def call(session):
    await session.call_tool("echo", {"text": "hello"})


async def one(session, calls):
    times = []
    for _ in range(calls):
        start = time.perf_counter_ns()
        await call(session)
        times.append(micros(start))
    return sorted(times)[calls // 2]


async def many(session, calls):
    start = time.perf_counter_ns()
    for _ in range(calls // 32):
        async with anyio.create_task_group() as group:
            for _ in range(32):
                group.start_soon(call, session)
    return micros(start) / calls


async def main(kind, target):
    server = StdioServerParameters(command=target)
    connection = stdio_client(server) if kind == "stdio" else streamable_http_client(target)
    async with connection as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        await session.list_tools()
        await one(session, 50)
        print(0, flush=True)
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            what, calls = line.split()
            print(await (one if what == "one" else many)(session, int(calls)), flush=True)


anyio.run(main, *sys.argv[1:])
