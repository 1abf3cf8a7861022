/**
 * The limits of the service. The name of a duration ends with its unit. Import this file as a namespace (`import * as limits`) and read
 * single members, because a bundle then contains only the limits that it uses.
 */

/** The largest JSON request body, in bytes. */
export const bodyBytes = 1_000_000;
export const name = 255;
export const phone = 50;
export const email = 254;
/** The longest `sub` claim of a token, in characters. */
export const subject = 255;
export const source = 100;
export const sourceId = 255;
export const note = 10_000;
/** The largest number of notes of a prospect. The note that an import creates does not count. */
export const notesPerProspect = 5_000;
/**
 * The largest number of status changes of a prospect. GET of a prospect returns all of them, and reading 5 000 costs about 500 read
 * units.
 */
export const statusChangesPerProspect = 5_000;
/**
 * The largest number of appointments of a prospect. GET of a prospect returns all of them. Each has at most 30 KB, so 500 have at most 15
 * MB.
 */
export const appointmentsPerProspect = 500;
export const appointmentTitle = 255;
export const appointmentLocation = 255;
export const appointmentNotes = 10_000;
/** The default and the longest time range of a calendar request, in days. */
export const calendarDays = 31;
export const calendarDaysMax = 366;
export const search = 200;
export const url = 2_048;
/** The longest name of a status or tag that clients display (its `value`), in code points. */
export const displayValue = 100;
export const statusesPerCompany = 200;
export const tagsPerCompany = 500;
export const tagsPerProspect = 50;
export const addressLine = 255;
/** The largest number of prospects that share one address row. The row lists their ids. */
export const prospectsPerAddress = 2_000;
/**
 * GET of the addresses reads at most this many addresses for a user who sees only assigned prospects. The limit bounds the cost of a
 * request that finds few visible addresses.
 */
export const addressesLookedThrough = 16_384;
/**
 * The largest number of prospects that change in one transaction with their address. Each prospect needs three writes, and a transaction
 * has at most 100.
 */
export const prospectsChangedAtOnce = 33;
export const polygonPointsMin = 3;
/** The largest number of points of a polygon. 5 000 points have at most 255 KB as text, and a row has at most 400 KB. */
export const polygonPointsMax = 5_000;
export const territoriesPerCompany = 5_000;
/**
 * The largest total size of a company's polygons as text, in bytes. The list of territories returns all of them, and a streamed answer
 * has at most 200 MB.
 */
export const polygonBytesPerCompany = 180_000_000;
export const eventName = 128;
export const buttonText = 100;
export const secretKey = 255;
export const secretKeyMin = 16;
/** A warm function caches each data key for at most this time, and at most this many keys. Each company has one data key. */
export const dataKeyKeptMs = 3_600_000;
export const dataKeysKept = 1_000;
export const customFieldBytes = 32 * 1024;
export const customFieldKeys = 200;
export const customFieldDepth = 100;
export const pageSizeDefault = 50;
export const pageSizeMax = 500;
export const notesInDetail = 5;
/** The longest query parameter, in characters. A parameter may list many names. */
export const queryParameter = 4_000;

export const idempotencyKey = 255;
export const idempotencyKeptMs = 24 * 3_600_000;
/** A request with an idempotency key counts as killed if it runs longer than this. The time is longer than the timeout of a function. */
export const idempotentRunMs = 30_000;
/**
 * Lambda rejects a larger buffered answer, and API Gateway then answers 502. The limit counts the whole JSON that the function returns.
 */
export const bufferedAnswerBytes = 6 * 1024 * 1024;
/** The additional time for a streamed body after its first byte. A slow phone needs it to load a large map. */
export const streamBodyMs = 275_000;

/** The limits of an import within one request: data rows and bytes. Larger files need an import job. */
export const importRows = 10_000;
export const importBytes = 4_000_000;
/**
 * An import within one request changes at most this many prospects. Each change needs a transaction, and even on a slow table the request
 * must end within 29 seconds, the limit of API Gateway.
 */
export const importUpdates = 1_000;
/**
 * An import within one request may match rows by source id or e-mail address only if the company's prospects have at most this many blocks
 * of 128 ids. Such an import reads all of them, which takes about 3 ms of CPU time for each block.
 */
export const importBlocks = 1_000;
/** The limits of an import job: data rows and bytes of the uploaded file. */
export const jobRows = 1_000_000;
export const jobBytes = 200_000_000;
/**
 * The longest message about a faulty row, in characters. An answer of 6 MB can then hold a message for each of 10 000 rows, and a table
 * row of 400 KB can hold these messages compressed.
 */
export const rowFault = 250;
/** The largest number of import jobs of a company that have not ended. */
export const openJobs = 100;
/** An answer about a job lists at most this many faults. The report file lists all of them. */
export const jobErrors = 100;
/** A presigned URL is valid for this time. An upload must begin within it. */
export const fileLinkSeconds = 3_600;
/** An upload that began in time may last this long after its URL has expired. */
export const uploadMs = 3_600_000;
export const exportKeptDays = 7;
export const mappedColumns = 100;
export const csvHeader = 255;
/** The result of an import names at most this many ignored columns. */
export const ignoredColumns = 100;
/** The result of an import contains at most this many characters of the name of an ignored column. */
export const ignoredColumn = 100;
/** The longest row of a CSV file, in characters. It is ten times the longest valid values of all columns together. */
export const csvRow = 1_000_000;
/** A CSV file may have at most this many more blank lines than rows. A blank line is not a row, but takes as long to read. */
export const csvBlankLines = 100_000;
export const exportBatch = 500;

/**
 * The largest number of invitations of a company in one day (UTC). A company with 200 reps can start within a day, and mail abuse stays
 * limited.
 */
export const invitationsPerDay = 200;
/** An invitation expires if the user does not sign in within 30 days. The e-mail address can then be invited again. */
export const invitationMs = 30 * 24 * 3_600_000;

/**
 * API Gateway caches the authorizer's answer for this time. A disabled user or a changed role therefore takes effect after at most this
 * time.
 */
export const authorizationCacheSeconds = 60;
/** A warm function caches the names of a company's statuses, tags and users for this time. */
export const dictionaryCacheMs = 60_000;

/**
 * A publisher caches a company's registrations for at most this time. Normally a version number shows when they have changed. The limit
 * bounds the delay if a write fails to raise that number.
 */
export const subscriptionsCacheMs = 60_000;
/**
 * A publisher does not cache registrations that it read within this time after a change, because it may have read some rows from before
 * the change.
 */
export const subscriptionsSettleMs = 5_000;
export const webhooksPerCompany = 40;
export const registrationsPerWebhook = 50;
/** A webhook is paused if none of its attempts has succeeded for this time (five days). */
export const failingMs = 5 * 24 * 3_600_000;
/**
 * After a rotation, deliveries are also signed with the previous secret for this time, so that receivers can change their secret without
 * rejecting a call.
 */
export const secretOverlapMs = 24 * 3_600_000;
/** If users trigger the same action for the same prospect twice within this time, only one delivery is made. */
export const doublePressMs = 10_000;
/** The longest time that a registration may delay its deliveries after the event, in minutes (30 days). */
export const delayMinutesMax = 43_200;
/**
 * The largest body of a debounced delivery, which collects several events, in bytes. Many receivers accept at most a megabyte. Further
 * events start another delivery.
 */
export const windowBodyBytes = 1_000_000;
/**
 * Event data of at most this many bytes of JSON is stored in the row of each delivery. Larger data has a separate row that the deliveries
 * share, because each change of a delivery would otherwise cost write units for the data.
 */
export const inlineDataBytes = 4_096;
/**
 * The publisher writes the deliveries of an event itself if at most `directMatches` subscriptions match the event. It writes at most
 * `directMatchesTogether` deliveries for the events of a company in one batch. The deliverer makes all other deliveries, so that one
 * company does not delay the stream.
 */
export const directMatches = 100;
export const directMatchesTogether = 200;
export const filterDepth = 5;
export const filterKeys = 50;
export const filterBytes = 4 * 1024;
/** The longest DNS lookup of a receiver. It is part of `exchangeMs`. */
export const lookupMs = 3_000;
/** One function runs at most this many DNS lookups concurrently. Five companies with the largest number of webhooks (40) need 200. */
export const lookupsAtOnce = 200;
/** The DNS cache keeps an address for at most `nameKeptMs` (less if its TTL is shorter), and a failed lookup for at most `noNameKeptMs`. */
export const nameKeptMs = 30_000;
export const noNameKeptMs = 5_000;
export const namesKept = 1_000;
/** The longest exchange with a receiver: lookup, connection, request and answer. */
export const exchangeMs = 10_000;
/**
 * An idle connection to a receiver is closed after this time. Most servers close an idle connection after two seconds or more, so a
 * request rarely meets a closed connection.
 */
export const connectionKeptMs = 1_000;
/** A connection to a receiver that is older than this is closed, because the name may have another address by then. */
export const connectionAgeMs = 60_000;
export const answerBytes = 16 * 1024;
/** Of a receiver's answer, the service reads `answerBytes` and stores at most this many bytes with the attempt. */
export const answerKeptBytes = 4 * 1024;
export const deliveryKeptMs = 30 * 24 * 3_600_000;
/** The largest number of deliveries in the time range of one replay, because the request must count all of them within its deadline. */
export const replayedDeliveries = 100_000;
/** The longest delay that SQS supports for a message. */
export const queueDelaySeconds = 900;
