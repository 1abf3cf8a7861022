/** A dialog for one delivery: what was sent, and what the receiver answered to each attempt. */
import { useState } from "react";
import { Field, Input } from "../ui/field.tsx";
import { Modal } from "../ui/modal.tsx";
import { Answer } from "../ui/states.tsx";
import { AttemptView } from "./attempt-view.tsx";
import { useDelivery } from "./queries.ts";
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
