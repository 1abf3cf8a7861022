/** Tests the throttles of each company and of requests without a token, and the table of all throttles in docs/limits.md. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import * as z from "zod/mini";
import { THROTTLE_KEYS } from "#shared/auth/throttle-key.ts";
import { createThrottle } from "../../../infra/local/gateway/throttle.ts";
import { LONG_WORK, type Route, WITHOUT_TOKEN } from "../../../infra/routes/route.ts";
import { authorizer, routes } from "../../../infra/routes/routes.ts";
import { capacityOf } from "../../../infra/settings/capacity.ts";
import { methodsOf } from "../../../infra/stack/api-definition.ts";
import { at, closed, consoleOfIssuer, listed, ownIdentity, small, synthesized, target } from "../template.ts";

const template = await synthesized();

describe("the throttle of each company", () => {
  const plan = template.only("AWS::ApiGateway::UsagePlan").properties;
  const stage = template.only("AWS::ApiGateway::Stage").properties;

  it("is a fifth of the throttle of all companies, and a quarter of the throttle of a single method that streams nothing", () => {
    const common = at(stage, "MethodSettings", 0);
    expect(at(plan, "Throttle")).toEqual({
      RateLimit: Number(at(common, "ThrottlingRateLimit")) / 5,
      BurstLimit: Number(at(common, "ThrottlingBurstLimit")) / 5,
    });
    const own = at(plan, "ApiStages", 0, "Throttle");
    const names = routes.flatMap((route) =>
      methodsOf(route)
        .filter((method) => route.rate !== undefined || (route.streamed && method !== "HEAD"))
        .map((method) => `${route.path}/${method}`),
    );
    expect(Object.keys(Object(own))).toEqual(names);
    for (const { method, path, rate } of routes.filter(({ rate, streamed }) => rate !== undefined && !streamed)) {
      const expected = { RateLimit: (rate?.perSecond ?? 0) / 4, BurstLimit: (rate?.burst ?? 0) / 4 };
      expect(at(own, `${path}/${method}`), path).toEqual(expected);
    }
  });

  it("is half of a method's throttle if a company may send half of all requests", async () => {
    const plan = (await synthesized(consoleOfIssuer)).all("AWS::ApiGateway::UsagePlan")[0]?.properties;
    expect(at(plan, "ApiStages", 0, "Throttle", "/api/territories/{id}/runs/POST")).toEqual({
      RateLimit: LONG_WORK.perSecond / 2,
      BurstLimit: LONG_WORK.burst / 2,
    });
  });

  it("lets one company's readers keep at most a third of the concurrency of each streamed function, with any quota", async () => {
    for (const config of [closed, ownIdentity, consoleOfIssuer]) {
      const made = await synthesized(config);
      const own = at(made.all("AWS::ApiGateway::UsagePlan")[0]?.properties, "ApiStages", 0, "Throttle");
      const reserved = (file: string) => at(made.functionOf(file).properties, "ReservedConcurrentExecutions");
      const all = made.all("AWS::Lambda::Function").map(({ properties }) => properties.ReservedConcurrentExecutions);
      const unreserved =
        config.capacity.accountConcurrency - all.reduce<number>((sum, one) => sum + Number(one ?? 0), 0);
      for (const { method, path, file } of routes.filter(({ streamed }) => streamed)) {
        const { RateLimit, BurstLimit } = z.parse(Limits, at(own, `${path}/${method}`));
        const executions = Number(reserved(file) ?? unreserved);
        expect(BurstLimit + RateLimit * 10, path).toBeLessThanOrEqual(executions / 3);
        expect(Math.min(BurstLimit, RateLimit), path).toBeGreaterThanOrEqual(1);
      }
    }
  });

  it("counts by API keys that the authorizer names, because a client could choose the key in a header", () => {
    expect(at(template.all("AWS::ApiGateway::RestApi")[0]?.properties.Body, "x-amazon-apigateway-api-key-source")).toBe(
      "AUTHORIZER",
    );
    const keys = template.all("AWS::ApiGateway::ApiKey");
    const members = template.all("AWS::ApiGateway::UsagePlanKey");
    expect(members.map(({ properties }) => target(properties.KeyId))).toEqual(keys.map(({ id }) => id));
    expect(keys).toHaveLength(THROTTLE_KEYS + 1);
    // Each key waits until the key before it is in the plan, because API Gateway adds only one key at a time.
    const awaited = keys.map(({ resource }) => listed(resource.DependsOn));
    expect(awaited).toEqual([[], ...members.slice(0, -1).map(({ id }) => [id])]);
    const prefix = at(template.variablesOf(authorizer.file), "THROTTLE_KEY_PREFIX");
    const text = (value: unknown) => JSON.stringify(value).replaceAll(/[^\w-]/g, "");
    keys.forEach(({ properties }, slot) => {
      expect(text(properties.Value)).toBe(text(prefix) + String(slot).padStart(3, "0"));
    });
  });

  it("is set by a context key, and fits the concurrency of a small account", async () => {
    const { requests, company } = capacityOf({ preset: "small" });
    expect({ requests, company }).toEqual({
      requests: { perSecond: 100, burst: 200 },
      company: { perSecond: 20, burst: 40 },
    });
    expect(capacityOf({ preset: "production", companyRate: 50 }).company).toEqual({ perSecond: 50, burst: 100 });
    const { all } = await synthesized(small);
    const [common, ...own] = listed(at(all("AWS::ApiGateway::Stage")[0]?.properties, "MethodSettings"));
    expect(common).toMatchObject({ ThrottlingRateLimit: 100, ThrottlingBurstLimit: 200 });
    const limited = own.filter((setting) => at(setting, "ThrottlingRateLimit") !== WITHOUT_TOKEN.perSecond);
    for (const setting of limited) expect(at(setting, "ThrottlingRateLimit")).toBeLessThanOrEqual(20);
    // Ten executions are too few to limit each company to a share. So a slow reader keeps its execution until the time limit of the answer.
    const plan = all("AWS::ApiGateway::UsagePlan")[0]?.properties;
    expect(at(plan, "ApiStages", 0, "Throttle", "/api/prospects/GET")).toBeUndefined();
  });
});

it.each([
  ["small", small],
  ["production", ownIdentity],
])(
  "with the preset %s, no flood without a token makes API Gateway refuse a request with a token, or a refresh of a session",
  async (_, config) => {
    const made = await synthesized(config);
    const [stage] = made.all("AWS::ApiGateway::Stage");
    const settings = z.parse(z.array(Setting), at(stage?.properties, "MethodSettings"));
    const verbs = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];
    const byPath = Map.groupBy(routes, ({ path }) => path);
    const guarded = routes.filter((route) => !route.public).flatMap(asMethods);
    const isGuarded = (name: string) => guarded.some(({ path, method }) => `${method} ${path}` === name);
    const open = [...byPath.keys(), "/", "/{proxy+}"]
      .flatMap((path) => verbs.map((method) => ({ path, method })))
      .filter(({ path, method }) => !isGuarded(`${method} ${path}`) && (byPath.has(path) || method === "OPTIONS"));
    let now = 0;
    const throttle = createThrottle(settings, () => now);
    const refused = { guarded: 0, refresh: 0, open: 0 };
    // In each second, 150 requests flood each method that needs no token. There are also 15 requests with a token and 15 refreshes.
    for (; now < 10_000; now += 1_000 / 15) {
      for (const { path, method } of open) {
        for (let i = 0; i < 10; i++) if (!throttle(path, method)) refused.open++;
      }
      const { path, method } = guarded[Math.floor(now) % guarded.length] ?? { path: "", method: "" };
      if (!throttle(path, method)) refused.guarded++;
      if (!throttle("/api/session/refresh", "POST")) refused.refresh++;
    }
    expect(refused).toEqual({ guarded: 0, refresh: 0, open: 0 });
    // A larger flood exceeds the throttle of methods that need no token.
    expect(Array.from({ length: 1_000 }, () => throttle("/health", "GET"))).toContain(false);
  },
);

const Setting = z.object({
  HttpMethod: z.string(),
  ResourcePath: z.string(),
  ThrottlingRateLimit: z.number(),
  ThrottlingBurstLimit: z.number(),
});
const Limits = z.object({ RateLimit: z.number(), BurstLimit: z.int() });
const asMethods = (route: Route) => methodsOf(route).map((method) => ({ path: route.path, method }));

it("every throttle of the stage is in docs/limits.md, those of requests without a token in one line", () => {
  const document = readFileSync(new URL("../../../docs/limits.md", import.meta.url), "utf8");
  const shown = [
    ...document.matchAll(
      /^\| ((?:`(?:GET|POST) \S+`(?:, )?)+|all others together|each method that [^|]+) \| (\d+) \| (\d+) \|$/gm,
    ),
  ].flatMap(([, requests = "", rate, burst]) => {
    const paths = [...requests.matchAll(/`(\w+ \S+)`/g)].map(([, path]) => path);
    if (requests.startsWith("each method")) return [`open ${rate} ${burst}`];
    return (paths.length === 0 ? ["* /*"] : paths).map((path) => `${path} ${rate} ${burst}`);
  });
  const [stage] = template.all("AWS::ApiGateway::Stage");
  const set = listed(at(stage?.properties, "MethodSettings")).map((setting) => {
    const path = String(at(setting, "ResourcePath"))
      .replace(/^\/(?=~1)/, "")
      .replaceAll("~1", "/");
    return `${at(setting, "HttpMethod")} ${path} ${at(setting, "ThrottlingRateLimit")} ${at(setting, "ThrottlingBurstLimit")}`;
  });
  const rate = ` ${WITHOUT_TOKEN.perSecond} ${WITHOUT_TOKEN.burst}`;
  const isPins = (line: string) => line.startsWith("GET /api/prospects/pins ");
  const limited = set.filter((line) => isPins(line) || !(line.startsWith("HEAD") || line.endsWith(rate)));
  expect(shown.toSorted()).toEqual([...limited, `open${rate}`].toSorted());
});
