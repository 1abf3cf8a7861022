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
  "webhooks/create": {
    name: "CRM",
    url: "https://crm.example.com/hooks/canvassing",
    registrations: [{ event: "prospect.status_changed", filter: { "newStatus.value": ["Sold", "Appointment set"] } }],
  },
  "registrations/create": { event: "prospect.created", delayMinutes: 15 },
};
