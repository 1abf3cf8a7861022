/**
 * Tests sessions of the console: a refresh that competes with another refresh or with a sign-out, an invalid access token, and failures of
 * the issuer and of SSM, which stores the secret of the service's OAuth client.
 */
import type { ServerResponse } from "node:http";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { contextOn } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { readRequest } from "#shared/http/request.ts";
import { cookiesOf, sessionEndpoint } from "#shared/sessions/endpoint.ts";
import { type ConsoleClient, newChallenge, signInUrl } from "#shared/sessions/issuer.ts";
import { digestOf } from "#shared/sessions/session-id.ts";
import { beginSession, endSession, refreshSession } from "#shared/sessions/sessions.ts";
import { logOutFromConsole } from "#shared/sessions/sign-in.ts";
import { callerOfSession, StoredSession } from "#shared/sessions/stored.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { interrupted } from "../harness/killable.ts";
import { closeAfterEach, http } from "../harness/listening.ts";
import { lambdaContext, proxyEvent } from "../harness/proxy-event.ts";
import { sessionAt, tokenIssuer } from "../harness/token-issuer.ts";
import { newOwner, warmFunction } from "../harness/warm-function.ts";

const db = faultyDynamoDb();
const origin = "https://console.test";
closeAfterEach();
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});
beforeEach(() => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  vi.stubEnv("AWS_LAMBDA_LOG_FORMAT", "JSON");
});

type Answer = (response: ServerResponse, path: string) => Promise<void> | void;

async function listening(first: Answer): Promise<{ url: string; answer: Answer }> {
  const running = { url: "", answer: first };
  const { endpoint } = await http((response, request) => running.answer(response, request.url ?? ""));
  return Object.assign(running, { url: endpoint });
}

const broken: Answer = (response) => void response.writeHead(500).end();
const json = (response: ServerResponse, status: number, body: object): void =>
  void response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));

/** Starts an issuer whose token endpoint answers as the test requires. */
async function issuerThat(token: Answer = broken) {
  const issuer = await listening((response, path) => {
    const { url } = issuer;
    const endpoints = { authorization_endpoint: `${url}/authorize`, token_endpoint: `${url}/token` };
    if (path.startsWith("/.well-known/")) json(response, 200, { issuer: url, ...endpoints });
    else return token(response, path);
  });
  return issuer;
}

const clientOf = (issuer: string): ConsoleClient => ({
  issuer,
  clientId: "console",
  redirectUri: `${origin}/callback`,
});

/** Begins a session whose access token the service refuses and whose refresh token is known to the issuer. */
async function begun() {
  const context = contextOn(db.direct);
  const owner = await newOwner(context);
  const { sub } = Object(await context.table.get(keys.user(owner.companyId, owner.userId)));
  const tokens = { sub, access: "no token", refresh: "refresh", accessUntil: Date.now() };
  return { context, id: (await beginSession(context, "console", tokens, undefined)).id };
}

test("a sign-in fails while the issuer is broken, and the next one reads its addresses again", async () => {
  const issuer = await issuerThat();
  const sound = issuer.answer;
  issuer.answer = broken;
  const begin = () => signInUrl(clientOf(issuer.url), newChallenge());
  await expect(begin()).rejects.toMatchObject({ code: "unavailable" });
  issuer.answer = sound;
  expect(await begin()).toContain(`${issuer.url}/authorize?`);
});

test("a logout clears the cookie although the issuer is broken, and names no page of the issuer", async () => {
  const { url } = await listening(broken);
  const { context, id } = await begun();
  const cookies = cookiesOf(origin);
  const event = proxyEvent(null);
  const headers = { Cookie: [`__Host-session=${id}`], "X-Requested-With": ["canvassing-console"] };
  const request = readRequest({ ...event, multiValueHeaders: headers });
  const call = { context: () => context, request, client: clientOf(url), origin, cookies };
  expect(await logOutFromConsole(call)).toEqual({ status: 204, setCookies: [cookies.session.clear] });
  expect(await context.table.get(keys.session(digestOf(id)))).toBeUndefined();
});

test("a session with a token that is refused is unauthenticated, which the gateway does not cache", async () => {
  await tokenIssuer();
  const { context, id } = await begun();
  const refused = callerOfSession(context, id);
  await expect(refused).rejects.toMatchObject({ code: "unauthenticated", name: "ApiError" });
  await expect(refused).rejects.toThrow("The token of the session: malformed.");
});

test("a refresh that the issuer cannot answer frees the session for the next one, but restores none that has ended", async () => {
  const { context, id } = await begun();
  const key = keys.session(digestOf(id));
  for (const status of [429, 500, 502, 503]) {
    const error = { error: "temporarily_unavailable" };
    // The 502 comes from a load balancer, which sends a page instead of JSON.
    const issuer = await issuerThat((response) =>
      status === 502 ? void response.writeHead(status).end("<html>") : json(response, status, error),
    );
    const client = clientOf(issuer.url);
    await expect(refreshSession(context, client, id), `${status}`).rejects.toMatchObject({ code: "unavailable" });
    expect(StoredSession.parse(await context.table.get(key)).refreshingUntil, `${status}`).toBeUndefined();
  }
  const late = await issuerThat(async (response) => {
    await endSession(context, id);
    response.writeHead(500).end();
  });
  await expect(refreshSession(context, clientOf(late.url), id)).rejects.toMatchObject({ code: "unavailable" });
  expect(await context.table.get(key)).toBeUndefined();
});

test("a secret that could not be read is read again by the next request", async () => {
  const target = await listening((response) => json(response, 400, { __type: "ParameterNotFound" }));
  for (const [name, value] of Object.entries({
    AWS_ENDPOINT_URL_SSM: target.url,
    ISSUER: target.url,
    CONSOLE_SECRET_PARAMETER: "/console",
    CONSOLE_SCOPE: "openid",
  }))
    vi.stubEnv(name, value);
  const seen: (string | undefined)[] = [];
  const about = { summary: "", description: "", answers: {}, problems: [] };
  const handle = sessionEndpoint(about, async ({ client }) => {
    seen.push(await client.secret?.());
    return { status: 204 };
  });
  const event = { ...proxyEvent(null), stageVariables: { consoleUrl: origin, consoleClient: "console" } };
  expect((await handle(event, lambdaContext)).statusCode).toBe(500);
  target.answer = (response) => json(response, 200, { Parameter: { Value: "whispered" } });
  expect((await handle(event, lambdaContext)).statusCode).toBe(204);
  expect(seen).toEqual(["whispered"]);
});

/** Creates a session whose access token expires soon. Its issuer answers, unlike the issuer of `begun`. */
async function session() {
  const context = warmFunction(db, { now: () => Date.now() });
  return sessionAt(context, await newOwner(context), Date.now());
}

test("of concurrent refreshes, one asks the issuer, and the others wait for it", async () => {
  const at = await session();
  const all = await Promise.all([1, 2, 3].map(() => at.refresh()));
  expect(all.filter(({ id }) => id !== undefined)).toHaveLength(1);
  expect(at.asked).toBe(1);
});

test("a refresh that writes after a later refresh does not ask the issuer", async () => {
  const at = await session();
  const table = interrupted(at.context.table, "write", () => at.refresh());
  expect(await at.refresh(table)).toEqual({ id: undefined });
  expect(at.asked).toBe(1);
});

test.each([
  ["begins", "write", 0],
  ["ends", "transact", 1],
] as const)("a sign-out just before a refresh %s ends the session", async (_, call, asked) => {
  const at = await session();
  const table = interrupted(at.context.table, call, () => endSession(at.context, at.id));
  await expect(at.refresh(table)).rejects.toMatchObject({ code: "unauthenticated" });
  expect([at.asked, await at.context.table.get(keys.session(digestOf(at.id)))]).toEqual([asked, undefined]);
});
