/** Sends the requests of story.ts through the client that oazapfts generates from the OpenAPI document. */
import { ok } from "@oazapfts/runtime";
import * as api from "./generated/oazapfts";
import { baseUrl, printAnswers, prospect, token } from "./story";

api.defaults.baseUrl = baseUrl;
api.defaults.headers = { Authorization: `Bearer ${token}` };

await printAnswers(
  {
    me: () => ok(api.me()),
    statuses: () => ok(api.statusesList()),
    createTag: (value) => ok(api.tagsCreate({ value })),
    createProspect: (name) => ok(api.prospectsCreate(prospect(name))),
    setTags: (id, tagIds) => ok(api.prospectsTags(id, { tagIds })),
    list: (search) => ok(api.prospectsList({ search })),
    changeStatus: (id, currentStatusId) => ok(api.prospectsUpdate(id, { currentStatusId })),
    createNote: (id, body) => ok(api.notesCreate(id, { body })),
    detail: (id) => ok(api.prospectsGet(id)),
    createTerritory: (polygon) => ok(api.territoriesCreate({ polygon })),
    changes: () => ok(api.syncChanges({ limit: 500 })),
    remove: (id) => ok(api.prospectsDelete(id)),
  },
  "oazapfts",
);
