/**
 * Simulates parallel senders with a fair queue and slow receivers. The simulated clock advances only while all of them wait, so that hours
 * pass in seconds.
 */
import { setImmediate as turn } from "node:timers/promises";
import { messageGroup, type Queued } from "#shared/aws/sqs.ts";
import { iso } from "#shared/clock.ts";
import { type ApiContext, contextOn, type EventContext } from "#shared/context.ts";
import type { Exchange, Post } from "#shared/outbound/post.ts";
import { prospectItem } from "#shared/prospects/stored.ts";
import { type Secrets, secretsOn } from "#shared/secrets/secrets.ts";
import { batchReads, publishChanges } from "#shared/webhooks/events/publish.ts";
import type { QueueMessage } from "#shared/webhooks/messages.ts";
import { sweep } from "#shared/webhooks/reconcile/sweep.ts";
import type { FaultyDynamoDb } from "../harness/faulty-dynamodb.ts";
import { calledBy } from "../harness/killable.ts";
import { createWebhook } from "../harness/verbs.ts";
import { newOwner } from "../harness/warm-function.ts";
import { accepted, allowLoopback, automatic, bulkChange, createdProspect, quietContext, START } from "./fixtures.ts";
import { consume } from "./pipeline.ts";

export type Answer = Partial<Exchange> & { readonly ms: number };

export interface Hook {
  readonly companyId: number;
  readonly webhookId: number;
  readonly url: string;
}

export class DeliverySimulation {
  clock = START;
  readonly sent: { readonly url: string; readonly post: Post; readonly at: number }[] = [];
  readonly hooks: Hook[] = [];
  readonly queue: { readonly message: QueueMessage; readonly at: number }[] = [];
  /** Number of messages that were sent to the queue so far. */
  queued = 0;
  readonly inFlight = new Map<string, number>();
  /** The highest number of concurrent requests to a receiver so far, by its URL. */
  readonly mostInFlight = new Map<string, number>();
  readonly context: EventContext;
  readonly api: ApiContext;
  sweeps = true;
  answers: (post: Post, now: number) => Answer = () => ({ ms: 0 });
  readonly #secrets: Secrets;
  readonly #count: number;
  /** Number of busy senders of each message group, by the name of the group. */
  readonly #busyGroups = new Map<string, number>();
  readonly #timers: { at: number; ring: () => void }[] = [];
  #calls = 0;
  #running = 0;

  constructor(db: FaultyDynamoDb, count: number, timeScale = 1) {
    this.#secrets = secretsOn(db.direct);
    this.#count = count;
    const table = calledBy((work) => this.#counted(work), db.direct);
    const send = async (entries: readonly Queued<QueueMessage>[]): Promise<void> => {
      for (const { message, delaySeconds } of entries) {
        this.queue.push({ message, at: this.clock + delaySeconds * 1_000 });
        this.queued++;
      }
    };
    const clock = { now: () => this.clock };
    this.api = contextOn(db.direct, clock);
    this.context = {
      ...quietContext(table, clock, send),
      // The simulated clock must not advance during a call to the key service, so these calls are counted, too.
      secrets: { open: (...place) => this.#counted(() => this.#secrets.open(...place)) },
      wait: (ms) => this.#rest(ms),
      timeScale,
      senders: count,
      post: (post) => this.#post(post),
    };
  }

  async hook(event = "prospect.created"): Promise<Hook> {
    allowLoopback();
    const { companyId } = await newOwner(this.api);
    const url = `http://127.0.0.1:1/${companyId}`;
    const { id } = await createWebhook(this.api, companyId, { name: "x", url, registrations: [automatic(event)] });
    const made = { companyId, webhookId: id, url };
    this.hooks.push(made);
    return made;
  }

  /** Publishes changes of prospects by a bulk job, in groups of 25 as in the service. */
  async publishBulk({ companyId }: Hook, first: number, count: number): Promise<void> {
    const reads = batchReads(this.context);
    for (let at = 0; at < count; at += 25) {
      const changes = Array.from({ length: Math.min(25, count - at) }, (_, i) =>
        bulkChange(companyId, first + at + i, { updatedAt: iso(this.clock) }),
      );
      await publishChanges(this.context, reads, changes);
    }
  }

  async publish({ companyId }: Hook, first: number, count: number): Promise<void> {
    const reads = batchReads(this.context);
    const createdAt = iso(this.clock);
    for (let i = 0; i < count; i++) {
      const after = prospectItem({ ...createdProspect(companyId, first + i), createdAt, updatedAt: createdAt });
      await publishChanges(this.context, reads, [{ before: undefined, after }]);
    }
  }

  /** Runs the senders until the simulated clock shows `end`, and the sweeper once a minute. */
  async runUntil(end: number): Promise<void> {
    for (;;) {
      this.#dispatch();
      await this.#quiet();
      if (this.#running < this.#count && this.queue.some(({ at }) => at <= this.clock)) continue;
      const sweepAt = this.sweeps ? (Math.floor(this.clock / 60_000) + 1) * 60_000 : Number.POSITIVE_INFINITY;
      // Messages that are already due wait for a free sender, so only later ones advance the clock.
      const messages = this.queue.map(({ at }) => at).filter((at) => at > this.clock);
      const next = Math.min(sweepAt, ...this.#timers.map(({ at }) => at), ...messages);
      if (next > end) break;
      this.clock = Math.max(this.clock, next);
      if (next === sweepAt) await sweep(this.context, { assume: "messages-kept" });
      for (const timer of this.#timers.filter(({ at }) => at <= this.clock)) {
        this.#timers.splice(this.#timers.indexOf(timer), 1);
        timer.ring();
      }
      await this.#quiet();
    }
    this.clock = Math.max(this.clock, end);
  }

  /** As in SQS, the next message comes from the message group with the fewest busy senders. */
  #dispatch(): void {
    while (this.#running < this.#count) {
      let best = -1;
      for (const [i, { message, at }] of this.queue.entries()) {
        if (at > this.clock) continue;
        const other = this.queue[best]?.message;
        if (other === undefined || this.#busyWith(message) < this.#busyWith(other)) best = i;
        if (this.#busyWith(message) === 0) break;
      }
      const [next] = best === -1 ? [] : this.queue.splice(best, 1);
      if (next === undefined) return;
      void this.#consume(next.message);
    }
  }

  #busyWith(message: QueueMessage): number {
    return this.#busyGroups.get(messageGroup(message)) ?? 0;
  }

  async #consume(message: QueueMessage): Promise<void> {
    this.#running++;
    raise(this.#busyGroups, messageGroup(message), 1);
    await consume({ context: this.context }, message, false);
    raise(this.#busyGroups, messageGroup(message), -1);
    this.#running--;
  }

  async #post(post: Post): Promise<Exchange> {
    this.sent.push({ url: post.url, post, at: this.clock });
    const { ms, ...answer } = this.answers(post, this.clock);
    raise(this.inFlight, post.url, 1, this.mostInFlight);
    if (ms > 0) await this.#rest(ms);
    raise(this.inFlight, post.url, -1);
    return { ...accepted, ...answer, latencyMs: ms };
  }

  #rest(ms: number): Promise<void> {
    return new Promise((ring) => this.#timers.push({ at: this.clock + ms, ring }));
  }

  async #quiet(): Promise<void> {
    for (let calm = 0; calm < 3; ) {
      await turn();
      calm = this.#calls === 0 ? calm + 1 : 0;
    }
  }

  async #counted<T>(call: () => Promise<T>): Promise<T> {
    this.#calls++;
    return call().finally(() => {
      this.#calls--;
    });
  }
}

function raise<Key>(counts: Map<Key, number>, key: Key, by: number, most?: Map<Key, number>): void {
  const count = (counts.get(key) ?? 0) + by;
  counts.set(key, count);
  if (most !== undefined) most.set(key, Math.max(most.get(key) ?? 0, count));
}
