/** The limits of the service. The name of a time limit ends with its unit. */
export const limits = {
  /** The largest JSON request body, in bytes. */
  bodyBytes: 1_000_000,
  name: 255,
  phone: 50,
  email: 254,
  /** The subject of a token, which is the issuer's id of a user, in characters. */
  subject: 255,
  source: 100,
  sourceId: 255,
  note: 10_000,
  /** The largest number of notes of a prospect, not counting the note from its import. */
  notesPerProspect: 5_000,
  /**
   * The largest number of status changes of a prospect. The detail of a prospect lists all of them, and 5 000 cost about 500 read units.
   */
  statusChangesPerProspect: 5_000,
  /**
   * The largest number of appointments of a prospect. The detail of a prospect lists all of them. One takes at most 30 KB, so 500 take at
   * most 15 MB.
   */
  appointmentsPerProspect: 500,
  appointmentTitle: 255,
  appointmentLocation: 255,
  appointmentNotes: 10_000,
  /** The default and the longest range of a calendar read, in days. */
  calendarDays: 31,
  calendarDaysMax: 366,
  search: 200,
  url: 2_048,
  /** The longest display value of a status or tag, in code points. */
  displayValue: 100,
  statusesPerCompany: 200,
  tagsPerCompany: 500,
  tagsPerProspect: 50,
  addressLine: 255,
  /** The largest number of prospects that share one address row. The row lists their ids. */
  prospectsPerAddress: 2_000,
  /** The largest number of addresses that one request reads for a user who sees only assigned prospects. */
  addressesLookedThrough: 16_384,
  /**
   * The largest number of prospects that change in one transaction with their address. Each needs three writes, and a transaction has at
   * most 100.
   */
  prospectsChangedAtOnce: 33,
  polygonPointsMin: 3,
  /** The largest number of points of a polygon. 5 000 points take at most 255 KB as text. */
  polygonPointsMax: 5_000,
  territoriesPerCompany: 5_000,
  /**
   * The total size of all polygons of a company as text, in bytes. The list of territories contains all polygons, and an answer has at most
   * 200 MB.
   */
  polygonBytesPerCompany: 180_000_000,
  eventName: 128,
  buttonText: 100,
  secretKey: 255,
  secretKeyMin: 16,
  /** A warm function caches a data key for at most this time, and the data keys of at most this many companies. */
  dataKeyKeptMs: 3_600_000,
  dataKeysKept: 1_000,
  customFieldBytes: 32 * 1024,
  customFieldKeys: 200,
  customFieldDepth: 100,
  pageSizeDefault: 50,
  pageSizeMax: 500,
  notesInDetail: 5,
  /** The longest query parameter, in characters. It may be a list of names separated by commas. */
  queryParameter: 4_000,

  idempotencyKey: 255,
  idempotencyKeptMs: 24 * 3_600_000,
  /** The run of an idempotency key counts as dead after this time, which is longer than the timeout of a function. */
  idempotentRunMs: 30_000,
  /**
   * Lambda rejects a larger buffered answer, and API Gateway then answers 502. The limit counts the whole JSON of the function's answer.
   */
  bufferedAnswerBytes: 6 * 1024 * 1024,
  /** The additional time to stream a body after its first byte. A slow phone needs it to load a large map. */
  streamBodyMs: 275_000,

  /** The limits of an import in one request, as data rows and bytes. Larger files need an import job. */
  importRows: 10_000,
  importBytes: 4_000_000,
  /** The limits of an import job, as data rows and bytes of the uploaded file. */
  jobRows: 1_000_000,
  jobBytes: 200_000_000,
  /**
   * The longest text of a row's fault, in characters. With this limit an answer of 6 MB can hold a fault for each of 10 000 rows, and a
   * table row of at most 400 KB can hold these faults compressed.
   */
  rowFault: 250,
  /** The largest number of a company's import jobs that wait for their file or run. */
  openJobs: 100,
  /** The largest number of faults in the answer about a job. The report file lists all faults. */
  jobErrors: 100,
  /** The validity of a link to a file. An upload must begin within this time. */
  fileLinkSeconds: 3_600,
  /** The longest time for which an upload may continue after its link has expired. */
  uploadMs: 3_600_000,
  /** The lifetime of an export's file, in days. */
  exportKeptDays: 7,
  mappedColumns: 100,
  csvHeader: 255,
  /** The longest row of a CSV file, in characters. The longest values of all columns together take a tenth of it. */
  csvRow: 1_000_000,
  /**
   * The number of blank lines that a CSV file may have in addition to one for each row. The limit of rows does not count blank lines, but a
   * blank line takes as long to read as a row.
   */
  csvBlankLines: 100_000,
  /** The number of prospects that an export reads and writes at a time. */
  exportBatch: 500,

  /**
   * The largest number of invitations of a company in one day (UTC). It lets a company with 200 reps start within a day, and limits abuse
   * by mail.
   */
  invitationsPerDay: 200,
  /** An invitation without a sign-in ends after 30 days, and its e-mail address becomes free. */
  invitationMs: 30 * 24 * 3_600_000,

  /**
   * The gateway caches the authorizer's answer for this time. A disabled user, a new role or a new permission therefore takes effect within
   * this time.
   */
  authorizationCacheSeconds: 60,
  /** A warm function caches the names of a company's statuses, tags and users for this time. */
  dictionaryCacheMs: 60_000,

  /**
   * The longest time for which a publisher caches registrations. It limits the effect of a write that does not raise the version of the
   * registrations.
   */
  subscriptionsCacheMs: 60_000,
  /**
   * A publisher does not cache registrations that it read within this time after a change, because it may have read some rows from before
   * the change.
   */
  subscriptionsSettleMs: 5_000,
  webhooksPerCompany: 40,
  registrationsPerWebhook: 50,
  /** The service pauses a webhook after five days without a successful attempt. */
  failingMs: 5 * 24 * 3_600_000,
  /** After a rotation the previous secret also signs for this time, so that receivers can change their secret without rejecting a call. */
  secretOverlapMs: 24 * 3_600_000,
  /** A repeated press of the same button for the same record within this time counts as the same press. */
  doublePressMs: 10_000,
  /** The longest delay of a registration in minutes, which is 30 days. */
  delayMinutesMax: 43_200,
  /**
   * The largest body of a debounced delivery, in bytes, because many receivers accept at most a megabyte. Further events go into another
   * delivery.
   */
  windowBodyBytes: 1_000_000,
  /** The largest event data within a delivery's row, in bytes of JSON. Larger data has a separate row to which the deliveries refer. */
  inlineDataBytes: 4_096,
  /**
   * The publisher itself makes the deliveries of an event that has at most this many matches, as long as the events of one company in the
   * batch have at most `directMatchesTogether` such matches. All other events are fanned out.
   */
  directMatches: 100,
  directMatchesTogether: 200,
  filterDepth: 5,
  filterKeys: 50,
  filterBytes: 4 * 1024,
  /** The longest DNS look-up of a receiver. The time of the look-up is part of `exchangeMs`. */
  lookupMs: 3_000,
  /** The largest number of concurrent DNS look-ups of one function. Five companies with the largest number of webhooks need this many. */
  lookupsAtOnce: 200,
  /**
   * The longest time in the DNS cache. `nameKeptMs` is for an answer whose TTL is not shorter, and `noNameKeptMs` is for a name without an
   * address or a failed look-up.
   */
  nameKeptMs: 30_000,
  noNameKeptMs: 5_000,
  namesKept: 1_000,
  /** The longest exchange with a receiver, including look-up, connection, request and answer. */
  exchangeMs: 10_000,
  /** An idle connection to a receiver stays open for this time. Servers usually keep an idle connection open for two seconds or more. */
  connectionKeptMs: 1_000,
  /** The service does not reuse a connection that is older than this. */
  connectionAgeMs: 60_000,
  /** The service reads at most this many bytes of a receiver's answer. */
  answerBytes: 16 * 1024,
  /** An attempt stores at most this many bytes of a receiver's answer. */
  answerKeptBytes: 4 * 1024,
  /** The table keeps a delivery and its attempts for 30 days. */
  deliveryKeptMs: 30 * 24 * 3_600_000,
  /**
   * The largest number of deliveries in the time range of one replay, whether or not the replay sends them. The request must count them
   * within its deadline.
   */
  replayedDeliveries: 100_000,
  /** The longest delay of one queue message. */
  queueDelaySeconds: 900,
} as const;
