/** Returns a prospect row whose optional fields are empty, so that a test sets only the fields that it needs. */
import type { StoredProspect } from "#shared/prospects/stored.ts";

const CREATED = "2026-01-01T00:00:00.000Z";

export const prospectRow = (fields: Partial<StoredProspect> = {}): StoredProspect => ({
  type: "prospect",
  id: 1,
  companyId: 1,
  name: null,
  phoneNumber: null,
  secondaryPhoneNumber: null,
  emailAddress: null,
  lat: null,
  lng: null,
  address: null,
  statusId: null,
  lastStatusChange: null,
  upcoming: [],
  later: [],
  assignedToUserId: null,
  assignedByUserId: null,
  tagIds: [],
  source: null,
  sourceId: null,
  sourceCreatedAt: null,
  customFieldData: null,
  createdAt: CREATED,
  updatedAt: CREATED,
  createdBy: 1,
  updatedBy: 1,
  version: 1,
  ...fields,
});
