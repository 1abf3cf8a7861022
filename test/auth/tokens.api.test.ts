/** Tests that every route answers 401 to a bad token, and that the service never requests a URL that a token contains. */
import { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, describe, expect, inject, test } from "vitest";
import * as z from "zod/mini";
import { serveOnLoopback } from "../../infra/local/servers/listener.ts";
import { routes } from "../../infra/routes/routes.ts";
import { type Answer, baseUrl, send, tokenOf } from "../harness/client.ts";
import { bodyOf, dataOf, problemOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();

const now = Math.floor(Date.now() / 1_000);
/**
 * Number of seconds, more than this file of tests needs. A `nbf` or `iat` that must be in the future is later by this number, so it is
 * still in the future when a slow test sends the token.
 */
const WAIT_SECONDS = 600;
const Claims = z.looseObject({ iss: z.string(), sub: z.string() });
const Header = z.looseObject({ alg: z.string(), kid: z.string() });
const PublicKeys = z.object({ keys: z.array(z.looseObject({ kty: z.string() })) });

const encode = (part: unknown): string =>
  Buffer.from(typeof part === "string" ? part : JSON.stringify(part)).toString("base64url");
const decode = (part: string | undefined): unknown => JSON.parse(Buffer.from(part ?? "", "base64url").toString());

const token = await tokenOf(as.rep.email);
const [header, claims] = token.split(".");
const { iss } = z.parse(Claims, decode(claims));
const [jwk] = PublicKeys.parse(await (await fetch(`${iss}/.well-known/jwks.json`)).json()).keys;
const issuerKey = inject("signingKey");
const forge = {
  /** Undefined if the tested service keeps its private key secret. Forgeries that need this key are then skipped. */
  privateKey: issuerKey === null ? undefined : createPrivateKey({ key: issuerKey, format: "jwk" }),
  publicKey: createPublicKey({ key: jwk ?? {}, format: "jwk" }),
  ownKey: generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey,
  token,
  header: z.parse(Header, decode(header)),
  claims: z.parse(Claims, decode(claims)),
};

const ownJwk = createPublicKey(forge.ownKey).export({ format: "jwk" });
/** The forged tokens name this server as the place of their key (`jku` or `x5u`). The service must never send a request to it. */
const lure = { url: "", visits: 0 };
const { endpoint, stop } = await serveOnLoopback(async (_, response) => {
  lure.visits++;
  response.end(JSON.stringify({ keys: [{ ...ownJwk, kid: "own", alg: "RS256", use: "sig" }] }));
});
lure.url = `${endpoint}/jwks.json`;
afterAll(stop);

class NoIssuerKey extends Error {}
const NO_KEY = "the issuer's key is not at hand: run without BASE_URL, or against a service of this DATA_DIR";

function signed(claims: unknown, header: object = forge.header, key = forge.privateKey): string {
  if (key === undefined) throw new NoIssuerKey();
  const input = `${encode(header)}.${encode(claims)}`;
  return `${input}.${sign("sha256", Buffer.from(input), key).toString("base64url")}`;
}
const withClaims = (changes: object): string => signed({ ...forge.claims, ...changes });
const withHeader = (changes: object, key?: KeyObject): string =>
  signed(forge.claims, { ...forge.header, ...changes }, key);
const unsigned = (alg: string): string => `${encode({ ...forge.header, alg })}.${encode(forge.claims)}.`;
function hmacWithPublicKey(alg: string): string {
  const pem = forge.publicKey.export({ type: "spki", format: "pem" });
  const input = `${encode({ ...forge.header, alg })}.${encode(forge.claims)}`;
  return `${input}.${createHmac("sha256", pem).update(input).digest("base64url")}`;
}
const without = (claim: string): string =>
  signed(Object.fromEntries(Object.entries(forge.claims).filter(([name]) => name !== claim)));
function tampered(part: number): string {
  const parts = forge.token.split(".");
  const text = parts[part] ?? "";
  parts[part] = `${text.slice(0, 10)}${text[10] === "A" ? "B" : "A"}${text.slice(11)}`;
  return parts.join(".");
}

const NOT_VERIFIED = "signature not verified";
/**
 * For a token with an unknown key, the service fetches the issuer's keys again, but at most once every few seconds. Between two
 * fetches, it does not know whether the signature is wrong, so the 401 may also state no reason.
 */
const UNKNOWN_KEY = [NOT_VERIFIED, undefined];
type Reasons = readonly (string | undefined)[];

/** The bad Authorization headers, each with the reasons that the header WWW-Authenticate may state. */
const bad: readonly (readonly [name: string, header: () => string | undefined, ...Reasons])[] = [
  ["no header", () => undefined],
  ["an empty header", () => ""],
  ["another scheme", () => `Basic ${Buffer.from("a:b").toString("base64")}`],
  ["no token", () => "Bearer"],
  ["two tokens", () => `Bearer ${forge.token} ${forge.token}`],
  ["two tokens with a comma", () => `Bearer ${forge.token}, Bearer ${forge.token}`],
  ["no JWT", () => "Bearer abc"],
  ["only dots", () => "Bearer .."],
  ["alg none", () => `Bearer ${unsigned("none")}`],
  ["alg None", () => `Bearer ${unsigned("None")}`],
  ["alg NONE", () => `Bearer ${unsigned("NONE")}`],
  ["alg nOnE", () => `Bearer ${unsigned("nOnE")}`],
  ["alg empty", () => `Bearer ${unsigned("")}`],
  ["alg none with a signature", () => `Bearer ${withHeader({ alg: "none" })}`, NOT_VERIFIED],
  ["HS256 with the public key", () => `Bearer ${hmacWithPublicKey("HS256")}`, NOT_VERIFIED],
  ["HS512 with the public key", () => `Bearer ${hmacWithPublicKey("HS512")}`, NOT_VERIFIED],
  ["another algorithm than the key's", () => `Bearer ${withHeader({ alg: "RS512" })}`, NOT_VERIFIED],
  ["another key under the right kid", () => `Bearer ${withHeader({}, forge.ownKey)}`, NOT_VERIFIED],
  ["an unknown kid", () => `Bearer ${withHeader({ kid: "unknown" })}`, ...UNKNOWN_KEY],
  ["no kid", () => `Bearer ${withHeader({ kid: undefined })}`, NOT_VERIFIED],
  ["kid as a path", () => `Bearer ${withHeader({ kid: "../../../../dev/null" })}`, ...UNKNOWN_KEY],
  ["kid as a URL", () => `Bearer ${withHeader({ kid: lure.url }, forge.ownKey)}`, ...UNKNOWN_KEY],
  ["jku", () => `Bearer ${withHeader({ kid: "own", jku: lure.url }, forge.ownKey)}`, ...UNKNOWN_KEY],
  ["x5u", () => `Bearer ${withHeader({ kid: "own", x5u: lure.url }, forge.ownKey)}`, ...UNKNOWN_KEY],
  ["jwk in the header", () => `Bearer ${withHeader({ kid: "own", jwk: ownJwk }, forge.ownKey)}`, ...UNKNOWN_KEY],
  ["another issuer", () => `Bearer ${withClaims({ iss: "https://issuer.example" })}`, "wrong issuer"],
  ["the lure as issuer", () => `Bearer ${withClaims({ iss: new URL(lure.url).origin })}`, "wrong issuer"],
  ["no issuer", () => `Bearer ${without("iss")}`, "wrong issuer"],
  ["another audience", () => `Bearer ${withClaims({ client_id: "another", aud: "another" })}`, "wrong audience"],
  ["no audience", () => `Bearer ${without("client_id")}`, "wrong audience"],
  ["an id token", () => `Bearer ${withClaims({ token_use: "id", aud: "local" })}`, "not an access token"],
  ["no token_use", () => `Bearer ${without("token_use")}`, "not an access token"],
  ["expired", () => `Bearer ${withClaims({ iat: now - 7_200, exp: now - 3_600 })}`, "expired"],
  ["not yet valid", () => `Bearer ${withClaims({ nbf: now + 3_600 })}`, "not yet valid"],
  ["expired 90 seconds ago", () => `Bearer ${withClaims({ exp: now - 90 })}`, "expired"],
  ["not valid for 90 seconds", () => `Bearer ${withClaims({ nbf: now + 90 + WAIT_SECONDS })}`, "not yet valid"],
  ["issued in 90 seconds", () => `Bearer ${withClaims({ iat: now + 90 + WAIT_SECONDS })}`, "not yet valid"],
  ["no exp", () => `Bearer ${without("exp")}`, "malformed"],
  ["exp as text", () => `Bearer ${withClaims({ exp: String(now + 3_600) })}`, "malformed"],
  ["an unknown subject", () => `Bearer ${withClaims({ sub: "nobody" })}`],
  ["no subject", () => `Bearer ${without("sub")}`, "malformed"],
  ["a subject that is no text", () => `Bearer ${withClaims({ sub: { a: 1 } })}`, "malformed"],
  ["tampered header", () => `Bearer ${tampered(0)}`, "malformed", ...UNKNOWN_KEY],
  ["tampered claims", () => `Bearer ${tampered(1)}`, "malformed", NOT_VERIFIED],
  ["tampered signature", () => `Bearer ${tampered(2)}`, NOT_VERIFIED],
  ["no signature", () => `Bearer ${forge.token.split(".").slice(0, 2).join(".")}.`],
  ["four parts", () => `Bearer ${forge.token}.x`],
  ["a huge token", () => `Bearer ${withClaims({ padding: "x".repeat(9_000) })}`, "malformed"],
];

/** Returns the header that `make` makes. Returns undefined if this needs the issuer's private key, which the test does not have. */
function forged(make: () => string | undefined): { value: string | undefined } | undefined {
  try {
    return { value: make() };
  } catch (error) {
    if (error instanceof NoIssuerKey) return undefined;
    throw error;
  }
}

test("a forged token without a fault is accepted, so only their faults make the other tokens bad", async ({ skip }) => {
  skip(forge.privateKey === undefined, NO_KEY);
  const answer = await send("GET", "/api/me", { headers: { Authorization: `Bearer ${withClaims({})}` } });
  bodyOf(answer, 200, z.unknown());
});

test.for(bad)("%s gets 401", async ([, header, ...reasons], { skip }) => {
  const made = forged(header) ?? skip(NO_KEY);
  const { value } = made;
  const answer = await send("GET", "/api/me", { headers: value === undefined ? {} : { Authorization: value } });
  expectChallenge(answer, ...reasons);
  expect(lure.visits).toBe(0);
});

const describedBy = (reason: string): string => `Bearer error="invalid_token", error_description="${reason}"`;

/** Expects the answer to a bad token: a 401 with the header WWW-Authenticate, without a read of the table. */
function expectChallenge(answer: Answer, ...reasons: Reasons): void {
  problemOf(answer, 401, "unauthenticated");
  const stated = reasons.length === 0 ? [undefined] : reasons;
  const allowed = stated.map((one) => (one === undefined ? "Bearer" : describedBy(one)));
  expect(allowed).toContain(answer.headers.get("www-authenticate"));
  expect(answer.headers.get("x-amzn-remapped-www-authenticate")).toBeNull();
  expect(answer.headers.get("content-type")).toBe("application/problem+json");
  expect(answer.headers.get("server-timing")).toContain("rounds;dur=0");
}

describe("every route", () => {
  const guarded = routes.filter((route) => !route.public);

  test("below /api/ needs a token, except the sign-in of the console", () => {
    expect(guarded.map(({ path }) => path).toSorted()).toEqual(
      routes
        .flatMap(({ path }) => (path.startsWith("/api/") && !path.startsWith("/api/session/") ? [path] : []))
        .toSorted(),
    );
  });

  test.each(guarded.map(({ method, path }) => [method, path]))(
    "%s %s refuses a missing, an incomplete and a forged token",
    async (method, path) => {
      const place = path.replace(/\{\w+\}/g, "1");
      expectChallenge(await send(method, place));
      expectChallenge(await send(method, place, { headers: { Authorization: "Bearer" } }));
      const Authorization = `Bearer ${withHeader({}, forge.ownKey)}`;
      expectChallenge(await send(method, place, { headers: { Authorization } }), NOT_VERIFIED);
    },
  );
});

test.for<[string, (now: number) => object]>([
  ["that expired half a minute ago", (now) => ({ exp: now - 30 })],
  ["that is valid in half a minute", (now) => ({ nbf: now + 30 })],
  ["that was issued in half a minute", (now) => ({ iat: now + 30 })],
])("a token %s is accepted, because clocks differ", async ([, claimsAt], { skip }) => {
  skip(forge.privateKey === undefined, NO_KEY);
  const token = withClaims(claimsAt(Math.floor(Date.now() / 1_000)));
  bodyOf(await send("GET", "/api/me", { headers: { Authorization: `Bearer ${token}` } }), 200, z.unknown());
});

test("the scheme Bearer is case-insensitive, and several blanks may follow the scheme", async ({ skip }) => {
  skip(forge.privateKey === undefined, NO_KEY);
  for (const scheme of ["bearer", "BEARER", "bEARER  ", "Bearer   "]) {
    const headers = { Authorization: `${scheme} ${withClaims({})}` };
    bodyOf(await send("GET", "/api/me", { headers }), 200, z.unknown());
  }
});

test("two Authorization headers are rejected, even if each is valid", async () => {
  const { hostname, port } = new URL(baseUrl());
  const line = `Authorization: Bearer ${forge.token}\r\n`;
  for (const lines of [line + line, `${line}authorization: Bearer x\r\n`]) {
    const socket = connect(Number(port), hostname);
    socket.write(`GET /api/me HTTP/1.1\r\nHost: a\r\n${lines}Connection: close\r\n\r\n`);
    const answer = await text(socket);
    expect(answer.slice(0, 12)).toBe("HTTP/1.1 401");
    expect(answer).toMatch(/^www-authenticate: Bearer\r$/im);
  }
});

test("a valid token still works after bad tokens", async () => {
  dataOf(await as.rep.GET("/api/me"));
});
