/** Tests how the token verifier fetches the issuer's public keys, and which error a caller gets while the issuer fails. */
import { generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { expect, test } from "vitest";
import { tokenSubjects } from "#shared/auth/token.ts";
import { closeAfterEach, http } from "../harness/listening.ts";

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
const JWKS = "/.well-known/jwks.json";
const DISCOVERY = "/.well-known/openid-configuration";

closeAfterEach();

interface Running {
  readonly issuer: string;
  readonly asked: string[];
  /** If defined, the issuer sends this answer to every request. Otherwise it answers correctly. */
  fault: { status: number; body: string } | undefined;
}

async function startIssuer(): Promise<Running> {
  const running: Running = { issuer: "", asked: [], fault: undefined };
  const sound: Record<string, () => object> = {
    [JWKS]: () => ({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "k", alg: "RS256", use: "sig" }] }),
    [DISCOVERY]: () => ({ issuer: running.issuer, jwks_uri: `${running.issuer}${JWKS}` }),
  };
  const { endpoint: issuer } = await http((response, request) => {
    running.asked.push(request.url ?? "");
    const { status, body } = running.fault ?? { status: 200, body: JSON.stringify(sound[request.url ?? ""]?.()) };
    response.writeHead(status, { "Content-Type": "application/json" }).end(body);
  });
  return Object.assign(running, { issuer });
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

function tokenOf(iss: string, kid = "k"): string {
  const now = Math.floor(Date.now() / 1_000);
  const claims = {
    iss,
    sub: "somebody",
    client_id: "app",
    token_use: "access",
    iat: now,
    exp: now + 60,
    jti: randomUUID(),
  };
  const input = `${encode({ alg: "RS256", typ: "JWT", kid })}.${encode(claims)}`;
  return `${input}.${sign("sha256", Buffer.from(input), privateKey).toString("base64url")}`;
}

/** Returns a verifier whose cache of keys is empty, as in a new function. */
function newVerifier(issuer: string, jwksUri: string | undefined): (token: string) => Promise<string> {
  const verify = tokenSubjects({ issuer, jwksUri });
  return (token) => verify(token, ["app"]);
}

test("if the address of the keys is configured, only the first sign-in makes a request to the issuer", async () => {
  const running = await startIssuer();
  const verify = newVerifier(running.issuer, `${running.issuer}${JWKS}`);
  for (let i = 0; i < 3; i++) expect(await verify(tokenOf(running.issuer))).toBe("somebody");
  expect(running.asked).toEqual([JWKS]);
});

test("without a configured address of the keys, the verifier reads the discovery document only once", async () => {
  const running = await startIssuer();
  const verify = newVerifier(running.issuer, undefined);
  for (let i = 0; i < 3; i++) expect(await verify(tokenOf(running.issuer))).toBe("somebody");
  expect(running.asked).toEqual([DISCOVERY, JWKS]);
});

test.each([
  ["an error", { status: 500, body: "{}" }],
  ["no JSON", { status: 200, body: "<html>" }],
  ["no keys", { status: 200, body: '{"keys":1}' }],
])(
  "while the issuer answers %s, requests get `unavailable` instead of 401; afterwards the same token is accepted",
  async (_, fault) => {
    const running = await startIssuer();
    for (const jwksUri of [`${running.issuer}${JWKS}`, undefined]) {
      running.fault = fault;
      const verify = newVerifier(running.issuer, jwksUri);
      await expect(verify(tokenOf(running.issuer))).rejects.toMatchObject({ code: "unavailable" });
      running.fault = undefined;
      expect(await verify(tokenOf(running.issuer))).toBe("somebody");
    }
  },
);

test("a closed connection to the issuer fails no request", async () => {
  let closed = 0;
  const { endpoint } = await http((response) => {
    if (closed++ === 0) return response.destroy();
    const keys = [{ ...publicKey.export({ format: "jwk" }), kid: "k", alg: "RS256", use: "sig" }];
    return response.end(JSON.stringify({ keys }));
  });
  const verify = newVerifier(endpoint, `${endpoint}${JWKS}`);
  expect(await verify(tokenOf(endpoint))).toBe("somebody");
  expect(closed).toBe(2);
});

test("tokens with unknown keys do not cause repeated requests to the issuer", async () => {
  const running = await startIssuer();
  const verify = newVerifier(running.issuer, `${running.issuer}${JWKS}`);
  await verify(tokenOf(running.issuer));
  for (let i = 0; i < 20; i++) {
    await expect(verify(tokenOf(running.issuer, `other-${i}`))).rejects.toMatchObject({ code: "unauthenticated" });
  }
  expect(running.asked.length).toBeLessThanOrEqual(2);
  expect(await verify(tokenOf(running.issuer))).toBe("somebody");
});
