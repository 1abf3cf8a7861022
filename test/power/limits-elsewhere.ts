/** The constants of limits.ts that limits.test.ts does not send: other files test them, or no caller can send them. */

export type Other =
  /** The test of this file sends the value, and names the constant. */
  | { readonly elsewhere: string }
  /** No caller can send the value. The text says which part of the service it affects. */
  | { readonly internal: string };

export const others = {
  bodyBytes: { elsewhere: "test/http/hostile.deep.test.ts" },
  notesPerProspect: { elsewhere: "test/prospects/attached-limits.test.ts" },
  statusChangesPerProspect: { elsewhere: "test/prospects/attached-limits.test.ts" },
  appointmentsPerProspect: { elsewhere: "test/prospects/attached-limits.test.ts" },
  statusesPerCompany: { elsewhere: "test/reference/name-limits.long.test.ts" },
  prospectsChangedAtOnce: { elsewhere: "test/prospects/addresses.test.ts" },
  territoriesPerCompany: { elsewhere: "test/territories/territories.test.ts" },
  polygonBytesPerCompany: { elsewhere: "test/territories/territories.test.ts" },
  dataKeyKeptMs: { elsewhere: "test/secrets/secrets.test.ts" },
  streamBodyMs: { elsewhere: "test/http/stream-body.test.ts" },
  bulkSamples: { elsewhere: "test/http/answer-limits.long.test.ts" },
  uploadMs: { elsewhere: "test/jobs/import-jobs.deep.test.ts" },
  invitationsPerDay: { elsewhere: "test/reference/invitations.test.ts" },
  authorizationCacheSeconds: { internal: "a setting of API Gateway" },
  subscriptionsCacheMs: { elsewhere: "test/webhooks/matching.test.ts" },
  subscriptionsSettleMs: { elsewhere: "test/webhooks/matching.test.ts" },
  windowBodyBytes: { elsewhere: "test/webhooks/fan-out-size.long.test.ts" },
  directMatches: { elsewhere: "test/webhooks/fan-out.deep.test.ts" },
  directMatchesTogether: { internal: "the number of deliveries that a batch of the stream creates itself" },
  lookupMs: { internal: "the time-out of a look-up" },
  lookupsAtOnce: { elsewhere: "test/outbound/dns.deep.test.ts" },
  nameKeptMs: { elsewhere: "test/outbound/dns.deep.test.ts" },
  noNameKeptMs: { elsewhere: "test/outbound/dns.deep.test.ts" },
  namesKept: { elsewhere: "test/outbound/dns.deep.test.ts" },
  exchangeMs: { elsewhere: "test/outbound/deadline.deep.test.ts" },
  connectionAgeMs: { elsewhere: "test/outbound/connections.deep.test.ts" },
  answerBytes: { elsewhere: "test/outbound/connections.deep.test.ts" },
  answerKeptBytes: { elsewhere: "test/outbound/receivers.deep.test.ts" },
  changesBytes: { elsewhere: "test/sync/stage-limits.test.ts" },
} as const satisfies Record<string, Other>;
