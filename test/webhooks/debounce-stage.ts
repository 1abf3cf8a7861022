/** What the tests of debounce windows share: changes of a prospect, and checks of the deliveries that the receiver got. */
import { expect } from "vitest";
import * as z from "zod/mini";
import { prospectItem } from "#shared/prospects/stored.ts";
import type { RowChange } from "#shared/webhooks/events/row-events.ts";
import { untilDone } from "../harness/killable.ts";
import { createdProspect, START } from "./fixtures.ts";
import { type Pipeline, publishIn } from "./pipeline.ts";
import { expectReconciled } from "./stored-deliveries.ts";

export const MINUTE = 60_000;
export const DELAY = 10;

/** Returns the change of a prospect to this version, `minutes` minutes after the start of the test. */
export function change({ companyId }: Pipeline, version: number, minutes: number, id = 1, filler?: string): RowChange {
  const row = (v: number) => ({
    ...createdProspect(companyId, id),
    name: `name ${v}`,
    customFieldData: filler === undefined ? null : JSON.stringify({ filler, v }),
    updatedAt: new Date(START + minutes * MINUTE).toISOString(),
    version: v,
  });
  return { before: prospectItem(row(version - 1)), after: prospectItem(row(version)) };
}

export async function publish(at: Pipeline, ...rows: RowChange[]): Promise<void> {
  for (const row of rows) await untilDone(() => publishIn(at.context, row));
}

const Data = z.object({ prospect: z.object({ id: z.int(), name: z.string() }) });
export const Body = z.object({
  createdAt: z.string(),
  eventCount: z.int(),
  data: Data,
  events: z.array(z.object({ data: Data })),
});

/** Returns the body of each delivery. Fails the test if two posts of the same delivery have different bodies. */
export function bodies(at: Pipeline): z.infer<typeof Body>[] {
  const byId = new Map<string, string>();
  for (const { headers, body } of at.posts) {
    const id = headers["X-Service-Delivery"] ?? "";
    expect(byId.get(id) ?? body, `the bodies of ${id}`).toBe(body);
    byId.set(id, body);
  }
  return [...byId.values()].map((body) => z.parse(Body, JSON.parse(body)));
}

export const namesIn = ({ events }: z.infer<typeof Body>): string[] => events.map(({ data }) => data.prospect.name);
export const names = (...versions: number[]): string[] => versions.map((version) => `name ${version}`);

/** Expects that each of these versions of the prospect is in exactly one body, and that reconciliation finds no fault. */
export async function expectEachOnce(at: Pipeline, versions: readonly number[], label?: string): Promise<void> {
  const found = bodies(at).flatMap(namesIn).toSorted();
  expect(found, label).toEqual(names(...versions).toSorted());
  for (const { eventCount, events, data } of bodies(at)) {
    expect(eventCount, label).toBe(events.length);
    expect(data, label).toEqual(events.at(-1)?.data);
  }
  const { matched, delivered } = await expectReconciled(at, label);
  expect({ matched, delivered }, label).toEqual({ matched: bodies(at).length, delivered: bodies(at).length });
}
