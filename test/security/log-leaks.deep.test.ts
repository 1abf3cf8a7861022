/** Tests `leaksOf`, with which the API tests search each log line of the functions for access tokens and personal data. */
import { expect, test } from "vitest";
import { leaksOf, PRIVATE_WORD } from "../harness/log-leaks.ts";

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
