/** Tests which past assignments the row of a prospect keeps, and how many bytes they need. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Caller } from "#shared/auth/caller.ts";
import * as limits from "#shared/limits.ts";
import { reassignedAt, wasAssigned } from "#shared/prospects/assignments.ts";

const BEGIN_MS = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

interface Assignment {
  readonly user: number | null;
  readonly ms: number;
}

type Fields = Parameters<typeof reassignedAt>[0];
const created: Fields = { assignedToUserId: null, createdAt: new Date(BEGIN_MS).toISOString() };

/** Assigns a prospect to each user in turn. Returns its fields, the interval of each assignment, and the time of the last change. */
function assigned(steps: readonly Assignment[]) {
  let prospect: Fields = { ...created, assignedToUserId: steps[0]?.user ?? null };
  const intervals: { user: number | null; from: number; until: number }[] = [];
  let nowMs = BEGIN_MS;
  for (const [i, { user, ms }] of steps.entries()) {
    intervals.push({ user, from: nowMs, until: nowMs + ms });
    nowMs += ms;
    prospect = { ...prospect, ...reassignedAt(prospect, nowMs), assignedToUserId: steps[i + 1]?.user ?? null };
  }
  return { prospect, intervals, nowMs };
}

const callerOf = (userId: number): Caller => ({ companyId: 1, userId, role: "sales", permissions: [] });
const isKnown = (prospect: Fields, user: number, ms: number): boolean =>
  wasAssigned(callerOf(user), prospect, new Date(ms).toISOString());
/** Removes each step that assigns the prospect to the user who already has it. Such a step does not end the earlier assignment. */
const changing = (steps: readonly Assignment[]): Assignment[] =>
  steps.filter(({ user }, i) => i === 0 || user !== steps[i - 1]?.user);
const assignment = (maxMs: number) =>
  fc.record({ user: fc.option(fc.integer({ min: 1, max: 4 })), ms: fc.integer({ min: 1, max: maxMs }) });
const daily = (days: number): Assignment[] =>
  Array.from({ length: days }, (_, day) => ({ user: 1_000_000 + day, ms: DAY_MS }));
const bytesOf = ({ pastAssignments }: Fields): number => JSON.stringify({ pastAssignments }).length;

test("the row of a prospect knows who had the prospect at each time of the last 60 days", () => {
  const sequences = fc.array(assignment(5 * DAY_MS), { minLength: 1, maxLength: limits.pastAssignments, size: "max" });
  fc.assert(
    fc.property(sequences, fc.integer({ min: 1, max: 4 }), fc.nat(), (steps, user, at) => {
      const { prospect, intervals, nowMs } = assigned(changing(steps));
      const oldest = Math.max(BEGIN_MS, nowMs - limits.factAgeMs);
      const times = [oldest + (at % (nowMs - oldest + 1)), ...intervals.flatMap(({ from, until }) => [from, until])];
      for (const ms of times.filter((time) => time >= oldest)) {
        const had = intervals.some((one) => one.user === user && one.from <= ms && ms <= one.until);
        expect(isKnown(prospect, user, ms)).toBe(had);
      }
    }),
  );
});

test("the row of a prospect needs at most 22 bytes for each of 60 assignments", () => {
  expect(bytesOf(assigned(daily(60)).prospect)).toBeLessThan(60 * 22);
});

test("the row of a prospect loses the shortest assignments after too many, and no user gets the time of another one", () => {
  const sequences = fc.array(assignment(HOUR_MS / 10), { minLength: 150, maxLength: 300, size: "max" });
  fc.assert(
    fc.property(sequences, fc.integer({ min: 1, max: 4 }), (steps, user) => {
      const { prospect, intervals } = assigned(changing([{ user: 5, ms: DAY_MS }, ...steps]));
      expect(bytesOf(prospect)).toBeLessThan(3_072);
      expect(isKnown(prospect, 5, BEGIN_MS + HOUR_MS)).toBe(true);
      for (const { from, until } of intervals) {
        const middle = Math.floor((from + until) / 2);
        const owners = intervals.filter((one) => one.from <= middle && middle <= one.until).map((one) => one.user);
        if (isKnown(prospect, user, middle)) expect(owners).toContain(user);
      }
    }),
    { numRuns: 20 },
  );
});

test("a function whose clock is slow ends an assignment no earlier than it began", () => {
  const before = { ...created, assignedToUserId: 1 };
  const { assignedAt, pastAssignments } = reassignedAt(before, BEGIN_MS - 5_000);
  expect(assignedAt).toBe(created.createdAt);
  expect(pastAssignments).toEqual([BEGIN_MS, 1, 0]);
});
