/** Tests that readers who break off streamed answers end neither a function nor the service. */
import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { routes } from "../../infra/routes/routes.ts";
import { baseUrl, tokenOf } from "../harness/client.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

/** The number of readers of each route. */
const READERS = 30;

/** Requests the path, breaks off when the answer begins, and returns the status. */
async function breakOff(method: string, path: string): Promise<string> {
  const { hostname, port } = new URL(baseUrl());
  const socket = connect(Number(port), hostname);
  const body = method === "POST" ? "{}" : "";
  const lines = [
    `${method} ${path} HTTP/1.1`,
    "Host: a",
    `Authorization: Bearer ${await tokenOf(as.owner.email)}`,
    "Content-Type: application/json",
    "Accept-Encoding: gzip",
    `Content-Length: ${body.length}`,
  ];
  socket.write(`${lines.join("\r\n")}\r\n\r\n${body}`);
  const [begin] = await once(socket, "data");
  socket.destroy();
  return String(begin).slice(9, 12);
}

test.each(routes.filter(({ streamed }) => streamed))(
  "$method $path answers all readers, although each one breaks off",
  async ({ method, path }) => {
    const place = path.replace(/\{\w+\}/g, "1");
    const statuses = new Set(await Promise.all(Array.from({ length: READERS }, () => breakOff(method, place))));
    expect([...statuses].filter((status) => Number(status) >= 500)).toEqual([]);
    // The throttle of the export is lower than the number of readers.
    statuses.delete("429");
    expect(statuses.size).toBe(1);
    expect(await breakOff("GET", "/api/me")).toBe("200");
  },
);
