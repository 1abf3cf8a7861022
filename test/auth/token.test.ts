/** Tests how the token verifier fetches the issuer's public keys, and which error a caller gets while the issuer fails. */
import { expect, test } from "vitest";
import { tokenSubjects } from "#shared/auth/token.ts";
import { closeAfterEach, http } from "../harness/listening.ts";
import { publicKeys, tokenOf } from "../harness/token-issuer.ts";

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
    [JWKS]: () => publicKeys,
    [DISCOVERY]: () => ({ issuer: running.issuer, jwks_uri: `${running.issuer}${JWKS}` }),
  };
  const { endpoint: issuer } = await http((response, request) => {
    running.asked.push(request.url ?? "");
    const { status, body } = running.fault ?? { status: 200, body: JSON.stringify(sound[request.url ?? ""]?.()) };
    response.writeHead(status, { "Content-Type": "application/json" }).end(body);
  });
  return Object.assign(running, { issuer });
}

const newToken = (issuer: string, kid?: string): string => tokenOf(issuer, "somebody", "app", kid);

/** Returns a verifier whose cache of the issuer's public keys is empty, as in a newly started function. */
function newVerifier(issuer: string, jwksUri: string | undefined): (token: string) => Promise<string> {
  const verify = tokenSubjects({ issuer, jwksUri });
  return (token) => verify(token, ["app"]);
}

test.each([
  ["is configured", JWKS, [JWKS]],
  ["is in the discovery document", undefined, [DISCOVERY, JWKS]],
])("if the address of the keys %s, only the first sign-in makes requests to the issuer", async (_, path, asked) => {
  const running = await startIssuer();
  const verify = newVerifier(running.issuer, path && `${running.issuer}${path}`);
  for (let i = 0; i < 3; i++) expect(await verify(newToken(running.issuer))).toBe("somebody");
  expect(running.asked).toEqual(asked);
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
      await expect(verify(newToken(running.issuer))).rejects.toMatchObject({ code: "unavailable" });
      running.fault = undefined;
      expect(await verify(newToken(running.issuer))).toBe("somebody");
    }
  },
);

test("a closed connection to the issuer fails no request", async () => {
  let closed = 0;
  const { endpoint } = await http((response) => {
    if (closed++ === 0) return response.destroy();
    return response.end(JSON.stringify(publicKeys));
  });
  const verify = newVerifier(endpoint, `${endpoint}${JWKS}`);
  expect(await verify(newToken(endpoint))).toBe("somebody");
  expect(closed).toBe(2);
});

test("tokens with unknown keys do not cause repeated requests to the issuer", async () => {
  const running = await startIssuer();
  const verify = newVerifier(running.issuer, `${running.issuer}${JWKS}`);
  await verify(newToken(running.issuer));
  for (let i = 0; i < 20; i++) {
    await expect(verify(newToken(running.issuer, `other-${i}`))).rejects.toMatchObject({ code: "unauthenticated" });
  }
  expect(running.asked.length).toBeLessThanOrEqual(2);
  expect(await verify(newToken(running.issuer))).toBe("somebody");
});
