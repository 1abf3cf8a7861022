/** A dialog for one delivery: what was sent, and for each attempt the headers of the request and the response of the receiver. */

import { useQuery } from "@tanstack/react-query";
import type { Attempt, DeliveryDetail } from "canvassing-client/api";
import { useState } from "react";
import { plainHeaders, standardHeaders } from "../../../shared/webhooks/deliver/headers.ts";
import { Badge } from "../ui/badge.tsx";
import { Field, Input } from "../ui/field.tsx";
import { Modal } from "../ui/modal.tsx";
import { Answer } from "../ui/states.tsx";
import { timeText } from "../ui/text.ts";
import { useDelivery } from "./queries.ts";
import { signaturesOf } from "./signature.ts";
import style from "./webhooks.module.css";

interface DialogProps {
  readonly webhookId: number;
  readonly deliveryId: string;
  readonly onClose: () => void;
}

export function DeliveryDialog({ webhookId, deliveryId, onClose }: DialogProps) {
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
