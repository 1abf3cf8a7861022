/**
 * The limits of the service. The name of a duration ends with its unit. Import this file as a namespace (`import * as limits`) and read
 * single members, so that a bundle contains only the limits that it uses.
 */

/** Maximum bytes of a JSON request body. */
export const bodyBytes = 1_000_000;
export const name = 255;
export const phone = 50;
export const email = 254;
/**
 * Maximum characters of an access token. A longer token is refused without verification. The maximum leaves 2 KB for other headers, because
 * API Gateway accepts 10 240 bytes for all headers together.
 */
export const accessToken = 8_192;
/** Maximum characters of a token's subject (`sub`). */
export const subject = 255;
export const source = 100;
export const sourceId = 255;
export const note = 10_000;
/** Maximum number of notes of a prospect. A note that an import creates together with the prospect does not count. */
export const notesPerProspect = 5_000;
/** Maximum number of status changes of a prospect. GET of a prospect returns all of them. Reading 5 000 costs about 500 read units. */
export const statusChangesPerProspect = 5_000;
/**
 * Maximum number of appointments of a prospect. GET of a prospect returns all of them. Each is at most 30 KB large, so they add at most 15
 * MB to the response.
 */
export const appointmentsPerProspect = 500;
export const appointmentTitle = 255;
export const appointmentLocation = 255;
export const appointmentNotes = 10_000;
/** The default (`calendarDays`) and the maximum time range of a calendar request, in days. */
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
/** Maximum number of prospects that share one address. The address row lists their ids, so the limit bounds the size of this row. */
export const prospectsPerAddress = 2_000;
/**
 * Maximum number of addresses that the list of addresses reads for a user who sees only assigned prospects. It limits the cost of a
 * request that finds few visible addresses.
 */
export const addressesLookedThrough = 16_384;
/**
 * Maximum number of prospects that change in one transaction with their address. A DynamoDB transaction has at most 100 writes: three for
 * each of 33 prospects, and one for the address.
 */
export const prospectsChangedAtOnce = 33;
export const polygonPointsMin = 3;
/** Maximum number of points of a polygon. 5 000 points need at most 255 KB as JSON text, which fits into a DynamoDB row (400 KB). */
export const polygonPointsMax = 5_000;
export const territoriesPerCompany = 5_000;
/**
 * Maximum total bytes of a company's polygons as JSON text. The list of territories returns all of them, and a streamed response may be at
 * most 200 MB large.
 */
export const polygonBytesPerCompany = 180_000_000;
/**
 * Maximum number of GeoJSON features in an import of territories. Creating 2 000 territories takes about 63 transactions and some seconds.
 * The request must end within 29 seconds.
 */
export const territoryFeatures = 2_000;
/** Maximum characters of the message about a GeoJSON feature that cannot be imported. */
export const featureFault = 200;
export const eventName = 128;
export const buttonText = 100;
export const secretKey = 255;
export const secretKeyMin = 16;
/** Minimum and maximum bytes of the key in a `whsec_` secret (Standard Webhooks, "Signature scheme"). */
export const standardKeyMin = 24;
export const standardKey = 64;
/**
 * Limits of a warm function's cache of data keys: the maximum time for each key, and the maximum number of keys. A data key encrypts the
 * secrets of one company and one purpose, such as webhooks or sessions of the console.
 */
export const dataKeyKeptMs = 3_600_000;
export const dataKeysKept = 1_000;
export const customFieldBytes = 32 * 1024;
export const customFieldKeys = 200;
export const customFieldDepth = 100;
export const pageSizeDefault = 50;
export const pageSizeMax = 500;
export const notesInDetail = 5;
/** Maximum characters of a query parameter. It is large, because a filter may list many names in one parameter. */
export const queryParameter = 4_000;

export const idempotencyKey = 255;
export const idempotencyKeptMs = 24 * 3_600_000;
/**
 * Time after which an unfinished request with an idempotency key is assumed to have failed, and a repeated request with the same key may
 * run. The time is longer than the time-out of a function, so the first request cannot still be running.
 */
export const idempotentRunMs = 30_000;
/** Maximum number of operations that a device sends at once. */
export const operationsAtOnce = 200;
/** Maximum number of records whose operations are applied concurrently within one request. */
export const recordsAtOnce = 8;
export const deviceId = 100;
/** Time for which the service recognises that a device repeats an operation. */
export const receiptKeptMs = 90 * 24 * 3_600_000;
/**
 * Time for which an operation that has claimed its `opId` may still be applied. Until then, no other operation may use this `opId`. The time
 * is longer than the time-out of a function and the time in which DynamoDB ends a transaction.
 */
export const claimHeldMs = 60_000;
/** Maximum age of a fact (status change, note or appointment) that a device sends with the time at which it occurred. */
export const factAgeMs = 60 * 24 * 3_600_000;
/**
 * Time for which the row of a prospect keeps a past assignment. The service uses it to decide whether a past assignee may send a fact, so
 * it is kept at least for `factAgeMs`. One day is added, because clocks differ.
 */
export const pastAssignmentsMs = factAgeMs + 24 * 3_600_000;
/**
 * Maximum number of past assignments in the row of a prospect. It is rarely reached: a prospect that gets a different assignee each day has
 * 61 of them.
 */
export const pastAssignments = 100;
/** This number of past assignments, the newest ones, always keep their user ids. */
export const newestAssignments = 5;
/**
 * The service allows for this difference between the clocks of two functions when it compares their times. The clocks of AWS differ much
 * less.
 */
export const clockDifferenceMs = 60_000;
/**
 * Maximum bytes of the results of operations in one response. The results become longer when they are escaped as JSON strings. With 4 MB of
 * results, the complete response is still at most `bufferedAnswerBytes` long.
 */
export const operationResultBytes = 4_000_000;
/**
 * Maximum bytes of the JSON that a function returns without streaming. Lambda rejects a longer response, and API Gateway then answers 502.
 */
export const bufferedAnswerBytes = 6 * 1024 * 1024;
/**
 * Time for which a function may continue to send a streamed body, in addition to the time-out of an API function. A slow phone needs it to
 * load a large map.
 */
export const streamBodyMs = 275_000;

/** Maximum rows and bytes of a CSV file that is imported within one request. A larger file needs an import job. */
export const importRows = 10_000;
export const importBytes = 4_000_000;
/**
 * Maximum number of prospects that an import within one request changes. Each change needs a transaction, and the request must end within
 * 29 seconds (API Gateway's limit) even on a slow table.
 */
export const importUpdates = 1_000;
/**
 * Maximum number of prospects, and of blocks of 128 ids, that an import within one request reads in order to match rows to prospects. An
 * import that matches rows by source id or e-mail address reads all prospects of the company. With these maxima, the reads take about a
 * second.
 */
export const importMatchProspects = 10_000;
export const importMatchBlocks = 300;
/** Maximum rows and bytes of a file that an import job reads. */
export const jobRows = 1_000_000;
export const jobBytes = 200_000_000;
/**
 * Maximum characters of the message about a faulty row. It is 250, so that 10 000 messages fit into a response of 6 MB and, compressed,
 * into a table row of 400 KB.
 */
export const rowFault = 250;
/** Maximum number of records of a bulk job. */
export const bulkRecords = 1_000_000;
/** Maximum number of ids in the body of a request for a bulk job. */
export const bulkIds = 10_000;
/** Maximum number of prospects that the dry run of a bulk job returns as samples. */
export const bulkSamples = 20;
/** Maximum number of a company's bulk jobs that are waiting or paused. In addition, one job may be running. */
export const bulkWaiting = 20;
/**
 * Time after the end of a bulk job for which the job can be undone and its results can be read. A job that is paused for this time is
 * cancelled.
 */
export const bulkKeptMs = 30 * 24 * 3_600_000;
/** Maximum number of a company's import jobs that have not ended. */
export const openJobs = 100;
/** Maximum number of faulty rows that the response about a job lists. The report file lists all of them. */
export const jobErrors = 100;
/** Seconds for which a presigned URL is valid. An upload must begin within this time. */
export const fileLinkSeconds = 3_600;
/** Time after the expiry of its URL for which an upload may continue, if it began before the expiry. */
export const uploadMs = 3_600_000;
export const exportKeptDays = 7;
export const mappedColumns = 100;
export const csvHeader = 255;
/** Maximum number of ignored columns that the result of an import names. */
export const ignoredColumns = 100;
/** Maximum characters of an ignored column's name in the result of an import. */
export const ignoredColumn = 100;
/**
 * Maximum characters of a row of a CSV file. It is high enough for every valid row: the longest values of all columns together need about
 * 18 000 characters.
 */
export const csvRow = 1_000_000;
/**
 * A CSV file may contain at most this many more blank rows than other rows. Reading a blank row takes as long as reading any other row,
 * although nothing is imported.
 */
export const csvBlankLines = 100_000;
export const exportBatch = 500;

/**
 * Maximum number of invitations of a company in one day (UTC). It lets a company with 200 reps invite all of them on one day, and bounds
 * the number of mails that an abuser can send.
 */
export const invitationsPerDay = 200;
/** Time after which an invitation expires if the user does not sign in. The e-mail address can then be invited again. */
export const invitationMs = 30 * 24 * 3_600_000;

/**
 * Seconds for which API Gateway caches the authorizer's result for a token. A disabled user or a changed role takes effect at the latest
 * after this time.
 */
export const authorizationCacheSeconds = 60;
/** Time for which a warm function caches the names of a company's statuses, tags and users, and the polygons of its territories. */
export const dictionaryCacheMs = 60_000;

/**
 * Maximum time for which the publisher (the function that makes events) caches the event registrations of a company's webhooks. Normally,
 * the publisher reads a version number to notice that registrations have changed. The maximum matters if a write has failed to raise this
 * number.
 */
export const subscriptionsCacheMs = 60_000;
/**
 * Time after a change of a company's webhook registrations for which the publisher (the function that makes events) does not cache them. A
 * Query that runs during the change may return some rows from before and others from after it. A cache would keep this mixture.
 */
export const subscriptionsSettleMs = 5_000;
export const webhooksPerCompany = 40;
export const registrationsPerWebhook = 50;
/** Time without a successful attempt after which a webhook is paused (five days). */
export const failingMs = 5 * 24 * 3_600_000;
/**
 * Time after a rotation of a webhook's secret for which deliveries are signed with the old and the new secret. Receivers can change their
 * secret within this time without rejecting a delivery.
 */
export const secretOverlapMs = 24 * 3_600_000;
/** If a user triggers the same action for the same prospect twice within this time, the second trigger makes no delivery. */
export const doubleTriggerMs = 10_000;
/** Maximum minutes (30 days) by which a registration (subscription of a webhook) may delay its deliveries after the event. */
export const delayMinutesMax = 43_200;
/**
 * Maximum bytes of the body of a delivery that collects several events (debounce). Many receivers accept at most a megabyte. An event that
 * does not fit goes into another delivery.
 */
export const windowBodyBytes = 1_000_000;
/**
 * Event data of at most this many bytes is stored in the row of each delivery. Larger data has a row of its own, which the deliveries of
 * the event share. Otherwise each change of a delivery's row would cost write units for the data again.
 */
export const inlineDataBytes = 4_096;
/**
 * The publisher (the function that makes events) writes the deliveries of an event itself if at most `directMatches` webhook registrations
 * match the event. For one batch of stream records, it writes at most `directMatchesTogether` deliveries of one company. The deliver
 * function creates all other deliveries, so that one company does not delay the stream for the others.
 */
export const directMatches = 100;
export const directMatchesTogether = 200;
export const filterDepth = 5;
export const filterKeys = 50;
export const filterBytes = 4 * 1024;
/** Maximum duration of a DNS look-up of a receiver. The look-up also counts towards `exchangeMs`. */
export const lookupMs = 3_000;
/**
 * Maximum number of DNS look-ups that one function runs concurrently. With 200, five companies with 40 webhooks each can use it at once.
 */
export const lookupsAtOnce = 200;
/**
 * Limits of the DNS cache: the maximum time for an address (a shorter TTL takes precedence), the time for which a failed look-up is cached,
 * and the maximum number of host names.
 */
export const nameKeptMs = 30_000;
export const noNameKeptMs = 5_000;
export const namesKept = 1_000;
/** Maximum duration of an exchange with a receiver: look-up, connection, request and response. */
export const exchangeMs = 10_000;
/**
 * Time after which an idle connection to a receiver is closed. Most servers close an idle connection only after two seconds or more. The
 * service therefore rarely sends a request on a connection that the server has just closed.
 */
export const connectionKeptMs = 1_000;
/** Maximum age of a connection to a receiver. An older one is closed, because the host name may have another address by then. */
export const connectionAgeMs = 60_000;
export const answerBytes = 16 * 1024;
/** Maximum bytes of a receiver's response that are stored with the attempt. The service reads up to `answerBytes`. */
export const answerKeptBytes = 4 * 1024;
export const deliveryKeptMs = 30 * 24 * 3_600_000;
/**
 * Maximum number of deliveries in the time range of a replay. The request that creates the replay counts all of them before its deadline.
 */
export const replayedDeliveries = 100_000;
/** Maximum delay that SQS supports for a message. */
export const queueDelaySeconds = 900;

/** Maximum number of days of an activity report. */
export const activityDays = 366;
/** Maximum stored bytes that an activity report reads. 32 MB contain about four million facts (such as status changes and notes). */
export const activityBytes = 32_000_000;

/** The default (`changesDefault`) and the maximum number of items in a response of `GET /api/changes`. */
export const changesDefault = 500;
export const changesMax = 1_000;
/** Maximum bytes of a response of `GET /api/changes`. Items that do not fit are in the next page. */
export const changesBytes = 4_000_000;
/** Maximum characters of a cursor of `GET /api/changes`. */
export const changesCursor = 512;

/** Time after the sign-in at which a session of the console ends. */
export const sessionMs = 8 * 3_600_000;
/** Time within which a user must sign in on the pages of the identity provider. */
export const signInMs = 10 * 60_000;
/** Time for which the old id of a session still works after a refresh, because requests that are already under way contain it. */
export const sessionOverlapMs = 60_000;
/** A session is refreshed only if its access token expires within this time. Otherwise each request for a refresh would call the issuer. */
export const refreshBeforeMs = 5 * 60_000;
/** Maximum time of a refresh of a session. Afterwards, another request may begin a refresh of the same session. */
export const refreshMs = 15_000;
/** Maximum characters of the path to which the console returns after a sign-in. */
export const returnTo = 2_000;
