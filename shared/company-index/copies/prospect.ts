/**
 * Copies of prospects, so that `GET /api/changes` can show changed prospects without reading their rows one by one. The unflushed entry
 * (recent change) of a changed prospect contains a copy of the fields that lists show. The names of statuses, tags and users are not
 * copied, because they may change later.
 */
import {
  APPOINTMENT_TEXTS,
  appointmentsIn,
  appointmentsText,
  type CopiedAppointment,
} from "#shared/company-index/copies/attached.ts";
import { pack, unpack } from "#shared/company-index/copies/packing.ts";
import type { IndexRow } from "#shared/company-index/record.ts";

interface CopiedAddress {
  readonly id: number;
  readonly address1: string;
  readonly address2: string | null;
  readonly city: string;
  readonly state: string;
  readonly zip: string;
  /** Undefined if the service has computed this text from the other fields. The copy then does not contain the text. */
  readonly formattedAddress: string | null | undefined;
}

/** The fields that lists show and that the index does not store, or stores only in case-folded form. */
export interface CopiedFields {
  readonly name: string | null;
  readonly phoneNumber: string | null;
  readonly secondaryPhoneNumber: string | null;
  readonly emailAddress: string | null;
  readonly address: CopiedAddress | null;
  readonly source: string | null;
  readonly sourceId: string | null;
  readonly sourceCreatedAt: string | null;
  /** JSON text. */
  readonly customFieldData: string | null;
  readonly clientRecordId?: string | undefined;
  /** All appointments that were upcoming at the time of the change, the soonest first. */
  readonly upcoming: readonly CopiedAppointment[];
}

type IndexedFields = Pick<
  IndexRow,
  "id" | "version" | "createdAt" | "statusId" | "assignedToUserId" | "tagIds" | "lat" | "lng"
>;

/** All fields that lists show of one version of a prospect. */
export interface ProspectCopy extends IndexedFields, CopiedFields {
  readonly updatedAt: number;
  /** The time of the change, in milliseconds since 1970. It is later than `updatedAt` if only an appointment has changed. */
  readonly changedAt: number;
}

/** The attributes of a stored entry with the copy of a prospect. An entry has at most one of them. */
export interface PackedProspect {
  /** The copy of a prospect without upcoming appointments. */
  readonly copy?: Uint8Array | undefined;
  /**
   * The copy of a prospect with upcoming appointments. It has an attribute of its own, because functions of an earlier deployment read
   * `copy` and would show the prospect without its next appointment.
   */
  readonly copyWithNext?: Uint8Array | undefined;
}

/**
 * Compresses the fields for an entry whose searchable text is `text`. The result is empty if the compressed fields are too long, or if a
 * field cannot be copied.
 */
export function packProspect(fields: CopiedFields, text: string): PackedProspect {
  const joined = joinedFields(fields);
  if (joined === undefined) return {};
  const hasNext = fields.upcoming.length > 0;
  const bytes = pack(joined, dictionaryOf(text, hasNext));
  if (bytes === undefined) return {};
  return hasNext ? { copyWithNext: bytes } : { copy: bytes };
}

/** Returns the copy in an unflushed entry (recent change), or undefined if the entry contains none. */
export function prospectCopyIn(entry: IndexRow): ProspectCopy | undefined {
  const { id, version, createdAt, updatedAt, statusId, assignedToUserId, tagIds, lat, lng, text } = entry;
  const { copy } = entry;
  if (copy === undefined || updatedAt === undefined) return undefined;
  const joined = unpack(`the copy of prospect ${id}`, copy.bytes, dictionaryOf(text, copy.hasNext));
  const changedAt = Math.max(updatedAt, copy.appointmentAt ?? 0);
  const indexed = { id, version, createdAt, updatedAt, changedAt, statusId, assignedToUserId, tagIds, lat, lng };
  return { ...indexed, ...splitFields(joined) };
}

/**
 * Returns the dictionary of the compression. Most fields also occur in the searchable text of the entry, and the source is usually one of
 * the three listed here. A copy therefore needs few bytes.
 */
const dictionaryOf = (text: string, hasNext: boolean): string =>
  `${hasNext ? APPOINTMENT_TEXTS : ""}\ncsv-import\nimport\napi\n${text.toLowerCase()}`;

/** Marks a `formattedAddress` that the service has computed. */
const COMPUTED = "=";
const SEPARATOR = "\n";

/**
 * Joins the fields in a fixed order. Returns undefined if the fields could not be split again exactly: a text contains the separator, is
 * empty instead of null, equals the mark `COMPUTED`, or contains half of a surrogate pair.
 */
export function joinedFields({ address, clientRecordId, upcoming, ...fields }: CopiedFields): string | undefined {
  const { name, phoneNumber, secondaryPhoneNumber, emailAddress } = fields;
  const { source, sourceId, sourceCreatedAt, customFieldData } = fields;
  const shortId = clientRecordId === undefined ? null : shortUuid(clientRecordId);
  const nullable = [name, phoneNumber, secondaryPhoneNumber, emailAddress];
  const more = [source, sourceId, sourceCreatedAt, customFieldData, shortId];
  const appointments = upcoming.length === 0 ? null : appointmentsText(upcoming);
  const ofAddress = [address?.address2, address?.formattedAddress];
  const isAmbiguous = [...nullable, ...more, ...ofAddress].includes("") || address?.formattedAddress === COMPUTED;
  const lines = [...nullable, ...addressLines(address), ...more, appointments].map((line) => line ?? "");
  if (isAmbiguous || !lines.every((line) => line.isWellFormed() && !line.includes(SEPARATOR))) return undefined;
  return lines.join(SEPARATOR).replace(/\n+$/, "");
}

const ADDRESS_LINES = 7;

function addressLines(address: CopiedAddress | null): (string | null)[] {
  if (address === null) return Array.from({ length: ADDRESS_LINES }, () => null);
  const { id, address1, address2, city, state, zip, formattedAddress } = address;
  return [address1, address2, city, state, zip, formattedAddress === undefined ? COMPUTED : formattedAddress, `${id}`];
}

/** Returns the fields that `joinedFields` has joined. */
export function splitFields(joined: string): CopiedFields {
  const lines = joined.split(SEPARATOR);
  const text = (at: number): string => lines[at] ?? "";
  const nullable = (at: number): string | null => text(at) || null;
  const [address1, city, state, zip] = [text(4), text(6), text(7), text(8)];
  const formattedAddress = text(9) === COMPUTED ? undefined : nullable(9);
  const address = { id: Number(text(10)), address1, address2: nullable(5), city, state, zip, formattedAddress };
  return {
    name: nullable(0),
    phoneNumber: nullable(1),
    secondaryPhoneNumber: nullable(2),
    emailAddress: nullable(3),
    address: text(10) === "" ? null : address,
    source: nullable(11),
    sourceId: nullable(12),
    sourceCreatedAt: nullable(13),
    customFieldData: nullable(14),
    clientRecordId: text(15) === "" ? undefined : longUuid(text(15)),
    upcoming: text(16) === "" ? [] : appointmentsIn(text(16)),
  };
}

/** Returns the 16 bytes of the UUID in 22 characters. Returns an empty text if the UUID does not have the usual form in lower case. */
function shortUuid(uuid: string): string {
  const short = Buffer.from(uuid.replaceAll("-", ""), "hex").toString("base64url");
  return longUuid(short) === uuid ? short : "";
}

const longUuid = (short: string): string =>
  Buffer.from(short, "base64url")
    .toString("hex")
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
