/** The limits of the service. Import this file as a namespace, so that bundles contain only the limits that they use. */

export const bodyBytes = 1_000_000;
export const name = 255;
export const phone = 50;
export const email = 254;
/** Maximum characters. API Gateway accepts 10 240 bytes for all headers together, so 2 KB are left for the others. */
export const accessToken = 8_192;
/** Maximum characters of a token's subject (`sub`). */
export const subject = 255;
export const source = 100;
export const sourceId = 255;
export const note = 10_000;
/** Maximum notes of a prospect. Notes that an import creates together with the prospect do not count. */
export const notesPerProspect = 5_000;
/** Maximum entries of a prospect's status history. GET of a prospect returns all of them. */
export const statusChangesPerProspect = 5_000;
/** Maximum appointments of a prospect. GET of a prospect returns all of them, each at most 30 KB large. */
export const appointmentsPerProspect = 500;
export const appointmentTitle = 255;
export const appointmentLocation = 255;
export const appointmentNotes = 10_000;
export const calendarDays = 31;
export const calendarDaysMax = 366;
export const search = 200;
export const url = 2_048;
/** Maximum code points of a status's or tag's `value`, the name that users see. */
export const displayValue = 100;
export const statusesPerCompany = 200;
export const tagsPerCompany = 500;
export const tagsPerProspect = 50;
export const addressLine = 255;
export const formattedAddress = 4 * addressLine;
/** Maximum prospects that share one address. The address row lists their ids, so the limit bounds the size of this row. */
export const prospectsPerAddress = 2_000;
/** Maximum ids in a 409, which a create with `matchBy` gets if several prospects match. */
export const conflictingIds = 20;
/** Addresses that one request reads for a user who sees only assigned prospects, and who may therefore see few of them. */
export const addressesLookedThrough = 16_384;
/** Prospects that change in one transaction with their address: 100 writes, three for each prospect, and one for the address. */
export const prospectsChangedAtOnce = 33;
export const polygonPointsMin = 3;
/** 5 000 points need at most 255 KB as JSON text, which fits into a DynamoDB row (400 KB). */
export const polygonPointsMax = 5_000;
export const territoriesPerCompany = 5_000;
/** The list of territories returns all of them, and a streamed response may be at most 200 MB large. */
export const polygonBytesPerCompany = 180_000_000;
/** Maximum GeoJSON features of an import. Creating them takes some seconds, and the request must end within 29 seconds. */
export const territoryFeatures = 2_000;
/** Maximum characters of the message about a faulty GeoJSON feature. */
export const featureFault = 200;
export const eventName = 128;
export const buttonText = 100;
export const secretKey = 255;
export const secretKeyMin = 16;
/** Bytes of the key in a `whsec_` secret (Standard Webhooks, "Signature scheme"). */
export const standardKeyMin = 24;
export const standardKey = 64;
/** A warm function caches a data key for this time. Each company has a data key for each purpose. */
export const dataKeyKeptMs = 3_600_000;
export const customFieldBytes = 32 * 1024;
export const customFieldKeys = 200;
export const customFieldDepth = 100;
export const pageSizeDefault = 50;
export const pageSizeMax = 500;
export const notesInDetail = 5;
/** Maximum characters of a long query parameter: a filter, which may list many names, or the mapping of CSV columns. */
export const queryParameter = 4_000;

export const idempotencyKey = 255;
export const idempotencyKeptMs = 24 * 3_600_000;
/** An unfinished request with an idempotency key counts as failed after this time, which is longer than the time-out of an API function. */
export const idempotentRunMs = 30_000;
export const operationsAtOnce = 200;
export const deviceId = 100;
/** For this time after an operation of a device, the service recognises a repetition of the operation. */
export const receiptKeptMs = 90 * 24 * 3_600_000;
/** Maximum age of a fact (status change, note or appointment) that a device sends with the time at which it occurred. */
export const factAgeMs = 60 * 24 * 3_600_000;
/** A time of a device that is at most this far in the future counts as the time of arrival, because the device's clock may be wrong. */
export const clockAheadMs = 5 * 60_000;
/** A prospect keeps past assignments for this time, because a past assignee may send a fact. One day is added, because clocks differ. */
export const pastAssignmentsMs = factAgeMs + 24 * 3_600_000;
/** Maximum past assignments whose user ids a prospect keeps. Even a prospect that gets a different assignee each day has only 61. */
export const pastAssignments = 100;
/** The newest past assignments, in this number, keep their user ids even if a prospect has more than `pastAssignments`. */
export const newestAssignments = 5;
/** Tolerated difference between the clocks of two functions. The clocks of AWS differ much less. */
export const clockDifferenceMs = 60_000;
/** Bytes of the records in the answer to a batch of operations, as escaped JSON. The answer then fits into `bufferedAnswerBytes`. */
export const operationResultBytes = 4_000_000;
/** Lambda rejects a longer response, and API Gateway then answers 502. */
export const bufferedAnswerBytes = 6 * 1024 * 1024;
/** A streamed body may take this time in addition to the time-out of an API function, so that a slow phone can load a large map. */
export const streamBodyMs = 275_000;
/** A streamed response ends if its client reads no bytes for this time, because the response occupies an instance of the function. */
export const readerMs = 10_000;

/** Maximum rows and bytes of a CSV file that is imported within one request. A larger file needs an import job. */
export const importRows = 10_000;
export const importBytes = 4_000_000;
/** Prospects that an import within one request may change, each in a transaction. API Gateway waits at most 29 seconds. */
export const importUpdates = 1_000;
/** Prospects and blocks of 128 ids that an import within one request reads to match its rows, in about a second. */
export const importMatchProspects = 10_000;
export const importMatchBlocks = 300;
export const jobRows = 1_000_000;
export const jobBytes = 200_000_000;
/** Characters of the message about a faulty row. 10 000 messages fit into a response of 6 MB and, compressed, into a row of 400 KB. */
export const rowFault = 250;
export const bulkRecords = 1_000_000;
export const bulkIds = 10_000;
export const bulkSamples = 20;
/** Maximum waiting and paused bulk jobs of a company. In addition, one bulk job may be running. */
export const bulkWaiting = 20;
/** For this time after its end, a job can be undone and its results can be read. A job that is paused for this time is cancelled. */
export const bulkKeptMs = 30 * 24 * 3_600_000;
export const openJobs = 100;
/** Maximum faulty rows that the answer about an import job lists. The job's report file lists all faulty rows. */
export const jobErrors = 100;
/** Seconds for which a presigned URL is valid. An upload to the URL must begin within this time. */
export const fileLinkSeconds = 3_600;
/** An upload may continue for this time after the expiry of its URL. */
export const uploadMs = 3_600_000;
export const exportKeptDays = 7;
export const mappedColumns = 100;
export const csvHeader = 255;
export const ignoredColumns = 100;
/** A dry run of a file without a known header shows this many values of each column, cut at `columnSample` characters. */
export const columnSamples = 3;
export const columnSample = 100;
export const ignoredColumn = 100;
/** Maximum characters of a row, enough for every valid one: the longest values of all columns together need about 90 000 characters. */
export const csvRow = 1_000_000;
/** A CSV file may have this many blank rows more than rows with a value. Reading a blank row takes as long as reading any other row. */
export const csvBlankLines = 100_000;

/** Maximum invitations of a company on one day (UTC). The limit bounds the mails that an abuser can send. */
export const invitationsPerDay = 200;
/** An invitation expires after this time. The e-mail address can then be invited again. */
export const invitationMs = 30 * 24 * 3_600_000;

export const serviceAccounts = 50;
/** Deleted service accounts count too, because records still show them as authors. */
export const serviceAccountsEver = 1_000;
export const keysPerAccount = 5;
export const keyMs = 90 * 24 * 3_600_000;
export const keyMsMax = 366 * 24 * 3_600_000;
/** After a rotation, the old key may work for this time. */
export const keyOverlapSeconds = 7 * 24 * 3_600;
/** A key whose creator was disabled or got a lower role ends after this time. */
export const orphanedKeyMs = 30 * 24 * 3_600_000;
/** Maximum mails about API keys that a company gets on one day (UTC). Later notices wait for the next day. */
export const keyMailsPerDay = 10;
/** The service stores the time of a key's use at most once in this time. */
export const keyUseMs = 15 * 60_000;
/** A disabled user or a changed role takes effect at the latest after this time. */
export const authorizationCacheSeconds = 60;
/** A cache keeps the statuses, tags and users of a company for this time. */
export const dictionaryCacheMs = 60_000;

/**
 * The publisher caches registrations for this time. The cache may have a mixture of old and new ones, if a transaction commits later than
 * `subscriptionsSettleMs` after the time of change that the transaction itself stores.
 */
export const subscriptionsCacheMs = 60_000;
/** For this time after a change, a Query may return a mixture of old and new registrations, so the publisher does not cache its result. */
export const subscriptionsSettleMs = 5_000;
export const webhooksPerCompany = 40;
export const registrationsPerWebhook = 50;
/** After this time without a successful attempt, a webhook is paused. */
export const failingMs = 5 * 24 * 3_600_000;
/** For this time after a change of a webhook's secret, receivers can verify deliveries with the old or the new secret. */
export const secretOverlapMs = 24 * 3_600_000;
/** Within this time, a second trigger of the same action for the same prospect makes no delivery. */
export const doubleTriggerMs = 10_000;
export const delayMinutesMax = 43_200;
/** Maximum bytes of a delivery with several events, because many receivers accept only a megabyte. Further events get another delivery. */
export const windowBodyBytes = 1_000_000;
/** Maximum deliveries that the publisher writes for one event. The deliverer writes those of larger events, to keep the stream fast. */
export const directMatches = 100;
/** Maximum deliveries that the publisher itself writes for all events of one company in a batch of stream records. */
export const directMatchesTogether = 200;
export const filterDepth = 5;
export const filterKeys = 50;
export const filterBytes = 4 * 1024;
/** Maximum time of the DNS look-up of a receiver. The look-up also counts towards `exchangeMs`. */
export const lookupMs = 3_000;
/** Maximum number of concurrent DNS look-ups of one function. It is enough for all 40 webhooks of five companies at the same time. */
export const lookupsAtOnce = 200;
/** Maximum time for which the DNS cache keeps an address. If the TTL of the address is shorter, the TTL applies. */
export const nameKeptMs = 30_000;
/** The time for which the DNS cache keeps the result of a failed look-up. */
export const noNameKeptMs = 5_000;
export const namesKept = 1_000;
/** An exchange consists of look-up, connection, request and response. */
export const exchangeMs = 10_000;
/** A connection to a receiver that is older than this is closed, because the host name may have another address by then. */
export const connectionAgeMs = 60_000;
export const answerBytes = 16 * 1024;
/** Bytes of a receiver's response that are stored with the attempt. The service reads up to `answerBytes` of it. */
export const answerKeptBytes = 4 * 1024;
export const deliveryKeptMs = 30 * 24 * 3_600_000;
/** Deliveries in the time range of a replay. The request that creates the replay reads all of them, and must do so before its deadline. */
export const replayedDeliveries = 100_000;
/** The maximum delay of SQS. */
export const queueDelaySeconds = 900;

export const activityDays = 366;
/** Maximum stored bytes that an activity report reads. 32 MB contain about four million facts. */
export const activityBytes = 32_000_000;

/** Default and maximum number of items in a response of `GET /api/changes`. */
export const changesDefault = 500;
export const changesMax = 1_000;
/** Bytes of the items in a response of `GET /api/changes`. Items that do not fit are in the next page. */
export const changesBytes = 4_000_000;
/** Characters of a cursor. */
export const changesCursor = 512;

/** A session of the console ends this time after the sign-in. */
export const sessionMs = 8 * 3_600_000;
/** A user must complete a sign-in at the identity provider within this time. */
export const signInMs = 10 * 60_000;
/** The old id of a refreshed session still works for this time, because requests that are under way contain it. */
export const sessionOverlapMs = 60_000;
/** A session is refreshed only if its access token expires within this time. */
export const refreshBeforeMs = 5 * 60_000;
/** Maximum time of a refresh of a session. After this time, another request may begin a refresh of the same session. */
export const refreshMs = 15_000;
/** Maximum characters of the path to which the console returns after a sign-in. */
export const returnTo = 2_000;
