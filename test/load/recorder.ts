/** Records the acknowledged writes and the received events of a load test. After the load, it compares them with the service's data. */
import { text } from "node:stream/consumers";
import * as z from "zod/mini";
import { mapConcurrently } from "#shared/all-ended.ts";
import { serveOnLoopback } from "../../infra/local/servers/listener.ts";
import { patientCall, Unanswered } from "./calls.ts";
import type { Company } from "./companies.ts";

const Event = z.object({
  event: z.enum(["prospect.status_changed", "prospect.created"]),
  createdAt: z.string(),
  data: z.object({ prospect: z.object({ id: z.int() }), statusHistoryId: z.optional(z.int()) }),
});

export interface Recorder {
  readonly url: string;
  /** `created` and `changed` record an acknowledged write. */
  created(company: Company, id: number): void;
  changed(company: Company, id: number, statusId: number): void;
  /** Returns the events that have arrived since `takeDelays` was last called, each with the milliseconds since the commit of its change. */
  takeDelays(): readonly { readonly companyId: number; readonly ms: number }[];
  /** Reads every written prospect, and then waits at most `waitMs` until each write in the service's data has its event. */
  settle(base: string, waitMs: number): Promise<Settled>;
  close(): void;
}

export interface Settled {
  readonly writes: number;
  readonly events: number;
  /** Number of acknowledged writes that the service's data does not contain. */
  readonly lostWrites: number;
  /** Number of writes in the service's data whose event has not arrived. */
  readonly lostEvents: number;
  /** Number of events that arrived with more than one delivery id, so that a receiver would take them for several events. */
  readonly doubledEvents: number;
  /** Deliveries that arrived again with the same id. This is no fault: the service repeats a delivery whose answer it did not get. */
  readonly repeatedDeliveries: number;
}

interface Written {
  readonly company: Company;
  isNew: boolean;
  /** The statuses that acknowledged requests have set, in the order of their answers. */
  readonly statusIds: number[];
}

const Detail = z.object({
  statusHistory: z.array(
    z.object({ id: z.int(), createdAt: z.string(), status: z.nullable(z.object({ id: z.int() })) }),
  ),
});

export async function openRecorder(port: number): Promise<Recorder> {
  const written = new Map<number, Written>();
  const deliveries = new Set<string>();
  /** For each event, the number of different delivery ids with which it has arrived. The key names the change, for example `created 17`. */
  const events = new Map<string, number>();
  let repeated = 0;
  let delays: { companyId: number; ms: number }[] = [];
  const { endpoint: url, stop: close } = await serveOnLoopback(async (request, response) => {
    const body = await text(request);
    response.end();
    const delivery = String(request.headers["x-service-delivery"]);
    if (deliveries.has(delivery)) {
      repeated++;
      return;
    }
    deliveries.add(delivery);
    const { event, createdAt, data } = Event.parse(JSON.parse(body));
    const key = event === "prospect.created" ? `created ${data.prospect.id}` : `changed ${data.statusHistoryId}`;
    events.set(key, (events.get(key) ?? 0) + 1);
    const companyId = Number(request.url?.slice(1));
    delays.push({ companyId, ms: Date.now() - Date.parse(createdAt) });
  }, port);

  const entryOf = (company: Company, id: number): Written => {
    const entry = written.get(id) ?? { company, isNew: false, statusIds: [] };
    written.set(id, entry);
    return entry;
  };

  return {
    url,
    close,
    created: (company, id) => {
      entryOf(company, id).isNew = true;
    },
    changed: (company, id, statusId) => {
      entryOf(company, id).statusIds.push(statusId);
    },
    takeDelays() {
      const taken = delays;
      delays = [];
      return taken;
    },
    async settle(base, waitMs) {
      const expected = new Set<string>();
      let [writes, lostWrites] = [0, 0];
      await mapConcurrently([...written], 4, async ([id, { company, isNew, statusIds }]) => {
        const read = await patientCall(base, company.admin, "GET", `/api/prospects/${id}`).catch(missingOnly);
        const detail = z.safeParse(Detail, read);
        writes += statusIds.length + (isNew ? 1 : 0);
        if (!detail.success) {
          lostWrites += statusIds.length + (isNew ? 1 : 0);
          return;
        }
        if (isNew) expected.add(`created ${id}`);
        const oldestFirst = detail.data.statusHistory
          .filter(({ createdAt }) => createdAt >= company.since)
          .toReversed();
        const changes = isNew ? oldestFirst.slice(1) : oldestFirst;
        for (const change of changes) expected.add(`changed ${change.id}`);
        lostWrites += missing(
          statusIds,
          changes.map(({ status }) => status?.id ?? 0),
        );
      });
      const deadline = Date.now() + waitMs;
      const lost = (): string[] => [...expected].filter((key) => !events.has(key));
      while (lost().length > 0 && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 250));
      return {
        writes,
        events: events.size,
        lostWrites,
        lostEvents: lost().length,
        doubledEvents: [...events.values()].filter((count) => count > 1).length,
        repeatedDeliveries: repeated,
      };
    },
  };
}

/**
 * Returns undefined for a prospect that the service does not find, because its write is lost. Throws any other error, which does not show
 * whether the write is lost.
 */
function missingOnly(error: unknown): undefined {
  if (error instanceof Unanswered && error.status === 404) return undefined;
  throw error;
}

/**
 * Returns the number of acknowledged values that `found` does not contain in this order. `found` may also contain values of writes whose
 * answers did not arrive.
 */
function missing(acknowledged: readonly number[], found: readonly number[]): number {
  let at = 0;
  let lost = 0;
  for (const status of acknowledged) {
    const next = found.indexOf(status, at);
    if (next < 0) lost++;
    else at = next + 1;
  }
  return lost;
}
