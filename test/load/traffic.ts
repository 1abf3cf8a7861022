/** Sends the planned requests at their times, and records the answer to each. */
import { setTimeout as wait } from "node:timers/promises";
import * as z from "zod/mini";
import { at } from "#shared/at.ts";
import { randomSequence } from "../../infra/local/demo/random.ts";
import type { Arrival, Operation } from "./arrivals.ts";
import { type Answer, call } from "./calls.ts";
import { type Company, newProspect } from "./companies.ts";
import type { Recorder } from "./recorder.ts";

export interface Sample {
  readonly company: number;
  readonly operation: Operation;
  /** Milliseconds from the planned time of the request to its answer, also if the generator was late. */
  readonly ms: number;
  /** The HTTP status, or 0 if there was no answer. */
  readonly status: number;
  readonly hasRetryAfter: boolean;
}

/**
 * While this many requests wait for their answers, no more requests are sent, so that the generator needs a limited amount of memory.
 * Unsent requests count as requests without an answer.
 */
const MAX_OPEN = 2_000;

const Created = z.object({ id: z.int() });

interface Scene {
  readonly base: string;
  readonly companies: readonly Company[];
  readonly recorder: Recorder;
}

export async function send(scene: Scene, planned: readonly Arrival[]): Promise<Sample[]> {
  const samples: Sample[] = [];
  const open = new Set<Promise<void>>();
  const random = randomSequence(planned.length + 1);
  const began = performance.now();
  for (const arrival of planned) {
    const early = arrival.atMs - (performance.now() - began);
    if (early > 1) await wait(early);
    const record = ({ status, retryAfter }: Answer): void => {
      const { company, operation } = arrival;
      const ms = performance.now() - began - arrival.atMs;
      samples.push({ company, operation, ms, status, hasRetryAfter: retryAfter !== null });
    };
    if (open.size >= MAX_OPEN) {
      record({ status: 0, body: undefined, retryAfter: null });
      continue;
    }
    const sent: Promise<void> = perform(scene, arrival, random)
      .then(record)
      .finally(() => open.delete(sent));
    open.add(sent);
  }
  await Promise.all(open);
  return samples;
}

async function perform(
  scene: Scene,
  { company: index, rep, operation }: Arrival,
  random: () => number,
): Promise<Answer> {
  const { base, companies, recorder } = scene;
  const company = at(companies, index);
  const token = at(company.reps, rep % company.reps.length);
  const any = <T>(list: readonly T[]): T => at(list, Math.floor(random() * list.length));
  const get = (path: string): Promise<Answer> => call(base, token, "GET", path);
  switch (operation) {
    case "patch":
      return change(base, company, token, recorder, any);
    case "create": {
      const statusId = any(company.statusIds);
      const body = newProspect(Math.floor(random() * 10_000), statusId);
      const answer = await call(base, token, "POST", "/api/prospects", body);
      const created = z.safeParse(Created, answer.body);
      if (answer.status === 201 && created.success) {
        company.prospects.push({ id: created.data.id, statusId, isChanging: false });
        recorder.created(company, created.data.id);
      }
      return answer;
    }
    case "pins":
      return get(`/api/prospects/pins?bbox=${company.box}`);
    case "detail":
      return get(`/api/prospects/${any(company.prospects).id}`);
    case "list":
      return get(`/api/prospects?pageSize=25&page=${1 + Math.floor(random() * 2)}`);
    case "search":
      return get(`/api/prospects?search=${any(["Load", "Garcia", "Denver", "303"])}`);
  }
}

async function change(
  base: string,
  company: Company,
  token: string,
  recorder: Recorder,
  any: <T>(list: readonly T[]) => T,
): Promise<Answer> {
  const idle = company.prospects.filter(({ isChanging }) => !isChanging);
  // In a small company at a high rate, changes of all prospects may be unanswered. Then a GET is sent instead of a PATCH.
  if (idle.length === 0) return call(base, token, "GET", `/api/prospects/${at(company.prospects, 0).id}`);
  const prospect = any(idle);
  const statusId = any(company.statusIds.filter((id) => id !== prospect.statusId));
  prospect.isChanging = true;
  const answer = await call(base, token, "PATCH", `/api/prospects/${prospect.id}`, { currentStatusId: statusId });
  // Without an answer, the status of the prospect is unknown. A further change could set the status that the prospect already has, and
  // would then cause no event. The prospect is therefore not changed any more.
  prospect.isChanging = answer.status === 0;
  if (answer.status === 200) {
    prospect.statusId = statusId;
    recorder.changed(company, prospect.id, statusId);
  }
  return answer;
}
