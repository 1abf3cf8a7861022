/** Tests that drafts stay in IndexedDB until they are sent, discarded or too old, and that each user has only their own. */
import "fake-indexeddb/auto";
import fc from "fast-check";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { type Drafts, KEPT_MS, MOST_DRAFTS, openDrafts } from "../../console/src/drafts/store.ts";

const ISSUER = "https://issuer.test";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const open = async (user: number, issuer = ISSUER): Promise<Drafts> => {
  const drafts = await openDrafts(issuer, user);
  onTestFinished(() => drafts.close());
  return drafts;
};
const draft = (record: string, field: string, text: string) => ({ record, field, text, title: record, path: "/" });
const textsOf = (drafts: Drafts) =>
  Object.fromEntries(drafts.all().map(({ record, field, text }) => [`${record} ${field}`, text]));

let lastUser = 0;
const newUser = (): number => {
  lastUser += 1;
  return lastUser;
};

test("what is saved, dropped and cleared is there after each reload, for its user and issuer alone", async () => {
  const owners = [
    [1, "one"],
    [2, "one"],
    [1, "two"],
  ] as const;
  const owner = fc.constantFrom(...owners);
  const record = fc.constantFrom("prospect:1", "prospect:12", "territory:new");
  const field = fc.constantFrom("note", "name", "constructor");
  const step = fc.oneof(
    fc.record({ kind: fc.constant("save" as const), owner, record, field, text: fc.string() }),
    fc.record({ kind: fc.constant("drop" as const), owner, record, field: fc.option(field, { nil: undefined }) }),
    fc.record({ kind: fc.constant("clear" as const), owner }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const base = newUser() * 10;
      const expected = new Map<string, string>();
      for (const one of steps) {
        const [user, issuer] = one.owner;
        const drafts = await openDrafts(issuer, base + user);
        const prefix = `${issuer} ${user} `;
        if (one.kind === "save") {
          drafts.save(draft(one.record, one.field, one.text), 1_000);
          expected.set(`${prefix}${one.record} ${one.field}`, one.text);
        } else if (one.kind === "drop") {
          drafts.drop(one.record, one.field && [one.field]);
          const start = `${prefix}${one.record} ${one.field ?? ""}`;
          for (const key of expected.keys()) {
            if (one.field === undefined ? key.startsWith(start) : key === start) expected.delete(key);
          }
        } else {
          drafts.clear();
          for (const key of expected.keys()) if (key.startsWith(prefix)) expected.delete(key);
        }
        await drafts.written();
        drafts.close();
      }
      const found = new Map<string, string>();
      for (const [user, issuer] of owners) {
        const drafts = await openDrafts(issuer, base + user);
        for (const { record, field, text } of drafts.all()) found.set(`${issuer} ${user} ${record} ${field}`, text);
        drafts.close();
      }
      expect(found).toEqual(expected);
    }),
  );
});

test("a draft is gone after 30 days, and another user who signs in loses none before", async () => {
  const [user, other] = [newUser() * 1_000, newUser() * 1_000];
  const drafts = await open(user);
  drafts.save(draft("prospect:1", "note", "old"), 10);
  await drafts.written();
  vi.setSystemTime(Date.now() + KEPT_MS - 1);
  drafts.save(draft("prospect:2", "note", "new"), 10);
  await drafts.written();
  expect(textsOf(await open(other))).toEqual({});
  expect(textsOf(await open(user))).toEqual({ "prospect:1 note": "old", "prospect:2 note": "new" });
  vi.setSystemTime(Date.now() + 1);
  await open(other);
  expect(textsOf(await open(user))).toEqual({ "prospect:2 note": "new" });
});

test("a text above the limit of its field stays in memory with a fault, and its stored beginning remains", async () => {
  const user = newUser() * 1_000;
  const drafts = await open(user);
  drafts.save(draft("prospect:1", "note", "😀😀"), 2);
  expect(drafts.all().map(({ fault }) => fault)).toEqual([undefined]);
  drafts.save(draft("prospect:1", "note", "😀😀😀"), 2);
  expect(textsOf(drafts)).toEqual({ "prospect:1 note": "😀😀😀" });
  expect(drafts.all()[0]?.fault).toContain("more than 2 characters");
  await drafts.written();
  expect(textsOf(await open(user))).toEqual({ "prospect:1 note": "😀😀" });
});

test("a user has a bounded number of drafts, and those that exist can still be changed", async () => {
  const user = newUser() * 1_000;
  const drafts = await open(user);
  for (let id = 0; id <= MOST_DRAFTS; id++) drafts.save(draft(`prospect:${id}`, "note", "a"), 10);
  expect(
    drafts
      .all()
      .filter(({ fault }) => fault !== undefined)
      .map(({ record }) => record),
  ).toEqual([`prospect:${MOST_DRAFTS}`]);
  drafts.save(draft("prospect:0", "note", "b"), 10);
  await drafts.written();
  const stored = textsOf(await open(user));
  expect(Object.keys(stored)).toHaveLength(MOST_DRAFTS);
  expect(stored["prospect:0 note"]).toBe("b");
  drafts.drop("prospect:1");
  drafts.save(draft(`prospect:${MOST_DRAFTS}`, "note", "c"), 10);
  await drafts.written();
  expect(textsOf(await open(user))[`prospect:${MOST_DRAFTS} note`]).toBe("c");
});

test("a change in one tab reaches another tab of the same user", async () => {
  const user = newUser() * 1_000;
  const [one, two, other] = [await open(user), await open(user), await open(user + 1)];
  const next = () => new Promise<void>((resolve) => two.subscribe(resolve));
  const saved = next();
  one.save(draft("prospect:1", "note", "a"), 10);
  await saved;
  expect(textsOf(two)).toEqual({ "prospect:1 note": "a" });
  const dropped = next();
  one.drop("prospect:1");
  await dropped;
  expect([textsOf(two), textsOf(other)]).toEqual([{}, {}]);
});

test("without IndexedDB, a draft is in memory, and its fault says so", async () => {
  vi.stubGlobal("indexedDB", undefined);
  onTestFinished(() => void vi.unstubAllGlobals());
  const drafts = await open(1);
  drafts.save(draft("prospect:1", "note", "a"), 10);
  await drafts.written();
  expect(drafts.all()).toMatchObject([{ text: "a", fault: expect.stringContaining("cannot store") }]);
});
