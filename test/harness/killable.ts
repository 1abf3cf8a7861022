/** Simulates a process that is killed at one of its calls to the table, to a queue or to a webhook receiver. Later calls have no effect. */
import { contextOn, type EventContext } from "#shared/context.ts";
import type { Table } from "#shared/db/table.ts";

export class Killed extends Error {}

/** Ignores the error of a planned kill, and throws any other error. */
export function unlessKilled(error: unknown): undefined {
  if (!(error instanceof Killed)) throw error;
}

/** Repeats the work until no kill interrupts it, as Lambda repeats a stream record and a client repeats a request. */
export async function untilDone<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      unlessKilled(error);
    }
  }
}

/** Returns a context in which, after one call has thrown `Killed`, every further call throws `Killed` too, as if the process had ended. */
export function killable(context: EventContext): EventContext {
  let isDead = false;
  async function call<T>(work: () => Promise<T>): Promise<T> {
    if (isDead) throw new Killed();
    try {
      return await work();
    } catch (error) {
      if (error instanceof Killed) isDead = true;
      throw error;
    }
  }
  return {
    ...context,
    table: calledBy(call, context.table),
    queue: { ...context.queue, send: (entries) => call(() => context.queue.send(entries)) },
    post: (post) => call(() => context.post(post)),
  };
}

/** Returns a table that passes each operation to `call`, with the name of the operation. `call` decides whether to execute it. */
export function calledBy(call: <T>(work: () => Promise<T>, name: string) => Promise<T>, table: Table): Table {
  return {
    get: (key) => call(() => table.get(key), "get"),
    batchGet: (keys, how) => call(() => table.batchGet(keys, how), "batchGet"),
    batchPut: (items) => call(() => table.batchPut(items), "batchPut"),
    insert: (items) => call(() => table.insert(items), "insert"),
    batchRemove: (keys) => call(() => table.batchRemove(keys), "batchRemove"),
    write: (entry) => call(() => table.write(entry), "write"),
    transact: (writes) => call(() => table.transact(writes), "transact"),
    query: async function* (spec) {
      yield* await call(() => Array.fromAsync(table.query(spec)), "query");
    },
  };
}

/** Returns a table that runs `before` once, just before the first call of the operation `name`. */
export function interrupted(table: Table, name: keyof Table, before: () => Promise<unknown>): Table {
  let isFirst = true;
  return calledBy(async (work, call) => {
    if (isFirst && call === name) {
      isFirst = false;
      await before();
    }
    return work();
  }, table);
}

/** Returns a table whose call number `at` throws `Killed`, before or after it has taken effect, and the names of the calls so far. */
export function tableKilledAt(at: number, takesEffect: boolean, table: Table) {
  const calls: string[] = [];
  const called = calledBy(async (work, name) => {
    calls.push(name);
    if (calls.length > at || (calls.length === at && !takesEffect)) throw new Killed();
    const result = await work();
    if (calls.length >= at) throw new Killed();
    return result;
  }, table);
  return { table: called, calls };
}

/** Like `tableKilledAt`, but returns a context, and a function for the number of calls so far. */
export function contextKilledAt(at: number, takesEffect: boolean, table: Table) {
  const { table: called, calls } = tableKilledAt(at, takesEffect, table);
  return { context: contextOn(called), calls: () => calls.length };
}
