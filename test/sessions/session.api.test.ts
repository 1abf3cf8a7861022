/** Tests the sign-in of the console over HTTP, and attacks on it: login, callback, requests with the cookie, refresh and logout. */
import { randomBytes } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import { type Browser, FROM_CONSOLE, locationOf, newBrowser } from "../harness/browser-session.ts";
import { baseUrl, flushAuthorizers, tokenOf } from "../harness/client.ts";
import { dataOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();
beforeEach(() => flushAuthorizers());

const signedIn = async (email: string, options?: Parameters<Browser["signIn"]>[1]): Promise<Browser> => {
  const browser = newBrowser();
  expect((await browser.signIn(email, options)).status).toBe(302);
  return browser;
};

const sessionOf = ({ cookies }: Browser): string => cookies.get("session") ?? "";

describe("sign-in", () => {
  test("login leads to the issuer, the callback sets the cookie of a session, and the API accepts it until the logout", async () => {
    const browser = newBrowser();
    const login = await browser.send("/api/session/login?returnTo=/territories%3Fid%3D7");
    expect(login.status).toBe(302);
    const page = await browser.send(locationOf(login));
    expect([page.status, page.text.includes("rep@acme.test")]).toEqual([200, true]);
    const callback = await browser.signIn(as.rep.email, { returnTo: "/territories?id=7" });
    expect([callback.status, callback.headers.get("location")]).toEqual([302, "/territories?id=7"]);
    expect(callback.setCookies).toEqual([
      expect.stringMatching(/^session=[A-Za-z0-9_-]{43}; Max-Age=28800; Path=\/; HttpOnly; SameSite=Strict$/),
      "sign-in=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax",
    ]);
    const me = await browser.call("GET", "/api/me");
    expect([me.status, me.body]).toMatchObject([200, { user: { email: as.rep.email }, role: "sales" }]);
    const made = await browser.call("POST", "/api/prospects", { name: "By cookie" });
    expect(made.status).toBe(201);

    const session = sessionOf(browser);
    const logout = await browser.call("POST", "/api/session/logout");
    expect([logout.status, browser.cookies.has("session")]).toEqual([200, false]);
    expect(logout.body).toEqual({ logoutUrl: expect.stringContaining("/local/oidc/endsession?") });
    await flushAuthorizers();
    const stale = newBrowser(new Map([["session", session]]));
    expect((await stale.call("GET", "/api/me")).status).toBe(401);
  });

  test.each([
    ...["//evil.example", "/\\evil.example", "\\/evil.example", "https://evil.example/", "javascript:alert(1)"],
    ...["/.//evil.example", "/x/..//evil.example", "/\t/evil.example", "evil", "", "/api/session/logout"],
    `/${"x".repeat(2_001)}`,
  ])("returnTo %j leads to the start page", async (returnTo) => {
    expect((await newBrowser().signIn(as.rep.email, { returnTo })).headers.get("location")).toBe("/");
  });

  test("a callback in a browser that did not begin this sign-in is refused, and so is a code that was used", async () => {
    const attacker = newBrowser();
    const callback = await attacker.callbackOf(as.otherOwner.email);
    const victim = newBrowser();
    expect((await victim.send(callback)).status).toBe(400);
    await victim.send("/api/session/login");
    const refused = await victim.send(callback);
    expect([refused.status, victim.cookies.size]).toEqual([400, 0]);
    expect(refused.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const pending = new Map(attacker.cookies);
    expect((await attacker.send(callback)).status).toBe(302);
    expect((await newBrowser(pending).send(callback)).status).toBe(400);
  });

  test("a refusal of the issuer and a damaged cookie are refused without an echo of the request", async () => {
    const browser = newBrowser();
    const state = new URL(locationOf(await browser.send("/api/session/login"))).searchParams.get("state");
    const denied = await browser.send(`/api/session/callback?error=access_denied%3Cscript%3E&state=${state}`);
    expect([denied.status, denied.text.includes("script")]).toEqual([400, false]);
    for (const cookie of ["", "%%%", ...["{}", "null"].map((text) => Buffer.from(text).toString("base64url"))]) {
      const damaged = newBrowser(new Map([["sign-in", cookie]]));
      expect((await damaged.send("/api/session/callback?code=x&state=y")).status).toBe(400);
    }
  });

  test("the id that a browser brings along is never used, and the session that it had ends (fixation)", async () => {
    const planted = randomBytes(32).toString("base64url");
    const victim = newBrowser(new Map([["session", planted]]));
    await victim.signIn(as.rep.email);
    const first = sessionOf(victim);
    expect(first).not.toBe(planted);
    expect((await newBrowser(new Map([["session", planted]])).call("GET", "/api/me")).status).toBe(401);
    await victim.signIn(as.rep.email);
    expect(sessionOf(victim)).not.toBe(first);
    expect((await newBrowser(new Map([["session", first]])).call("GET", "/api/me")).status).toBe(401);
    expect((await victim.call("GET", "/api/me")).status).toBe(200);
  });
});

describe("a call by cookie", () => {
  test("needs the header of the console, whatever the method", async () => {
    const browser = await signedIn(as.owner.email);
    for (const headers of [
      {},
      { "X-Requested-With": "XMLHttpRequest" },
      { "X-Requested-With": "canvassing-console, x" },
    ]) {
      for (const method of ["GET", "POST", "PATCH", "DELETE"]) {
        expect((await browser.send("/api/prospects", { method, headers })).status).toBe(
          method === "GET" || method === "POST" ? 401 : 405,
        );
      }
      expect((await browser.send("/api/session/logout", { method: "POST", headers })).status).toBe(403);
      expect((await browser.send("/api/session/refresh", { method: "POST", headers })).status).toBe(403);
    }
    expect((await browser.call("GET", "/api/me")).status).toBe(200);
  });

  test("is ignored beside an Authorization header", async () => {
    const browser = await signedIn(as.owner.email);
    const headers = { ...FROM_CONSOLE, Authorization: "Bearer a.b.c" };
    expect((await browser.send("/api/me", { headers })).status).toBe(401);
    const token = await tokenOf(as.otherOwner.email);
    const other = await browser.send("/api/me", { headers: { ...FROM_CONSOLE, Authorization: `Bearer ${token}` } });
    expect(other.body).toMatchObject({ user: { email: as.otherOwner.email } });
  });

  test("with an unknown, malformed or doubled id is refused", async () => {
    const browser = await signedIn(as.owner.email);
    const session = sessionOf(browser);
    const random = randomBytes(32).toString("base64url");
    for (const cookie of [
      `session=${random}`,
      `session=${session}; session=${random}`,
      `session=${random}; session=${session}`,
      `session=${session}x`,
      `session=${session.slice(1)}`,
      `Session=${session}`,
      `__Host-session=${session}`,
      "session=",
      `session="${session}"`,
    ]) {
      const answer = await newBrowser().send("/api/me", { headers: { ...FROM_CONSOLE, Cookie: cookie } });
      expect([cookie, answer.status]).toEqual([cookie, 401]);
    }
  });

  test("acts for the user's own company only, and ends with the user", async () => {
    const browser = await signedIn(as.rep2.email, { accessSeconds: 200 });
    const { id } = dataOf(await as.otherOwner.POST("/api/prospects", { body: { name: "Theirs" } }), 201);
    expect((await browser.call("GET", `/api/prospects/${id}`)).status).toBe(404);
    const users = dataOf(await as.owner.GET("/api/users"), 200);
    const user = users.find(({ email }) => email === as.rep2.email);
    await as.owner.DELETE("/api/users/{id}", { params: { path: { id: user?.id ?? 0 } } });
    await flushAuthorizers();
    expect((await browser.call("GET", "/api/me")).status).toBe(401);
    expect((await browser.call("POST", "/api/session/refresh")).status).toBe(401);
    const again = await newBrowser().signIn(as.rep2.email);
    expect([again.status, again.setCookies.some((line) => line.startsWith("session="))]).toEqual([403, false]);
  });
});

describe("a refresh", () => {
  test("keeps the id while the access token is valid for long", async () => {
    const browser = await signedIn(as.viewer.email);
    const refreshed = await browser.call("POST", "/api/session/refresh");
    expect([refreshed.status, refreshed.setCookies]).toEqual([204, []]);
    expect((await newBrowser().call("POST", "/api/session/refresh")).status).toBe(401);
  });

  test("of many requests replaces tokens and id once; the old id works for a moment, and both end with the logout", async () => {
    const browser = await signedIn(as.viewer.email, { accessSeconds: 200 });
    const old = sessionOf(browser);
    const stale = () => newBrowser(new Map([["session", old]]));
    const answers = await Promise.all(Array.from({ length: 6 }, () => stale().call("POST", "/api/session/refresh")));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 204));
    const ids = answers.flatMap(({ setCookies }) => setCookies);
    expect(ids).toHaveLength(1);
    const id = /^session=([^;]+)/.exec(ids[0] ?? "")?.[1] ?? "";
    expect(id).not.toBe(old);
    const current = newBrowser(new Map([["session", id]]));
    expect((await stale().call("GET", "/api/me")).status).toBe(200);
    expect((await current.call("GET", "/api/me")).status).toBe(200);
    await current.call("POST", "/api/session/logout");
    await flushAuthorizers();
    expect((await stale().call("GET", "/api/me")).status).toBe(401);
    expect((await newBrowser(new Map([["session", id]])).call("GET", "/api/me")).status).toBe(401);
  });
});

test("a page at localhost leads to the address to which a sign-in returns, because browsers keep the cookies of each host apart", async () => {
  const own = new URL(baseUrl());
  const local = `http://localhost:${own.port}`;
  const page = await fetch(`${local}//evil.example/prospects?status=New`, { redirect: "manual" });
  expect(page.status).toBe(307);
  expect(page.headers.get("location")).toBe(`${own.origin}//evil.example/prospects?status=New`);
  expect((await fetch(`${local}/health`)).status).toBe(200);
});
