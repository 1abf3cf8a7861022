"""Sends the requests of story.ts through the client that openapi-generator makes for Python from the OpenAPI 3.0 document."""

import json
import os

import openapi_client as generated

NAME = "python"
configuration = generated.Configuration(host=os.environ["BASE_URL"])
configuration.access_token = os.environ["TOKEN"]
client = generated.ApiClient(configuration)
prospects = generated.ProspectsApi(client)

me = generated.UsersApi(client).me()
interested = next(one for one in generated.StatusesApi(client).statuses_list() if one.value == "Interested")
tag = generated.TagsApi(client).tags_create({"value": f"Tag {NAME}"})
address = {"address1": "1437 Bannock St", "city": "Denver", "state": "CO", "zip": "80202"}
created = prospects.prospects_create(
    new_prospect=generated.NewProspect(name=NAME, lat=39.7392, lng=-104.9903, address=address)
)
tagged = prospects.prospects_tags(created.id, generated.TagChoice(tag_ids=[tag.id]))
page = prospects.prospects_list(search=NAME)
changed = prospects.prospects_update(
    created.id, prospect_patch=generated.ProspectPatch(current_status_id=interested.id)
)
generated.NotesApi(client).notes_create(created.id, generated.NewNote(body="Wants a quote."))
detail = prospects.prospects_get(created.id)
items = generated.SyncApi(client).sync_changes(limit=500).items
texts = [item.data.get(field) for item in items if item.data for field in ("name", "body", "email")]
ring = [[-104.987, 39.74], [-104.973, 39.74], [-104.973, 39.727]]
territory = generated.TerritoriesApi(client).territories_create(
    new_territory=generated.NewTerritory(polygon=ring)
)
removed = prospects.prospects_delete(created.id)
print(
    json.dumps(
        {
            "email": me.user.email,
            "lat": created.lat,
            "city": created.address.city,
            "isTagged": tagged.tags[0].tag.id == tag.id,
            "isListed": page.items[0].id == created.id and page.total == 1,
            "status": changed.current_status.value,
            "notes": [note.body for note in detail.notes],
            "assignedTo": detail.assigned_to,
            "isInFeed": all(text in texts for text in (NAME, "Wants a quote.", me.user.email)),
            "isSamePolygon": territory.polygon == ring,
            "isRemoved": removed.id == created.id,
        }
    )
)
