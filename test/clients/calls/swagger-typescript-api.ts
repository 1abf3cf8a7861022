/** Sends the requests of story.ts through the client that swagger-typescript-api generates from the OpenAPI document. */
import { Api } from "./generated/swagger-typescript-api";
import { baseUrl, printAnswers, prospect, token } from "./story";

const { api } = new Api({ baseUrl, baseApiParams: { headers: { Authorization: `Bearer ${token}` } } });

await printAnswers(
  {
    me: async () => (await api.me()).data,
    statuses: async () => (await api.statusesList()).data,
    createTag: async (value) => (await api.tagsCreate({ value })).data,
    createProspect: async (name) => (await api.prospectsCreate({}, prospect(name))).data,
    setTags: async (id, tagIds) => (await api.prospectsTags(id, { tagIds })).data,
    list: async (search) => (await api.prospectsList({ search })).data,
    changeStatus: async (id, currentStatusId) => (await api.prospectsUpdate(id, { currentStatusId })).data,
    createNote: async (id, body) => (await api.notesCreate(id, { body })).data,
    detail: async (id) => (await api.prospectsGet(id)).data,
    createTerritory: async (polygon) => (await api.territoriesCreate({ polygon })).data,
    changes: async () => (await api.syncChanges({ limit: 500 })).data,
    remove: async (id) => (await api.prospectsDelete(id)).data,
  },
  "swagger-typescript-api",
);
