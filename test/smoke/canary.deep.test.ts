/** Tests the scheduled smoke test. It must create its user, sign in, remove what it has created, and log no secret. */
import { json, text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import * as z from "zod/mini";
import { cognitoClient } from "#shared/aws/cognito.ts";
import { openParameters } from "#shared/aws/ssm.ts";
import { type Api, apiAt } from "#shared/smoke/api.ts";
import { canary } from "#shared/smoke/canary.ts";
import { accessToken } from "#shared/smoke/sign-in.ts";
import { runSmoke } from "#shared/smoke/story.ts";
import { createCanary } from "../../infra/cli/canary.ts";
import { localToken } from "../../infra/local/local-token.ts";
import { serveOnLoopback } from "../../infra/local/servers/listener.ts";
import { baseUrl } from "../harness/client.ts";
import { openLocalTable } from "../harness/team.ts";

const base = baseUrl();
/** Maximum wait for a webhook in milliseconds. On a busy machine, deliveries can take minutes. */
const WEBHOOK_WAIT_MS = 240_000;
const SUB = `canary-${Date.now()}`;

/** A simulated Cognito with one user, and Parameter Store with one parameter. `refused` counts refused requests. */
const stored: { password?: string; parameter?: string; refused: number } = { refused: 0 };
const Body = z.looseObject({
  Password: z.optional(z.string()),
  Value: z.optional(z.string()),
  Type: z.optional(z.string()),
  AuthParameters: z.optional(z.record(z.string(), z.string())),
});

async function answerTo(target: string, body: z.output<typeof Body>): Promise<object | undefined> {
  switch (target) {
    case "AdminGetUser":
      return stored.password === undefined ? undefined : { UserAttributes: [{ Name: "sub", Value: SUB }] };
    case "AdminCreateUser":
      return { User: { Attributes: [{ Name: "sub", Value: SUB }] } };
    case "AdminSetUserPassword":
      stored.password = body.Password ?? "";
      return {};
    case "AdminInitiateAuth":
      if (body.AuthParameters?.PASSWORD !== stored.password) return undefined;
      return { AuthenticationResult: { AccessToken: await localToken(base, body.AuthParameters?.USERNAME ?? "") } };
    case "PutParameter":
      expect(body.Type).toBe("SecureString");
      stored.parameter = body.Value ?? "";
      return {};
    case "GetParameter":
      return { Parameter: { Value: stored.parameter } };
    default:
      return undefined;
  }
}

const aws = await serveOnLoopback(async (request, response) => {
  const target = String(request.headers["x-amz-target"]).split(".")[1] ?? "";
  const answer = await answerTo(target, Body.parse(await json(request)));
  if (answer === undefined) stored.refused++;
  response.writeHead(answer === undefined ? 400 : 200, { "Content-Type": "application/x-amz-json-1.1" });
  response.end(JSON.stringify(answer ?? { __type: "UserNotFoundException", message: "no such user" }));
});
const { endpoint } = aws;
const table = await openLocalTable();
beforeAll(() => {
  const env = {
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "any",
    AWS_SECRET_ACCESS_KEY: "any",
    AWS_ENDPOINT_URL: endpoint,
    API_URL: base,
    CANARY_PARAMETER: "/Canvassing/canary",
    METRICS_NAMESPACE: "Canvassing",
    USER_POOL_ID: "pool",
    USER_POOL_CLIENT_ID: "client",
    LOG_LEVEL: "info",
  };
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
});
afterAll(() => {
  vi.unstubAllEnvs();
  aws.stop();
});

let output: string[] = [];
function recordOutput(): void {
  output = [];
  for (const stream of [process.stdout, process.stderr]) {
    vi.spyOn(stream, "write").mockImplementation((text) => output.push(String(text)) > 0);
  }
}
afterEach(() => {
  vi.restoreAllMocks();
});

const setup = () => ({
  stackName: "Canvassing",
  table,
  parameters: openParameters({ endpoint }),
  pool: { id: "pool", client: cognitoClient({ endpoint }) },
});

const at = { base, webhookWaitMs: WEBHOOK_WAIT_MS };
const canaryApi = async () => apiAt(base, await localToken(base, "smoke-test@canary.invalid"));

async function assertNothingIsLeft(): Promise<void> {
  const api = await canaryApi();
  expect((await api("GET", "/api/prospects")).body).toMatchObject({ total: 0, items: [] });
  expect((await api("GET", "/api/webhooks")).body).toEqual([]);
}

describe("the scheduled smoke test", () => {
  test("gets a company and a user by one command, which can be repeated", async () => {
    // If the service has been running since an earlier test run, the company already exists.
    expect(await createCanary(setup())).toMatch(/^company \d+ "Smoke test" has the user smoke-test@|new credentials$/);
    const first = stored.password;
    expect(first).toMatch(/^Aa1![\w-]{32}$/);
    expect(await createCanary(setup())).toBe('the user of company "Smoke test" has new credentials');
    expect(stored.password).not.toBe(first);
    expect(JSON.parse(stored.parameter ?? "")).toEqual({
      user: "smoke-test@canary.invalid",
      password: stored.password,
    });
  });

  test("passes, removes what it has created, and logs one line and one metric without a secret", async () => {
    recordOutput();
    await canary(WEBHOOK_WAIT_MS);
    const lines = output.map((text) => JSON.parse(text));
    vi.restoreAllMocks();
    expect(lines).toContainEqual(
      expect.objectContaining({
        level: "INFO",
        message: { event: "smoke test passed", steps: 7, webhookMs: expect.any(Number), ms: expect.any(Number) },
      }),
    );
    expect(lines).toContainEqual(
      expect.objectContaining({
        _aws: expect.objectContaining({
          CloudWatchMetrics: [
            {
              Namespace: "Canvassing",
              Dimensions: [["service"]],
              Metrics: [{ Name: "WebhookDelay", Unit: "Milliseconds" }],
            },
          ],
        }),
        service: "canary",
        WebhookDelay: expect.any(Number),
      }),
    );
    expect(lines).toHaveLength(2);
    const text = output.join("");
    for (const secret of [stored.password ?? "?", "eyJ", "secretKey"]) expect(text).not.toContain(secret);
    await assertNothingIsLeft();
  });

  test("fails with an error, and still removes what it has created, if no webhook is sent", async () => {
    const api = await canaryApi();
    const steps: string[] = [];
    const withoutLog: Api = (method, path, sent) =>
      path.includes("/deliveries") ? Promise.reject(new Error("not sent")) : api(method, path, sent);
    const smoke = { ...at, admin: withoutLog, rep: api, prospects: 2, changes: 0, now: Date.now };
    await expect(runSmoke({ ...smoke, step: (message) => steps.push(message) })).rejects.toThrow("not sent");
    expect(steps).toHaveLength(4);
    await assertNothingIsLeft();
  });

  test("passes on a deployment with the ten changes of `npm run smoke`, each delivered once", async () => {
    const api = await canaryApi();
    const smoke = { ...at, admin: api, rep: api, prospects: 5, changes: 10, now: Date.now };
    const steps: string[] = [];
    expect(await runSmoke({ ...smoke, step: (message) => steps.push(message) })).toHaveLength(11);
    expect(steps).toContain("10 more status changes, 10 deliveries, none twice");
    await assertNothingIsLeft();
  });

  test("removes what a killed run has left, and nothing else", async () => {
    const api = await canaryApi();
    const ids: unknown[] = [];
    for (const name of ["Smoke test 01234567 1437 Bannock St", "Smoke test"]) {
      const prospect = { name, lat: 39.7393, lng: -104.9903 };
      ids.push(z.object({ id: z.number() }).parse((await api("POST", "/api/prospects", prospect)).body).id);
    }
    const smoke = { ...at, admin: api, rep: api, prospects: 1, changes: 0 };
    const steps: string[] = [];
    const step = (message: string): void => void steps.push(message);
    await runSmoke({ ...smoke, step, now: Date.now });
    expect(steps[0]).not.toContain("removed");
    steps.length = 0;
    await runSmoke({ ...smoke, step, now: () => Date.now() + 16 * 60_000 });
    expect(steps[0]).toBe("removed 1 records that an earlier run had left");
    expect((await api("GET", `/api/prospects/${ids[0]}`)).status).toBe(404);
    expect((await api("DELETE", `/api/prospects/${ids[1]}`)).status).toBe(200);
    await assertNothingIsLeft();
  });

  test("fails and logs no secret if it cannot sign in", async () => {
    await createCanary(setup());
    stored.parameter = JSON.stringify({ user: "smoke-test@canary.invalid", password: "an old password" });
    recordOutput();
    await expect(canary()).rejects.toThrow();
    vi.restoreAllMocks();
    const [line = "", ...more] = output;
    expect(more).toEqual([]);
    expect(JSON.parse(line)).toMatchObject({ level: "ERROR", message: { event: "smoke test failed", steps: 0 } });
    expect(line).not.toContain("an old password");
  });
});

test.each([
  [{ clientSecret: "secret-1" }, "grant_type=client_credentials&client_secret=secret-1"],
  [{ clientSecret: "secret-1", scope: "a b" }, "grant_type=client_credentials&client_secret=secret-1&scope=a+b"],
  [{ refreshToken: "refresh-1" }, "grant_type=refresh_token&refresh_token=refresh-1"],
])("signing in at another issuer by %j asks its token endpoint", async (secret, form) => {
  const seen: string[] = [];
  const issuer = await serveOnLoopback(async (request, response) => {
    seen.push(await text(request));
    response.end(JSON.stringify({ access_token: "granted" }));
  });
  const tokenUrl = `${issuer.endpoint}/token`;
  const token = await accessToken({ tokenUrl, clientId: "client-1", ...secret }, () => cognitoClient());
  issuer.stop();
  expect(token).toBe("granted");
  expect(seen).toEqual([`client_id=client-1&${form}`]);
});
