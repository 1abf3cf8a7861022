/** Tests the setting `allowedOrigins=*`. Web pages of all origins may call the API, but none of them may use the cookie of the console. */
import { expect, test, vi } from "vitest";
import * as z from "zod/mini";
import { endpoint } from "#shared/http/endpoint.ts";
import { lambdaContext, proxyEvent } from "../../harness/proxy-event.ts";
import { at, ownIdentity, synthesized } from "../template.ts";

test("`*` allows all origins, but allows none of them to send cookies or the header of the console", async () => {
  const open = await synthesized({ ...ownIdentity, allowedOrigins: ["*"] });
  const text = JSON.stringify(open.all("AWS::ApiGateway::RestApi")[0]?.properties.Body);
  const origins = [...text.matchAll(/Access-Control-Allow-Origin":"([^"]+)"/g)].map(([, origin]) => origin);
  expect(new Set(origins)).toEqual(new Set(["'*'"]));
  // Without `Access-Control-Allow-Credentials`, a browser sends no cookies with a preflighted request, and hides the answer of a request
  // with cookies.
  expect(text).not.toMatch(/allow-credentials/i);
  expect(text).not.toMatch(/x-requested-with/i);
  expect(at(open.all("AWS::S3::Bucket")[0]?.properties, "CorsConfiguration", "CorsRules", 0, "AllowedOrigins")).toEqual(
    ["*"],
  );
  vi.stubEnv("ALLOWED_ORIGINS", "*");
  vi.stubEnv("TABLE_NAME", "t");
  const caller = proxyEvent({ companyId: "1", userId: "2", rights: "sales" });
  const event = { ...caller, multiValueHeaders: { Origin: ["https://any.example.com"] } };
  const contract = {
    summary: "",
    allow: "everyone",
    scope: "none",
    status: 200,
    response: z.string(),
  } as const;
  const { headers } = await endpoint(contract, async () => "answer")(event, lambdaContext);
  expect(headers).toMatchObject({ "Access-Control-Allow-Origin": "https://any.example.com", Vary: "Origin" });
  expect(JSON.stringify(headers)).not.toMatch(/allow-credentials/i);
  vi.unstubAllEnvs();
});
