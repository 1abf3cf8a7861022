/**
 * Tests laws of conditional writes. The general law: no change is lost if another verb runs between any two table calls of a verb. At the
 * end, the table must have the rows that it has after the two verbs one after the other, in either order. If one verb was refused with a
 * conflict, the table must have the rows of the other verb alone.
 */
import { unmarshall } from "@aws-sdk/util-dynamodb";
import * as z from "zod/mini";
import { type AppContext, contextOn } from "#shared/context.ts";
import type { Item } from "#shared/db/expression.ts";
import type { Ids } from "#shared/db/ids.ts";
import { openTable, type Table } from "#shared/db/table.ts";
import { ApiError, ConditionFailed, TableBusy } from "#shared/errors.ts";
import { agendaOf } from "#shared/prospects/agenda.ts";
import type { Secrets } from "#shared/secrets/secrets.ts";
import { createTable, TABLE } from "../harness/faulty-dynamodb.ts";
import { calledBy } from "../harness/killable.ts";
import { plainClient } from "../harness/plain-dynamodb.ts";
import { startServerWithFile, storedRows } from "../harness/stored-rows.ts";
import { memoryBucket } from "../jobs/faulty-jobs.ts";

/** All rows of the table by their keys. Each row is a JSON text with sorted attributes. */
type Rows = ReadonlyMap<string, string>;

/** One process of the service. It has its own caches, ids and clock. */
export type Process = AppContext;
export type Verb<At> = (context: Process, at: At) => Promise<unknown>;

export interface Group<At> {
  /** Creates the records on which the verbs work. */
  readonly stage: (context: Process) => Promise<At>;
  readonly verbs: Readonly<Record<string, Verb<At>>>;
  /** For each verb, the competing verbs that run between its table calls: those that write the same rows. */
  readonly pairs: Readonly<Record<string, readonly string[]>>;
  /** For each verb, the error code with which it is refused after another verb. After a verb that is not listed, it must succeed. */
  readonly refusals?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /**
   * Verbs that delete the record to which new rows belong. If such a verb ends before the interrupted verb has written anything, only the
   * order with the deletion first is allowed. The interrupted verb must then create no row.
   */
  readonly first?: readonly string[];
  /** Verbs that change nothing, because `stage` has already made the same change. */
  readonly repeats?: readonly string[];
  /** Fills the caches of a process before its verb begins, so that they are outdated after the competing verb. */
  readonly warm?: Verb<At>;
  /** Names of fields that are not compared, because their values are random or of no importance. */
  readonly ignored?: readonly string[];
  /** Matches random parts of keys and values. They are replaced before the comparison. */
  readonly random?: RegExp;
  /** Types of rows that are not compared. */
  readonly ignoredTypes?: readonly string[];
}

/** The time at which `stage` creates the records. The verb and the competing verb run a minute later. */
export const START = Date.UTC(2026, 5, 1);

const refused = (error: unknown): string => {
  if (error instanceof ApiError) return error.code === "request_in_progress" ? "conflict" : error.code;
  if (error instanceof Error && /^(ConditionFailed|TableBusy|LeaseLost|Outdated)$/.test(error.name)) return "conflict";
  throw error;
};

/** Replaces the encryption by plain text, because each encryption of the same text has another result. */
const readableSecrets: Secrets = {
  seal: async (_, { sk }, text) => Buffer.from(`${sk} ${text}`),
  open: async (_, { sk }, sealed) =>
    Buffer.from(sealed)
      .toString()
      .slice(sk.length + 1),
};

function idsFrom(first: number): Ids {
  let next = first;
  const take = async (count = 1): Promise<number> => {
    next += count;
    return next - count;
  };
  return {
    next: () => take(),
    nextProspect: () => take(),
    nextAddress: () => take(),
    takeProspects: async (_, count) => {
      const from = await take(count);
      return Array.from({ length: count }, (__, i) => from + i);
    },
    takeForImport: (_, __, count) => take(count),
    take,
  };
}

/** Sorts the attributes of an item and the members of its sets, because DynamoDB returns them in any order. */
function sorted(value: unknown, name = ""): unknown {
  if (Array.isArray(value)) return /^(SS|NS|BS)$/.test(name) ? value.toSorted() : value.map((one) => sorted(one));
  if (typeof value !== "object" || value === null) return value;
  const parts = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(parts.map(([part, one]) => [part, sorted(one, part)]));
}

const Agenda = z.looseObject({
  type: z.object({ S: z.literal("agenda") }),
  prospectId: z.object({ N: z.string() }),
  bytes: z.object({ B: z.string() }),
});

/** Decodes the appointments of an agenda, so that their ids can be renumbered. */
function withEntries(item: unknown): unknown {
  const { data } = z.safeParse(Agenda, item);
  if (data === undefined) return item;
  const bytes = Buffer.from(data.bytes.B, "base64");
  return { ...data, bytes: agendaOf({ prospectId: Number(data.prospectId.N), bytes }).entries };
}

/** Replaces each id that the verbs have taken by its rank, because a verb that is repeated after a conflict takes more ids. */
function renumbered(rows: readonly (readonly [string, string])[]): Rows {
  const own = /(?<![1-9]\d*)[23]\d{6}(?!\d)/g;
  const ids = [...new Set(rows.flatMap((row) => row.join(" ").match(own) ?? []))].toSorted();
  const ranks = new Map(ids.map((id) => [id, `${id[0]}-${ids.filter((other) => other[0] === id[0]).indexOf(id)}`]));
  const ranked = (text: string): string => text.replaceAll(own, (id) => ranks.get(id) ?? id);
  const numbered = new Map<string, string>();
  for (const [key, content] of rows.toSorted(([, a], [, b]) => (a < b ? -1 : 1))) {
    // Keys that differ only in a random part are now equal. The loop makes them different again.
    let name = ranked(key);
    while (numbered.has(name)) name += "'";
    numbered.set(name, ranked(content));
  }
  return numbered;
}

function rowOf(item: string) {
  const bytes = (type: string, value: unknown) =>
    type === "B" && typeof value === "string" ? Buffer.from(value, "base64") : value;
  const row: Item = unmarshall(JSON.parse(item, bytes));
  return { ...row, pk: String(row.pk), sk: String(row.sk) };
}

/** When the competing verb runs: before each table call of the interrupted verb, or only before each of its writes. */
export type Gaps = "all" | "writes";
/**
 * A law: a function that checks a property of all verbs of a group, and throws at the first violation. `holds` checks pairs of verbs, one
 * of which runs during the other. `replacesNothing` checks each verb alone.
 */
export type Law = (on: Awaited<ReturnType<typeof startInterleaving>>, gaps: Gaps) => Promise<unknown>;
export const holds =
  <At>(group: Group<At>): Law =>
  (on, gaps) =>
    on.holds(group, gaps);
export const replacesNothing =
  <At>(group: Pick<Group<At>, "stage" | "verbs">): Law =>
  (on) =>
    on.replacesNothing(group);

const WRITES = /^(write|transact|insert|batch(Put|Remove))$/;

export async function startInterleaving() {
  const server = await startServerWithFile();
  await createTable(server.endpoint);
  const table = openTable(TABLE, plainClient(server.endpoint));

  const bucket = memoryBucket();

  /** Caches the sorted text of each item, because most rows are the same after each run. */
  const texts = new Map<string, string>();
  function sortedText(item: string): string {
    const text = texts.get(item) ?? JSON.stringify(sorted(JSON.parse(item)));
    texts.set(item, text);
    return text;
  }

  const rows = (): Rows =>
    new Map(storedRows(server.database, TABLE).map(({ pk, sk, item }) => [`${pk} ${sk}`, sortedText(item)]));

  /** Changes the table's rows from `now` back to `stage`. */
  async function restore(stage: Rows, now: Rows): Promise<void> {
    const changed = [...stage].filter(([key, item]) => now.get(key) !== item);
    const added = [...now].filter(([key]) => !stage.has(key));
    await table.batchPut(changed.map(([, item]) => rowOf(item)));
    await table.batchRemove(added.map(([, item]) => rowOf(item)));
  }

  const processOn = (on: Table, firstId: number, nowMs: number): Process => ({
    // Caches belong to a table object, so each process gets a table object of its own.
    ...contextOn({ ...on }, { now: () => nowMs }, readableSecrets),
    ids: idsFrom(firstId),
    wait: async () => undefined,
    objects: bucket,
    jobs: { send: async () => undefined, returnIn: async () => undefined },
    queue: { send: async () => undefined, returnIn: async () => undefined },
    post: async () => ({ status: 200, error: null, answer: "", retryAfter: undefined, latencyMs: 1 }),
    savePoisonRecord: () => Promise.reject(new Error("no poison record is expected")),
    timeScale: 1,
    senders: 10,
  });

  async function holds<At>(group: Group<At>, gaps: Gaps): Promise<void> {
    await restore(new Map(), rows());
    const at = await group.stage(processOn(table, 1_000_000, START));
    const stage = rows();
    const ignored = new Set(["writeId", ...(group.ignored ?? [])]);
    const ignoredTypes = new Set(group.ignoredTypes);

    /** Returns the rows that differ from those in `stage`, and restores the rows of `stage`. */
    async function stateAfter(): Promise<Rows> {
      const now = rows();
      await restore(stage, now);
      const plain = (content: string): string => (group.random ? content.replaceAll(group.random, "?") : content);
      const kept = (item: string): string =>
        plain(JSON.stringify(withEntries(JSON.parse(item, (name, value) => (ignored.has(name) ? undefined : value)))));
      const isIgnored = (item: string): boolean => ignoredTypes.has(JSON.parse(item).type?.S);
      const changed = [...now].filter(([key, item]) => stage.get(key) !== item && !isIgnored(item));
      const removed = [...stage.keys()].filter((key) => !now.has(key));
      return renumbered([
        ...changed.map(([key, item]) => [plain(key), kept(item)] as const),
        ...removed.map((key) => [key, "removed"] as const),
      ]);
    }
    const firstProcess = (on: Table) => processOn(on, 2_000_000, START + 60_000);
    const secondProcess = () => processOn(table, 3_000_000, START + 60_000);
    const answer = (work: Promise<unknown>): Promise<string> => work.then(() => "done", refused);

    async function inTurn(...calls: readonly (readonly [Process, Verb<At>])[]) {
      const answers: string[] = [];
      for (const [context, verb] of calls) answers.push(await answer(verb(context, at)));
      return { answers, rows: await stateAfter() };
    }

    /** Runs `verb`, and runs `other` just before table call number `gap` of `verb`. */
    async function interleaved(verb: Verb<At>, other: Verb<At>, gap: number) {
      const names: string[] = [];
      let isWarm = group.warm === undefined;
      let answered: string | undefined;
      const on = calledBy(async (work, call) => {
        if (isWarm && names.push(call) === gap) answered = await answer(other(secondProcess(), at));
        return work();
      }, table);
      const context = firstProcess(on);
      await group.warm?.(context, at);
      isWarm = true;
      const own = await answer(verb(context, at));
      return { own, answered, names, state: await stateAfter() };
    }

    const named = (name: string): Verb<At> => group.verbs[name] ?? (() => Promise.reject(new Error(`no verb ${name}`)));
    const alones = new Map<string, Promise<{ own: string; other: string | undefined; rows: Rows }>>();
    /**
     * Returns the expected result if the interrupted verb is refused with a conflict: the rows of the competing verb alone. This result is
     * the same for each interrupted verb, so it is computed once.
     */
    function otherAlone(name: string) {
      const run = async () => {
        const { answers, rows } = await inTurn([secondProcess(), named(name)]);
        return { own: "conflict", other: answers[0], rows };
      };
      const outcome = alones.get(name) ?? run();
      alones.set(name, outcome);
      return outcome;
    }
    for (const [name, others] of Object.entries(group.pairs)) {
      const verb = named(name);
      // The verb first runs without a competing verb, to get the names of its table calls. A verb whose caches are full makes other calls
      // than one whose caches are empty.
      const whole = await interleaved(verb, verb, Number.POSITIVE_INFINITY);
      const { names } = whole;
      const isWarm = group.warm !== undefined;
      const alone = isWarm ? await inTurn([firstProcess(table), verb]) : { answers: [whole.own], rows: whole.state };
      const isRepeat = group.repeats?.includes(name) ?? false;
      if (isRepeat !== (alone.rows.size === 0))
        throw new Error([`"${name}" must change ${isRepeat ? "nothing" : "rows"}`, ...alone.rows.keys()].join("\n"));
      for (const otherName of others) {
        const other = named(otherName);
        const otherFirst = lazily(async () => {
          const { answers, rows } = await inTurn([secondProcess(), other], [firstProcess(table), verb]);
          const expected = group.refusals?.[name]?.[otherName] ?? "done";
          if (answers.join() !== `done,${expected}`)
            throw new Error(`"${name}" after "${otherName}": expected done,${expected}, is ${answers}`);
          return { own: answers[1], other: answers[0], rows };
        });
        // The order with the competing verb first is always checked, because the loop below may do nothing for a verb with a single table
        // call.
        await otherFirst();
        const allowed = [
          otherFirst,
          () => otherAlone(otherName),
          lazily(async () => {
            const { answers, rows } = await inTurn([firstProcess(table), verb], [secondProcess(), other]);
            return { own: answers[0], other: answers[1], rows };
          }),
          async () => ({ own: alone.answers[0], other: "conflict", rows: alone.rows }),
        ];
        for (let gap = isWarm ? 1 : 2; gap <= names.length; gap++) {
          if (gaps === "writes" && !WRITES.test(names[gap - 1] ?? "")) continue;
          const { own, answered, state } = await interleaved(verb, other, gap);
          if (answered === undefined) break;
          const reasons: string[][] = [];
          const isBeforeWrites = !names.slice(0, gap - 1).some((call) => WRITES.test(call));
          // If the competing verb ended before the first table call of the interrupted verb, only the order with the competing verb first
          // is allowed, even if the caches of the interrupted verb are older.
          const isFirst = gap === 1 || (isBeforeWrites && group.first?.includes(otherName));
          for (const order of isFirst ? allowed.slice(0, gap === 1 ? 1 : 2) : allowed) {
            const expected = await order();
            if (expected.own !== own || expected.other !== answered) {
              reasons.push([`expected "${name}" ${expected.own}, "${otherName}" ${expected.other}`]);
              continue;
            }
            reasons.push(differenceOf(expected.rows, state));
            if (reasons.at(-1)?.length === 0) break;
          }
          if (reasons.at(-1)?.length === 0) continue;
          const place = `"${otherName}" before table call ${gap} of ${names.length} (${names[gap - 1]}) of "${name}"`;
          throw new Error([`${place}: "${name}" ${own}, "${otherName}" ${answered}`, ...reasons.flat()].join("\n"));
        }
      }
    }
  }

  /**
   * Calls each verb twice with the same new ids, which happens if the counter of ids was restored from a backup. The second call must be
   * refused or take other ids.
   */
  async function replacesNothing<At>(group: Pick<Group<At>, "stage" | "verbs">): Promise<void> {
    await restore(new Map(), rows());
    const at = await group.stage(processOn(table, 1_000_000, START));
    const stage = rows();
    for (const [name, verb] of Object.entries(group.verbs)) {
      const added: (number | "refused")[] = [];
      for (const secondId of [3_000_000, 2_000_000]) {
        await verb(processOn(table, 2_000_000, START + 60_000), at);
        const first = rows();
        const second = processOn(impatient(table), secondId, START + 61_000);
        const answer = await verb(second, at).then(() => "done", refused);
        const both = rows();
        await restore(stage, both);
        added.push(answer === "done" ? both.size - first.size : "refused");
      }
      const [withOthers, withSame] = added;
      if (withOthers === "refused" || withOthers === 0) throw new Error(`"${name}" creates no rows`);
      if (withSame !== "refused" && withSame !== withOthers)
        throw new Error(`"${name}" with the same ids has added ${withSame} rows instead of ${withOthers}`);
    }
  }

  return { holds, replacesNothing, stop: () => server.stop() };
}

function differenceOf(expected: Rows, actual: Rows): string[] {
  return [...new Set([...expected.keys(), ...actual.keys()])]
    .filter((key) => expected.get(key) !== actual.get(key))
    .flatMap((key) => [
      `row ${key}`,
      `  expected ${expected.get(key) ?? "none"}`,
      `  is       ${actual.get(key) ?? "none"}`,
    ]);
}

function lazily<T>(work: () => Promise<T>): () => Promise<T> {
  let begun: Promise<T> | undefined;
  return () => {
    begun ??= work();
    return begun;
  };
}

/** A verb that gets a used id at each attempt would repeat its write for seconds. So this table throws TableBusy at the third attempt. */
function impatient(table: Table): Table {
  let left = 3;
  return calledBy(
    (work) =>
      work().catch((error: unknown) => {
        throw error instanceof ConditionFailed && --left === 0 ? new TableBusy("as planned", { cause: error }) : error;
      }),
    table,
  );
}
