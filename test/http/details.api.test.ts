/** Tests that the detail of an error says what is wrong with the request, and what the service accepts instead. */
import { createConnection } from "node:net";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { baseUrl, demo, json } from "../harness/client.ts";
import { csvForm } from "../harness/csv-form.ts";

const Detailed = z.object({ status: z.number(), code: z.string(), detail: z.string() });

const queries: readonly (readonly [path: string, detail: string])[] = [
  ["/api/prospects/clusters", "The query of the request is not valid: bbox: is required; zoom: is required."],
  ["/api/prospects?near=NaN", "The query of the request is not valid: near: must be two numbers: lat,lng."],
  ["/api/prospects?page=1&page=2", "The query of the request is not valid: page: must be a positive integer."],
  [
    "/api/prospects/import?matchBy=phone&onMatch=update",
    "The query of the request is not valid: matchBy: must be one of id, sourceId, emailAddress.",
  ],
];

test.each(queries)("%s", async (path, detail) => {
  const isImport = path.includes("import");
  const answer = await (isImport
    ? demo.owner.send("POST", path, { body: csvForm("name\nA\n") })
    : demo.owner("GET", path));
  expect(z.parse(Detailed, answer.body)).toEqual({ status: 400, code: "validation_failed", detail });
});

const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
const PROTOTYPE =
  "The body must not have the key `__proto__`, or a key `constructor` whose value has the key `prototype`.";
const invalid = "The body of the request is not valid:";
const bodies: readonly (readonly [body: string, code: string, detail: string])[] = [
  ['{"__proto__":{"a":1}}', "malformed_json", PROTOTYPE],
  ['{"customFieldData":{"constructor":{"prototype":1}}}', "malformed_json", PROTOTYPE],
  ['{"name":}', "malformed_json", "The body is not valid JSON."],
  ['{"name" 7}', "malformed_json", "The body is not valid JSON: the fault is at character 9."],
  ['"Forbidden key" at position 3', "malformed_json", "The body is not valid JSON: the fault is at character 17."],
  [nested(20_000), "malformed_json", "The body is nested too deeply."],
  [nested(499_000), "malformed_json", "The body is nested too deeply."],
  ["[".repeat(20_000), "malformed_json", "The body is not valid JSON."],
  ["[]", "validation_failed", `${invalid} it must be an object.`],
  ["null", "validation_failed", `${invalid} it must be an object.`],
  ['{"address":{"address1":"a","city":"b","state":"c"}}', "validation_failed", `${invalid} /address/zip: is required.`],
  [
    '{"lat":91,"name":7,"addressId":1.5,"lng":"1"}',
    "validation_failed",
    "The body of the request is not valid: /name: must be a text; /lat: must be a latitude from -90 to 90 degrees (a longitude may be in its place), and is 91; /lng: must be a number.",
  ],
];

test.each(bodies)("body %#", async (body, code, detail) => {
  const answer = await demo.owner.send("POST", "/api/prospects", { headers: json, body });
  expect(z.parse(Detailed, answer.body)).toEqual({ status: 400, code, detail });
});

test("a method that the path does not have", async () => {
  const answer = await demo.owner("PUT", "/api/prospects");
  expect(z.parse(Detailed, answer.body)).toEqual({
    status: 405,
    code: "method_not_allowed",
    detail: expect.stringMatching(/^PUT is not available here\. The methods of this path are GET, .*POST/),
  });
  expect(answer.headers.get("allow")).toContain("POST");
});

/** Sends a request line that an HTTP client would refuse to send. Returns the whole answer. */
async function rawAnswer(line: string): Promise<string> {
  const { hostname, port } = new URL(baseUrl());
  const socket = createConnection({ host: hostname, port: Number(port) });
  socket.end(`${line} HTTP/1.1\r\nHost: ${hostname}\r\nConnection: close\r\n\r\n`);
  return text(socket);
}

test.each(["GET /api/%ZZ", "GET /api/prospects?search=%ff", "BREW /api/prospects", "get /api/prospects"])(
  "a request that cannot be read: %s",
  async (line) => {
    const answer = await rawAnswer(line);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toMatch(/^content-type: application\/problem\+json/im);
    const detail = z.parse(Detailed, JSON.parse(answer.slice(answer.indexOf("{"), answer.lastIndexOf("}") + 1))).detail;
    expect(detail).toContain("Use a method of HTTP, such as GET");
    expect(detail).toContain("two hexadecimal digits");
  },
);
