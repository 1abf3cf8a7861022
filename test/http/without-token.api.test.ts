/** Tests that floods of requests without a token, and readers who break off streamed answers, disturb no other request. */
import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { routes } from "../../infra/routes/routes.ts";
import { FROM_CONSOLE, newBrowser } from "../harness/browser-session.ts";
import { baseUrl, send, tokenOf } from "../harness/client.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

/** Number of concurrent requests. It exceeds the number of a function's environments, so a flood occupies all of them. */
const REQUESTS = 40;

const floods = [
  ["POST", "/api/session/refresh", 401],
  ["POST", "/api/session/logout", 200],
  ["GET", "/api/session/login", 302],
  ["GET", "/api/session/callback", 400],
  ["GET", "/health", 200],
  ["PUT", "/api/prospects", 405],
  ["DELETE", "/health", 405],
  ["OPTIONS", "/api/prospects", 204],
  ["GET", "/api/nothing", 404],
  ["GET", "/api/prospects", 401],
] as const;

test.each(floods)(
  "a flood of %s %s is answered %i, and so are signed-in requests and refreshes of others",
  async (method, path, status) => {
    const browser = newBrowser();
    await browser.signIn(as.rep.email, { accessSeconds: 60 });
    const statuses = await Promise.all(
      Array.from({ length: REQUESTS }, () =>
        send(method, path, { headers: FROM_CONSOLE }).then((answer) => answer.status),
      ),
    );
    expect(new Set(statuses)).toEqual(new Set([status]));
    for (let i = 0; i < 2; i++) {
      expect((await as.rep("GET", "/api/prospects")).status).toBe(200);
      expect((await browser.call("POST", "/api/session/refresh")).status).toBe(204);
      expect((await browser.call("GET", "/api/me")).status).toBe(200);
    }
  },
);

/** Number of clients that break off at once. A function has fewer environments, so each environment serves such a client. */
const READERS = 10;

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
    // The export may refuse some of the readers with 429, because its throttle allows fewer requests than there are readers.
    statuses.delete("429");
    expect(statuses.size).toBe(1);
    expect(await breakOff("GET", "/api/me")).toBe("200");
  },
);
