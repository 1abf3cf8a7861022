/** Tests that the tables of docs/errors.md, docs/limits.md and docs/automation.md say what the code says. */
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod/mini";
import { Scope } from "#shared/auth/scopes.ts";
import { ApiError, problemBody, problems } from "#shared/errors.ts";
import { requireKnown } from "#shared/http/validate.ts";
import * as limits from "#shared/limits.ts";
import { ProblemCode } from "#shared/problem.ts";

const root = resolve(import.meta.dirname, "..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");
const errors = read("docs/errors.md");

test("docs/errors.md has each code with its status, in the order of the statuses", () => {
  const shown = [...errors.matchAll(/^\| `(\w+)` \| (\d+) \| [^|]+ \| [^|]+ \|$/gm)].map(([, code, status]) => [
    code,
    Number(status),
  ]);
  const known = ProblemCode.options.map((code) => [code, problems[code].status] as const);
  expect(shown).toEqual(known.toSorted(([, a], [, b]) => a - b));
});

test("docs/errors.md has each code of a fault that the code makes", () => {
  const sources = readdirSync(join(root, "shared"), { recursive: true, encoding: "utf8" });
  const made = sources
    .filter((file) => file.endsWith(".ts"))
    .flatMap((file) => [
      ...read(`shared/${file}`).matchAll(/(?:[Ff]aults?(?:: | = |.*)|invalid\(.*)\[?\{.*code: "(\w+)"/g),
    ])
    .map(([, code = ""]) => code);
  const shown = new Set([...errors.matchAll(/`(\w+)`/g)].map(([, code]) => code));
  expect(made.length).toBeGreaterThan(10);
  expect([...new Set(made)].filter((code) => !shown.has(code))).toEqual([]);
});

test("the example in docs/errors.md is an error of the service", () => {
  const example = JSON.parse(/```json\n(.*?)```/s.exec(errors)?.[1] ?? "");
  try {
    requireKnown(["stauts"], ["status"]);
  } catch (error) {
    const { code, message, faults } = error instanceof ApiError ? error : expect.fail("not an ApiError");
    expect(example).toEqual(problemBody(code, message, example.requestId, faults));
  }
  expect.assertions(1);
});

const day = 24 * 3_600_000;
const numbers: readonly (readonly [text: string, value: number])[] = [
  ["bytes of a JSON body", limits.bodyBytes],
  ["characters of a name", limits.name],
  ["characters of a phone number", limits.phone],
  ["characters of a note", limits.note],
  ["characters of a search", limits.search],
  ["keys of `customFieldData`", limits.customFieldKeys],
  ["bytes of `customFieldData`", limits.customFieldBytes],
  ["prospects of a page of a list", limits.pageSizeMax],
  ["notes of a prospect", limits.notesPerProspect],
  ["appointments of a prospect", limits.appointmentsPerProspect],
  ["tags of a prospect", limits.tagsPerProspect],
  ["prospects with one address", limits.prospectsPerAddress],
  ["statuses of a company", limits.statusesPerCompany],
  ["tags of a company", limits.tagsPerCompany],
  ["territories of a company", limits.territoriesPerCompany],
  ["points of a polygon", limits.polygonPointsMax],
  ["invitations of a company in a day", limits.invitationsPerDay],
  ["service accounts of a company", limits.serviceAccounts],
  ["service accounts of a company, deleted ones included", limits.serviceAccountsEver],
  ["keys of a service account", limits.keysPerAccount],
  ["days until a key ends", limits.keyMs / day],
  ["days until a key ends, if you choose them", limits.keyMsMax / day],
  ["days for which a replaced key works", limits.keyOverlapSeconds / (day / 1_000)],
  ["days for which a key works after its creator has left", limits.orphanedKeyMs / day],
  ["webhooks of a company", limits.webhooksPerCompany],
  ["registrations of a webhook", limits.registrationsPerWebhook],
  ["minutes of a registration's delay", limits.delayMinutesMax],
  ["days for which deliveries are kept", limits.deliveryKeptMs / day],
  ["rows of a CSV file within one request", limits.importRows],
  ["bytes of a CSV file within one request", limits.importBytes],
  ["prospects that an import within one request changes", limits.importUpdates],
  ["rows of a CSV file for a job", limits.jobRows],
  ["bytes of a CSV file for a job", limits.jobBytes],
  ["imports of a company that have not ended", limits.openJobs],
  ["ids in the request for a bulk job", limits.bulkIds],
  ["prospects of a bulk job", limits.bulkRecords],
  ["bulk jobs of a company that wait or are paused", limits.bulkWaiting],
  ["days in which a bulk job can be undone", limits.bulkKeptMs / day],
  ["records in an answer of `GET /api/changes`", limits.changesMax],
  ["operations of a device in one request", limits.operationsAtOnce],
  ["hours for which an `Idempotency-Key` is kept", (limits.idempotencyKeptMs / day) * 24],
];

test("docs/limits.md has the limits of the code", () => {
  const [, table = ""] = /\| limit \| value \|\n\|---\|---:\|\n((?:\|.*\n)+)/.exec(read("docs/limits.md")) ?? [];
  const shown = [...table.matchAll(/^\| (.+) \| ([\d ]+) \|$/gm)].map(([, text, value = ""]) => [
    text,
    Number(value.replaceAll(" ", "")),
  ]);
  expect(shown).toEqual(numbers);
});

const Operations = z.record(
  z.string(),
  z.record(z.string(), z.looseObject({ "x-required-scope": z.optional(z.string()) })),
);

test("the table of docs/automation.md has all scopes, and each request with the scope that it needs", () => {
  const rows = [...read("docs/automation.md").matchAll(/^\| (`\w+:\w+`(?: or `\w+:\w+`)*) \| [^|]+ \|([^|]*)\|$/gm)];
  expect(new Set(rows.flatMap(([, cell = ""]) => cell.replaceAll("`", "").split(" or ")))).toEqual(
    new Set(Scope.options),
  );
  const patterns = rows.flatMap(([, cell = "", requests = ""]) =>
    [...requests.matchAll(/`([A-Z, ]*)(\/[^`*]+)(\*?)`/g)].map(([, methods = "", path = "", star]) => {
      const fits = (method: string, other: string): boolean =>
        (methods === "" || methods.trim().split(", ").includes(method)) &&
        (star === "*" ? other.startsWith(path) : other === path);
      return { scope: cell.replaceAll("`", "").replaceAll(" or ", " | "), path, fits };
    }),
  );
  const scopeOf = (method: string, path: string): string | undefined =>
    patterns.filter(({ fits }) => fits(method, path)).toSorted((a, b) => b.path.length - a.path.length)[0]?.scope;
  const { paths } = JSON.parse(read("docs/openapi.json"));
  const operations = Object.entries(Operations.parse(paths)).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, operation]) => [method.toUpperCase(), path, operation["x-required-scope"]] as const,
    ),
  );
  expect(operations.map(([method, path]) => [method, path, scopeOf(method, path)])).toEqual(operations);
});
