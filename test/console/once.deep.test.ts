/** Tests which requests of the console get an `Idempotency-Key`. */
import { expect, test } from "vitest";
import { sendOnce } from "../../console/src/api/once.ts";

const ADDRESS = "http://127.0.0.1/api/prospects";

async function keyOf(request: Request, status = 200): Promise<string | null> {
  let key: string | null = null;
  await sendOnce(request, async ({ headers }) => {
    key = headers.get("Idempotency-Key");
    return new Response(null, { status });
  });
  return key;
}

const post = (address: string, body: string | FormData) => new Request(address, { method: "POST", body });

function importOf(text: string): FormData {
  const form = new FormData();
  form.append("file", new Blob([text]), "prospects.csv");
  return form;
}

test("a form whose file contains the text of a dry run gets a key", async () => {
  expect(
    await keyOf(post(`${ADDRESS}/import`, importOf('name\n"{""dryRun"":true} and "dryRun":true"'))),
  ).not.toBeNull();
});

test("a failed form with the same file gets the same key again, and another one after a success", async () => {
  const send = (status: number) => keyOf(post(`${ADDRESS}/import`, importOf("name\nAda\n")), status);
  const first = await send(502);
  expect(await send(200)).toBe(first);
  expect(await send(200)).not.toBe(first);
});

test.for([
  ["a dry run in the body", post(`${ADDRESS}/bulk`, JSON.stringify({ dryRun: true }))],
  ["a dry run in the address", post(`${ADDRESS}/import?dryRun=true`, importOf("name\nAda\n"))],
  ["a search", post(`${ADDRESS}/search`, "{}")],
  ["a GET request", new Request(ADDRESS)],
] as const)("%s gets no key", async ([, request]) => {
  expect(await keyOf(request)).toBeNull();
});
