/** What the reference page says of path and query parameters: meaning, an example, and the schema where text hides a number. */
import { limits } from "#shared/limits.ts";
import type { JsonSchema } from "./schemas.ts";

export interface ParameterInfo {
  readonly description: string;
  readonly example: string | number;
  /** In place of the one that the contract gives: of what is text on the wire and a cut or defaulted number behind it. */
  readonly schema?: JsonSchema;
}

const wholeNumber = (minimum: number, initial: number): JsonSchema => ({ type: "integer", minimum, default: initial });

const commaList =
  'Comma-separated, compared without case; one of them must match. A value that holds a comma stands in double quotes (`"Washington, D.C.",Denver`), with each quote inside doubled.';

/** By name, or by function and name where the name alone says too little. */
const parameters: Readonly<Record<string, ParameterInfo>> = {
  id: { description: "Id of the record.", example: 1024 },
  registrationId: { description: "Id of the registration.", example: 2048 },
  deliveryId: { description: "Id of the delivery.", example: "dlv_0mb6x3k2a1f4c9d07b35e8a61c204" },
  "deliveries/list status": { description: "Only deliveries in this state.", example: "exhausted" },
  event: { description: "Only deliveries of this event.", example: "prospect.status_changed" },
  cursor: { description: "`nextCursor` of the part before.", example: "dlv_0mb6x3k2a1f4c9d07b35e8a61c204" },
  "deliveries/list limit": {
    description: `More than ${limits.pageSizeMax} is cut to it.`,
    example: 100,
    schema: wholeNumber(1, limits.pageSizeDefault),
  },
  "imports/list cursor": { description: "`nextCursor` of the part before.", example: 1032 },
  "imports/list limit": {
    description: `More than ${limits.pageSizeMax} is cut to it.`,
    example: 100,
    schema: wholeNumber(1, limits.pageSizeDefault),
  },
  dryRun: { description: "Whether the file is only checked: tells what would become of it.", example: "true" },
  mapping: {
    description:
      "JSON: header in the file -> column that it stands for, or null for a column that is left alone. Headers are compared without case.",
    example: '{"Full name":"name"}',
  },
  bbox: {
    description:
      "`minLng,minLat,maxLng,maxLat` in degrees, edges included; a west that lies east of the east crosses the antimeridian. Only prospects with both coordinates.",
    example: "-105.1,39.6,-104.8,39.9",
  },
  dateFrom: {
    description: "Created at or after: an ISO 8601 time, or a date for the start of that UTC day.",
    example: "2026-06-01",
  },
  dateTo: {
    description: "Created at or before: an ISO 8601 time, or a date for the end of that UTC day.",
    example: "2026-06-30",
  },
  status: { description: `Values of statuses. ${commaList}`, example: "New,Go Back" },
  assignedToUserId: {
    description: "Ids of assignees and `unassigned`, comma-separated. For admins and owners; ignored from others.",
    example: "7,unassigned",
  },
  "appointments/list assignedToUserId": {
    description: "Ids of assignees and `unassigned`, comma-separated.",
    example: "7,unassigned",
  },
  rep: {
    description: `Full names of assignees. ${commaList} For admins and owners; ignored from others.`,
    example: "Ravi Rep",
  },
  tagId: { description: `Values of tags, not their ids. ${commaList}`, example: "Hail damage" },
  city: { description: `Cities. ${commaList}`, example: "Denver,Aurora" },
  search: {
    description:
      "Words that must all occur in name, phones (also digits alone), e-mail, address or any note, without case. Nothing in them is a wildcard.",
    example: "bannock 0142",
  },
  page: { description: "From 1. A page past the end is empty.", example: 1 },
  pageSize: {
    description: `More than ${limits.pageSizeMax} is cut to it; the answer tells the size used.`,
    example: 100,
    schema: wholeNumber(1, limits.pageSizeDefault),
  },
  from: { description: "Starts at or after: an ISO 8601 time or date. Now, unless given.", example: "2026-06-01" },
  to: {
    description: `Starts at or before: an ISO 8601 time, or a date for the end of that UTC day. ${limits.calendarDays} days after \`from\`, unless given.`,
    example: "2026-06-07",
  },
  after: { description: "Only ids above this one.", example: 1024, schema: wholeNumber(0, 0) },
  limit: {
    description: `More than ${limits.pageSizeMax} is cut to it. An answer that is shorter than the limit is the last one.`,
    example: 100,
    schema: wholeNumber(1, limits.pageSizeMax),
  },
};

export const parameterInfo = (file: string, name: string): ParameterInfo | undefined =>
  parameters[`${file} ${name}`] ?? parameters[name];
