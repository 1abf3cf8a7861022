/** Every number the contract or a decision names, once. Times carry their unit in the name. */
export const limits = {
  /** JSON request body, bytes. */
  bodyBytes: 1_000_000,
  name: 255,
  phone: 50,
  email: 254,
  /** What an OpenID Connect issuer calls a user. */
  subject: 255,
  source: 100,
  sourceId: 255,
  note: 10_000,
  /** Beside the one that an import may have brought. */
  notesPerProspect: 5_000,
  /** The detail of a prospect carries all of them: 5 000 take some 500 read units. */
  statusChangesPerProspect: 5_000,
  /** The detail of a prospect carries all of them. One may take 30 KB, so that these take 15 MB at the most. */
  appointmentsPerProspect: 500,
  appointmentTitle: 255,
  appointmentLocation: 255,
  appointmentNotes: 10_000,
  /** The range of a calendar read when it has no end, and the longest one. Days. */
  calendarDays: 31,
  calendarDaysMax: 366,
  search: 200,
  url: 2_048,
  /** Value of a status or tag. */
  displayValue: 100,
  statusesPerCompany: 200,
  tagsPerCompany: 500,
  tagsPerProspect: 50,
  addressLine: 255,
  /** Prospects that share one address row, which names them all. */
  prospectsPerAddress: 2_000,
  /** Addresses that one request of a user who sees only own prospects looks through. */
  addressesLookedThrough: 16_384,
  /** Prospects that change in one transaction with their address: three writes each, and a transaction takes 100. */
  prospectsChangedAtOnce: 33,
  polygonPointsMin: 3,
  /** A polygon of so many points takes at most 255 KB as text. */
  polygonPointsMax: 5_000,
  territoriesPerCompany: 5_000,
  /** The polygons of a company as text, bytes: the list of all territories has them, and an answer carries 200 MB at the most. */
  polygonBytesPerCompany: 180_000_000,
  eventName: 128,
  buttonText: 100,
  secretKey: 255,
  secretKeyMin: 16,
  /** The data key of a company is kept in a warm function so long, and of so many companies. */
  dataKeyKeptMs: 3_600_000,
  dataKeysKept: 1_000,
  customFieldBytes: 32 * 1024,
  customFieldKeys: 200,
  customFieldDepth: 100,
  pageSizeDefault: 50,
  pageSizeMax: 500,
  notesInDetail: 5,
  /** One query parameter, characters: comma lists of names included. */
  queryParameter: 4_000,

  idempotencyKey: 255,
  idempotencyKeptMs: 24 * 3_600_000,
  /** Longer than a function may run: after that, the run of an idempotency key is taken for dead. */
  idempotentRunMs: 30_000,
  /** Lambda refuses a larger answer in one piece, and API Gateway then answers 502. The whole JSON that the function gives counts. */
  bufferedAnswerBytes: 6 * 1024 * 1024,
  /** A streamed body may take this much longer than the work before its first byte: a slow phone on a large map. */
  streamBodyMs: 275_000,

  /** Of an import whose answer is its result, in data rows and bytes; larger files go to the job. */
  importRows: 10_000,
  importBytes: 4_000_000,
  /** Of an import by an upload. */
  jobRows: 1_000_000,
  jobBytes: 200_000_000,
  /**
   * What is wrong with a row, characters. An answer of 6 MB then holds a fault of each of 10 000 rows, and a row of the table,
   * which ends at 400 KB, holds them compressed.
   */
  rowFault: 250,
  /** Imports of a company that wait for their file or run. */
  openJobs: 100,
  /** Of more errors, all are in a file. */
  jobErrors: 100,
  /** A link into the bucket, and so the time in which an upload may begin. */
  fileLinkSeconds: 3_600,
  /** An upload that began in time may end so much later. */
  uploadMs: 3_600_000,
  /** A link's file, after the export was made. Days. */
  exportKeptDays: 7,
  mappedColumns: 100,
  csvHeader: 255,
  /** A row of a CSV file, characters: the longest texts of all columns take a tenth of it. */
  csvRow: 1_000_000,
  /** Beside one for each row. They are no rows, and so no limit of rows holds for them; but each takes as long to read. */
  csvBlankLines: 100_000,
  /** Records that an export reads and writes at a time. */
  exportBatch: 500,

  /** Invitations of a company on one day, UTC: a company of 200 reps begins in a day, and nobody mails the world. */
  invitationsPerDay: 200,
  /** An address that nobody has signed in with is free again after 30 days. */
  invitationMs: 30 * 24 * 3_600_000,

  /** The gateway keeps what its authorizer says of a token for so long: a disabled user is out by then, and a new role or permission holds. */
  authorizationCacheSeconds: 60,
  /** Names of a company's statuses, tags and users are kept this long in a warm function. */
  dictionaryCacheMs: 60_000,

  /** A publisher keeps registrations for so long at most. A function that writes them without raising their version is noticed by then. */
  subscriptionsCacheMs: 60_000,
  /** It keeps none that it read sooner after a change: the change may not have reached all its rows. */
  subscriptionsSettleMs: 5_000,
  webhooksPerCompany: 40,
  registrationsPerWebhook: 50,
  /** A receiver of which no attempt succeeds for so long is paused: five days. */
  failingMs: 5 * 24 * 3_600_000,
  /** After a rotation the old secret signs too for so long: receivers change theirs without a rejected call. */
  secretOverlapMs: 24 * 3_600_000,
  /** Presses of one button for one record that come sooner after the first are taken for the same press. */
  doublePressMs: 10_000,
  /** 30 days. */
  delayMinutesMax: 43_200,
  /** The body of a window's delivery, bytes: many receivers take no more than a megabyte. Further events go into a further one. */
  windowBodyBytes: 1_000_000,
  /** The data of an event that is larger, JSON bytes, has a row of its own, which its deliveries refer to. */
  inlineDataBytes: 4_096,
  /** Matches of one event whose deliveries the publisher makes itself; of one company's events that it has in hands, so many. */
  directMatches: 100,
  directMatchesTogether: 200,
  filterDepth: 5,
  filterKeys: 50,
  filterBytes: 4 * 1024,
  /** To look up the name of a receiver, at most; of its exchange the rest is left. */
  lookupMs: 3_000,
  /** Names that one function looks up at a time: five companies with as many webhooks as they may have. */
  lookupsAtOnce: 200,
  /** An answer is used again so long, or as long as its record says, and one that there is no address, or none could be had, for less. */
  nameKeptMs: 30_000,
  noNameKeptMs: 5_000,
  namesKept: 1_000,
  /** The whole exchange with a receiver: look-up, connect, send, answer. */
  exchangeMs: 10_000,
  /** Between two exchanges its connection is kept so long: servers wait for the next request for two seconds and more. */
  connectionKeptMs: 1_000,
  /** A connection that is older is not used again. */
  connectionAgeMs: 60_000,
  /** At most this much of a receiver's answer is read. */
  answerBytes: 16 * 1024,
  /** This much of a receiver's answer is kept with the attempt. */
  answerKeptBytes: 4 * 1024,
  /** A delivery and its attempts are kept 30 days. */
  deliveryKeptMs: 30 * 24 * 3_600_000,
  /** Deliveries, wanted or not, in the range of one replay: counted before the request's time is up. */
  replayedDeliveries: 100_000,
  /** The longest delay of one queue message. */
  queueDelaySeconds: 900,
} as const;
