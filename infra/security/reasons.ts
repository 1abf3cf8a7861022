/** The reasons for the permissions of all IAM roles, for docs/permissions.md. */
import type { Family } from "#shared/db/keys.ts";
import type { Folder } from "../routes/route.ts";

/** What the rows of each key family (a group of partition keys) contain. */
export const familyReasons: Record<Family, string> = {
  ids: "the counter from which functions reserve ids for new records",
  identity: "the company, role and permissions of a token's subject",
  keyRings: "the keys of a service account, with its rights",
  sessions: "sessions of the console, with encrypted tokens",
  email: "the claim that makes an e-mail address unique in the service",
  quotas: "the counts that enforce a company's limits",
  reference: "the company, its users, statuses and tags",
  prospectRanges: "the ranges of ids that hold the company's prospects",
  prospects: "prospects with their notes, tags and history",
  addressRanges: "the ranges of ids that hold the company's addresses",
  places: "where the note, appointment or territory with an id is stored",
  calendar: "appointments by month",
  agendas: "the appointments of one prospect",
  addresses: "addresses",
  imports: "the state of an import; its rows are invisible until it has completed",
  openImports: "unfinished imports, whose rows the next import removes",
  importList: "the list of a company's imports",
  exports: "the state of an export",
  bulkJobs: "the state of a bulk job",
  bulkJobList: "the list of a company's bulk jobs",
  bulkQueues: "the bulk jobs of a company that have not ended, of which at most one runs",
  idempotency: "the answer to a POST with an Idempotency-Key, for its repetition",
  receipts: "receipts of the operations that devices have sent",
  clientRecords: "the ids that devices have given to prospects before the service did",
  matchClaims: "the keys for which requests with `matchBy` have created prospects in the last 24 hours",
  territories: "territories",
  deletedTerritories: "deleted territories, which deliveries may still name",
  index: "new entries and the head of the company index",
  indexTexts: "long texts of the company index",
  flushRequests: "requests to flush the company index at a later time",
  changeLog: "chunks of the change log, one for each flush of the company index",
  factLog: "activity that is not in the sums of days yet, and the state of these sums",
  dayFacts: "the activity of each day and its sums",
  manifests: "the list of segments of the company index",
  segments: "the stored segments of the company index",
  webhooks: "webhooks with their registrations and limits",
  dataKeys: "the company's encrypted data key for webhook secrets",
  sessionDataKeys: "the company's encrypted data key for tokens of sessions",
  cursorDataKeys: "the company's encrypted data key for cursors of the feed of changes",
  deliveries: "webhook deliveries and their attempts",
  due: "waiting work of all companies by its time; keys only, no data",
};

export const folderReasons: Record<Folder, string> = {
  uploads: "files that users uploaded for imports",
  imports: "error reports and progress of imports",
  exports: "exported files",
  bulk: "the records and results of bulk jobs",
};

/** The reasons for all rights but those to the table and to the bucket's folders. The first pattern that matches an action counts. */
export const otherReasons: readonly { readonly action: RegExp; readonly reason: string }[] = [
  { action: /^logs:/, reason: "its own log lines" },
  { action: /^s3:ListBucket$/, reason: "a missing file answers 404 instead of 403, so that 403 always means a fault" },
  {
    action: /^kms:GenerateDataKey$/,
    reason:
      "creates a company's data key, for the purpose that the condition names: webhook secrets, session tokens or cursors",
  },
  {
    action: /^kms:Decrypt$/,
    reason:
      "decrypts a company's data key, for the purpose that the condition names: webhook secrets, session tokens or cursors",
  },
  { action: /^sqs:SendMessage$/, reason: "sends work to another function, or a failed record to a dead-letter queue" },
  { action: /^sqs:/, reason: "its event source reads the queue" },
  {
    action: /^dynamodb:(?:DescribeStream|GetRecords|GetShardIterator)$/,
    reason: "its event source reads the stream",
  },
  { action: /^cognito-idp:AdminCreateUser$/, reason: "invites a user" },
  { action: /^cognito-idp:AdminDeleteUser$/, reason: "withdraws an invitation" },
  { action: /^cognito-idp:AdminGetUser$/, reason: "finds the subject of an invited user" },
  { action: /^cognito-idp:AdminInitiateAuth$/, reason: "signs its test users in" },
  { action: /^ssm:GetParameter$/, reason: "reads the test users with which it signs in" },
  { action: /^lambda:InvokeFunction$/, reason: "calls exactly these functions" },
];
