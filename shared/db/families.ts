/** Families of keys: what a function may touch is said by these. */

/**
 * Partition-key patterns by key family. A function's policy names the families it touches and nothing else, through
 * the condition key `dynamodb:LeadingKeys`.
 */
export const families = {
  ids: "IDS",
  identity: "S#*",
  email: "E#*",
  quotas: "C#*#Q",
  reference: "C#*#REF",
  prospectRanges: "C#*#PR",
  prospects: "C#*#P#*",
  addressRanges: "C#*#AR",
  places: "C#*#I#*",
  calendar: "C#*#K#*",
  agendas: "C#*#KA#*",
  addresses: "C#*#A#*",
  imports: "C#*#M#*",
  openImports: "C#*#MO",
  importList: "C#*#ML",
  exports: "C#*#E#*",
  idempotency: "C#*#IK#*",
  territories: "C#*#T",
  deletedTerritories: "C#*#TD",
  index: "C#*#X",
  indexTexts: "C#*#XN",
  manifests: "C#*#XM",
  segments: "C#*#XS#*",
  webhooks: "C#*#W",
  dataKeys: "C#*#WK",
  deliveries: "C#*#D#*",
  due: "DUE#*",
} as const;

export type Family = keyof typeof families;
