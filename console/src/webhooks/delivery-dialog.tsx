/** One delivery: what was sent, and what the receiver answered to each attempt. */
import type { Attempt } from "canvassing-client/api";
import { Badge } from "../ui/badge.tsx";
import { Modal } from "../ui/modal.tsx";
import { Answer } from "../ui/states.tsx";
import { timeText } from "../ui/text.ts";
import { useDelivery } from "./queries.ts";
import style from "./webhooks.module.css";

interface DialogProps {
  readonly webhookId: number;
  readonly deliveryId: string;
  readonly onClose: () => void;
}

export function DeliveryDialog({ webhookId, deliveryId, onClose }: DialogProps) {
  const query = useDelivery(webhookId, deliveryId);
  return (
    <Modal title="Delivery" onClose={onClose}>
      <Answer query={query} what="the delivery">
        {({ id, event, body, attempts }) => (
          <div className={style.body}>
            <p>
              <strong>{event}</strong> <code>{id}</code>
            </p>
            <h3>Attempts</h3>
            {attempts.length === 0 && <p>There was no attempt yet.</p>}
            {attempts.map((attempt) => (
              <AttemptView key={attempt.number} attempt={attempt} />
            ))}
            <h3>Body of the request</h3>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls a long body */}
            <pre className={style.code} tabIndex={0}>
              {indented(body)}
            </pre>
          </div>
        )}
      </Answer>
    </Modal>
  );
}

function AttemptView({ attempt: { number, startedAt, latencyMs, status, error, answer } }: { attempt: Attempt }) {
  const isGood = status !== null && status >= 200 && status < 300;
  return (
    <section className={style.attempt}>
      <p>
        {number}. {timeText(startedAt)}{" "}
        <Badge kind={isGood ? "good" : "bad"}>{status === null ? "no answer" : `status ${status}`}</Badge> in{" "}
        {latencyMs} ms
      </p>
      {error !== null && <p>{error}</p>}
      {answer !== "" && <pre className={style.code}>{answer}</pre>}
    </section>
  );
}

function indented(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), undefined, 2);
  } catch {
    return json;
  }
}
