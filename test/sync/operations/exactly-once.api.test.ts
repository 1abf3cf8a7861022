/** Tests that each operation of POST /api/sync/operations has its effect once, although answers are lost and batches are sent again. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { at } from "../../harness/client.ts";
import { dataOf, present, uniqueName } from "../../harness/shapes.ts";
import { newTeam } from "../../harness/team.ts";
import { sized } from "../../harness/tier.ts";
import { prospectsOf } from "../../offline/lists.ts";
import { create, operation, push, pushAll } from "./push.ts";

const as = await newTeam();
const client = as.rep;
const [statusA, statusB] = dataOf(await as.admin.GET("/api/statuses")).map(({ id }) => id);

const SENT_AT_ONCE = 5;

/** Number of operations on one prospect. */
const OPERATIONS = 5;

const HOUR_MS = 3_600_000;

test("each operation has its effect once, although each batch is sent up to six times", {
  tags: "sized",
  timeout: HOUR_MS,
}, async () => {
  const size = sized({ short: { prospects: 10, batch: 17 }, wide: { prospects: 2_000, batch: 170 } });
  const name = uniqueName();
  const made = Array.from({ length: size.prospects }, (_, i) => {
    const clientRecordId = randomUUID();
    return [
      create({ name: `${name} ${i}` }, clientRecordId),
      operation("prospect.update", { clientRecordId, fields: { currentStatusId: statusA } }),
      operation("note.create", { clientRecordId, fields: { body: `${i} first` } }),
      operation("prospect.update", { clientRecordId, fields: { currentStatusId: statusB } }),
      operation("note.create", { clientRecordId, fields: { body: `${i} second` } }),
    ];
  });
  // The operations of several prospects are mixed, as a user makes them. The operations of one prospect keep their order.
  const operations = Array.from({ length: OPERATIONS }, (_, turn) => made.map((own) => present(own[turn])));
  const ordered = Array.from({ length: Math.ceil(size.prospects / 10) }, (_, group) =>
    operations.flatMap((turn) => turn.slice(group * 10, group * 10 + 10)),
  ).flat();
  for (let from = 0; from < ordered.length; from += size.batch) {
    const batch = ordered.slice(from, from + size.batch);
    const times = 1 + ((from / size.batch) % SENT_AT_ONCE);
    // The answers are ignored, as if they were lost.
    await Promise.all(Array.from({ length: times }, () => push(client, batch)));
    await pushAll(client, batch);
  }

  const found = await prospectsOf(client);
  expect(found.map((prospect) => prospect.name).sort()).toEqual(made.map((_, i) => `${name} ${i}`).sort());
  for (const { id, name: shown } of found) {
    const i = shown?.slice(name.length + 1);
    const { notes, statusHistory } = dataOf(await client.GET("/api/prospects/{id}", at(id)));
    expect(notes.map(({ body }) => body)).toEqual([`${i} second`, `${i} first`]);
    expect(statusHistory.map(({ status }) => status?.id)).toEqual([statusB, statusA]);
  }
});
