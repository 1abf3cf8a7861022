/** The deliveries of a webhook, the newest first, and a dialog for one: what was sent in each attempt, and what the receiver answered. */

import { useQuery } from "@tanstack/react-query";
import type { Attempt, Delivery, DeliveryDetail } from "canvassing-client/api";
import { useMemo, useState } from "react";
import { plainHeaders, standardHeaders } from "../../../shared/webhooks/deliver/headers.ts";
import { Badge, type BadgeKinds } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { type Column, DataTable } from "../ui/data-table.tsx";
import { Field, Input, Select } from "../ui/field.tsx";
import { Modal } from "../ui/modal.tsx";
import { Panel } from "../ui/page.tsx";
import { Answer } from "../ui/states.tsx";
import { timeText } from "../ui/text.ts";
import { Time } from "../ui/time.tsx";
import { attemptsText } from "./delivery-state.ts";
import { type DeliveryStatus, deliveryStatuses, useDeliveries, useDelivery, useRedeliver } from "./queries.ts";
import style from "./webhooks.module.css";

const kinds: BadgeKinds = { waiting: "warn", delivered: "good", exhausted: "bad", cancelled: "plain" };
const labelOf = (status: string): string => (status === "exhausted" ? "failed" : status);

export function DeliveryLog({ webhookId }: { webhookId: number }) {
  const [status, setStatus] = useState<DeliveryStatus>();
  const [open, setOpen] = useState<string>();
  const query = useDeliveries(webhookId, status);
  const { mutate: redeliver } = useRedeliver(webhookId);
  const columns = useMemo(() => columnsOf(setOpen, redeliver), [redeliver]);
  const rows = query.data?.pages.flatMap(({ items }) => items);
  return (
    <Panel
      title="Deliveries"
      actions={
        <Select
          aria-label="State of the deliveries"
          value={status ?? ""}
          none="All"
          options={deliveryStatuses.map((one) => [one, labelOf(one)])}
          onChange={({ target }) => setStatus(deliveryStatuses.find((one) => one === target.value))}
        />
      }
    >
      <Answer query={{ data: rows, error: query.error, refetch: query.refetch }} what="the deliveries">
        {(shown) => (
          <DataTable
            label="Deliveries"
            columns={columns}
            rows={shown}
            empty={<p>There are no such deliveries in the last 30 days.</p>}
          />
        )}
      </Answer>
      {query.hasNextPage && <Button onClick={() => void query.fetchNextPage()}>Show more</Button>}
      {open !== undefined && (
        <DeliveryDialog webhookId={webhookId} deliveryId={open} onClose={() => setOpen(undefined)} />
      )}
    </Panel>
  );
}

const again = (status: string): string => (status === "waiting" ? "Send now" : "Send again");

const columnsOf = (open: (id: string) => void, redeliver: (id: string) => void): readonly Column<Delivery>[] => [
  {
    id: "created",
    header: "Event at",
    cell: ({ createdAt }) => <Time iso={createdAt} />,
  },
  { id: "event", header: "Event", cell: ({ event }) => event },
  {
    id: "status",
    header: "State",
    cell: (delivery) => (
      <span>
        <Badge kind={kinds[delivery.status]}>{labelOf(delivery.status)}</Badge>{" "}
        <span className="muted">{attemptsText(delivery, Date.now())}</span>
      </span>
    ),
  },
  {
    id: "actions",
    header: "Actions",
    isQuiet: true,
    align: "right",
    cell: ({ id, event, createdAt, status }) => (
      <span className="whole">
        <Button
          kind="quiet"
          aria-label={`${again(status)}: ${event} of ${timeText(createdAt)}`}
          onClick={() => redeliver(id)}
        >
          {again(status)}
        </Button>
        <Button kind="quiet" aria-label={`Details of ${event} of ${timeText(createdAt)}`} onClick={() => open(id)}>
          Details
        </Button>
      </span>
    ),
  },
];

interface DialogProps {
  readonly webhookId: number;
  readonly deliveryId: string;
  readonly onClose: () => void;
}

function DeliveryDialog({ webhookId, deliveryId, onClose }: DialogProps) {
  const [secret, setSecret] = useState("");
  const query = useDelivery(webhookId, deliveryId);
  return (
    <Modal title="Delivery" onClose={onClose}>
      <Answer query={query} what="the delivery">
        {({ attempts, ...delivery }) => (
          <div className="stack inside">
            <p>
              <strong>{delivery.event}</strong> <code>{delivery.id}</code>
            </p>
            <h3>Attempts</h3>
            {attempts.length === 0 && <p>There was no attempt yet.</p>}
            {attempts.map((attempt) => (
              <AttemptView key={attempt.number} delivery={delivery} attempt={attempt} secret={secret} />
            ))}
            {attempts.length > 0 && isSecureContext && (
              <Field
                label="Secret of the webhook"
                hint="The service stores no headers. This page computes them as they were sent, and the signatures with this secret, which stays in the browser."
              >
                <Input
                  type="password"
                  autoComplete="off"
                  value={secret}
                  onChange={({ target }) => setSecret(target.value)}
                />
              </Field>
            )}
            <h3>Body of the request</h3>
            <p>Each attempt sends the same bytes. They are indented here.</p>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls a long body */}
            <pre className={style.code} tabIndex={0}>
              {indented(delivery.body)}
            </pre>
          </div>
        )}
      </Answer>
    </Modal>
  );
}

function indented(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), undefined, 2);
  } catch {
    return json;
  }
}

interface AttemptProps {
  readonly delivery: Pick<DeliveryDetail, "id" | "event" | "body">;
  readonly attempt: Attempt;
  /** The secret that the user has typed, or an empty string. It is not sent to the service. */
  readonly secret: string;
}

function AttemptView({ delivery, attempt, secret }: AttemptProps) {
  const { number, startedAt, latencyMs, status, error, answer } = attempt;
  const isGood = status !== null && status >= 200 && status < 300;
  return (
    <section className={`${style.attempt} stack tight`} aria-label={`Attempt ${number}`}>
      <p>
        {number}. {timeText(startedAt)}{" "}
        <Badge kind={isGood ? "good" : "bad"}>{status === null ? "no answer" : `status ${status}`}</Badge> in{" "}
        {latencyMs} ms
      </p>
      {error !== null && <p>{error}</p>}
      {answer !== "" && <pre className={style.code}>{answer}</pre>}
      <details>
        <summary>Request headers</summary>
        <Headers delivery={delivery} attempt={attempt} secret={secret} />
      </details>
    </section>
  );
}

const NOT_STORED = "(not stored)";

function Headers({ delivery: { id, event, body }, attempt: { number, startedAt }, secret }: AttemptProps) {
  const startedMs = Date.parse(startedAt);
  const { data, error } = useQuery({
    queryKey: ["signatures", id, number, body, secret],
    queryFn: () => signaturesOf(secret, id, body, startedMs),
    enabled: secret !== "",
    retry: false,
    gcTime: 0,
  });
  const headers = {
    ...plainHeaders({ id, event, attempt: number }),
    ...standardHeaders(id, startedMs),
    "X-Service-Signature": NOT_STORED,
    "webhook-signature": NOT_STORED,
    ...data,
  };
  return (
    <>
      <pre className={style.code}>
        {Object.entries(headers)
          .map(([name, value]) => `${name}: ${value}`)
          .join("\n")}
      </pre>
      {secret !== "" && (
        <p>
          These are the signatures of the secret that you have typed. For 24 hours after a change of the secret, the
          request also has the signature of the old secret: in <code>X-Service-Signature-Previous</code>, and as a
          second value in <code>webhook-signature</code>.
        </p>
      )}
      {error !== null && <p>The secret is not valid: after whsec_ it must be base64.</p>}
    </>
  );
}

const STANDARD_PREFIX = "whsec_";

interface Signatures {
  readonly "X-Service-Signature": string;
  readonly "webhook-signature": string;
}

/** Returns the signatures of one attempt of a delivery. Rejects if the secret begins with `whsec_` and the rest is not base64. */
async function signaturesOf(secret: string, deliveryId: string, body: string, startedMs: number): Promise<Signatures> {
  const { "webhook-id": id, "webhook-timestamp": timestamp } = standardHeaders(deliveryId, startedMs);
  const text = new TextEncoder().encode(secret);
  const standardKey = secret.startsWith(STANDARD_PREFIX)
    ? Uint8Array.from(atob(secret.slice(STANDARD_PREFIX.length)), (character) => character.charCodeAt(0))
    : text;
  const own = await hmac(text, body);
  const standard = await hmac(standardKey, `${id}.${timestamp}.${body}`);
  return {
    "X-Service-Signature": [...own].map((byte) => byte.toString(16).padStart(2, "0")).join(""),
    "webhook-signature": `v1,${btoa(String.fromCharCode(...standard))}`,
  };
}

async function hmac(secret: Uint8Array<ArrayBuffer>, text: string): Promise<Uint8Array> {
  const key = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(text)));
}
