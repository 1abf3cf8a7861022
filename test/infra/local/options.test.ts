/** Tests that `npm start` and the commands refuse wrong settings. process.deep.test.ts tests that such an error is printed as one line. */
import { expect, test } from "vitest";
import { readOptions } from "../../../infra/local/options.ts";
import { serviceUrl } from "../../../infra/local/servers/address.ts";

const wrongOrigin = (origin: string): string =>
  `ALLOWED_ORIGINS: must be an origin such as https://app.example.com, or *, and not "${origin}"`;

test.each([
  [{ PORT: "http" }, [], "PORT: the value is not valid"],
  [{ HOST: "" }, [], "HOST: the value is not valid"],
  [{ LOCAL_TIME_SCALE: "0" }, [], "LOCAL_TIME_SCALE: the value is not valid"],
  [{}, ["--seed", "many"], "--seed: the value is not valid"],
  [{ ALLOWED_ORIGINS: "https://a.test/" }, [], wrongOrigin("https://a.test/")],
  [{ ALLOWED_ORIGINS: "https://a.test, app" }, [], wrongOrigin("app")],
  [
    { WEBHOOK_URL_POLICY: "public" },
    ["--webhooks"],
    "--webhooks adds receivers on this machine, which WEBHOOK_URL_POLICY=public refuses",
  ],
])("a start with %j and %j is refused", (env, args, message) => {
  expect(() => readOptions(args, env)).toThrow(expect.objectContaining({ name: "LocalError", message }));
});

test.each([
  [{ HOST: "" }, "HOST: the value is not valid"],
  [{ PORT: "" }, "PORT: the value is not valid"],
  [{ PORT: "0" }, "PORT: take the port from the line `ready` of the service"],
])("no command finds the service with %j", (env, message) => {
  expect(() => serviceUrl(env)).toThrow(expect.objectContaining({ name: "LocalError", message }));
});

test.each([
  [{}, "http://127.0.0.1:3000"],
  [{ HOST: "::", PORT: "1" }, "http://127.0.0.1:1"],
  [{ HOST: "0.0.0.0", PORT: "1" }, "http://127.0.0.1:1"],
  [{ HOST: "::1", PORT: "1" }, "http://[::1]:1"],
])("the commands of a service with %j call %s", (env, url) => {
  expect(serviceUrl(env)).toBe(url);
});
