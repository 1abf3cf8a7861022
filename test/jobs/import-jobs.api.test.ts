/** Tests imports of uploaded CSV files and exports into a file over HTTP. */
import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { NewImport } from "../../docs/client/api.ts";
import { at } from "../harness/client.ts";
import { dataOf, present, problemOf, uniqueName } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";
import { endedExport, endedImport, postFile } from "./files-over-http.ts";

const as = await newTeam();

type Job = Awaited<ReturnType<typeof newJob>>;
const newJob = async (body: NewImport) => dataOf(await as.owner.POST("/api/prospects/imports", { body }), 201);

const sent = async ({ upload }: Job, file: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) => {
  const { url, method } = present(upload ?? undefined);
  return (await fetch(url, { method, headers: { ...upload?.headers, ...headers }, body: file })).status;
};

const ended = ({ id }: { id: number }) => endedImport(as.owner, id);
const search = async (text: string) =>
  dataOf(await as.owner.GET("/api/prospects", { params: { query: { search: text, pageSize: 500 } } }));

test("an uploaded file becomes prospects with new tags; a report lists all errors if there are more than a hundred", async () => {
  const [name, tag] = [uniqueName(), uniqueName()];
  const rows = Array.from({ length: 130 }, (_, i) => `${name} ${i},${i < 5 ? `39.5,-105,${tag}` : "x,,"}`);
  const job = await newJob({ mapping: { "FULL name ": "name" } });
  expect(job).toMatchObject({ state: "awaiting_upload", dryRun: false, processed: 0, errors: [], errorReport: null });
  expect(job).toMatchObject({ encoding: null, ignoredColumns: [] });
  expect(await sent(job, `Full name,lat,lng,tags\n${rows.join("\n")}\n`)).toBe(200);
  const summary = await ended(job);
  const counts = { processed: 130, written: 5, imported: 5, skipped: 125 };
  expect(summary).toMatchObject({ state: "completed", ...counts, upload: null });
  expect(summary.errors).toHaveLength(100);
  const report = await (await fetch(present(summary.errorReport ?? undefined).url)).text();
  expect(report.trimEnd().split("\r\n")).toHaveLength(126);
  const shown = (await search(name)).items.map((item) => [item.name, item.tags.map((one) => one.tag.value)]);
  expect(shown).toEqual([0, 1, 2, 3, 4].map((i) => [`${name} ${i}`, [tag]]));
  const listed = dataOf(await as.owner.GET("/api/prospects/imports", { params: { query: { limit: 1 } } }));
  expect(listed.items).toMatchObject([{ id: job.id, state: "completed" }]);
  problemOf(await as.owner.POST("/api/prospects/imports/{id}/cancel", at(job.id)), 409, "conflict");
});

test("a link accepts one file of the announced length and digest, and no other request", async () => {
  const file = `name,lat,lng\n${uniqueName()},1,2\n`;
  const sha256 = createHash("sha256").update(file).digest("base64");
  const job = await newJob({ bytes: Buffer.byteLength(file), sha256 });
  const { url, headers } = present(job.upload ?? undefined);
  const { "content-length": _, ...open } = headers;
  expect((await fetch(url, { method: "PUT", headers: open, body: `${file}x` })).status).toBe(403);
  expect(await sent(job, file.toUpperCase())).toBe(400);
  expect(await sent(job, file, { "if-none-match": "x" })).toBe(403);
  expect((await fetch(url, { method: "DELETE" })).status).toBe(403);
  expect(
    (await fetch(url.replace(`/${job.id}.csv`, `/${job.id + 1}.csv`), { method: "PUT", headers, body: file })).status,
  ).toBe(403);
  expect(await sent(job, file)).toBe(200);
  expect(await sent(job, file)).toBe(412);
  expect(await ended(job)).toMatchObject({ state: "completed", imported: 1 });
});

describe("a page of an allowed origin", () => {
  const origin = "https://app.example.com";
  const asked = (url: string, from: string, method: string, names: readonly string[]) => {
    const headers = { "Access-Control-Request-Method": method, "Access-Control-Request-Headers": names.join(", ") };
    return fetch(url, { method: "OPTIONS", headers: { Origin: from, ...headers } });
  };

  test("may send a file with the headers of the link, and a page of another origin may not", async () => {
    const file = `name,lat,lng\n${uniqueName()},1,2\n`;
    const sha256 = createHash("sha256").update(file).digest("base64");
    const job = await newJob({ bytes: Buffer.byteLength(file), sha256 });
    const { url, headers } = present(job.upload ?? undefined);
    // The browser sets content-length itself, so its preflight request does not contain this header.
    const names = Object.keys(headers).filter((name) => name !== "content-length");
    expect(names).toHaveLength(3);
    const allowed = await asked(url, origin, "PUT", names);
    expect([allowed.status, allowed.headers.get("access-control-allow-origin")]).toEqual([200, origin]);
    expect(allowed.headers.get("access-control-allow-methods")).toContain("PUT");
    for (const name of names) expect(allowed.headers.get("access-control-allow-headers")).toContain(name);
    expect(allowed.headers.get("vary")).toContain("Origin");
    for (const refused of [
      await asked(url, "https://other.example.com", "PUT", names),
      await asked(url, origin, "DELETE", []),
      await asked(url, origin, "PUT", [...names, "x-other"]),
    ]) {
      expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([403, null]);
    }
    expect((await fetch(url, { method: "OPTIONS" })).status).toBe(400);
    const sending = { method: "PUT", body: file, headers: { ...headers, Origin: origin } };
    const taken = await fetch(url, sending);
    expect([taken.status, taken.headers.get("access-control-allow-origin")]).toEqual([200, origin]);
    expect(taken.headers.get("access-control-expose-headers")).toContain("ETag");
    // A web page can read the error of a repeated upload only if the answer has CORS headers.
    const again = await fetch(url, sending);
    expect([again.status, again.headers.get("access-control-allow-origin")]).toEqual([412, origin]);
    expect(await ended(job)).toMatchObject({ state: "completed", imported: 1 });
  });

  test("may read the file of an export, and a page of another origin gets no permission header", async () => {
    const { id } = dataOf(await as.rep.POST("/api/prospects/exports", { body: {} }), 201);
    const { url } = present((await endedExport(as.rep, id)).file ?? undefined);
    for (const [from, header] of Object.entries({ [origin]: origin, "https://other.example.com": null })) {
      const answer = await fetch(url, { headers: { Origin: from } });
      expect([answer.status, answer.headers.get("access-control-allow-origin")]).toEqual([200, header]);
    }
  });
});

test("a file that is uploaded after a cancel is not imported", async () => {
  const name = uniqueName();
  const job = await newJob({});
  const summary = dataOf(await as.owner.POST("/api/prospects/imports/{id}/cancel", at(job.id)));
  expect(summary).toMatchObject({ id: job.id, state: "cancelled" });
  expect(await sent(job, `name,lat,lng\n${name},1,2\n`)).toBe(200);
  dataOf(await as.owner.POST("/api/prospects/imports/{id}/cancel", at(job.id)));
  expect((await search(name)).total).toBe(0);
});

test("an unknown column in a mapping is refused with the header and the columns, in a body and in a query", async () => {
  const mapping = { "Full name": "nam", Phone: "phone" };
  const message = expect.stringMatching(
    /^for the header "Full name", there is no column "nam"\. The columns are id, name, .*, customFieldData\.$/,
  );
  const [inBody] = problemOf(await as.owner("POST", "/api/prospects/imports", { mapping }), 400, "validation_failed");
  expect(inBody).toMatchObject({ pointer: "/mapping/Full name", message });
  const query = `?mapping=${encodeURIComponent(JSON.stringify(mapping))}`;
  const answer = await postFile(as.owner, "Full name,lat,lng\na,1,2\n", query);
  expect(problemOf(answer, 400, "validation_failed")[0]).toMatchObject({ parameter: "mapping", message });
});

test("a length of 0, a malformed digest, a file that is too long, and a mapping of a missing header are refused", async () => {
  for (const body of [{ bytes: 0 }, { sha256: "abc" }])
    problemOf(await as.owner.POST("/api/prospects/imports", { body }), 400, "validation_failed");
  problemOf(await as.owner.POST("/api/prospects/imports", { body: { bytes: 200_000_001 } }), 413, "payload_too_large");
  const query = `?mapping=${encodeURIComponent('{"y":"name"}')}`;
  problemOf(await postFile(as.owner, "x,lat,lng\na,1,2\n", query), 400, "validation_failed");
});

test("an exported file equals the streamed export, and contains what its user may see", async () => {
  const name = uniqueName();
  const me = dataOf(await as.rep.GET("/api/me"));
  for (const assignedToUserId of [me.user.id, null]) {
    dataOf(await as.owner.POST("/api/prospects", { body: { name, assignedToUserId } }), 201);
  }
  for (const [client, count] of [
    [as.owner, 2],
    [as.rep, 1],
  ] as const) {
    const { id } = dataOf(await client.POST("/api/prospects/exports", { body: { search: name } }), 201);
    const made = await endedExport(client, id);
    expect(made).toMatchObject({ state: "completed", total: count, processed: count });
    const answer = await fetch(present(made.file ?? undefined).url);
    expect(answer.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    expect(answer.headers.get("content-disposition")).toContain("prospects.csv");
    const streamed = await client.send("GET", `/api/prospects/export?search=${encodeURIComponent(name)}`);
    expect(await answer.text()).toBe(streamed.text);
    expect(streamed.text.trimEnd().split("\r\n")).toHaveLength(count + 1);
    problemOf(await as.viewer.GET("/api/prospects/exports/{id}", at(id)), 404, "not_found");
  }
  problemOf(await as.owner.POST("/api/prospects/exports", { body: { bbox: "1" } }), 400, "validation_failed");
});
