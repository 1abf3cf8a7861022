/** Request bodies of the API reference, by function; a test holds each against its schema. */

export const examples: Readonly<Record<string, unknown>> = {
  "prospects/create": {
    name: "Maria Alvarez",
    phoneNumber: "+1 303 555 0142",
    lat: 39.7392,
    lng: -104.9903,
    address: { address1: "1437 Bannock St", city: "Denver", state: "CO", zip: "80202" },
    source: "door",
    customFieldData: { roofAge: 14, insured: true },
  },
  "prospects/update": { currentStatusId: 1024, assignedToUserId: 7 },
  "notes/create": { body: "Wants a quote after the hail season." },
  "appointments/create": {
    title: "Roof inspection",
    startAt: "2026-06-02T15:00:00Z",
    endAt: "2026-06-02T16:00:00Z",
    location: "1437 Bannock St, Denver",
  },
  "appointments/update": { status: "completed" },
  "statuses/create": { value: "Appointment set", color: "#1D4ED8" },
  "statuses/update": { color: "#15803D" },
  "tags/create": { value: "Hail damage", color: "#DC2626" },
  "prospects/tags": { tagIds: [1025, 1031] },
  "territories/create": {
    name: "Capitol Hill",
    polygon: [
      [-104.987, 39.74],
      [-104.973, 39.74],
      [-104.973, 39.727],
      [-104.987, 39.727],
    ],
    totalProperties: 410,
    assignedToUserId: 7,
  },
  "territories/update": { assignedToUserId: null },
  "addresses/create": { address1: "1437 Bannock St", city: "Denver", state: "CO", zip: "80202" },
  "addresses/update": { address2: "Suite 200" },
  "users/create": { email: "nina@example.com", firstName: "Nina", lastName: "New", role: "sales" },
  "users/update": { role: "admin" },
  "webhooks/create": {
    name: "CRM",
    url: "https://crm.example.com/hooks/canvassing",
    registrations: [{ event: "prospect.status_changed", filter: { "newStatus.value": ["Sold", "Appointment set"] } }],
  },
  "registrations/create": { event: "prospect.created", delayMinutes: 15 },
};
