/** Tests streamed answers of the local runtime: readers that break off or take nothing, and functions that fail. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, describe, expect, test } from "vitest";
import { sized } from "../../harness/tier.ts";
import { startFixture } from "./fixture.ts";

const service = await startFixture();
afterAll(() => service.stop());

describe("a streamed answer", () => {
  test("that fails midway breaks the connection", async () => {
    const answer = await fetch(`${service.url}/streamed?mode=midway`);
    expect(answer.status).toBe(201);
    await expect(answer.text()).rejects.toThrow();
  });

  test("above 200 MB breaks the connection", async () => {
    const answer = await fetch(`${service.url}/streamed?mode=endless`);
    expect(answer.status).toBe(201);
    await expect(answer.arrayBuffer()).rejects.toThrow();
  });

  test("that a function gives up, because its reader takes nothing, ends the connection, and its environment takes the next request", async () => {
    const failures = service.failures();
    const { hostname, port } = new URL(service.url);
    const socket = connect(Number(port), hostname).pause();
    socket.write("GET /streamed?mode=impatient HTTP/1.1\r\nHost: a\r\n\r\n");
    await expect.poll(() => service.failures()).toBe(failures + 1);
    const ended = once(socket, "close");
    let begin = "";
    socket
      .on("error", () => undefined)
      .on("data", (data) => {
        begin ||= String(data);
      });
    socket.resume();
    await ended;
    const started = /x-started: (\d+)/i.exec(begin)?.[1];
    const next = await fetch(`${service.url}/streamed`);
    expect([next.headers.get("x-started"), (await next.text()).length]).toEqual([started, 2_000_000]);
  });

  test("that the readers of one caller do not take leaves an environment to others", { tags: "sized" }, async () => {
    const count = sized({ short: 6, wide: 60 });
    const { hostname, port } = new URL(service.url);
    const head = "GET /guarded?mode=endless HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer all\r\n\r\n";
    const open = new Set<Socket>();
    for (let i = 0; i < count; i++) {
      const socket = connect(Number(port), hostname, () => void socket.write(head)).pause();
      open.add(socket);
      socket.on("close", () => open.delete(socket)).on("error", () => undefined);
    }
    // The test waits until readers that take nothing occupy their environments. Then another caller must be able to read an answer.
    await expect.poll(() => [...open].filter((socket) => socket.bytesWritten > 0).length).toBe(count);
    await expect.poll(() => service.invocations().stream).toBeGreaterThanOrEqual(count);
    const headers = { Authorization: "Bearer other" };
    for (let i = 0; i < 3; i++) {
      const answer = await fetch(`${service.url}/guarded`, { headers });
      expect([answer.headers.get("x-principal"), (await answer.text()).length]).toEqual(["somebody else", 2_000_000]);
    }
    expect(open.size).toBe(count);
    for (const socket of open) socket.destroy();
  });

  test("that its reader breaks off, even while the function computes, ends neither the service nor the environment", async () => {
    const started = new Set<string | null>();
    for (let i = 0; i < 30; i++) {
      const going = new AbortController();
      const answer = await fetch(`${service.url}/streamed?mode=packing`, { signal: going.signal });
      started.add(answer.headers.get("x-started"));
      await answer.body?.getReader().read();
      going.abort();
    }
    const next = await fetch(`${service.url}/streamed`);
    expect([...started]).toContain(next.headers.get("x-started"));
    expect((await next.text()).length).toBe(2_000_000);
    // A new reader may come before the environment of the previous reader is free, so the service may start up to four environments.
    expect(started.size).toBeLessThanOrEqual(4);
  });
});
