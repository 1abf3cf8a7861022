/** Tests that lists show the next appointment of a prospect, after any writes and as time passes. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { ApiContext } from "#shared/context.ts";
import * as keys from "#shared/db/keys.ts";
import { ListQuery, listProspects } from "#shared/prospects/list/list.ts";
import { storedProspect } from "#shared/prospects/stored.ts";
import { faultyDynamoDb } from "../harness/fault-test.ts";
import { sized } from "../harness/tier.ts";
import { createAppointment, createProspect, deleteAppointment, updateAppointment } from "../harness/verbs.ts";
import { newCompany, warmFunction } from "../harness/warm-function.ts";

const db = faultyDynamoDb();

const now = { ms: Date.parse("2030-01-01T00:00:00.000Z") };
const newFunction = (): ApiContext => warmFunction(db, { now: () => now.ms });
const hour = (n: number): string => new Date(now.ms + n * 3_600_000).toISOString();

test("the next appointment is shown as time passes, even if the row has no copy of it", async () => {
  const company = await newCompany(newFunction());
  const context = newFunction();
  const { id } = await createProspect(context, company.caller, { name: "n" });
  const shown = async () =>
    (await listProspects(context, company.caller, ListQuery.parse({}))).items[0]?.appointments.map(
      ({ title }) => title,
    );
  const make = (title: string, n: number, notes = "") =>
    createAppointment(context, company.caller, id, { title, startAt: hour(n), notes });
  /** Returns two numbers: the upcoming appointments that have a copy in the prospect's row, and those that have none. */
  const copied = async () => {
    const row = storedProspect(await context.table.get(keys.prospect(company.caller.companyId, id)));
    return [row.upcoming.length, row.later.length];
  };

  await make("five", 5);
  const two = await make("two", 2);
  await make("nine", 9);
  await make("seven", 7);
  expect(await shown()).toEqual(["two"]);
  expect(await copied()).toEqual([3, 1]);

  await deleteAppointment(context, company.caller, two.id);
  expect(await shown()).toEqual(["five"]);
  expect(await copied()).toEqual([2, 1]);

  const long = await make("long", 1, "é".repeat(1_500));
  expect(await copied()).toEqual([0, 4]);
  expect(await shown()).toEqual(["long"]);
  await updateAppointment(context, company.caller, long.id, { status: "completed" });
  expect(await copied()).toEqual([3, 0]);

  await make("four", 4);
  now.ms += 8 * 3_600_000;
  // The prospect's row contains copies of its next three appointments only, and these three are in the past now. The service must find the
  // fourth one elsewhere.
  expect(await shown()).toEqual(["nine"]);
  now.ms += 2 * 3_600_000;
  expect(await shown()).toEqual([]);
});

test("a new appointment is not shown as the next one if an earlier one exists of which the prospect's row has no copy", async () => {
  const company = await newCompany(newFunction());
  const context = newFunction();
  const { id } = await createProspect(context, company.caller, {});
  const made = [];
  for (const n of [1, 2, 3, 4]) {
    made.push(await createAppointment(context, company.caller, id, { title: `${n}`, startAt: hour(n) }));
  }
  await deleteAppointment(context, company.caller, made[0]?.id ?? 0);
  await createAppointment(context, company.caller, id, { title: "9", startAt: hour(9) });
  now.ms += 3.5 * 3_600_000;
  const { items } = await listProspects(context, company.caller, ListQuery.parse({}));
  expect(items[0]?.appointments.map(({ title }) => title)).toEqual(["4"]);
});

const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant("make" as const), inHours: fc.integer({ min: -2, max: 12 }), isLong: fc.boolean() }),
    fc.record({ do: fc.constant("move" as const), which: fc.nat(5), inHours: fc.integer({ min: -2, max: 12 }) }),
    fc.record({ do: fc.constant("complete" as const), which: fc.nat(5) }),
    fc.record({ do: fc.constant("delete" as const), which: fc.nat(5) }),
    fc.record({ do: fc.constant("wait" as const), hours: fc.integer({ min: 1, max: 4 }) }),
  ),
  { minLength: 3, maxLength: 14 },
);

test("a list shows the next appointment after any writes of appointments", { tags: "sized" }, async () => {
  const company = await newCompany(newFunction());
  const context = newFunction();
  await fc.assert(
    fc.asyncProperty(steps, async (todo) => {
      const { id, name } = await createProspect(context, company.caller, { name: `n${Math.random()}` });
      const known = new Map<number, { startAt: number; isScheduled: boolean }>();
      const at = (hours: number): number => now.ms + hours * 3_600_000;
      const nth = (which: number): number | undefined => [...known.keys()][which % Math.max(1, known.size)];
      for (const step of todo) {
        const which = "which" in step ? nth(step.which) : undefined;
        const standing = which === undefined ? undefined : known.get(which);
        if (step.do === "wait") now.ms += step.hours * 3_600_000;
        else if (step.do === "make") {
          const notes = step.isLong ? "x".repeat(1_900) : null;
          const input = { title: "t", startAt: new Date(at(step.inHours)).toISOString(), notes };
          const made = await createAppointment(context, company.caller, id, input);
          known.set(made.id, { startAt: at(step.inHours), isScheduled: true });
        } else if (which === undefined || standing === undefined) continue;
        else if (step.do === "move") {
          standing.startAt = at(step.inHours);
          const startAt = new Date(standing.startAt).toISOString();
          await updateAppointment(context, company.caller, which, { startAt });
        } else if (step.do === "complete") {
          standing.isScheduled = false;
          await updateAppointment(context, company.caller, which, { status: "completed" });
        } else {
          known.delete(which);
          await deleteAppointment(context, company.caller, which);
        }
        const coming = [...known].filter(([, { startAt, isScheduled }]) => isScheduled && startAt >= now.ms);
        const [soonest] = coming.sort(([a, one], [b, other]) => one.startAt - other.startAt || a - b);
        const { items } = await listProspects(context, company.caller, ListQuery.parse({ search: name }));
        expect(items.map(({ appointments }) => appointments.map((entry) => entry.id))).toEqual([
          soonest === undefined ? [] : [soonest[0]],
        ]);
      }
    }),
    { numRuns: sized({ short: 8, wide: 40 }) },
  );
});
