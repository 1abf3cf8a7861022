/** A phone in tests: its network loses requests and answers, and its app can be killed at any call. */
import * as z from "zod/mini";
import { apiClient } from "../../docs/client/client.ts";
import { offlineClient } from "../../docs/client/offline.ts";
import { type Commit, memoryStore, type Store } from "../../docs/client/store.ts";

/**
 * What happens to one request. `lost request` does not reach the service. The answer of `lost answer` is lost, and that of `cut answer`
 * ends in the middle. `twice` reaches the service two times at once. A number is the status of an answer of the gateway.
 */
export type Fault = "none" | "lost request" | "lost answer" | "cut answer" | "twice" | 401 | 429 | 500 | 503;
export const FAULTS = ["lost request", "lost answer", "cut answer", "twice", 401, 429, 500, 503] as const;

class Killed extends Error {}

/** Maximum number of calls of one sync. More calls mean an endless loop. A limit of time would depend on the speed of the machine. */
const ENDLESS = 5_000;

export interface PhoneOptions {
  readonly baseUrl: string;
  readonly accessToken: () => string | Promise<string>;
  readonly fetch?: (request: Request) => Promise<Response>;
  readonly now?: () => number;
  readonly store?: Store;
  readonly pageLimit?: number;
  readonly maxAttempts?: number;
  readonly release?: string;
}

export class Phone {
  /** The app's store, which remains when the app is killed. */
  readonly store: Store;
  /** The times that the client has waited before it repeated a request, in milliseconds. */
  readonly waits: number[] = [];
  /** What the app has done, as lines of a Mermaid sequence diagram. */
  readonly trace: string[] = [];
  /** The faults of the next requests. After the last one, the network works. */
  faults: Fault[] = [];
  readonly #options: PhoneOptions;
  #callsLeft = Number.POSITIVE_INFINITY;
  /** Number of calls to the store and to the network since the start of the app. */
  #callsSince = 0;

  constructor(options: PhoneOptions) {
    this.#options = options;
    this.store = options.store ?? memoryStore();
  }

  /** Starts the app. Unlike a real app, it does not wait before it repeats a request: it only adds the time to `waits`. */
  open() {
    this.#callsLeft = Number.POSITIVE_INFINITY;
    this.#callsSince = 0;
    const call = <T>(work: () => Promise<T>): Promise<T> => this.#call(work);
    const { store } = this;
    const { baseUrl, accessToken, fetch = globalThis.fetch, ...options } = this.#options;
    return offlineClient({
      maxAttempts: 4,
      ...options,
      api: apiClient({ baseUrl, accessToken, fetch: (request) => call(() => this.#send(request, fetch)) }),
      store: {
        state: () => call(() => store.state()),
        commit: (commit) =>
          call(() => {
            this.trace.push(`app->>store: ${partsOf(commit)}`);
            return store.commit(commit);
          }),
        record: (type, id) => call(() => store.record(type, id)),
        records: (type) => call(() => store.records(type)),
        outbox: () => call(() => store.outbox()),
      },
      wait: (ms) => call(async () => void this.waits.push(ms)),
    });
  }

  /** Runs `sync` in one or more tabs of an app that is killed after this many calls to its store and its network. */
  async syncUntil(calls: number, tabs = 1): Promise<"killed" | "ended"> {
    const clients = Array.from({ length: tabs }, () => this.open());
    this.#callsLeft = calls;
    const ends = await Promise.allSettled(clients.map((client) => client.sync()));
    this.#callsLeft = 0;
    for (const end of ends) if (end.status === "rejected" && !(end.reason instanceof Killed)) throw end.reason;
    return ends.some(({ status }) => status === "rejected") ? "killed" : "ended";
  }

  /** Syncs until nothing is left to send. Discards the operations that have failed, as a user does, and returns their ids. */
  async settle(): Promise<Set<string>> {
    const client = this.open();
    const discarded = new Set<string>();
    for (;;) {
      const outcome = await client.sync();
      if (outcome !== "synced") throw new Error(`the network works, but the sync ended with ${outcome}`);
      const failed = await client.failed();
      if (failed.length === 0) return discarded;
      const before = await this.store.outbox();
      for (const entry of failed) await client.discard(entry);
      const left = new Set((await this.store.outbox()).map(({ opId }) => opId));
      for (const { opId } of before) if (!left.has(opId)) discarded.add(opId);
    }
  }

  async #call<T>(work: () => Promise<T>): Promise<T> {
    if (++this.#callsSince > ENDLESS) throw new Error(`the app does not end: ${this.trace.slice(-20).join("\n")}`);
    if (--this.#callsLeft <= 0) throw new Killed();
    const result = await work();
    if (--this.#callsLeft <= 0) throw new Killed();
    return result;
  }

  async #send(request: Request, fetch: (request: Request) => Promise<Response>): Promise<Response> {
    const fault = this.faults.shift() ?? "none";
    const sent = `${request.method} ${new URL(request.url).pathname}`;
    this.trace.push(fault === "lost request" ? `app-xservice: ${sent}` : `app->>service: ${sent}`);
    if (fault === "lost request") throw new TypeError("no connection");
    if (typeof fault === "number") {
      this.trace.push(`service-->>app: ${fault}`);
      const problem = { title: "fault", status: fault, detail: "fault", code: "internal", requestId: "r", errors: [] };
      return Response.json({ type: "urn:problem:internal", ...problem }, { status: fault });
    }
    if (fault === "twice") {
      const [first, second] = await Promise.all([fetch(request.clone()), fetch(request)]);
      await second.arrayBuffer();
      return first;
    }
    const answer = await fetch(request);
    const text = new TextDecoder().decode(await answer.clone().arrayBuffer());
    this.trace.push(`service-${fault === "none" ? "->>" : "-x"}app: ${answer.status}${contentOf(text)}`);
    if (fault === "none") return answer;
    const bytes = await answer.arrayBuffer();
    if (fault === "lost answer") throw new TypeError("the connection was lost");
    return new Response(cutStream(new Uint8Array(bytes)), answer);
  }
}

const Answer = z.object({
  results: z._default(z.array(z.object({ outcome: z.string() })), []),
  reason: z.optional(z.string()),
  hasMore: z.optional(z.boolean()),
});

/** Returns the words with which the sequence diagrams of docs/offline.md describe an answer. */
function contentOf(text: string): string {
  const { results, reason, hasMore } = z.parse(Answer, JSON.parse(text));
  const page = hasMore === undefined ? [] : [hasMore ? "more" : "last page"];
  const words = [...new Set(results.map(({ outcome }) => outcome)), ...page, ...(reason === undefined ? [] : [reason])];
  return words.length === 0 ? "" : ` ${words.join(", ")}`;
}

function partsOf({ state, put, save, drop = [] }: Commit): string {
  if (save !== undefined) return "saves the outbox";
  if (state === undefined) return "removes operations from the outbox";
  if (put === undefined) return "forgets the cursor";
  return `saves the page and the cursor${drop.length === 0 ? "" : ", removes applied operations"}`;
}

function cutStream(bytes: Uint8Array): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(bytes.slice(0, bytes.length / 2));
      controller.error(new TypeError("the connection was lost"));
    },
  });
}
