/** Tests that the templates from the cache equal the templates of a new synthesis. */
import { existsSync, mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { demoUsers } from "../../infra/local/demo/users.ts";
import { templatesInOrder } from "../../infra/synth.ts";
import { cachedTemplates } from "../../infra/template-cache.ts";
import { ownIdentity } from "./template.ts";

/** The options of the local service. */
const options = { signIn: { tokenPath: "local/token", users: demoUsers }, isShared: true };
const directory = mkdtempSync(join(tmpdir(), "template-cache-"));

const configOf = (port: number, timeScale = 1) => {
  const issuer = `http://127.0.0.1:${port}/local/oidc`;
  return { ...ownIdentity, issuer, jwksUri: `${issuer}/keys`, audience: ["local"], webAcl: false, timeScale };
};

/** Removes the hash in the id of a function's version. The hash depends on the issuer, which contains the port of the service. */
const plain = (templates: unknown): unknown =>
  JSON.parse(JSON.stringify(templates).replaceAll(/(?<=CurrentVersion[0-9A-F]{8})[0-9a-f]{32}/g, ""));

test("templates from the cache have the issuer and the directory of the start, and other settings have other templates", async () => {
  const caches = join(directory, "caches");
  const cache = join(caches, "templates");
  const steps: string[] = [];
  const templates = (port: number, timeScale?: number) =>
    cachedTemplates(
      configOf(port, timeScale),
      join(directory, String(port)),
      options,
      (step) => steps.push(step),
      caches,
    );
  await templates(3001);
  expect(readdirSync(cache)).toHaveLength(1);
  const cached = await templates(3002);
  expect(readdirSync(cache)).toHaveLength(1);
  expect(existsSync(join(directory, "3002/bundles/health/index.mjs"))).toBe(true);
  expect(plain(cached)).toEqual(
    plain(await templatesInOrder(configOf(3002), join(directory, "3002"), options, caches)),
  );
  expect(JSON.stringify(await templates(3003, 60)).includes('"TIME_SCALE":"60"')).toBe(true);
  expect(readdirSync(cache)).toHaveLength(2);
  const built = ["built the functions", "built the templates"];
  expect(steps).toEqual([...built, "copied the functions", ...built]);
});
