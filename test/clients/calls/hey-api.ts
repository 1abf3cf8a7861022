/** Sends the requests of story.ts through the client that @hey-api/openapi-ts generates from the OpenAPI document. */
import { client } from "./generated/hey-api/client.gen";
import * as api from "./generated/hey-api/sdk.gen";
import { baseUrl, printAnswers, prospect, token } from "./story";

client.setConfig({ baseUrl, auth: () => token });
const throwOnError = true;

await printAnswers(
  {
    me: async () => (await api.me({ throwOnError })).data,
    statuses: async () => (await api.statusesList({ throwOnError })).data,
    createTag: async (value) => (await api.tagsCreate({ body: { value }, throwOnError })).data,
    createProspect: async (name) => (await api.prospectsCreate({ body: prospect(name), throwOnError })).data,
    setTags: async (id, tagIds) => (await api.prospectsTags({ path: { id }, body: { tagIds }, throwOnError })).data,
    list: async (search) => (await api.prospectsList({ query: { search }, throwOnError })).data,
    changeStatus: async (id, currentStatusId) =>
      (await api.prospectsUpdate({ path: { id }, body: { currentStatusId }, throwOnError })).data,
    createNote: async (id, body) => (await api.notesCreate({ path: { id }, body: { body }, throwOnError })).data,
    detail: async (id) => (await api.prospectsGet({ path: { id }, throwOnError })).data,
    createTerritory: async (polygon) => (await api.territoriesCreate({ body: { polygon }, throwOnError })).data,
    changes: async () => (await api.syncChanges({ query: { limit: 500 }, throwOnError })).data,
    remove: async (id) => (await api.prospectsDelete({ path: { id }, throwOnError })).data,
  },
  "hey-api",
);
