/**
 * Compares the grants (IAM rights) that the route table gives to functions with the grants that the functions use while all API tests run.
 * If a grant is not used, remove it, or excuse it here with a reason.
 */
import type { Access } from "../../infra/routes/route.ts";
import { authorizer, eventFunctions, routes } from "../../infra/routes/routes.ts";

export interface Grant {
  readonly file: string;
  /** A DynamoDB action and a key family, separated by a space. A key family is a group of keys, for example the keys of prospects. */
  readonly grant: string;
}

interface RareGrants {
  readonly files: readonly string[];
  readonly grants: readonly string[];
  readonly reason: string;
}

const rare: readonly RareGrants[] = [
  {
    files: ["sync/operations"],
    grants: ["GetItem imports", "Query prospects", "PutItem indexTexts"],
    reason: "The rights of the single endpoints, whose functions it uses: test/prospects.",
  },
  {
    files: [
      ...["actions/list", "actions/trigger", "events/publish", "sync/changes"],
      ...["prospects/list", "prospects/search", "prospects/tags", "prospects/update"],
    ],
    grants: ["GetItem agendas", "BatchGetItem prospects", "Query prospects"],
    reason: "The appointments in the row are in the past, or are being moved: test/prospects/upcoming.test.ts.",
  },
  {
    files: ["appointments/create"],
    grants: ["BatchGetItem prospects"],
    reason: "The appointments in the row are in the past: test/prospects/upcoming.test.ts.",
  },
  {
    files: ["addresses/update"],
    grants: ["ConditionCheckItem addresses"],
    reason: "More prospects share the address than one transaction can change: test/prospects/addresses.test.ts.",
  },
  {
    files: ["deliveries/get", "events/publish"],
    grants: ["BatchGetItem deliveries"],
    reason:
      "The data of an event has a row of its own, or a delivery already exists: test/webhooks/{event-body,events}.test.ts.",
  },
  {
    files: ["events/deliver"],
    grants: ["PartiQLInsert deliveries", "PutItem deliveries"],
    reason: "An event has many matches, and the queue creates their deliveries: test/webhooks/fan-out.test.ts.",
  },
  {
    files: ["events/sweep"],
    grants: ["UpdateItem deliveries", "UpdateItem imports", "UpdateItem exports", "UpdateItem bulkJobs"],
    reason:
      "A message or the run of a job is lost: test/webhooks/sweeping.deep.test.ts, test/jobs/{export,import-jobs.deep,bulk}.test.ts.",
  },
  {
    files: ["events/sweep", "index/flush"],
    grants: ["UpdateItem flushRequests", "PutItem flushRequests"],
    reason: "A company writes nothing for a minute: test/company-index/old-entries.deep.test.ts.",
  },
  {
    files: ["index/flush"],
    grants: [
      "UpdateItem index",
      "BatchWriteItem index",
      "PutItem changeLog",
      "GetItem factLog",
      "Query factLog",
      "PutItem factLog",
      "BatchWriteItem factLog",
      "Query dayFacts",
      "PutItem dayFacts",
      "BatchGetItem manifests",
      "Query manifests",
      "BatchWriteItem manifests",
      "BatchGetItem segments",
      "BatchWriteItem segments",
    ],
    reason:
      "128 entries wait, or entries wait for five seconds, or parts are merged: test/company-index/company-index.deep.test.ts.",
  },
  {
    files: [
      "prospects/list",
      "prospects/search",
      "prospects/clusters",
      "prospects/tile",
      "prospects/pins",
      "prospects/export",
      "prospects/bulk",
      "territories/stats",
      "territories/runs",
      "jobs/export",
      "addresses/list",
      "sync/changes",
      "reports/activity",
    ],
    grants: ["BatchGetItem manifests", "BatchGetItem segments"],
    reason:
      "The index was flushed or changed since the function last read it: test/company-index/manifest.deep.test.ts.",
  },
  {
    files: ["jobs/bulk"],
    grants: ["GetItem prospects"],
    reason: "A prospect changes after the job has read it, and is read again: test/jobs/bulk.test.ts.",
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
    reason: "The rows of a failed import are removed: test/jobs/{import,import-jobs}.deep.test.ts.",
  },
  {
    files: [
      ...[
        "prospects/list",
        "prospects/search",
        "prospects/clusters",
        "prospects/tile",
        "prospects/pins",
        "prospects/export",
        "jobs/export",
        "jobs/bulk",
        "prospects/bulk",
        "territories/runs",
        "prospects/create",
        "prospects/update",
      ],
      ...["prospects/delete", "prospects/tags", "addresses/update", "notes/update", "notes/delete"],
      ...["appointments/create", "appointments/update", "appointments/delete"],
    ],
    grants: ["PutItem indexTexts", "BatchGetItem indexTexts", "Query indexTexts"],
    reason:
      "A text of more than 256 bytes has a row of its own until the flush: test/company-index/long-texts.long.test.ts, test/company-index/long-texts.api.test.ts.",
  },
  {
    files: ["prospects/bulk", "territories/runs"],
    grants: ["GetItem imports", "Query prospects"],
    reason:
      "A sample of a dry run was imported or has many appointments, as in a list: test/prospects/upcoming.test.ts.",
  },
  {
    files: ["jobs/bulk"],
    grants: ["UpdateItem ids"],
    reason: "A change of a status takes an id, and a function leases a range of ids only once: test/jobs/bulk.test.ts.",
  },
  {
    files: ["jobs/bulk"],
    grants: ["GetItem imports"],
    reason: "A prospect of a bulk job was imported, and its import is read once: test/jobs/bulk.test.ts.",
  },
  {
    files: ["authorize"],
    grants: ["GetItem reference"],
    reason: "The first sign-in of an invited user accepts the invitation: test/reference/invitations.test.ts.",
  },
  {
    files: routes.filter(({ method }) => method === "POST").map(({ file }) => file),
    grants: ["PutItem idempotency", "UpdateItem idempotency", "DeleteItem idempotency"],
    reason: "Every POST accepts an Idempotency-Key, by the same code: test/http/idempotency{,.api}.test.ts.",
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

/** The grants that `rare` excuses, as far as the route table still contains them. */
export const excused: readonly Grant[] = rare
  .flatMap(({ files, grants }) => files.flatMap((file) => grants.map((grant) => ({ file, grant }))))
  .filter(isGranted);

/** Returns the reasons in `rare` for which the route table contains no grant any more. Remove such entries from `rare`. */
export const staleReasons = (): string[] =>
  rare
    .filter(({ files, grants }) => !files.some((file) => grants.some((grant) => isGranted({ file, grant }))))
    .map(({ reason }) => reason);

/** Returns the paths of the test files that the reasons name. */
export const namedTests = (): string[] => rare.flatMap(({ reason }) => reason.match(/test\/[\w./-]*\.ts/g) ?? []);

/**
 * Returns the grants in the route table that no function has used and that `rare` does not excuse. `uses` maps a function's file to the
 * grants that it has used. Each grant has the form `action family`.
 */
export function unusedGrants(uses: Readonly<Record<string, readonly string[]>>): Grant[] {
  const needed = new Set([
    ...Object.entries(uses).flatMap(([file, grants]) => grants.map((grant) => `${file} ${grant}`)),
    ...excused.map(({ file, grant }) => `${file} ${grant}`),
  ]);
  return granted.filter(({ file, grant }) => !needed.has(`${file} ${grant}`));
}

/** Throws an error with one line for each unused grant. Call this function after all API tests. */
export function assertGrantsAreUsed(uses: Readonly<Record<string, readonly string[]>>): void {
  const lines = unusedGrants(uses).map(({ file, grant }) => `${file} has the grant ${grant}, which no API test uses`);
  if (lines.length > 0)
    throw new Error(`${lines.join("\n")}\nRemove it, or give it a reason in test/harness/grants.ts.`);
}
