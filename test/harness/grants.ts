/**
 * Compares what the route table grants with what functions use while all tests of the API run, which is under their policies. A grant
 * that is not used there is taken away, or has a reason here: the tests named with it walk the path that needs it.
 */
import type { Access } from "../../infra/routes/route.ts";
import { authorizer, eventFunctions, routes } from "../../infra/routes/routes.ts";

export interface Grant {
  readonly file: string;
  /** `action family`. */
  readonly grant: string;
}

interface Seldom {
  readonly files: readonly string[];
  readonly grants: readonly string[];
  readonly reason: string;
}

const seldom: readonly Seldom[] = [
  {
    files: ["actions/list", "actions/press", "prospects/list", "prospects/tags", "prospects/update", "events/publish"],
    grants: ["GetItem agendas", "BatchGetItem prospects", "Query prospects"],
    reason: "The appointments that the row keeps have passed, or are being moved: test/prospects/upcoming.test.ts.",
  },
  {
    files: ["appointments/create"],
    grants: ["BatchGetItem prospects"],
    reason: "The appointments that the row keeps have passed: test/prospects/upcoming.test.ts.",
  },
  {
    files: ["addresses/update"],
    grants: ["ConditionCheckItem addresses"],
    reason: "More prospects have the address than change in one transaction: test/prospects/addresses.test.ts.",
  },
  {
    files: ["deliveries/get", "events/publish"],
    grants: ["BatchGetItem deliveries"],
    reason:
      "The data of an event is kept once, or a delivery is there already: test/webhooks/{event-body,events}.test.ts.",
  },
  {
    files: ["events/deliver"],
    grants: ["PartiQLInsert deliveries", "PutItem deliveries"],
    reason: "An event has many matches, whose deliveries the queue makes: test/webhooks/fan-out.test.ts.",
  },
  {
    files: ["events/sweep"],
    grants: ["UpdateItem deliveries", "UpdateItem imports", "UpdateItem exports"],
    reason:
      "A message is lost, or the run of a job: test/webhooks/sweeping.deep.test.ts, test/jobs/{export,import-jobs.deep}.test.ts.",
  },
  {
    files: ["webhooks/rotate-secret"],
    grants: ["PutItem dataKeys"],
    reason:
      "All webhooks of the company are of before encryption, and it has no data key: test/secrets/secrets.test.ts.",
  },
  {
    files: ["index/flush"],
    grants: [
      "UpdateItem index",
      "BatchWriteItem index",
      "BatchGetItem manifests",
      "Query manifests",
      "BatchWriteItem manifests",
      "BatchGetItem segments",
      "BatchWriteItem segments",
    ],
    reason:
      "128 entries wait, or some for five seconds, or runs are merged: test/company-index/company-index.deep.test.ts.",
  },
  {
    files: ["prospects/list", "prospects/pins", "prospects/export", "jobs/export", "addresses/list"],
    grants: ["BatchGetItem manifests", "BatchGetItem segments"],
    reason:
      "The index has been flushed, or has moved since the function read it last: test/company-index/manifest.test.ts.",
  },
  {
    files: ["prospects/import", "jobs/import"],
    grants: [
      "BatchWriteItem addressRanges",
      "BatchWriteItem prospectRanges",
      "BatchWriteItem openImports",
      "GetItem imports",
      "Query manifests",
      "Query prospects",
      "Query segments",
    ],
    reason: "What an import that came to nothing has left is removed: test/jobs/{import,import-jobs}.deep.test.ts.",
  },
  {
    files: [
      ...[
        "prospects/list",
        "prospects/pins",
        "prospects/export",
        "jobs/export",
        "prospects/create",
        "prospects/update",
      ],
      ...["prospects/delete", "prospects/tags", "addresses/update", "notes/update", "notes/delete"],
      ...["appointments/create", "appointments/update", "appointments/delete"],
    ],
    grants: ["PutItem indexTexts", "BatchGetItem indexTexts", "Query indexTexts"],
    reason:
      "A text of more than 256 bytes waits beside its entry: test/company-index/long-texts.test.ts, test/company-index/long-texts.api.test.ts.",
  },
  {
    files: ["authorize"],
    grants: ["GetItem reference"],
    reason: "The rights of a user of before are in the user's own row alone: test/auth/directory.test.ts.",
  },
  {
    files: routes.filter(({ method }) => method === "POST").map(({ file }) => file),
    grants: ["PutItem idempotency", "UpdateItem idempotency", "DeleteItem idempotency"],
    reason: "Every POST takes an Idempotency-Key, by the same code: test/http/idempotency{,.api}.test.ts.",
  },
];

const accessByFile: readonly { file: string; access: Access }[] = [
  authorizer,
  ...routes,
  ...Object.values(eventFunctions),
];

const granted: readonly Grant[] = accessByFile.flatMap(({ file, access }) =>
  Object.entries(access.table ?? {}).flatMap(([family, actions]) =>
    actions.map((action) => ({ file, grant: `${action} ${family}` })),
  ),
);

const isGranted = ({ file, grant }: Grant): boolean => granted.some((one) => one.file === file && one.grant === grant);

/** Every combination of a reason's files and grants, as far as it is granted. */
export const excused: readonly Grant[] = seldom
  .flatMap(({ files, grants }) => files.flatMap((file) => grants.map((grant) => ({ file, grant }))))
  .filter(isGranted);

/** Reasons of which nothing is granted any more. */
export const staleReasons = (): string[] =>
  seldom
    .filter(({ files, grants }) => !files.some((file) => grants.some((grant) => isGranted({ file, grant }))))
    .map(({ reason }) => reason);

/** What is granted, used by no call and excused by no reason. `uses`: `action family` by a function's file. */
export function unusedGrants(uses: Readonly<Record<string, readonly string[]>>): Grant[] {
  const needed = new Set([
    ...Object.entries(uses).flatMap(([file, grants]) => grants.map((grant) => `${file} ${grant}`)),
    ...excused.map(({ file, grant }) => `${file} ${grant}`),
  ]);
  return granted.filter(({ file, grant }) => !needed.has(`${file} ${grant}`));
}

/** After all tests of the API. Throws with a line for each grant that nobody needs. */
export function assertGrantsAreUsed(uses: Readonly<Record<string, readonly string[]>>): void {
  const lines = unusedGrants(uses).map(
    ({ file, grant }) => `${file} is granted ${grant}, and no test of the API uses it`,
  );
  if (lines.length > 0)
    throw new Error(`${lines.join("\n")}\nTake it away, or give it a reason in test/harness/grants.ts.`);
}
