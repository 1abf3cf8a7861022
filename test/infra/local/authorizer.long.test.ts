/** Tests that the local gateway treats authorizers as API Gateway's documentation of TOKEN authorizers says. */
import { afterAll, afterEach, describe, expect, test } from "vitest";
import * as z from "zod/mini";
import { createAuthorizer } from "../../../infra/local/gateway/authorizers.ts";
import { InvocationError } from "../../../infra/local/runtime/environment.ts";
import { fixtureTemplate, startFixture } from "./fixture.ts";

const service = await startFixture();
afterAll(() => service.stop());
afterEach(() => service.flushAuthorizers());

const get = (path: string, authorization?: string, method = "GET") =>
  fetch(`${service.url}${path}`, {
    method,
    headers: authorization === undefined ? {} : { Authorization: authorization },
  });

/** Returns how often `work` invokes each function, by the function's file. Leaves out `tick`, because a schedule invokes it. */
async function calledBy(work: () => Promise<unknown>): Promise<Record<string, number>> {
  const before = service.invocations();
  await work();
  const counts = Object.entries(service.invocations()).map(
    ([file, count]) => [file, count - (before[file] ?? 0)] as const,
  );
  return Object.fromEntries(counts.filter(([file, count]) => count > 0 && file !== "tick"));
}

/** Expects an error answer that comes from the gateway itself and not from a function. Its body contains the error type `type`. */
async function expectRefusal(answer: Response, status: number, type: string): Promise<void> {
  expect([answer.status, await answer.json()]).toEqual([status, { type, id: answer.headers.get("x-request-id") }]);
  expect(answer.headers.get("content-type")).toBe("application/problem+json");
  expect(answer.headers.get("server-timing")).toContain("rounds;dur=0");
}

describe("a request", () => {
  const wrong = ["", "Bearer", "Bearer ", "Basic all", "bearer all", "Bearer all all", "Bearer 1", "xBearer all"];

  test.each([undefined, ...wrong])("with the header %j invokes no function", async (authorization) => {
    const called = await calledBy(async () => {
      for (const path of ["/guarded", "/guarded/1"]) {
        await expectRefusal(await get(path, authorization), 401, "UNAUTHORIZED");
      }
    });
    expect(called).toEqual({});
  });

  test("to a method without an authorizer needs no header, and its event has no authorizer context", async () => {
    const before = service.invocations().authorize;
    const answer = await get("/things/1", "Bearer all");
    expect(service.invocations().authorize).toBe(before);
    expect(
      z.object({ requestContext: z.looseObject({}) }).parse(await answer.json()).requestContext,
    ).not.toHaveProperty("authorizer");
  });

  test.each([
    ["unauthorized", 401, "UNAUTHORIZED"],
    ["unexpected", 503, "AUTHORIZER_FAILURE"],
    ["exit", 503, "AUTHORIZER_FAILURE"],
    ["nothing", 503, "AUTHORIZER_CONFIGURATION_ERROR"],
    ["nobody", 503, "AUTHORIZER_CONFIGURATION_ERROR"],
    ["object", 503, "AUTHORIZER_CONFIGURATION_ERROR"],
  ])(
    "whose authorizer answers %s gets the gateway's error, and the next request calls the authorizer again",
    async (token, status, type) => {
      const called = await calledBy(async () => {
        for (let i = 0; i < 2; i++) await expectRefusal(await get("/guarded/1", `Bearer ${token}`), status, type);
      });
      expect(called).toEqual({ authorize: 2 });
    },
  );

  test("that is denied stays denied while the policy is cached", async () => {
    const called = await calledBy(async () => {
      for (let i = 0; i < 3; i++) await expectRefusal(await get("/guarded/1", "Bearer deny"), 403, "ACCESS_DENIED");
    });
    expect(called).toEqual({ authorize: 1 });
  });
});

describe("a policy", () => {
  test("that allows all methods is cached, so one call of the authorizer is enough for all methods and paths", async () => {
    const called = await calledBy(async () => {
      for (const method of ["GET", "POST", "DELETE"])
        expect((await get("/guarded/1", "Bearer all", method)).status).toBe(200);
      expect((await get("/guarded", "Bearer all")).status).toBe(201);
    });
    expect(called).toEqual({ authorize: 1, echo: 3, stream: 1 });
  });

  test("for one method refuses all others while it is cached", async () => {
    const called = await calledBy(async () => {
      expect((await get("/guarded/1", "Bearer one")).status).toBe(200);
      await expectRefusal(await get("/guarded/2", "Bearer one"), 403, "ACCESS_DENIED");
      await expectRefusal(await get("/guarded/1", "Bearer one", "POST"), 403, "ACCESS_DENIED");
      service.flushAuthorizers();
      expect((await get("/guarded/2", "Bearer one")).status).toBe(200);
    });
    expect(called).toEqual({ authorize: 2, echo: 2 });
  });

  test("passes its context as text to buffered and streamed functions", async () => {
    const Event = z.object({ requestContext: z.object({ authorizer: z.record(z.string(), z.unknown()) }) });
    const event = Event.parse(await (await get("/guarded/a%20b", "Bearer all")).json());
    expect(event.requestContext.authorizer).toEqual({
      principalId: "somebody",
      integrationLatency: expect.any(Number),
      text: "a",
      number: "1",
      yes: "true",
      type: "TOKEN",
      methodArn: "arn:aws:execute-api:us-east-1:000000000000:local/live/GET/guarded/a%20b",
    });
    expect((await get("/guarded", "Bearer all")).headers.get("x-principal")).toBe("somebody");
  });
});

describe("an API key that the authorizer names", () => {
  const statusesOf = (token: string, paths: readonly string[]) =>
    Promise.all(paths.map((path) => get(path, `Bearer ${token}`).then(({ status }) => status)));

  test("has a throttle of its own for all methods, and for one method a smaller one", async () => {
    expect((await statusesOf("first", ["/keyed/1", "/keyed/1", "/keyed"])).toSorted()).toEqual([200, 200, 200]);
    // This refusal by the throttle of `/keyed` must not use up the last request that the throttle of the key for all methods allows.
    await expectRefusal(await get("/keyed", "Bearer first"), 429, "THROTTLED");
    expect((await statusesOf("first", ["/keyed/1", "/keyed/1"])).toSorted()).toEqual([200, 429]);
    expect((await statusesOf("second", ["/keyed/1", "/keyed"])).toSorted()).toEqual([200, 200]);
  });

  test("must be in a usage plan, and the key of a request's header does not count", async () => {
    await expectRefusal(await get("/keyed/1", "Bearer third"), 403, "INVALID_API_KEY");
    await expectRefusal(await get("/keyed/1", "Bearer all"), 403, "INVALID_API_KEY");
    const answer = await fetch(`${service.url}/keyed/1`, {
      headers: { Authorization: "Bearer all", "x-api-key": "fixture0throttle0key0second" },
    });
    await expectRefusal(answer, 403, "INVALID_API_KEY");
  });
});

const allowing = {
  Version: "2012-10-17",
  Statement: [{ Action: "execute-api:Invoke", Effect: "Allow", Resource: "*" }],
};
const headers = (token: string) => new Map([["authorization", [token]]]);

/** Returns an authorizer with a simulated clock. It calls `function_` instead of an authorizer function. */
function clocked(function_: (token: string) => unknown) {
  const clock = { now: 0, calls: 0 };
  const run = {
    invoke: async (event: unknown) => {
      clock.calls++;
      return JSON.stringify(function_(z.parse(z.object({ authorizationToken: z.string() }), event).authorizationToken));
    },
  };
  const spec = { header: "authorization", validation: undefined, ttlSeconds: 60 };
  return { clock, authorizer: createAuthorizer(spec, run, () => clock.now) };
}

describe("the cache", () => {
  test("keeps a policy for exactly 60 s, after which a disabled user is refused and a new role applies", async () => {
    let rights = "";
    const { clock, authorizer } = clocked(() => {
      if (rights === "") throw new InvocationError({ errorType: "Error", errorMessage: "Unauthorized" });
      return { principalId: "p", policyDocument: allowing, context: { rights } };
    });
    for (const [now, actual, seen] of [
      [0, "sales", "sales"],
      [59_999, "admin", "sales"],
      [60_000, "admin", "admin"],
      [119_999, "", "admin"],
      [120_000, "", undefined],
      [120_000, "owner", "owner"],
    ] as const) {
      clock.now = now;
      rights = actual;
      const answer = await authorizer.authorize(headers("a"), "arn");
      if (seen === undefined) expect(answer).toBe("UNAUTHORIZED");
      else expect(answer).toMatchObject({ context: { rights: seen } });
    }
    expect(clock.calls).toBe(4);
  });

  test("that is emptied while the function works does not keep the function's answer, which may be older", async () => {
    let rights = "sales";
    const { authorizer } = clocked(() => {
      const policy = { principalId: "p", policyDocument: allowing, context: { rights } };
      if (rights === "sales") authorizer.flush();
      rights = "admin";
      return policy;
    });
    const ask = () => authorizer.authorize(headers("a"), "arn");
    expect(await ask()).toMatchObject({ context: { rights: "sales" } });
    expect(await ask()).toMatchObject({ context: { rights: "admin" } });
  });

  test("is bounded: the oldest tokens are evicted", async () => {
    const { clock, authorizer } = clocked(() => ({ principalId: "p", policyDocument: allowing }));
    for (let i = 0; i < 10_001; i++) await authorizer.authorize(headers(`t${i}`), "arn");
    await authorizer.authorize(headers("t10000"), "arn");
    expect(clock.calls).toBe(10_001);
    await authorizer.authorize(headers("t0"), "arn");
    expect(clock.calls).toBe(10_002);
  });

  test("treats the values of a repeated header as one token", async () => {
    const { authorizer } = clocked((token) => ({ principalId: token, policyDocument: allowing }));
    const two = new Map([["Authorization", ["a", "b"]]]);
    expect(await authorizer.authorize(two, "arn")).toMatchObject({ context: { principalId: "a, b" } });
  });
});

test("an authorizer that is not a function of the template is refused", async () => {
  const text = JSON.stringify(fixtureTemplate()).replaceAll('"Authorize","Arn"', '"Seen","Arn"');
  await expect(startFixture(undefined, JSON.parse(text))).rejects.toThrow("is not a function");
});
