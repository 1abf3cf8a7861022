/** Tests the details of answers to requests that API Gateway cannot read. */
import { createConnection } from "node:net";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { baseUrl } from "../harness/client.ts";

const Detailed = z.object({ detail: z.string() });

/** Sends the first line of a request that an HTTP client would refuse to send. Returns the whole answer. */
async function rawAnswer(line: string): Promise<string> {
  const { hostname, port } = new URL(baseUrl());
  const socket = createConnection({ host: hostname, port: Number(port) });
  socket.end(`${line} HTTP/1.1\r\nHost: ${hostname}\r\nConnection: close\r\n\r\n`);
  return text(socket);
}

test.each(["GET /api/%ZZ", "GET /api/prospects?search=%ff", "BREW /api/prospects", "get /api/prospects"])(
  "a request that cannot be read: %s",
  async (line) => {
    const answer = await rawAnswer(line);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toMatch(/^content-type: application\/problem\+json/im);
    const detail = z.parse(Detailed, JSON.parse(answer.slice(answer.indexOf("{"), answer.lastIndexOf("}") + 1))).detail;
    expect(detail).toContain("Use a method of HTTP, such as GET");
    expect(detail).toContain("two hexadecimal digits");
  },
);
