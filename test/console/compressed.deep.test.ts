/** Tests that the local service compresses its answers as a deployment does: large ones only, and only for a client that accepts it. */
import { beforeAll, expect, test } from "vitest";
import { buildConsole } from "../../infra/build/console.ts";
import { baseUrl } from "../harness/client.ts";
import { onceInRun } from "../harness/once.ts";
import { dataOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const { admin } = await newTeam();
let asset = "";
beforeAll(async () => {
  await onceInRun("console", buildConsole);
  const page = await (await fetch(`${baseUrl()}/`)).text();
  asset = /\/assets\/[\w.-]+\.js/.exec(page)?.[0] ?? expect.fail("the page names no script");
  const address = { address1: "1 Elm St", address2: null, city: "Denver", state: "CO", zip: "80207" };
  for (let i = 0; i < 20; i++) {
    dataOf(await admin.POST("/api/prospects", { body: { address, name: `Owner of ${i}` } }), 201);
    dataOf(await admin.POST("/api/statuses", { body: { value: `Status ${i}`, color: "#123456" } }), 201);
  }
});

async function load(path: string, accepted: string): Promise<[coding: string | null, text: string]> {
  const { headers, text } = await admin.send("GET", path, { headers: { "Accept-Encoding": accepted } });
  return [headers.get("content-encoding"), text];
}

test.each([
  ["a list of prospects", () => "/api/prospects?pageSize=100"],
  ["the feed of changes", () => "/api/changes"],
  ["the buffered list of statuses", () => "/api/statuses"],
  ["a script of the console", () => asset],
])("%s is compressed for a client that accepts gzip, and for no other", async (_, path) => {
  const [coding, text] = await load(path(), "br, gzip, deflate");
  const plain = await load(path(), "identity");
  expect([coding, plain[0]]).toEqual(["gzip", null]);
  expect(text.length).toBeGreaterThan(1_000);
  expect(plain[1].length).toBe(text.length);
});

test.each(["/api/me", "/manifest.webmanifest"])("the small answer of %s is sent as it is", async (path) => {
  const [coding, text] = await load(path, "gzip");
  expect([coding, text.startsWith("{")]).toEqual([null, true]);
});
