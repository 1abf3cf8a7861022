/** The limits of the service. The name of a time carries its unit. */
export const limits = {
  /** JSON request body, bytes. */
  bodyBytes: 1_000_000,
  name: 255,
  phone: 50,
  email: 254,
  /** The subject of a token: the issuer's id of a user. */
  subject: 255,
  source: 100,
  sourceId: 255,
  note: 10_000,
  /** Not counting the note of an import. */
  notesPerProspect: 5_000,
  /** The detail of a prospect lists all of them. 5 000 take about 500 read units. */
  statusChangesPerProspect: 5_000,
  /** The detail of a prospect lists all of them. One takes at most 30 KB, so 500 take at most 15 MB. */
  appointmentsPerProspect: 500,
  appointmentTitle: 255,
  appointmentLocation: 255,
  appointmentNotes: 10_000,
  /** The default and the longest range of a calendar read, days. */
  calendarDays: 31,
  calendarDaysMax: 366,
  search: 200,
  url: 2_048,
  /** The display value of a status or tag. */
  displayValue: 100,
  statusesPerCompany: 200,
  tagsPerCompany: 500,
  tagsPerProspect: 50,
  addressLine: 255,
  /** Prospects that share one address row. The row lists their ids. */
  prospectsPerAddress: 2_000,
  /** Addresses that one request reads for a user who sees only assigned prospects. */
  addressesLookedThrough: 16_384,
  /** Prospects that change in one transaction with their address: three writes each, of at most 100 writes. */
  prospectsChangedAtOnce: 33,
  polygonPointsMin: 3,
  /** 5 000 points take at most 255 KB as text. */
  polygonPointsMax: 5_000,
  territoriesPerCompany: 5_000,
  /** All polygons of a company as text, bytes. The list of territories holds them, and an answer has at most 200 MB. */
  polygonBytesPerCompany: 180_000_000,
  eventName: 128,
  buttonText: 100,
  secretKey: 255,
  secretKeyMin: 16,
  /** A warm function caches the data keys of this many companies for this time. */
  dataKeyKeptMs: 3_600_000,
  dataKeysKept: 1_000,
  customFieldBytes: 32 * 1024,
  customFieldKeys: 200,
  customFieldDepth: 100,
  pageSizeDefault: 50,
  pageSizeMax: 500,
  notesInDetail: 5,
  /** One query parameter, characters. It may be a comma list of names. */
  queryParameter: 4_000,

  idempotencyKey: 255,
  idempotencyKeptMs: 24 * 3_600_000,
  /** Longer than the time-out of a function. After this time the run of an idempotency key counts as dead. */
  idempotentRunMs: 30_000,
  /** Lambda rejects a larger buffered answer, and API Gateway then answers 502. The limit counts the whole JSON of the function's answer. */
  bufferedAnswerBytes: 6 * 1024 * 1024,
  /** The extra time for streaming a body after its first byte: a slow phone loads a large map. */
  streamBodyMs: 275_000,

  /** The limits of an import in one request: data rows and bytes. Larger files need an import job. */
  importRows: 10_000,
  importBytes: 4_000_000,
  /** The limits of an import job: data rows and bytes of the upload. */
  jobRows: 1_000_000,
  jobBytes: 200_000_000,
  /**
   * The text of a row's fault, characters. With it an answer of 6 MB holds a fault for each of 10 000 rows, and a row of the table, at
   * most 400 KB, holds them compressed.
   */
  rowFault: 250,
  /** Import jobs of a company that wait for their file or run. */
  openJobs: 100,
  /** Faults in the answer about a job. A file lists all faults. */
  jobErrors: 100,
  /** The validity of a link to a file. An upload may begin within this time. */
  fileLinkSeconds: 3_600,
  /** The longest duration of an upload after its link expires. */
  uploadMs: 3_600_000,
  /** The lifetime of an export's file, days. */
  exportKeptDays: 7,
  mappedColumns: 100,
  csvHeader: 255,
  /** A row of a CSV file, characters. The longest values of all columns take a tenth of it. */
  csvRow: 1_000_000,
  /** Blank lines in addition to one for each row. The limit of rows does not count them, but each takes as long to read. */
  csvBlankLines: 100_000,
  /** Prospects that an export reads and writes at a time. */
  exportBatch: 500,

  /** Invitations of a company in one day, UTC. A company of 200 reps can start in a day, and abuse by mail stays small. */
  invitationsPerDay: 200,
  /** An invitation ends after 30 days without a sign-in, and its e-mail address becomes free. */
  invitationMs: 30 * 24 * 3_600_000,

  /** The gateway caches the authorizer's answer for this time. A disabled user, a new role or a new permission takes effect within it. */
  authorizationCacheSeconds: 60,
  /** A warm function caches the names of a company's statuses, tags and users for this time. */
  dictionaryCacheMs: 60_000,

  /** The longest time that a publisher caches registrations. It bounds the effect of a write that does not raise their version. */
  subscriptionsCacheMs: 60_000,
  /** A publisher does not cache registrations that it read sooner after a change: the change may not have reached all rows. */
  subscriptionsSettleMs: 5_000,
  webhooksPerCompany: 40,
  registrationsPerWebhook: 50,
  /** The service pauses a webhook after five days without a successful attempt. */
  failingMs: 5 * 24 * 3_600_000,
  /** After a rotation the old secret signs too for this time, so that receivers can change theirs without a rejected call. */
  secretOverlapMs: 24 * 3_600_000,
  /** Repeated presses of one button for one record within this time count as one press. */
  doublePressMs: 10_000,
  /** 30 days. */
  delayMinutesMax: 43_200,
  /** The body of a debounced delivery, bytes. Many receivers accept at most a megabyte. Further events go into a further delivery. */
  windowBodyBytes: 1_000_000,
  /** The largest event data within a delivery's row, JSON bytes. Larger data has a row of its own that deliveries refer to. */
  inlineDataBytes: 4_096,
  /** The publisher itself makes the deliveries of an event with at most this many matches, and of a company's batch of events with at most `directMatchesTogether`. */
  directMatches: 100,
  directMatchesTogether: 200,
  filterDepth: 5,
  filterKeys: 50,
  filterBytes: 4 * 1024,
  /** The longest DNS look-up of a receiver. It is part of the exchange's time. */
  lookupMs: 3_000,
  /** DNS look-ups of one function at a time: five companies with the most webhooks. */
  lookupsAtOnce: 200,
  /** The longest time in the DNS cache: of an answer (or its TTL, if shorter), and of a name without an address or a failed look-up. */
  nameKeptMs: 30_000,
  noNameKeptMs: 5_000,
  namesKept: 1_000,
  /** The whole exchange with a receiver: look-up, connection, request, answer. */
  exchangeMs: 10_000,
  /** An idle connection to a receiver stays open for this time. Servers wait two seconds or more for the next request. */
  connectionKeptMs: 1_000,
  /** The service does not reuse an older connection. */
  connectionAgeMs: 60_000,
  /** The service reads at most this much of a receiver's answer. */
  answerBytes: 16 * 1024,
  /** An attempt stores this much of a receiver's answer. */
  answerKeptBytes: 4 * 1024,
  /** The table keeps a delivery and its attempts for 30 days. */
  deliveryKeptMs: 30 * 24 * 3_600_000,
  /** Deliveries in the range of one replay, matching or not. The request counts them within its deadline. */
  replayedDeliveries: 100_000,
  /** The longest delay of one queue message. */
  queueDelaySeconds: 900,
} as const;
