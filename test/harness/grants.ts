/** Compares the rights that the route table grants to functions with the rights that the functions use while all API tests run. */
import type { Access } from "../../infra/routes/route.ts";
import { authorizer, eventFunctions, routes } from "../../infra/routes/routes.ts";

export interface Grant {
  readonly file: string;
  /** A DynamoDB action and a key family, separated by a space. A key family is a group of keys, for example the keys of prospects. */
  readonly grant: string;
}

interface RareGrants {
  readonly files: readonly string[];
  /** Key families with actions, as in the route table. */
  readonly grants: Readonly<Record<string, readonly string[]>>;
  readonly reason: string;
}

const searching = [
  ...["prospects/list", "prospects/search", "prospects/clusters", "prospects/tile", "prospects/pins"],
  ...["prospects/export", "jobs/export", "prospects/bulk", "territories/runs"],
];

const rare: readonly RareGrants[] = [
  {
    files: ["sync/operations"],
    grants: { imports: ["GetItem"], prospects: ["Query"], indexTexts: ["PutItem"] },
    reason: "The rights of the single endpoints, whose functions it uses: test/prospects.",
  },
  {
    files: [
      ...["actions/list", "actions/trigger", "events/publish", "sync/changes"],
      ...["prospects/list", "prospects/search", "prospects/tags", "prospects/update"],
    ],
    grants: { agendas: ["GetItem"], prospects: ["BatchGetItem", "Query"] },
    reason: "The appointments in the row are in the past, or are being moved: test/prospects/calendar.test.ts.",
  },
  {
    files: ["prospects/create"],
    grants: { prospects: ["Query"] },
    reason: "Several prospects with neighbouring ids have the key of `matchBy`: test/prospects/find-or-make.test.ts.",
  },
  {
    files: ["appointments/create"],
    grants: { prospects: ["BatchGetItem"] },
    reason: "The appointments in the row are in the past: test/prospects/calendar.test.ts.",
  },
  {
    files: ["addresses/update"],
    grants: { addresses: ["ConditionCheckItem"] },
    reason: "More prospects share the address than one transaction can change: test/prospects/addresses.test.ts.",
  },
  {
    files: ["deliveries/get", "events/publish"],
    grants: { deliveries: ["BatchGetItem"] },
    reason:
      "The data of an event has a row of its own, or a delivery already exists: test/webhooks/{event-data,events}.test.ts.",
  },
  {
    files: ["events/deliver"],
    grants: { deliveries: ["PartiQLInsert", "PutItem"] },
    reason: "An event has many matches, and the queue creates their deliveries: test/webhooks/fan-out.test.ts.",
  },
  {
    files: ["events/sweep"],
    grants: { deliveries: ["UpdateItem"], imports: ["UpdateItem"], exports: ["UpdateItem"], bulkJobs: ["UpdateItem"] },
    reason:
      "A message or the run of a job is lost: test/webhooks/sweeping.test.ts, test/jobs/{export,import-jobs.deep,bulk}.test.ts.",
  },
  {
    files: ["events/sweep"],
    grants: { keyRings: ["GetItem", "UpdateItem"], reference: ["Query"], quotas: ["UpdateItem"] },
    reason: "A key was revoked, ends soon or loses its creator: test/service-accounts/key-events.test.ts.",
  },
  {
    files: ["service-accounts/update", "service-accounts/delete"],
    grants: { bulkJobs: ["GetItem"] },
    reason: "A job of the account is running, as a job of a user: test/jobs/bulk-rights.test.ts.",
  },
  {
    files: ["api-keys/rotate"],
    grants: { dataKeys: ["PutItem"] },
    reason: "The first stored answer with a secret of a company is that of a rotation: test/secrets/secrets.test.ts.",
  },
  {
    files: ["jobs/import", "jobs/export", "jobs/bulk"],
    grants: { keyRings: ["GetItem"] },
    reason: "An API key has begun the job: test/service-accounts/key-jobs.test.ts.",
  },
  {
    files: ["events/sweep", "index/flush"],
    grants: { flushRequests: ["UpdateItem", "PutItem"] },
    reason: "A company writes nothing for a minute: test/company-index/old-entries.deep.test.ts.",
  },
  {
    files: ["index/flush"],
    grants: {
      index: ["UpdateItem", "BatchWriteItem"],
      changeLog: ["PutItem"],
      factLog: ["GetItem", "Query", "PutItem", "BatchWriteItem"],
      dayFacts: ["Query", "PutItem"],
      manifests: ["BatchGetItem", "Query", "BatchWriteItem"],
      segments: ["BatchGetItem", "BatchWriteItem"],
    },
    reason:
      "128 entries wait, or entries wait for five seconds, or parts are merged: test/company-index/company-index.deep.test.ts.",
  },
  {
    files: [
      ...searching,
      "prospects/create",
      "territories/stats",
      "addresses/list",
      "sync/changes",
      "reports/activity",
    ],
    grants: { manifests: ["BatchGetItem"], segments: ["BatchGetItem"] },
    reason:
      "The index was flushed or changed since the function last read it: test/company-index/manifest.deep.test.ts.",
  },
  {
    files: ["jobs/bulk"],
    grants: { prospects: ["GetItem"], ids: ["UpdateItem"], imports: ["GetItem"] },
    reason:
      "A job reads a prospect again that has changed, reads an import once, and leases a range of ids once: test/jobs/bulk.test.ts.",
  },
  {
    files: ["prospects/import", "jobs/import"],
    grants: {
      addressRanges: ["BatchWriteItem"],
      prospectRanges: ["BatchWriteItem"],
      openImports: ["BatchWriteItem"],
      imports: ["GetItem"],
      manifests: ["Query"],
      prospects: ["Query"],
      segments: ["Query"],
    },
    reason: "The rows of a failed import are removed: test/jobs/{import,import-jobs}.deep.test.ts.",
  },
  {
    files: [
      ...searching,
      ...["jobs/bulk", "prospects/create", "prospects/update"],
      ...["prospects/delete", "prospects/tags", "addresses/update", "notes/update", "notes/delete"],
      ...["appointments/create", "appointments/update", "appointments/delete"],
    ],
    grants: { indexTexts: ["PutItem", "BatchGetItem", "Query"] },
    reason:
      "A text of more than 256 bytes has a row of its own until the flush: test/company-index/long-texts.long.test.ts, test/company-index/long-texts.api.test.ts.",
  },
  {
    files: ["prospects/bulk", "territories/runs"],
    grants: { imports: ["GetItem"], prospects: ["Query"] },
    reason:
      "A sample of a dry run was imported or has many appointments, as in a list: test/prospects/calendar.test.ts.",
  },
  {
    files: ["authorize"],
    grants: { reference: ["GetItem"] },
    reason: "The first sign-in of an invited user accepts the invitation: test/reference/invitations.test.ts.",
  },
  {
    files: routes.filter(({ method }) => method === "POST").map(({ file }) => file),
    grants: { idempotency: ["PutItem", "UpdateItem", "DeleteItem"] },
    reason: "Every POST accepts an Idempotency-Key, by the same code: test/http/idempotency{,.api}.test.ts.",
  },
];

const holders: readonly { file: string; access: Access }[] = [authorizer, ...routes, ...Object.values(eventFunctions)];

const grantsIn = (file: string, grants: Readonly<Record<string, readonly string[]>>): Grant[] =>
  Object.entries(grants).flatMap(([family, actions]) =>
    actions.map((action) => ({ file, grant: `${action} ${family}` })),
  );
const granted: readonly Grant[] = holders.flatMap(({ file, access }) => grantsIn(file, access.table ?? {}));

const isGranted = ({ file, grant }: Grant): boolean => granted.some((one) => one.file === file && one.grant === grant);

/** The grants that `rare` excuses, as far as the route table still contains them. */
export const excused: readonly Grant[] = rare
  .flatMap(({ files, grants }) => files.flatMap((file) => grantsIn(file, grants)))
  .filter(isGranted);

/** Returns the reasons in `rare` for which the route table contains no grant any more. Remove such entries from `rare`. */
export const staleReasons = (): string[] =>
  rare
    .filter(({ files, grants }) => !files.some((file) => grantsIn(file, grants).some(isGranted)))
    .map(({ reason }) => reason);

export const namedTests = (): string[] => rare.flatMap(({ reason }) => reason.match(/test\/[\w./-]*\.ts/g) ?? []);

/** Returns the grants that no function has used and that `rare` does not excuse. `uses` has the used grants by function file. */
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
