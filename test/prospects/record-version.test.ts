/** Tests that a prospect's version grows, without a write of its row, when a name that it shows changes or an appointment begins. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { StoredUser } from "#shared/auth/user-schema.ts";
import * as limits from "#shared/limits.ts";
import { lowsOf, prospectLow, rowVersionOf, shownVersion } from "#shared/prospects/record-version.ts";
import { nextVersion } from "#shared/reference/dictionary.ts";
import type { StoredStatus, StoredTag } from "#shared/reference/schema.ts";

const common = { id: 1, version: 1, createdAt: "2026-01-01T00:00:00.000Z", updatedAt: "2026-01-01T00:00:00.000Z" };
const valued = { ...common, value: "", color: "#000000" };
const status: StoredStatus = { ...valued, type: "status", sortOrder: 1, isActive: true };
const tag: StoredTag = { ...valued, type: "tag" };
const rights = { role: "sales", permissions: [], isActive: true } as const;
const named = { firstName: "", lastName: "B", email: "a@x.test", sub: "s", companyId: 1 };
const user: StoredUser = { ...common, ...rights, ...named, permissions: [], type: "user" };
const ids = [1, 2, 3];
const namesOf = () => ({
  version: 0,
  statuses: new Map([[1, status]]),
  tags: new Map(ids.map((id) => [id, { ...tag, id }])),
  users: new Map(ids.map((id) => [id, { ...user, id }])),
});

const step = fc.record({
  kind: fc.constantFrom("status", "tag", "dropTag", "user", "wait"),
  id: fc.constantFrom(...ids),
  times: fc.integer({ min: 1, max: 9 }),
});
const userId = fc.integer({ min: 0, max: 3 });
const appointments = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 40 }), userId, userId), { maxLength: 6 })
  .map((all) => all.sort(([a], [b]) => a - b));

test("a prospect's version never decreases, grows when what it shows changes, and contains the version of its row", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), appointments, (steps, ahead) => {
      const { version, statuses, tags, users } = namesOf();
      const shown = { statusId: 1, assignedToUserId: 1, tagIds: [1, 2], ahead };
      let nowMs = 0;
      const look = () => {
        const next = ahead.findIndex(([startMs]) => startMs >= nowMs);
        const [, createdBy = 0, assignedTo = 0] = ahead[next] ?? [];
        const names = [1, createdBy, assignedTo].map((id) => users.get(id)?.firstName);
        const values = [statuses.get(1), tags.get(1), tags.get(2)].map((one) => one?.value);
        const low = prospectLow(shown, lowsOf({ version, statuses, tags, users }, nowMs));
        return { text: JSON.stringify([next, names, values]), version: shownVersion(7, low) };
      };
      let before = look();
      for (const [i, { kind, id, times }] of steps.entries()) {
        const value = String(i);
        for (let done = 0; done < times; done++) {
          const [one, other, person] = [statuses.get(id), tags.get(id), users.get(id)];
          const next = { value: `${value} ${done}` };
          if (kind === "status" && one !== undefined) statuses.set(id, nextVersion(one, { ...one, ...next }));
          if (kind === "tag" && other !== undefined) tags.set(id, nextVersion(other, { ...other, ...next }));
          if (kind === "user" && person !== undefined)
            users.set(id, nextVersion(person, { ...person, firstName: next.value }));
        }
        if (kind === "dropTag") tags.delete(id);
        if (kind === "wait") nowMs += times;
        const after = look();
        expect(after.version).toBeGreaterThanOrEqual(before.version + (after.text === before.text ? 0 : 1));
        expect(rowVersionOf(after.version)).toBe(7);
        before = after;
      }
    }),
  );
});

test("the version grows with each deletion of a tag, although the tag was renamed often", () => {
  const tagIds = Array.from({ length: limits.tagsPerProspect }, (_, i) => i + 1);
  const renamed = new Map(tagIds.map((id) => [id, { ...tag, id, renames: 10 ** 6 }]));
  const versions = [0, ...tagIds].map((id) => {
    renamed.delete(id);
    const shown = { statusId: null, assignedToUserId: null, tagIds, ahead: [] };
    return shownVersion(7, prospectLow(shown, lowsOf({ ...namesOf(), tags: renamed }, 0)));
  });
  expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b));
  expect(versions.map(rowVersionOf)).toEqual(versions.map(() => 7));
});
