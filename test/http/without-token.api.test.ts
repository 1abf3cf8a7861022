/** Tests that requests without a token do not use up the throttles of requests with a token, and of refreshes of sessions. */
import { expect, test } from "vitest";
import { FROM_CONSOLE, newBrowser } from "../harness/browser-session.ts";
import { send } from "../harness/client.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

/** Kinds of requests without a token, with their answer and their number. */
const floods = [
  ["POST", "/api/session/refresh", 401, 150],
  ["POST", "/api/session/logout", 200, 150],
  ["GET", "/api/session/login", 302, 150],
  ["GET", "/api/session/callback", 400, 150],
  ["GET", "/health", 200, 150],
  ["PUT", "/api/prospects", 405, 150],
  ["DELETE", "/health", 405, 150],
  ["OPTIONS", "/api/prospects", 204, 150],
  ["GET", "/api/nothing", 404, 150],
  ["GET", "/api/prospects", 401, 150],
] as const;

test.each(floods)(
  "a flood of %s %s is answered %i, and so are signed-in requests and refreshes of others",
  async (method, path, status, count) => {
    const browser = newBrowser();
    await browser.signIn(as.rep.email, { accessSeconds: 60 });
    const statuses = await Promise.all(
      Array.from({ length: count }, () =>
        send(method, path, { headers: FROM_CONSOLE }).then((answer) => answer.status),
      ),
    );
    expect(new Set(statuses)).toEqual(new Set([status]));
    for (let i = 0; i < 5; i++) {
      expect((await as.rep("GET", "/api/prospects")).status).toBe(200);
      expect((await browser.call("POST", "/api/session/refresh")).status).toBe(204);
      expect((await browser.call("GET", "/api/me")).status).toBe(200);
    }
  },
);
