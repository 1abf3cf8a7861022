/** Request bodies of the API reference, by the name of their schema; a test parses each by it. */

export const examples: Readonly<Record<string, unknown>> = {
  NewProspect: {
    name: "Maria Alvarez",
    phoneNumber: "+1 303 555 0142",
    lat: 39.7392,
    lng: -104.9903,
    address: { address1: "1437 Bannock St", city: "Denver", state: "CO", zip: "80202" },
    source: "door",
    customFieldData: { roofAge: 14, insured: true },
  },
  ProspectPatch: { currentStatusId: 1024, assignedToUserId: 7 },
  NewStatus: { value: "Appointment set", color: "#1D4ED8" },
  StatusPatch: { color: "#15803D" },
  NewWebhook: {
    name: "CRM",
    url: "https://crm.example.com/hooks/canvassing",
    registrations: [{ event: "prospect.status_changed", filter: { "newStatus.value": ["Sold", "Appointment set"] } }],
  },
  NewRegistration: { event: "prospect.created", delayMinutes: 15 },
};
