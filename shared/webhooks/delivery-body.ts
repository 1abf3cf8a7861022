/** The body of a delivery as the table holds it: compressed, so that most deliveries are rows of one write unit. */
import { deflateRawSync, inflateRawSync } from "node:zlib";

/** First byte of what is packed: which dictionary it needs. */
const VERSION = 1;

/**
 * What bodies are made of, the most frequent last. It must stay as it is while rows packed with it exist, 30 days: a change
 * is a new version beside it.
 */
const DICTIONARY = Buffer.from(
  '{"territory":{"name":"polygon":[[totalProperties"assignedToUserId":"location":"allDay":false,"startAt":"endAt":"title":' +
    '"appointment":{"prospectId":"note":{"body":"changedFields":["previousAssignee":"newAssignee":"statusHistoryId":' +
    '"previousStatus":{"newStatus":{"changedBy":{"id":csv-import"customFieldData":{"tags":[{"tag":{"id":"value":"color":"#' +
    '"eventCount":1,"data":{"prospect":{"id":,"trigger":"manual","triggeredBy":{"id":' +
    '"appointments":[{"status":"scheduled","event":"prospect.deleted","event":"prospect.assigned","event":"prospect.updated",' +
    '"event":"prospect.status_changed","event":"prospect.created","firstName":"lastName":"email":"' +
    '"assignedTo":{"id":"address":{"id":"address1":"address2":null,"city":"state":"zip":"formattedAddress":"' +
    '"currentStatus":{"id":"value":"Not Interested","color":"#"secondaryPhoneNumber":null,"emailAddress":null,"lat":39.,"lng":-104.' +
    '{"id":"dlv_0m","event":"prospect.created","createdAt":"2026-Z","companyId":,"webhookId":,"registrationId":,"trigger":"automatic",' +
    '"triggeredBy":null,"eventCount":1,"data":{"prospect":{"id":,"name":"","phoneNumber":"","secondaryPhoneNumber":null,' +
    '"emailAddress":null,"lat":,"lng":,"source":"api","customFieldData":null,"createdAt":"2026-Z","updatedAt":"2026-","address":null,' +
    '"currentStatus":null,"assignedTo":null,"tags":[],"appointments":[]}}}',
);

/** The fastest level: with the dictionary, the body of a prospect is 3 % larger than at the slowest one. */
const LEVEL = 1;

export const packedBody = (body: string): Uint8Array =>
  Buffer.concat([Buffer.of(VERSION), deflateRawSync(body, { dictionary: DICTIONARY, level: LEVEL })]);

/** Also takes the body as it was sent. Throws where the bytes are of no known version. */
export function unpackedBody(stored: string | Uint8Array): string {
  if (typeof stored === "string") return stored;
  if (stored[0] !== VERSION) throw new Error("a delivery's body is packed in a way that is not known");
  return inflateRawSync(stored.subarray(1), { dictionary: DICTIONARY }).toString("utf8");
}
