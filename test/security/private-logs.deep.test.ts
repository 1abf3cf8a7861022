/**
 * Sends tokens and personal data in every place of valid and invalid requests. After all API tests, local-service.ts of the harness fails
 * if `leaksOf` finds a token, an e-mail address, a phone number, a name or PRIVATE_WORD in a log line.
 */
import { expect, test } from "vitest";
import { clientWith, json, tokenOf } from "../harness/client.ts";
import { leaksOf, PRIVATE_WORD } from "../harness/log-leaks.ts";
import { startReceiver } from "../harness/receiver.ts";
import { bodyOf, Identified } from "../harness/shapes.ts";
import { newTeam } from "../harness/team.ts";

const as = await newTeam();
const text = PRIVATE_WORD;
const email = `${text}@example.test`;

const prospect = {
  name: `Derek ${text}`,
  phoneNumber: "(303) 555-0100",
  secondaryPhoneNumber: "+13035550101",
  emailAddress: email,
  lat: 39.7,
  lng: -105,
  address: { address1: `1 ${text} St`, city: text, state: "CO", zip: "80202" },
  customFieldData: { note: text, email },
};

test("personal data in valid requests is stored and sent to webhooks, but logged nowhere", async () => {
  const receiver = await startReceiver();
  const registrations = [{ event: "prospect.created" }];
  const url = `${receiver.url}/${text}?key=${text}`;
  bodyOf(await as.owner("POST", "/api/webhooks", { name: text, url, registrations }), 201, Identified);
  const { id } = bodyOf(await as.owner("POST", "/api/prospects", prospect), 201, Identified);
  bodyOf(await as.owner("POST", `/api/prospects/${id}/notes`, { body: `${text} ${email}` }), 201, Identified);
  const invited = { email, firstName: text, lastName: text, role: "sales" };
  bodyOf(await as.owner("POST", "/api/users", invited), 201, Identified);
  await receiver.until(1);
  expect(receiver.receipts[0]?.body).toContain(text);
  await receiver.close();
});

test("personal data and tokens in requests that fail are logged nowhere", async () => {
  for (const [method, path, body] of [
    ["POST", "/api/prospects", JSON.stringify({ ...prospect, lat: text, phoneNumber: [email] })],
    ["POST", "/api/prospects", `{"name": "${text}`],
    ["POST", "/api/users", JSON.stringify({ email: `${text}@`, firstName: text, lastName: text, role: text })],
    ["POST", "/api/webhooks", JSON.stringify({ name: text, url: `http://${text}:${text}@[`, registrations: [] })],
    ["PATCH", `/api/prospects/${text}`, JSON.stringify(prospect)],
    ["GET", `/api/prospects?search=${text}&bbox=${text}`, undefined],
    ["GET", `/api/prospects?status=${text}&sort=${email}`, undefined],
    ["GET", `/api/${text}/${encodeURIComponent(email)}`, undefined],
    ["POST", "/api/prospects/imports", JSON.stringify({ fileName: `${text}.csv`, bytes: text })],
  ] as const) {
    const answer = await as.owner.send(method, path, { headers: json, ...(body !== undefined && { body }) });
    expect(answer.status).toBeLessThan(500);
  }
  const forged = clientWith(async () => `${(await tokenOf(as.owner.email)).slice(0, -9)}AAAAAAAAA`);
  expect((await forged("GET", "/api/me")).status).toBe(401);
  const headers = { ...json, "Idempotency-Key": `${text}-1` };
  for (const body of [JSON.stringify(prospect), JSON.stringify({ ...prospect, name: email })]) {
    expect((await as.owner.send("POST", "/api/prospects", { headers, body })).status).toBeLessThan(500);
  }
});

test("personal data in a CSV file, valid or not, is logged nowhere", async () => {
  const form = new FormData();
  const rows = [
    `name,phoneNumber,emailAddress,lat`,
    `${text},(303) 555-0100,${email},39`,
    `"${text},x,${email},${text}`,
  ];
  form.append("file", new Blob([rows.join("\n")], { type: "text/csv" }), `${text}.csv`);
  expect((await as.owner.send("POST", "/api/prospects/import", { body: form })).status).toBeLessThan(500);
});

test.each([
  ["token", `{"message":{"event":"x","authorization":"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln"}}`],
  ["token", `{"message":"Bearer abcdefgh12345678"}`],
  ["API key", `{"message":{"key":"pck_4fK2xQ9a_0Zr8"}}`],
  ["e-mail address", `{"message":{"event":"invited","email":"rep@acme.test"}}`],
  ["e-mail address", `{"message":"no user o'neil+x@sub.example.co.uk"}`],
  ["phone number", `{"message":{"phone":"(303) 555-0100"}}`],
  ["phone number", `{"message":{"phone":"+13035550100"}}`],
  ["name", `{"message":{"error":"Derek Garcia has no address"}}`],
  ["name", `{"message":{"error":"Olga Owner"}}`],
  ["private word", `{"message":{"query":"search=${PRIVATE_WORD.toLowerCase()}"}}`],
])("a %s in a line is found", (what, line) => {
  expect(leaksOf(line)).toEqual([what]);
});

test.each([
  `{"timestamp":"2026-11-22T17:41:12.921Z","level":"INFO","requestId":"0b7c1d6e-1234-4abc-9def-0123456789ab","message":{"event":"request","companyId":1280,"userId":1281,"units":2.5}}`,
  `{"time":"2026-11-22T17:41:12.921Z","type":"platform.report","record":{"metrics":{"durationMs":1234567890}}}`,
  `{"message":{"stack":"Error: x\\n at file:///app/node_modules/@aws-sdk/client-dynamodb/index.js:1:2"}}`,
])("a line without any is not", (line) => {
  expect(leaksOf(line)).toEqual([]);
});
