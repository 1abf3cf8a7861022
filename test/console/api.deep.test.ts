/** Tests which requests of the console get an `Idempotency-Key`, and the texts that it shows for faults in a request. */
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { ApiError } from "#shared/errors.ts";
import { validate } from "#shared/http/validate.ts";
import { faultsIn, sentence } from "../../console/src/api/faults.ts";
import { sendOnce } from "../../console/src/api/once.ts";
import { ringOf } from "../harness/rings.ts";

const Body = z.object({
  name: z.string().check(z.minLength(1), z.maxLength(255)),
  email: z.email(),
  role: z.enum(["admin", "sales"]),
  delayMinutes: z.int().check(z.minimum(0), z.maximum(43_200)),
  polygon: z.array(z.tuple([z.number(), z.number().check(z.minimum(-90), z.maximum(90))])).check(z.minLength(3)),
});
const good = { name: "A", email: "a@b.test", role: "sales", delayMinutes: 0, polygon: ringOf("1 2, 3 4, 5 6") };

function textsOf(body: object): string[] {
  try {
    validate("body", Body, { ...good, ...body });
  } catch (error) {
    const errors = error instanceof ApiError ? [...error.faults] : expect.fail("not an ApiError");
    return faultsIn({ errors }).map(({ field, text }) => `${field} ${text}`);
  }
  return [];
}

test.for([
  [{}, []],
  [{ name: "" }, ["name must have at least 1 character."]],
  [{ name: "a".repeat(256) }, ["name must have at most 255 characters."]],
  [{ email: "nobody" }, ["email must be a valid e-mail address."]],
  [{ role: "king" }, ["role must be one of admin, sales."]],
  [{ delayMinutes: 50_000 }, ["delayMinutes must be at most 43200."]],
  [{ delayMinutes: "soon" }, ["delayMinutes must be a number."]],
  [{ polygon: [[1, 2]] }, ["polygon must have at least 3 items."]],
] as const)("%j", ([body, texts]) => expect(textsOf(body)).toEqual(texts));

test("names the field once for the same fault in several of its parts", () => {
  const swapped = ringOf("39.7 -105, 39.7 -104.9, 39.8 -104.9");
  expect(textsOf({ polygon: swapped })).toEqual(["polygon must be at least -90."]);
});

test("names the field once for different values with the same fault", () => {
  const errors = [1, 2].map((at) => ({
    pointer: `/polygon/${at}/1`,
    message: `must be a latitude, and is ${90 + at}.5`,
  }));
  expect(faultsIn({ errors })).toEqual([{ field: "polygon", text: "must be a latitude, and is 91.5." }]);
});

test("adds a full stop to a message, unless the message ends with one", () => {
  expect(sentence("does not name an active user of this company")).toBe(
    "does not name an active user of this company.",
  );
  expect(sentence("The URL must not have a fragment.")).toBe("The URL must not have a fragment.");
});

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
