/** The limits of the service. The name of a duration ends with its unit. */
export const limits = {
  /** The largest JSON request body, in bytes. */
  bodyBytes: 1_000_000,
  name: 255,
  phone: 50,
  email: 254,
  /** The longest `sub` claim of a token, in characters. */
  subject: 255,
  source: 100,
  sourceId: 255,
  note: 10_000,
  /** The largest number of notes of a prospect. The note that an import creates does not count. */
  notesPerProspect: 5_000,
  /**
   * The largest number of status changes of a prospect. GET of a prospect returns all of them, and reading 5 000 costs about 500 read
   * units.
   */
  statusChangesPerProspect: 5_000,
  /**
   * The largest number of appointments of a prospect. GET of a prospect returns all of them. Each has at most 30 KB, so 500 have at most 15
   * MB.
   */
  appointmentsPerProspect: 500,
  appointmentTitle: 255,
  appointmentLocation: 255,
  appointmentNotes: 10_000,
  /** The default and the longest time range of a calendar request, in days. */
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
  /**
   * GET of the addresses reads at most this many addresses for a user who sees only assigned prospects. The limit bounds the cost of a
   * request that finds few visible addresses.
   */
  addressesLookedThrough: 16_384,
  /**
   * The largest number of prospects that change in one transaction with their address. Each prospect needs three writes, and a transaction
   * has at most 100.
   */
  prospectsChangedAtOnce: 33,
  polygonPointsMin: 3,
  /** The largest number of points of a polygon. 5 000 points have at most 255 KB as text, and a row has at most 400 KB. */
  polygonPointsMax: 5_000,
  territoriesPerCompany: 5_000,
  /**
   * The largest total size of a company's polygons as text, in bytes. The list of territories returns all of them, and a streamed answer
   * has at most 200 MB.
   */
  polygonBytesPerCompany: 180_000_000,
  eventName: 128,
  buttonText: 100,
  secretKey: 255,
  secretKeyMin: 16,
  /** A warm function caches each data key for at most this time, and at most this many keys. Each company has one data key. */
  dataKeyKeptMs: 3_600_000,
  dataKeysKept: 1_000,
  customFieldBytes: 32 * 1024,
  customFieldKeys: 200,
  customFieldDepth: 100,
  pageSizeDefault: 50,
  pageSizeMax: 500,
  notesInDetail: 5,
  /** The longest query parameter, in characters. A parameter may list many names. */
  queryParameter: 4_000,

  idempotencyKey: 255,
  idempotencyKeptMs: 24 * 3_600_000,
  /** A request with an idempotency key counts as dead after this time, which is longer than the timeout of a function. */
  idempotentRunMs: 30_000,
  /**
   * Lambda rejects a larger buffered answer, and API Gateway then answers 502. The limit counts the whole JSON that the function returns.
   */
  bufferedAnswerBytes: 6 * 1024 * 1024,
  /** The additional time for a streamed body after its first byte. A slow phone needs it to load a large map. */
  streamBodyMs: 275_000,

  /** The limits of an import within one request: data rows and bytes. Larger files need an import job. */
  importRows: 10_000,
  importBytes: 4_000_000,
  /** The limits of an import job: data rows and bytes of the uploaded file. */
  jobRows: 1_000_000,
  jobBytes: 200_000_000,
  /**
   * The longest message about a faulty row, in characters. An answer of 6 MB can then hold a message for each of 10 000 rows, and a table
   * row of 400 KB can hold these messages compressed.
   */
  rowFault: 250,
  /** The largest number of import jobs of a company that have not ended. */
  openJobs: 100,
  /** An answer about a job lists at most this many faults. The report file lists all of them. */
  jobErrors: 100,
  /** A presigned URL is valid for this time. An upload must begin within it. */
  fileLinkSeconds: 3_600,
  /** An upload that began in time may last this long after its URL has expired. */
  uploadMs: 3_600_000,
  exportKeptDays: 7,
  mappedColumns: 100,
  csvHeader: 255,
  /** The longest row of a CSV file, in characters. It is ten times the longest valid values of all columns together. */
  csvRow: 1_000_000,
  /**
   * The largest number of blank lines in a CSV file, in addition to one for each row. Blank lines do not count as rows, but take as long to
   * read.
   */
  csvBlankLines: 100_000,
  /** An export reads and writes this many prospects at a time. */
  exportBatch: 500,

  /**
   * The largest number of invitations of a company in one day (UTC). A company with 200 reps can start within a day, and mail abuse stays
   * limited.
   */
  invitationsPerDay: 200,
  /** An invitation expires if the user does not sign in within 30 days. The e-mail address can then be invited again. */
  invitationMs: 30 * 24 * 3_600_000,

  /**
   * API Gateway caches the authorizer's answer for this time. A disabled user or a changed role therefore takes effect after at most this
   * time.
   */
  authorizationCacheSeconds: 60,
  /** A warm function caches the names of a company's statuses, tags and users for this time. */
  dictionaryCacheMs: 60_000,

  /**
   * A publisher caches a company's registrations for at most this time. The limit bounds the effect of a write that fails to raise the
   * version by which the publisher notices changes.
   */
  subscriptionsCacheMs: 60_000,
  /**
   * A publisher does not cache registrations that it read within this time after a change, because it may have read some rows from before
   * the change.
   */
  subscriptionsSettleMs: 5_000,
  webhooksPerCompany: 40,
  registrationsPerWebhook: 50,
  /** A webhook without a successful attempt for this time is paused (five days). */
  failingMs: 5 * 24 * 3_600_000,
  /**
   * After a rotation, deliveries are also signed with the previous secret for this time, so that receivers can change their secret without
   * rejecting a call.
   */
  secretOverlapMs: 24 * 3_600_000,
  /** A second press of the same button for the same record within this time counts as the first press. */
  doublePressMs: 10_000,
  /** The longest delay of a registration, in minutes (30 days). */
  delayMinutesMax: 43_200,
  /**
   * The largest body of a debounced delivery, in bytes, because many receivers accept at most a megabyte. Further events start another
   * delivery.
   */
  windowBodyBytes: 1_000_000,
  /**
   * Event data of at most this many bytes of JSON is stored in the row of each delivery. Larger data has a separate row that the deliveries
   * share.
   */
  inlineDataBytes: 4_096,
  /**
   * The publisher writes the deliveries of an event itself if at most `directMatches` subscriptions match. The events of one company in a
   * batch may have at most `directMatchesTogether` such matches. Other events are fanned out by the deliverer, so that one company does not
   * delay the stream.
   */
  directMatches: 100,
  directMatchesTogether: 200,
  filterDepth: 5,
  filterKeys: 50,
  filterBytes: 4 * 1024,
  /** The longest DNS lookup of a receiver. It is part of `exchangeMs`. */
  lookupMs: 3_000,
  /** One function runs at most this many DNS lookups concurrently. Five companies with the largest number of webhooks (40) need 200. */
  lookupsAtOnce: 200,
  /** The longest times in the DNS cache: `nameKeptMs` for an address (less if its TTL is shorter), `noNameKeptMs` for a failed lookup. */
  nameKeptMs: 30_000,
  noNameKeptMs: 5_000,
  namesKept: 1_000,
  /** The longest exchange with a receiver: lookup, connection, request and answer. */
  exchangeMs: 10_000,
  /**
   * An idle connection to a receiver is closed after this time. Most servers close an idle connection after two seconds or more, so a
   * request rarely meets a closed connection.
   */
  connectionKeptMs: 1_000,
  /** A connection to a receiver that is older than this is closed, because the name may have another address by then. */
  connectionAgeMs: 60_000,
  answerBytes: 16 * 1024,
  /** An attempt stores at most this many bytes of a receiver's answer, of the `answerBytes` that are read. */
  answerKeptBytes: 4 * 1024,
  deliveryKeptMs: 30 * 24 * 3_600_000,
  /** The largest number of deliveries in the time range of one replay, because the request must count all of them within its deadline. */
  replayedDeliveries: 100_000,
  /** The longest delay that SQS supports for a message. */
  queueDelaySeconds: 900,
} as const;
