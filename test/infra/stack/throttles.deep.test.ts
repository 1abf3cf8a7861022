/** Tests the throttles of API Gateway: those of each company, and the table of all throttles in the README. */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { THROTTLE_KEYS } from "#shared/auth/throttle-key.ts";
import { authorizer, routes } from "../../../infra/routes/routes.ts";
import { capacityOf } from "../../../infra/settings/capacity.ts";
import { methodsOf } from "../../../infra/stack/api-definition.ts";
import { at, listed, ownIdentity, synthesized, type Template, target } from "../template.ts";

let template: Template;
beforeAll(async () => {
  template = await synthesized();
});

describe("the throttle of each company", () => {
  const plan = () => template.all("AWS::ApiGateway::UsagePlan")[0]?.properties;
  const stage = () => template.all("AWS::ApiGateway::Stage")[0]?.properties;

  it("is a fifth of the throttle of all companies, and a quarter of the throttle of a single method", () => {
    const common = at(stage(), "MethodSettings", 0);
    expect(at(plan(), "Throttle")).toEqual({
      RateLimit: Number(at(common, "ThrottlingRateLimit")) / 5,
      BurstLimit: Number(at(common, "ThrottlingBurstLimit")) / 5,
    });
    const own = at(plan(), "ApiStages", 0, "Throttle");
    const limited = routes.filter(({ rate, public: open }) => rate !== undefined && open !== true);
    expect(Object.keys(Object(own))).toEqual(
      limited.flatMap((route) => methodsOf(route).map((method) => `${route.path}/${method}`)),
    );
    for (const { method, path, rate } of limited) {
      const expected = { RateLimit: (rate?.perSecond ?? 0) / 4, BurstLimit: (rate?.burst ?? 0) / 4 };
      expect(at(own, `${path}/${method}`), path).toEqual(expected);
    }
  });

  it("counts by API keys that the authorizer names, because a client could choose the key in a header", () => {
    expect(at(template.all("AWS::ApiGateway::RestApi")[0]?.properties.Body, "x-amazon-apigateway-api-key-source")).toBe(
      "AUTHORIZER",
    );
    const keys = template.all("AWS::ApiGateway::ApiKey");
    const members = template.all("AWS::ApiGateway::UsagePlanKey").map(({ properties }) => target(properties.KeyId));
    expect(members).toEqual(keys.map(({ id }) => id));
    expect(keys).toHaveLength(THROTTLE_KEYS + 1);
    const prefix = at(
      template.functionOf(authorizer.file).properties,
      "Environment",
      "Variables",
      "THROTTLE_KEY_PREFIX",
    );
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
    const small = await synthesized({ ...ownIdentity, capacity: capacityOf({ preset: "small" }) });
    const [common, ...own] = listed(at(small.all("AWS::ApiGateway::Stage")[0]?.properties, "MethodSettings"));
    expect(common).toMatchObject({ ThrottlingRateLimit: 100, ThrottlingBurstLimit: 200 });
    for (const setting of own) expect(at(setting, "ThrottlingRateLimit")).toBeLessThanOrEqual(20);
  });

  it("waits with each key until the key before it is in the plan, because API Gateway adds only one key at a time", () => {
    const keys = template.all("AWS::ApiGateway::ApiKey");
    const members = template.all("AWS::ApiGateway::UsagePlanKey");
    const awaited = keys.map(({ resource }) => listed(resource.DependsOn));
    expect(awaited).toEqual([[], ...members.slice(0, -1).map(({ id }) => [id])]);
    // A membership (`UsagePlanKey`) refers to its key, so CloudFormation creates the key before the membership.
    expect(members.map(({ properties }) => target(properties.KeyId))).toEqual(keys.map(({ id }) => id));
  });
});

it("every throttle of the stage is in the README", () => {
  const readme = readFileSync(new URL("../../../README.md", import.meta.url), "utf8");
  const shown = [
    ...readme.matchAll(/^\| ((?:`(?:GET|POST) \S+`(?:, )?)+|all others together) \| (\d+) \| (\d+) \|$/gm),
  ].flatMap(([, requests = "", rate, burst]) => {
    const paths = [...requests.matchAll(/`(\w+ \S+)`/g)].map(([, path]) => path);
    return (paths.length === 0 ? ["* /*"] : paths).map((path) => `${path} ${rate} ${burst}`);
  });
  const [stage] = template.all("AWS::ApiGateway::Stage");
  const set = listed(at(stage?.properties, "MethodSettings")).map((setting) => {
    const path = String(at(setting, "ResourcePath"))
      .replace(/^\/(?=~1)/, "")
      .replaceAll("~1", "/");
    return `${at(setting, "HttpMethod")} ${path} ${at(setting, "ThrottlingRateLimit")} ${at(setting, "ThrottlingBurstLimit")}`;
  });
  expect(shown.toSorted()).toEqual(set.filter((line) => !line.startsWith("HEAD")).toSorted());
});
