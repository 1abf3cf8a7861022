/** What the large company can do beside the usual load, to show whether it delays the webhook events of the other companies. */
import * as z from "zod/mini";
import * as limits from "#shared/limits.ts";
import { serveOnLoopback } from "../../infra/local/servers/listener.ts";
import { patientCall } from "./calls.ts";
import type { Company } from "./companies.ts";

export const disturbances = {
  /** A bulk job changes all prospects, and the receiver of its events never answers. */
  hanging: (base: string, company: Company) => bulkJob(base, company, false),
  /** A bulk job changes all prospects, and the receiver of its events answers at once. */
  bulk: (base: string, company: Company) => bulkJob(base, company, true),
  /** A territory of the maximum size changes many times, and each change matches as many registrations as a company may have. */
  "fan-out": fanOut,
} as const;

export interface Disturbance {
  begin(): Promise<unknown>;
  close(): void;
}

const CHANGES = 30;

const openReceiver = (answers: boolean) =>
  serveOnLoopback(async (request, response) => {
    request.resume();
    if (answers) response.end();
  });

const Identified = z.object({ id: z.int() });
const Me = z.object({ user: Identified });

async function bulkJob(base: string, { admin }: Company, answers: boolean): Promise<Disturbance> {
  const { endpoint: url, stop: close } = await openReceiver(answers);
  const ids = z.array(Identified).parse(await patientCall(base, admin, "GET", "/api/prospects/pins"));
  const { user } = Me.parse(await patientCall(base, admin, "GET", "/api/me"));
  const webhook = { name: "Beside", url, registrations: [{ event: "prospect.updated" }] };
  await patientCall(base, admin, "POST", "/api/webhooks", webhook);
  const job = {
    ids: ids.slice(0, limits.bulkIds).map(({ id }) => id),
    action: { set: { assignedToUserId: user.id } },
    events: "each",
  };
  return { begin: () => patientCall(base, admin, "POST", "/api/prospects/bulk", job), close };
}

async function fanOut(base: string, { admin }: Company): Promise<Disturbance> {
  const { endpoint: url, stop: close } = await openReceiver(true);
  const registrations = Array.from({ length: limits.registrationsPerWebhook }, () => ({ event: "territory.updated" }));
  // The loop starts at 1, because the company already has one webhook, for the measured events.
  for (let i = 1; i < limits.webhooksPerCompany; i++) {
    await patientCall(base, admin, "POST", "/api/webhooks", { name: `Beside ${i}`, url, registrations });
  }
  const polygon = Array.from({ length: limits.polygonPointsMax }, () => [-Math.random() * 180, Math.random() * 90]);
  const territory = Identified.parse(await patientCall(base, admin, "POST", "/api/territories", { polygon }));
  async function begin(): Promise<void> {
    for (let i = 0; i < CHANGES; i++) {
      await patientCall(base, admin, "PATCH", `/api/territories/${territory.id}`, { name: `changed ${i}` });
    }
  }
  return { begin, close };
}
