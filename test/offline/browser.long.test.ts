/** Tests the reference client with its store in the IndexedDB of a real browser. A page closes during a sync, and a new one continues. */
import { join } from "node:path";
import { build } from "esbuild";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { root } from "../../infra/build/bundle.ts";
import { noBrowser, openBrowser, openContext } from "../harness/browser.ts";
import { baseUrl, tokenOf } from "../harness/client.ts";
import { dataOf } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { listsOf } from "./lists.ts";

const as = await newTeam();

let browser: Browser | undefined;
beforeAll(async () => {
  if (noBrowser === undefined) browser = await openBrowser();
});
afterAll(() => browser?.close());

async function clientScript(): Promise<string> {
  const names = ["client", "offline", "indexeddb-store"];
  const contents = names.map((name) => `export * from "./${name}.ts";`).join("\n");
  const stdin = { contents, resolveDir: join(root, "docs/client"), loader: "ts" } as const;
  const { outputFiles } = await build({ stdin, bundle: true, format: "iife", globalName: "canvassing", write: false });
  return outputFiles[0]?.text ?? expect.fail("esbuild has written no file");
}

test("a new page continues the sync of a page that was closed, and then has the lists of the API", async ({ skip }) => {
  if (browser === undefined) return skip(noBrowser);
  const body = { assignedToUserId: dataOf(await as.rep.GET("/api/me")).user.id };
  dataOf(await as.owner.POST("/api/territories", { body: { name: "North" } }), 201);
  for (let i = 0; i < 7; i++) dataOf(await as.owner.POST("/api/prospects", { body: { ...body, name: `P${i}` } }), 201);
  const script = await clientScript();
  const token = await tokenOf(as.rep.email);
  const context = await openContext(browser);
  const openApp = async () => {
    const page = await context.newPage();
    await page.goto(`${baseUrl()}/docs`);
    await page.evaluate(script);
    await page.evaluate(`(async () => {
      const api = canvassing.apiClient({ baseUrl: location.origin, accessToken: () => ${JSON.stringify(token)} });
      globalThis.store = await canvassing.indexedDbStore("canvassing-test");
      globalThis.phone = canvassing.offlineClient({ api, store, pageLimit: 2 });
    })()`);
    return page;
  };

  const first = await openApp();
  const clientRecordId = crypto.randomUUID();
  await first.evaluate(
    `phone.add({ type: "prospect.create", clientRecordId: "${clientRecordId}", fields: { name: "new" } })`,
  );
  await first.evaluate(
    `phone.add({ type: "note.create", clientRecordId: "${clientRecordId}", fields: { body: "n" } })`,
  );
  const page = first.waitForResponse((response) => response.url().includes("/api/changes?"));
  await first.evaluate("void phone.sync()");
  await page;
  await first.close();

  const second = await openApp();
  expect(await second.evaluate("phone.sync()")).toBe("synced");
  expect(await second.evaluate("store.outbox()")).toEqual([]);
  const lists = await listsOf(as.rep);
  for (const [type, expected] of Object.entries(lists)) {
    const records = `store.records("${type}").then((records) => records.map(({ data }) => data))`;
    expect(await second.evaluate(records), type).toEqual(expected);
  }
  const { prospects } = lists;
  expect(prospects.filter((prospect) => prospect.clientRecordId === clientRecordId)).toHaveLength(1);
  expect(prospects).toHaveLength(8);
  await context.close();
});
